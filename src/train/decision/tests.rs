use super::*;
use crate::config::preset::for_affine_tables;

/// Rules of affine tables: 100 epochs, patience 5, a cool-down of 10.
fn settings() -> Train {
    let mut train = for_affine_tables().train;
    (train.epochs, train.patience, train.cooldown, train.retries, train.keep) = (100, 5, 10, 2, Keep::Best);
    train
}

/// A training of which only the losses are known: of each epoch, that of the held-out rows and the least of the others.
struct Walk {
    rules: Rules,
    course: Course,
    epoch: u64,
}

impl Walk {
    fn new(train: &Train) -> Self {
        Self { rules: train.into(), course: Course::default(), epoch: 0 }
    }

    fn with_least(&mut self, loss: f64, least_loss: f64) -> AfterEpoch {
        self.epoch += 1;
        let score = Some((loss, -loss));
        let ended = Ended { epoch: self.epoch, step: 10 * self.epoch, score, least_loss, columns: 4 };
        self.course.after(&self.rules, &ended)
    }

    fn epoch(&mut self, loss: f64) -> AfterEpoch {
        self.with_least(loss, 1.0)
    }

    /// Epochs with this loss, of which nothing special comes.
    fn plain(&mut self, count: u64, loss: f64) {
        for _ in 0..count {
            assert_eq!(self.epoch(loss), PLAIN, "epoch {}", self.epoch);
        }
    }

    fn is_over(&self) -> bool {
        self.course.is_over(&self.rules, self.epoch)
    }

    fn kept(&self) -> Kept {
        self.course.kept(&self.rules, self.epoch, Some((99.0, -99.0)))
    }
}

const PLAIN: AfterEpoch = AfterEpoch { is_best: false, retry: None, next: Next::Epoch };
const BETTER: AfterEpoch = AfterEpoch { is_best: true, ..PLAIN };

fn best(epoch: u64, test_loss: f64) -> BestEpoch {
    BestEpoch { epoch, test_loss, ll: -test_loss }
}

#[test]
fn a_training_that_gets_better_goes_to_its_end() {
    let mut walk = Walk::new(&settings());
    for epoch in 1..100 {
        assert_eq!(walk.epoch(2.0 - epoch as f64 / 100.0), BETTER);
        assert_eq!(walk.course.end(&walk.rules, epoch), 100);
    }
    assert_eq!(walk.epoch(0.5), AfterEpoch { is_best: true, retry: None, next: Next::Over });
    let kept = walk.kept();
    assert!(walk.is_over() && !kept.stopped_early);
    assert_eq!((kept.epoch, kept.epochs, kept.test_loss, kept.ll), (100, 100, Some(0.5), Some(-0.5)));
}

#[test]
fn only_less_is_better() {
    let mut walk = Walk::new(&Train { patience: 0, ..settings() });
    assert_eq!([f64::NAN, f64::INFINITY].map(|loss| walk.with_least(loss, 1.0)), [PLAIN; 2]);
    assert_eq!(walk.epoch(1.0), BETTER);
    assert_eq!([1.0, 1.1, f64::NAN].map(|loss| walk.epoch(loss)), [PLAIN; 3]);
    assert_eq!(walk.epoch(0.9), BETTER);
    assert_eq!(walk.course.best, Some(best(7, 0.9)));
}

#[test]
fn a_plateau_cools_down_once_from_the_best_epoch_and_is_over() {
    let mut walk = Walk::new(&settings());
    assert_eq!(walk.epoch(1.0), BETTER);
    walk.plain(4, 1.5);
    let cooldown = Cooldown { start: 6, from: 1 };
    assert_eq!(walk.epoch(1.5), AfterEpoch { next: Next::CoolDown(cooldown), ..PLAIN });
    assert_eq!(walk.course.end(&walk.rules, 6), 16);
    assert_eq!(walk.course.begun(&walk.rules, 9, 10), 60, "Adam begins anew");
    // One of its epochs is better; that more than `patience` are not changes nothing.
    assert_eq!(walk.epoch(0.8), BETTER);
    walk.plain(8, 1.5);
    assert_eq!(walk.epoch(1.5), AfterEpoch { next: Next::Over, ..PLAIN });
    let kept = walk.kept();
    assert_eq!((kept.epoch, kept.epochs, kept.stopped_early, kept.cooldown), (7, 16, true, Some(cooldown)));
    // Where the last model is left, the best one is only what it cooled down from.
    walk.rules.keep = Keep::Last;
    assert_eq!((walk.kept().epoch, walk.kept().test_loss, walk.kept().cooldown), (16, Some(99.0), Some(cooldown)));
}

#[test]
fn a_late_cooldown_has_the_epochs_that_are_left() {
    let mut walk = Walk::new(&settings());
    (1..92).for_each(|epoch| assert_eq!(walk.epoch(200.0 - epoch as f64), BETTER));
    walk.plain(4, 200.0);
    assert_eq!(walk.epoch(200.0).next, Next::CoolDown(Cooldown { start: 96, from: 91 }));
    walk.plain(3, 200.0);
    assert_eq!(walk.epoch(200.0).next, Next::Over);
    assert!(!walk.kept().stopped_early, "all epochs were trained");
    // None is left: there is nothing to cool down in.
    let mut walk = Walk::new(&Train { epochs: 6, ..settings() });
    assert_eq!(walk.epoch(1.0), BETTER);
    walk.plain(4, 2.0);
    assert_eq!((walk.epoch(2.0).next, walk.course.cooldown), (Next::Over, None));
}

#[test]
fn without_a_cooldown_lost_patience_is_the_end() {
    let mut walk = Walk::new(&Train { cooldown: 0, ..settings() });
    assert_eq!((walk.epoch(2.0), walk.epoch(1.0)), (BETTER, BETTER));
    walk.plain(4, 1.5);
    assert_eq!((walk.epoch(1.5).next, walk.course.end(&walk.rules, 7)), (Next::Over, 7));
    let kept = walk.kept();
    assert_eq!((kept.epoch, kept.epochs, kept.stopped_early, kept.cooldown), (2, 7, true, None));
    // Patience 0 is never lost, nor is it where no row is held out.
    let mut walk = Walk::new(&Train { patience: 0, ..settings() });
    assert_eq!(walk.epoch(1.0), BETTER);
    walk.plain(50, 1.5);
    let mut course = Course::default();
    for epoch in 1..100 {
        let ended = Ended { epoch, step: epoch, score: None, least_loss: 1e9, columns: 4 };
        assert_eq!(course.after(&walk.rules, &ended), PLAIN);
    }
    assert_eq!(course.kept(&walk.rules, 100, None).test_loss, None);
}

#[test]
fn a_second_cycle_takes_the_best_model_and_has_to_be_clearly_better() {
    let train = Train { epochs: 20, cycles: Some(2), patience: 0, ..settings() };
    for (second, better) in [(0.96, false), (0.94, true)] {
        let mut walk = Walk::new(&train);
        assert_eq!(walk.epoch(1.0), BETTER);
        walk.plain(8, 1.5);
        assert_eq!(walk.epoch(1.5), AfterEpoch { next: Next::Cycle(1, Some(best(1, 1.0))), ..PLAIN });
        assert_eq!((walk.course.begun(&walk.rules, 9, 10), walk.course.begun(&walk.rules, 10, 10)), (0, 100));
        assert_eq!(walk.epoch(second).is_best, better);
        // Within the cycle any less is better.
        assert_eq!(walk.epoch(second - 0.001).is_best, better, "{second}");
        walk.plain(7, 1.5);
        assert_eq!(walk.epoch(1.5).next, Next::Over);
        assert_eq!(walk.kept().epoch, if better { 12 } else { 1 });
    }
    // Without held-out rows it goes on from the present model.
    let mut course = Course::default();
    let ended = Ended { epoch: 10, step: 100, score: None, least_loss: 1.0, columns: 4 };
    assert_eq!(course.after(&Rules::from(&train), &ended).next, Next::Cycle(1, None));
}

#[test]
fn a_cooldown_in_the_epochs_of_a_cycle_begins_none() {
    let mut walk = Walk::new(&Train { epochs: 20, cycles: Some(2), patience: 8, ..settings() });
    assert_eq!(walk.epoch(1.0), BETTER);
    walk.plain(7, 1.5);
    assert_eq!(walk.epoch(1.5).next, Next::CoolDown(Cooldown { start: 9, from: 1 }));
    // The tenth epoch would be the last of the first cycle; the cool-down stays one of that.
    walk.plain(1, 1.5);
    assert_eq!(walk.course.cycle(&walk.rules, 12), 0);
    assert_eq!(walk.epoch(0.99), BETTER);
    // Where both are due at once, it cools down.
    let mut walk = Walk::new(&Train { epochs: 20, cycles: Some(2), patience: 9, ..settings() });
    assert_eq!(walk.epoch(1.0), BETTER);
    walk.plain(8, 1.5);
    assert_eq!(walk.epoch(1.5).next, Next::CoolDown(Cooldown { start: 10, from: 1 }));
    // And where nothing cools down, the training that is over takes the best model nevertheless.
    let mut walk = Walk::new(&Train { epochs: 20, cycles: Some(2), patience: 9, cooldown: 0, ..settings() });
    assert_eq!(walk.epoch(1.0), BETTER);
    walk.plain(8, 1.5);
    assert_eq!((walk.epoch(1.5).next, walk.is_over()), (Next::Cycle(1, Some(best(1, 1.0))), true));
}

#[test]
fn a_training_that_diverges_goes_back_as_often_as_it_may() {
    let mut walk = Walk::new(&settings());
    // Before there is a best epoch: to the last good model, which is to be remembered until then.
    assert!(walk.course.needs_last(&walk.rules));
    assert_eq!(walk.course.diverged(&walk.rules, 0), Some(GoBackTo::Last));
    assert_eq!(walk.epoch(1.0), BETTER);
    assert!(!walk.course.needs_last(&walk.rules));
    let back = walk.with_least(f64::NAN, 1e6);
    assert_eq!(back, AfterEpoch { retry: Some(GoBackTo::Best(best(1, 1.0))), ..PLAIN });
    assert_eq!((walk.course.retries, walk.course.retries.factor()), (Retries { count: 2, step: 20 }, 0.25));
    assert_eq!(walk.course.begun(&walk.rules, 2, 10), 20);
    // None is left: a step that diverges fails, and an epoch that explodes is merely bad.
    assert_eq!(walk.course.diverged(&walk.rules, 25), None);
    assert_eq!((walk.with_least(f64::NAN, 1e6), walk.course.retries.count), (PLAIN, 2));
    // Unless there is no model at all.
    let mut walk = Walk::new(&Train { retries: 0, ..settings() });
    assert_eq!((walk.with_least(f64::NAN, 1e6).next, walk.course), (Next::Fails, Course::default()));
    // Where nothing ever goes back to the best epoch, its weights are not remembered.
    let train = Train { keep: Keep::Last, cooldown: 0, ..settings() };
    let mut walk = Walk::new(&train);
    assert_eq!(walk.epoch(1.0), BETTER);
    assert!(walk.course.needs_last(&walk.rules));
    assert_eq!(walk.with_least(1e6, 1e6).retry, Some(GoBackTo::Last));
}

#[test]
fn going_back_and_cooling_down_may_come_together() {
    let mut walk = Walk::new(&settings());
    assert_eq!(walk.epoch(1.0), BETTER);
    walk.plain(4, 1.5);
    let turn = walk.with_least(f64::INFINITY, 1e6);
    let next = Next::CoolDown(Cooldown { start: 6, from: 1 });
    assert_eq!(turn, AfterEpoch { is_best: false, retry: Some(GoBackTo::Best(best(1, 1.0))), next });
}

#[test]
fn a_saved_state_decides_as_one_that_never_stopped() {
    let losses = [3.0, 2.0, f64::NAN, 1.0, 1.5, 1.5, 1.5, 1.5, 1.5, 0.9, 1.5, 1.5];
    let train = Train { cycles: Some(25), ..settings() };
    for stop in 0..losses.len() {
        let mut whole = Walk::new(&train);
        let mut resumed = Walk::new(&train);
        for (i, &loss) in losses.iter().enumerate() {
            if i == stop {
                // What a checkpoint has: numbers, and the position.
                let Course { best, cooldown, retries } = resumed.course;
                let json = serde_json::to_string(&(cooldown, retries)).unwrap();
                let (cooldown, retries) = serde_json::from_str(&json).unwrap();
                resumed = Walk { course: Course { best, cooldown, retries }, epoch: i as u64, ..Walk::new(&train) };
            }
            assert_eq!(whole.with_least(loss, 1e6), resumed.with_least(loss, 1e6), "epoch {i}, stopped after {stop}");
        }
        assert_eq!(whole.course, resumed.course);
        assert!(whole.course.cooldown.is_some() && whole.course.retries.count == 1);
    }
}

#[test]
fn only_a_model_that_is_gone_has_exploded() {
    let of = |best, least_loss, test: Option<f64>| {
        let score = test.map(|loss| (loss, 0.0));
        exploded(best, &Ended { epoch: 4, step: 40, score, least_loss, columns: 4 })
    };
    let told = |least, test| of(Some(best(3, -40.0)), least, test);
    assert!(told(1e6, Some(1e6)) && told(361.0, Some(f64::NAN)) && told(361.0, Some(f64::INFINITY)));
    // A huge row among the held-out ones, among those of some batches, or an epoch that is merely bad.
    assert!(!told(-39.0, Some(1e30)) && !told(-39.0, Some(f64::NAN)) && !told(1e6, Some(-39.0)));
    assert!(!told(359.0, Some(359.0)) && !told(f64::NEG_INFINITY, Some(1e6)));
    assert!(!told(1e6, None) && !of(None, 1e6, None));
    // Without a best one.
    assert!(of(None, 1e6, Some(f64::NAN)) && of(None, 1e6, Some(f64::INFINITY)));
    assert!(!of(None, 1e6, Some(1e6)) && !of(None, 1.0, Some(f64::NAN)));
}

#[test]
fn each_retry_halves_the_rate() {
    assert_eq!([0, 1, 3].map(|count| Retries { count, step: 7 }.factor()), [1.0, 0.5, 0.125]);
}
