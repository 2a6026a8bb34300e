//! Uses of the library that must not compile. Only tests of the documentation see this file.

/// A flow that is being trained cannot be used otherwise.
///
/// ```compile_fail,E0502
/// # use hintflow::{Dataset, Engine, TrainConfig, Trainer};
/// # fn main() -> hintflow::Result<()> {
/// let data = Dataset::from_rows(&[0.0; 40], 2).build()?;
/// let mut flow = data.flow().build(&Engine::cpu()?)?;
/// let mut trainer = Trainer::new(&mut flow, &data, TrainConfig::default())?;
/// flow.sample(10, 1)?; // error: `flow` is borrowed by the trainer
/// trainer.epoch()?;
/// # Ok(())
/// # }
/// ```
struct UsedWhileTraining;

/// A flow cannot have two trainers at the same time.
///
/// ```compile_fail,E0499
/// # use hintflow::{Dataset, Engine, TrainConfig, Trainer};
/// # fn main() -> hintflow::Result<()> {
/// let data = Dataset::from_rows(&[0.0; 40], 2).build()?;
/// let mut flow = data.flow().build(&Engine::cpu()?)?;
/// let mut first = Trainer::new(&mut flow, &data, TrainConfig::default())?;
/// let mut second = Trainer::new(&mut flow, &data, TrainConfig::default())?;
/// first.epoch()?;
/// # Ok(())
/// # }
/// ```
struct TwoTrainers;

/// A trainer that has finished is gone, so no step can be taken beyond the end.
///
/// ```compile_fail,E0382
/// # use hintflow::{Dataset, Engine, TrainConfig, Trainer};
/// # fn main() -> hintflow::Result<()> {
/// let data = Dataset::from_rows(&[0.0; 40], 2).build()?;
/// let mut flow = data.flow().build(&Engine::cpu()?)?;
/// let mut trainer = Trainer::new(&mut flow, &data, TrainConfig::default())?;
/// trainer.finish()?;
/// trainer.epoch()?; // error: use of a moved value
/// # Ok(())
/// # }
/// ```
struct AStepBeyondTheEnd;

/// The transforms of a flow are those of its data; nobody else can set them.
///
/// ```compile_fail,E0624
/// # fn main() -> hintflow::Result<()> {
/// let data = hintflow::Dataset::from_rows(&[0.0; 40], 2).build()?;
/// hintflow::Flow::builder(2).units(data.x.clone()); // error: private
/// # Ok(())
/// # }
/// ```
struct ForeignTransforms;

/// Rows of a data set cannot be changed behind a trainer's back.
///
/// ```compile_fail,E0616
/// # fn main() -> hintflow::Result<()> {
/// let mut data = hintflow::Dataset::from_rows(&[0.0; 40], 2).build()?;
/// data.test.clear(); // error: private
/// # Ok(())
/// # }
/// ```
struct RowsChangedBehindATrainer;
