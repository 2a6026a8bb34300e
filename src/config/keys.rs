//! Every setting by name, with its meaning; and the nearest name to a misspelt one.

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Dotted name: `train.lr`.
    pub name: &'static str,
    /// What it means and which values it takes.
    pub help: &'static str,
}

const fn key(name: &'static str, help: &'static str) -> Key {
    Key { name, help }
}

/// Every setting, in the order of the configuration file.
pub(crate) const KEYS: &[Key] = &[
    key(
        "model.kind",
        "\"flow\"; with conditions: \"hint\" (joint and posterior), \"cinn\" (conditional), or \"inn\" (samples without a density)",
    ),
    key("model.latent", "latent columns of an inn; default: as many as x has more than y, at least 1"),
    key("model.blocks", "number of blocks"),
    key("model.depth", "recursion depth: \"full\" or a number; 0 is RealNVP"),
    key("model.width", "hidden width of the largest networks"),
    key("model.budget", "instead of a width: the number of parameters to come near to"),
    key("model.condition_on", "networks see \"input\": untransformed columns; \"output\": transformed ones"),
    key(
        "model.mixing",
        "orthogonal map of a block: \"fixed\", \"householder\" (trained), \"reverse\" or \"permutation\" of the columns, \"none\"",
    ),
    key("model.mix_first", "whether the first block has one too"),
    key(
        "model.coupling",
        "what couplings do to columns: \"affine\" maps, the paper's; \"spline\": rational-quadratic splines",
    ),
    key("model.bins", "bins of a spline, 16"),
    key("model.box", "a spline is the identity beyond +- this, 5, in standardised units"),
    key("model.min_slope", "smallest slope of a spline at a knot, 0.001"),
    key("model.scale", "log-scale function of affine couplings: \"atan\" (bounded) or \"exp\""),
    key("model.slope", "slope of \"atan\", 2.544: log-scales within +-4 (slope pi/2)"),
    key(
        "model.max_log_scale",
        "instead of a slope: bound on the sum of log-scales of a column over all affine couplings",
    ),
    key("model.init_sigma", "deviation of the initial weights; default for splines: by the inputs of each layer"),
    key("model.init", "a model file to start from (--init)"),
    key("train.epochs", "number of epochs"),
    key("train.batches_per_epoch", "batches of an epoch; default: each row once, lens and cross 100"),
    key(
        "train.batch",
        "rows of a batch; default: rows / 64, within 64 to 4096 (affine: / 100, 32 to 10000); lens and cross 10000, power 1660, gas 853, miniboone 300",
    ),
    key("train.lr", "learning rate at the start"),
    key("train.lr_final", "learning rate at the end"),
    key("train.schedule", "how the rate falls: \"exponential\", once per epoch; \"cosine\", with every step"),
    key("train.warmup_epochs", "epochs with a reduced rate"),
    key("train.warmup_factor", "factor on the rate in these epochs"),
    key(
        "train.warmup_steps",
        "steps at the start in which the rate rises from 0, evenly, at most a tenth of all; 0: none",
    ),
    key(
        "train.cycles",
        "falls of the learning rate, each from the best model on, with a ninth of the decay; default: 2 of small tables",
    ),
    key("train.beta1", "decay of Adam's first moment"),
    key("train.beta2", "decay of Adam's second moment"),
    key("train.eps", "added to the root of Adam's second moment"),
    key("train.l2", "L2 strength, added to the gradient"),
    key("train.grad_clamp", "bound on each element of the gradient"),
    key(
        "train.clip_norm",
        "bound on the length of the whole gradient, before train.grad_clamp; steps whose gradient is not finite are skipped; 0: off",
    ),
    key("train.decay", "decoupled weight decay (AdamW), times the rate; default: by the number of rows"),
    key(
        "train.average",
        "decay of a moving average of the weights, such as 0.99, which is then scored and kept; 0: off",
    ),
    key("train.noise", "deviation of the noise added to each batch, after standardisation"),
    key(
        "train.dropout",
        "probability of a hidden unit to be dropped in a step; default: by the number of rows, at most 0.4",
    ),
    key("train.latent_loss", "inn: factor of the discrepancy of latent columns, beside the squared error, 30"),
    key("train.inverse_loss", "inn: factor of the discrepancy of x on the way back, 30"),
    key("train.inverse_from", "inn: share of the epochs at the start that are trained without the way back, 0.1"),
    key("train.shuffle", "new random order of the rows in each epoch; false: order of the file"),
    key("train.seed", "seed of initial weights, order and noise (--seed)"),
    key("train.memory", "activations for the backward pass: \"stored\", or \"reversible\": computed again (--memory)"),
    key("train.keep", "model to keep: of the epoch that scores held-out rows \"best\", or the \"last\""),
    key("train.patience", "lose patience after so many epochs without a better score of the held-out rows; 0: never"),
    key(
        "train.cooldown",
        "epochs of falling rate when patience is lost, from the best epoch's model on; 0: stop at once",
    ),
    key(
        "train.retries",
        "how often a training that diverges goes back to its last good model, with half the rate from there on; 0: it fails",
    ),
    key(
        "train.log",
        "logs for other programs: \"jsonl\" (metrics.jsonl), \"tensorboard\" (events in tensorboard/), or both with a comma",
    ),
    key(
        "data.preset",
        "data set of the paper: \"lens\", \"cross\", simulated; \"power\", \"gas\", \"miniboone\", read from data.path",
    ),
    key(
        "data.path",
        "table to train on: .npy, .csv or text (.txt, .tsv, .dat); of power, gas, miniboone: their file or its folder",
    ),
    key("data.given", "conditions: a table of as many rows, or columns of the table: \"a,b\" (--given)"),
    key("data.columns", "columns to model, by name or number from 1: \"a,b\"; default: all that are not conditions"),
    key("data.header", "whether the first line of a text table holds names: true or false; default: found out"),
    key(
        "data.separator",
        "between cells of a text table: \"comma\", \"semicolon\", \"tab\", \"bar\", \"blanks\"; default: found out",
    ),
    key("data.decimal", "before fractions in a text table: \"point\" or \"comma\"; default: found out"),
    key(
        "data.missing",
        "what stands for a missing value: \"NA,-999,empty\"; rows that have one are left out; default: an error (--on-invalid)",
    ),
    key("data.standardize", "bring columns to mean 0 and deviation 1 inside the model"),
    key(
        "data.regression",
        "subtract inside the model, from columns that gain by it, their linear regression on the conditions",
    ),
    key("data.squash", "beyond so many deviations, draw distances in by a logarithm, inside the model; 0: do not"),
    key("data.validation", "share of a table's rows held out, chosen at random"),
    key("data.outline", "points of a Lens outline: \"vertices\" or \"arc\""),
    key("data.rows", "rows to simulate, with batches as for a table; of a table: its first rows"),
    key("data.test_rows", "test rows to simulate"),
    key("data.test_noise", "deviation of noise on held-out rows, for the paper's LL"),
    key("data.seed", "seed of simulated data and of the held-out rows; of the noise of power and the rows of gas"),
    key("run.device", "\"auto\", \"cpu\", \"gpu\", number or name of an adapter (--device)"),
    key("run.threads", "threads of the CPU engine, 0: all (--threads)"),
    key("run.tune", "whether a GPU times variants of its kernels, once per model; false: --no-tune"),
    key("run.out", "run folder (--out)"),
    key("run.checkpoint_every", "steps between checkpoints; default: each epoch, at most one in ten seconds"),
    key(
        "columns.NAME.lower",
        "all values of the column are greater than this, those of samples too; NAME may be quoted",
    ),
    key("columns.NAME.upper", "all values of the column are less than this"),
    key(
        "columns.NAME.transform",
        "way of the column to the networks, after its bounds: \"none\", \"standardize\", \"robust\", \"asinh\", \"log\", \"softplus\", \"logit\", \"rank\"; default: chosen from the data",
    ),
];

/// The table of settings of single columns.
pub(super) const COLUMNS: &str = "columns";

/// Whether there is a setting of that name.
pub(crate) fn is_known(name: &str) -> bool {
    of_column(name).is_some() || KEYS.iter().any(|key| key.name == name && !key.name.contains("NAME"))
}

/// The column and the last part of a setting `columns.NAME.lower`, `.upper` or `.transform`. A name may have dots.
pub(super) fn of_column(key: &str) -> Option<(&str, &str)> {
    let (name, which) = key.strip_prefix(COLUMNS)?.strip_prefix('.')?.rsplit_once('.')?;
    (!name.is_empty() && matches!(which, "lower" | "upper" | "transform")).then_some((name, which))
}

/// Of a text that begins `columns."NAME"`: what follows the quoted name, and the name.
pub(super) fn quoted(text: &str) -> Option<(&str, &str)> {
    let name = text.trim_start().strip_prefix(COLUMNS)?.strip_prefix(".\"")?;
    let end = name.find("\".")?;
    Some((&name[end + 1..], &name[..end]))
}

/// A key with its column's name out of quotes.
pub(super) fn without_quotes(key: &str) -> String {
    quoted(key).map_or_else(|| key.to_owned(), |(rest, name)| format!("{COLUMNS}.{name}{rest}"))
}

/// The setting whose name is spelled most like `name`, if it is not another name altogether: at most half of its
/// letters differ. A name without a table is compared without tables.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let distance = |key: &str| {
        let full = 2 * edit_distance(name, key);
        match key.split_once('.') {
            Some((_, last)) if !name.contains('.') => full.min(2 * edit_distance(name, last) + 1),
            // The right name in the wrong table is nearer than another name of the right table.
            Some((_, last)) if name.rsplit('.').next() == Some(last) => full.min(1),
            _ => full,
        }
    };
    let key = KEYS.iter().map(|k| k.name).min_by_key(|k| distance(k))?;
    let last = |name: &'_ str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let (written, known) = (last(name), last(key));
    let begins = !written.is_empty() && (written.starts_with(&known) || known.starts_with(&written));
    let longer = written.chars().count().max(known.chars().count());
    (begins || 2 * edit_distance(&written, &known) <= longer).then_some(key)
}

/// Number of letters to insert, delete, replace or swap with their neighbour to get from `a` to `b`.
pub(crate) fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::{Columns, Given, Log, Logs, Preset};
    use super::*;
    use crate::data::columns::units::{Choice, ColumnSetting};
    use crate::data::files::text::{Decimal, Separator};
    use crate::data::shapes::lens::Outline;

    #[test]
    fn the_list_is_that_of_the_structs() {
        let mut all = Preset::Lens.config();
        all.model.width = Some(1);
        all.model.slope = Some(1.0);
        all.model.max_log_scale = Some(1.0);
        (all.model.bins, all.model.half_width, all.model.min_slope) = (Some(8), Some(5.0), Some(0.001));
        all.model.init = Some("a".into());
        all.train.patience = 1;
        all.train.log = Logs(vec![Log::Jsonl]);
        (all.train.dropout, all.train.decay, all.train.cycles) = (Some(0.1), Some(0.1), Some(1));
        all.model.init_sigma = Some(0.01);
        all.model.latent = Some(1);
        (all.train.latent_loss, all.train.inverse_loss, all.train.inverse_from) = (Some(1.0), Some(1.0), Some(0.1));
        all.train.cooldown = 1;
        all.data.path = Some("a".into());
        all.data.given = Some(Given::of_text("a"));
        let column = ColumnSetting { lower: Some(0.0), upper: Some(1.0), transform: Some(Choice::Rank) };
        all.columns.insert("NAME".into(), column);
        all.data.squash = Some(3.0);
        (all.data.header, all.data.separator) = (Some(true), Some(Separator::Tab));
        (all.data.decimal, all.data.missing) = (Some(Decimal::Point), Some(Columns(vec!["NA".into()])));
        all.data.columns = Some(Columns(vec!["a".into()]));
        all.data.validation = Some(0.5);
        all.data.outline = Some(Outline::Arc);
        all.run.out = Some("a".into());
        all.run.checkpoint_every = Some(1);
        let table = toml::Table::try_from(&all).unwrap();
        let mut in_structs = Vec::new();
        for (section, values) in table {
            for (name, value) in values.as_table().unwrap() {
                match value.as_table().filter(|_| section == COLUMNS) {
                    Some(bounds) => in_structs.extend(bounds.keys().map(|k| format!("{section}.{name}.{k}"))),
                    None => in_structs.push(format!("{section}.{name}")),
                }
            }
        }
        let mut listed: Vec<_> = KEYS.iter().map(|k| k.name.to_owned()).collect();
        listed.sort();
        in_structs.sort();
        assert_eq!(listed, in_structs);
    }

    #[test]
    fn columns_have_any_name() {
        assert_eq!(of_column("columns.a.lower"), Some(("a", "lower")));
        assert_eq!(of_column("columns.b.c.transform"), Some(("b.c", "transform")));
        assert_eq!(of_column("columns.my.long name.upper"), Some(("my.long name", "upper")));
        for other in ["columns.a", "columns.lower", "columns..lower", "columns.a.least", "column.a.lower"] {
            assert_eq!(of_column(other), None, "{other}");
        }
        assert!(is_known("columns.NAME.lower") && is_known("train.lr") && !is_known("train.rl"));
    }

    #[test]
    fn nearest_names() {
        for (written, meant) in [
            ("train.lrate", "train.lr"),
            ("train.epoch", "train.epochs"),
            ("lr", "train.lr"),
            ("epoch", "train.epochs"),
            ("trian.batch", "train.batch"),
            ("model.lr", "train.lr"),
            ("model.widht", "model.width"),
            ("run.checkpointevery", "run.checkpoint_every"),
        ] {
            assert_eq!(nearest(written), Some(meant), "{written}");
        }
        for foreign in ["x", "optimizer.momentum", "train.learning_rate", "train.foo", "zzz", ""] {
            assert_eq!(nearest(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn distances() {
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("ab", "ba"), 1);
    }
}
