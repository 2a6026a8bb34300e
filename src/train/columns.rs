//! Which columns of which file are conditions and which are modelled, and what the settings say of them.

mod like;

use std::path::Path;

use crate::config::{Config, Given, keys};
use crate::counted::counted;
use crate::data::Table;
use crate::data::columns::units::{ColumnSetting, Units};
use crate::data::files::{Far, Limits, Reading};
use crate::data::packing::{Packed, Packing, shortened};
use crate::error::{Error, Result};
use crate::flow::ModelFile;
use like::{Like, fits_the_model};

/// The columns of rows [y, x].
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RowColumns {
    /// C.
    pub(super) cond_dim: usize,
    /// N.
    pub(super) dim: usize,
    /// Names of the conditions; empty where they have none.
    pub(super) y: Vec<String>,
    /// Names of the columns that are modelled; empty where they have none.
    pub(super) x: Vec<String>,
    /// Numbers of all columns of a row, from 1, in the file of each.
    numbers: Vec<usize>,
    /// How they are packed; empty if none is.
    packing: Vec<Packing>,
    /// Whether the conditions are columns of the same table, so that a number means one column.
    one_table: bool,
}

const GIVEN: &str = "data.given";

/// Before the number of a condition that has a file of its own.
const PREFIX: &str = "given.";

/// Reads the rows [y, x] that the settings ask for, the columns of x from `path`. They lie inside the bounds that the
/// settings, or the model to start from, have. Columns are packed as those of `like`, or as they need it.
pub(super) fn read(
    config: &Config,
    path: &Path,
    init: Option<&ModelFile>,
    like: Option<&ModelFile>,
) -> Result<(Table, RowColumns)> {
    let data = &config.data;
    let chosen = data.columns.as_ref().map(|columns| columns.0.as_slice());
    let like = like.map(Like::of).transpose()?;
    // Numbers that a model to start from has no place for are told below.
    let begins_from = init.filter(|_| config.model.init.is_some());
    let far = if begins_from.is_some() { Far::Nearest } else { Far::Fails };
    let reading = |lane: fn(&Like) -> (Packed<'_>, Limits<'_>), prefix| {
        let (packed, limits) = like.as_ref().map_or((Packed::AsNeeded, Limits::Set(&config.columns, prefix)), lane);
        Reading { text: data.text(), packed, limits, far, without: None }
    };
    let modelled = || match chosen {
        Some(columns) => Table::read_columns_with(path, columns, &reading(Like::x, "")),
        None => Table::read_with(path, &reading(Like::x, "")),
    };
    let (y, x, given) = match &data.given {
        None => (None, modelled()?, path),
        Some(Given::File(given)) => {
            let (y, x) = (Table::read_with(given, &reading(Like::y, PREFIX))?, modelled()?);
            if y.left_out() + x.left_out() > 0 {
                let what = "leaves out rows, but the conditions are in a file of their own, whose rows would no longer belong \
                            to those of the data; put both in one file";
                return Err(Error::config("data.missing", what));
            }
            if y.rows != x.rows {
                let what = format!(
                    "has {}, but {} has {}: every row needs the conditions of its own",
                    counted(y.rows, "row"),
                    path.display(),
                    x.rows
                );
                return Err(Error::format(given, what));
            }
            (Some(y), x, given.as_path())
        }
        Some(Given::Columns(given)) => {
            let parts = Table::read_parts(path, &given.0, chosen, &reading(Like::both, ""))?;
            (Some(parts.given), parts.modelled, path)
        }
    };
    let one_table = !matches!(data.given, Some(Given::File(_)));
    let (rows, columns) = joined(y, x, one_table)?;
    let file_of = |column: usize| if column < columns.cond_dim { given } else { path };
    if begins_from.is_some() {
        fits_the_model(&rows, file_of)?;
    }
    let bounds = match init {
        Some(file) => columns.carried(file)?.bounds,
        None => columns.settings(config)?.iter().map(ColumnSetting::bounds).collect(),
    };
    // While rows are as they are in the files.
    let units = Units { columns: columns.names(), packing: columns.packing.clone(), bounds, ..Units::default() };
    if let Some(outside) = units.outside(rows.values()) {
        let file = file_of(outside.column - 1);
        return Err(outside.in_file(file, &columns.numbers));
    }
    Ok((rows, columns))
}

/// Rows in memory: conditions, where the settings name some, come first.
#[cfg(test)]
pub(super) fn in_memory(config: &Config, table: Table) -> Result<(Table, RowColumns)> {
    match &config.data.given {
        Some(Given::Columns(given)) => {
            let parts = table.parts(&given.0, None)?;
            joined(Some(parts.given), parts.modelled, true)
        }
        Some(Given::File(path)) => {
            let what = format!("is the file {}; conditions of rows in memory are named columns", path.display());
            Err(Error::config(GIVEN, what))
        }
        None => joined(None, table, true),
    }
}

/// Rows [y, x].
fn joined(y: Option<Table>, x: Table, one_table: bool) -> Result<(Table, RowColumns)> {
    let (dim, names) = (x.dim(), x.columns.clone());
    let (rows, of_y) = match y {
        None => (x, Vec::new()),
        Some(y) => {
            if let Some(name) = y.columns.iter().find(|name| names.contains(name)) {
                let what = format!(
                    "`{name}` is a condition and a column of the data; rename one, so that they can be told apart"
                );
                return Err(Error::config(GIVEN, what));
            }
            (y.beside(&x)?, y.columns)
        }
    };
    let numbers = rows.file_numbers().to_vec();
    let packing = shortened((0..rows.dim()).map(|j| rows.packing(j)).collect());
    let columns = RowColumns { cond_dim: rows.dim() - dim, dim, y: of_y, x: names, numbers, packing, one_table };
    Ok((rows, columns))
}

impl RowColumns {
    /// Those of simulated rows.
    pub(super) fn simulated(y: Vec<String>, x: Vec<String>) -> Self {
        let (cond_dim, dim) = (y.len(), x.len());
        let numbers = (1..=cond_dim).chain(1..=dim).collect();
        Self { cond_dim, dim, y, x, numbers, packing: Vec::new(), one_table: false }
    }

    /// Those of rows in memory, [C, N] of them.
    pub(super) fn in_memory(y: &[String], x: &[String], [cond_dim, dim]: [usize; 2], numbers: &[usize]) -> Self {
        let (y, x, numbers, packing) = (y.to_vec(), x.to_vec(), numbers.to_vec(), Vec::new());
        Self { cond_dim, dim, y, x, numbers, packing, one_table: false }
    }

    /// C + N.
    pub(super) fn row(&self) -> usize {
        self.cond_dim + self.dim
    }

    /// Names of all columns of a row, those that settings take where a part of them has none; empty where none has a
    /// name.
    fn names(&self) -> Vec<String> {
        if self.y.is_empty() && self.x.is_empty() {
            return Vec::new();
        }
        (0..self.row()).map(|j| self.name(j).cloned().unwrap_or_else(|| self.number(j))).collect()
    }

    /// Name of column `j` of a row, from 0.
    fn name(&self, j: usize) -> Option<&String> {
        if j < self.cond_dim { self.y.get(j) } else { self.x.get(j - self.cond_dim) }
    }

    /// What settings call column `j` of a row, from 0, where it has no name.
    fn number(&self, j: usize) -> String {
        let of_given = if j < self.cond_dim && !self.one_table { PREFIX } else { "" };
        format!("{of_given}{}", self.numbers[j])
    }

    /// How the columns of a row are packed; empty if none is.
    pub(super) fn packing(&self) -> &[Packing] {
        &self.packing
    }

    /// How column `j` of a row, from 0, is packed.
    pub(super) fn packing_of(&self, j: usize) -> Packing {
        self.packing.get(j).copied().unwrap_or_default()
    }

    /// The number that a value of column `j` of a row, from 0, stands for, as a message has it.
    pub(super) fn number_of(&self, j: usize, value: f32) -> String {
        self.packing_of(j).shown(value)
    }

    /// What to call column `j` of a row, from 0, in a message.
    pub(super) fn label(&self, j: usize) -> String {
        let what = if j < self.cond_dim { "condition" } else { "column" };
        self.name(j).cloned().unwrap_or_else(|| format!("{what} {}", self.numbers[j]))
    }

    /// What to call some columns of a row in a message, one by one.
    pub(super) fn labels(&self, columns: &[usize]) -> Vec<String> {
        columns.iter().map(|&j| self.label(j)).collect()
    }

    /// What to call column `j` of a row, from 0, where the message says what it is.
    pub(super) fn name_or_number(&self, j: usize) -> String {
        self.name(j).cloned().unwrap_or_else(|| self.numbers[j].to_string())
    }

    /// What the settings say of each column of a row, of packed numbers; empty where they say nothing.
    pub(super) fn settings(&self, config: &Config) -> Result<Vec<ColumnSetting>> {
        if config.columns.is_empty() {
            return Ok(Vec::new());
        }
        let mut settings = vec![ColumnSetting::default(); self.row()];
        let mut set_by: Vec<Option<&str>> = vec![None; self.row()];
        for (name, &column) in &config.columns {
            let j = self.find(name)?;
            if let Some(other) = set_by[j].replace(name) {
                let what = format!("is the same column as `columns.{other}`; give all its settings under one name");
                return Err(Error::config(format!("columns.{name}"), what));
            }
            settings[j] = column.packed(self.packing_of(j));
            if let Some(mistake) = settings[j].bounds().mistake() {
                return Err(Error::config(format!("columns.{name}"), mistake));
            }
        }
        Ok(settings)
    }

    /// The column of a row that a setting names: by its name, or by its number in its file (with [`PREFIX`] where the
    /// conditions have a file of their own).
    fn find(&self, name: &str) -> Result<usize> {
        let columns = || 0..self.row();
        let named = columns().find(|&j| self.name(j).is_some_and(|known| known == name));
        named.or_else(|| columns().find(|&j| self.number(j) == name)).ok_or_else(|| {
            let nearest = columns().filter_map(|j| self.name(j)).min_by_key(|known| keys::edit_distance(known, name));
            let numbers = || columns().map(|j| self.number(j)).take(30).collect::<Vec<_>>().join(", ");
            let hint = nearest.map_or_else(
                || format!("the columns have no names but numbers: {}", numbers()),
                |nearest| format!("did you mean `{nearest}`?"),
            );
            Error::config(format!("columns.{name}"), format!("there is no such column; {hint}"))
        })
    }

    /// The units of all columns that a model to start from has.
    pub(super) fn carried(&self, file: &ModelFile) -> Result<Units> {
        let spec = &file.plan.spec;
        if (spec.dim as usize, spec.cond_dim as usize) != (self.dim, self.cond_dim) {
            let count = |dim: usize, cond_dim: usize| match cond_dim {
                0 => counted(dim, "column"),
                c => format!("{} and {}", counted(dim, "column"), counted(c, "condition")),
            };
            let model = count(spec.dim as usize, spec.cond_dim as usize);
            let what = format!("the model has {model}, the data has {}", count(self.dim, self.cond_dim));
            return Err(Error::config("model.init", what));
        }
        let packing = |j: usize| match j.checked_sub(self.cond_dim) {
            Some(c) => file.x.packing(c),
            None => file.y.packing(j),
        };
        // Rows in memory are packed by whoever has them.
        if let Some(j) = (0..self.row()).find(|&j| !self.packing.is_empty() && self.packing_of(j) != packing(j)) {
            let what = format!(
                "the model to start from (--init) has another column in the place of {}: it takes that {}, and {} {}; bring the \
                 columns into the model's order (data.columns)",
                self.label(j),
                packing(j).how(),
                self.label(j),
                self.packing_of(j).how()
            );
            return Err(Error::config("model.init", what));
        }
        if self.cond_dim > 0 && file.y.squash != file.x.squash {
            let what = "the model to start from draws its conditions and its columns in at different distances; a training \
                        has one for both";
            return Err(Error::config("data.squash", what));
        }
        Ok(Units::join([&file.y, &file.x], [self.cond_dim, self.dim]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::for_tables;
    use crate::config::{self, Preset};
    use crate::data::Bounds;
    use crate::plan::Kind;
    use std::path::PathBuf;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        }
    }

    fn hint(given: Given) -> Config {
        let mut config = for_tables();
        config.model.kind = Kind::Hint;
        config.data.given = Some(given);
        config
    }

    fn bound(config: &mut Config, name: &str, lower: f64) {
        config.columns.insert(name.into(), Bounds { lower: Some(lower), upper: None }.into());
    }

    fn message(config: &Config, path: &Path) -> String {
        read(config, path, None, None).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn conditions_come_first_from_a_file_or_from_columns() {
        let place = Place::new();
        let x = place.write("x.csv", "a,b,c\n1,2,3\n4,5,6\n");
        let y = place.write("y.txt", "# seen\n7\n8\n");
        let (rows, columns) = read(&hint(Given::File(y.clone())), &x, None, None).unwrap();
        assert_eq!(rows.values(), [7.0, 1.0, 2.0, 3.0, 8.0, 4.0, 5.0, 6.0]);
        assert_eq!((columns.cond_dim, columns.dim, &columns.y[..]), (1, 3, &["seen".to_owned()][..]));
        let (rows, columns) = read(&hint(Given::of_text("c,1")), &x, None, None).unwrap();
        assert_eq!(rows.values(), [3.0, 1.0, 2.0, 6.0, 4.0, 5.0]);
        assert_eq!((columns.y, columns.x), (vec!["c".to_owned(), "a".into()], vec!["b".to_owned()]));
        let mut config = hint(Given::of_text("c"));
        config.data.columns = Some(config::Columns(vec!["b".into()]));
        assert_eq!(read(&config, &x, None, None).unwrap().0.values(), [3.0, 2.0, 6.0, 5.0]);

        config.data.given = Some(Given::of_text("2"));
        assert!(message(&config, &x).contains("b is in data.columns too"));
        assert!(message(&hint(Given::of_text("a,a")), &x).contains("chosen twice"));
        assert!(message(&hint(Given::of_text("a,d")), &x).contains("data.given"));
        let short = place.write("short.csv", "y\n1\n");
        let text = message(&hint(Given::File(short)), &x);
        assert!(text.contains("short.csv") && text.contains("has 1 row,") && text.contains("x.csv has 2"), "{text}");
        let same = place.write("same.csv", "b\n1\n2\n");
        assert!(message(&hint(Given::File(same)), &x).contains("`b` is a condition and a column"));
    }

    #[test]
    fn values_outside_of_bounds_have_the_place_of_their_file() {
        let place = Place::new();
        let x = place.write("x.csv", "id,b,c\n9,2,3\n9,5,6\n");
        let y = place.write("y.csv", "d,e\n7,1\n8,0\n");
        let mut config = hint(Given::File(y));
        config.data.columns = Some(config::Columns(vec!["c".into(), "b".into()]));
        let mut of_y = config.clone();
        bound(&mut of_y, "e", 0.0);
        let text = message(&of_y, &x);
        assert!(text.contains("y.csv: row 2, column 2 (`e`)") && text.contains("0 must be greater than 0"), "{text}");
        bound(&mut config, "b", 3.0);
        let text = message(&config, &x);
        assert!(text.contains("x.csv: row 1, column 2 (`b`)") && text.contains("2 must be greater than 3"), "{text}");
        config.columns.clear();
        bound(&mut config, "cc", 3.0);
        let text = message(&config, &x);
        assert!(text.contains("columns.cc") && text.contains("did you mean `c`?"), "{text}");
    }

    #[test]
    fn columns_without_names_have_the_numbers_of_their_file() {
        let place = Place::new();
        let x = place.write("x.csv", "1,2,3\n4,5,6\n");
        // Column 2 of the file is the first that is modelled.
        let mut config = hint(Given::of_text("1"));
        bound(&mut config, "2", 4.0);
        let text = message(&config, &x);
        assert!(text.contains("row 1, column 2:") && text.contains("2 must be greater than 4"), "{text}");
        config.columns.clear();
        bound(&mut config, "1", 4.0);
        assert!(message(&config, &x).contains("row 1, column 1:"));
        config.columns.clear();
        bound(&mut config, "4", 0.0);
        assert!(message(&config, &x).contains("numbers: 1, 2, 3"));

        let y = place.write("y.csv", "7\n8\n");
        let mut config = hint(Given::File(y));
        bound(&mut config, "given.1", 7.0);
        let text = message(&config, &x);
        assert!(text.contains("y.csv: row 1, column 1:") && text.contains("7 must be greater than 7"), "{text}");
        config.columns.clear();
        bound(&mut config, "1", 1.0);
        assert!(message(&config, &x).contains("x.csv: row 1, column 1:"));
    }

    #[test]
    fn one_column_is_bounded_under_one_name() {
        let place = Place::new();
        let x = place.write("x.csv", "a,b\n1,2\n4,5\n");
        let mut config = for_tables();
        bound(&mut config, "a", 0.0);
        assert!(read(&config, &x, None, None).is_ok());
        config.columns.insert("1".into(), Bounds { lower: None, upper: Some(9.0) }.into());
        let text = message(&config, &x);
        assert!(text.contains("the same column") && text.contains("columns.a"), "{text}");
    }

    #[test]
    fn lens_has_its_observations_as_conditions() {
        let mut config = Preset::Lens.config();
        (config.data.rows, config.data.test_rows) = (Some(5), Some(3));
        config.model.kind = Kind::Cinn;
        let data = crate::train::dataset::Dataset::load(&config, None).unwrap();
        assert_eq!((data.cond_dim, data.dim, data.train_rows()), (2, 20, 5));
        assert_eq!(data.y.columns, ["d_h", "d_v"]);
        let outline = config.data.outline.unwrap();
        let (shapes, seen) =
            crate::data::Shapes::Lens(outline).generate_with_observations(5, config.data.seed, 0).unwrap();
        assert_eq!(shapes, crate::data::Shapes::Lens(outline).generate(5, config.data.seed, 0).unwrap());
        for (row, (y, x)) in data.train.chunks_exact(22).zip(seen.iter_rows().zip(shapes.iter_rows())) {
            assert_eq!((&row[..2], &row[2..]), (y, x));
        }
    }

    #[test]
    fn cross_has_its_observations_as_conditions() {
        let mut config = Preset::Cross.config();
        (config.data.rows, config.data.test_rows, config.data.test_noise) = (Some(5), Some(3), 0.0);
        let shapes = crate::data::Shapes::Cross;
        let load = |config: &Config| crate::train::dataset::Dataset::load(config, None).unwrap();
        let plain = load(&config);
        assert_eq!((plain.cond_dim, plain.dim, plain.name.as_str()), (0, 100, "cross"));
        assert_eq!(plain.train[..], *shapes.generate(5, 1, 0).unwrap().values());
        assert_eq!(plain.test[..], *shapes.generate(3, 1, crate::data::TEST_FIRST_ROW).unwrap().values());
        config.model.kind = Kind::Hint;
        let data = load(&config);
        assert_eq!((data.cond_dim, data.dim, data.train_rows(), data.test_rows()), (4, 100, 5, 3));
        assert_eq!(data.y.columns, shapes.observations());
        let mut rows = vec![0.0; 5 * 104];
        shapes.fill_observed(&mut rows, 1, 0);
        assert_eq!(data.train[..], rows);
    }
}
