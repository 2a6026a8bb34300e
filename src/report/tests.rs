//! Every picture is drawn, read back and looked at: size, ink, words.

use std::f32::consts::TAU;
use std::path::{Path, PathBuf};

use super::page::RASTER;
use super::*;
use crate::data::shapes::natural;

type Draw = fn(&Path, &[f32], &[f32], usize, &[String]) -> crate::error::Result<()>;

/// A reproducible standard normal value.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 40) as f32 + 0.5) / (1u64 << 24) as f32
    }

    fn normal(&mut self) -> f32 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }
}

/// Pictures go to a temporary folder, or to `HINTFLOW_PLOTS`, for whoever wants to look at them.
struct Folder {
    path: PathBuf,
    _kept: Option<tempfile::TempDir>,
}

impl Folder {
    fn new() -> Self {
        if let Some(path) = std::env::var_os("HINTFLOW_PLOTS") {
            return Self { path: path.into(), _kept: None };
        }
        let kept = tempfile::tempdir().unwrap();
        Self { path: kept.path().to_owned(), _kept: Some(kept) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Checks both files and returns the SVG.
#[track_caller]
fn check(path: &Path, words: &[&str]) -> String {
    let file = |suffix: &str| format!("{}{suffix}", path.display());
    let svg = std::fs::read_to_string(file(".svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    for word in words {
        assert!(svg.contains(&format!("\n{word}\n")), "`{word}` is not in {}", file(".svg"));
    }
    let number = |name: &str| -> u32 {
        let rest = &svg[svg.find(&format!(" {name}=\"")).unwrap() + name.len() + 3..];
        rest[..rest.find('"').unwrap()].parse().unwrap()
    };

    let bytes = std::fs::read(file(".png")).unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (number("width") * RASTER, number("height") * RASTER));
    let ink = pixels.chunks_exact(3).filter(|p| *p != [255; 3]).count();
    assert!(ink * 200 > pixels.len() / 3, "{} of {} pixels are not white", ink, pixels.len() / 3);
    svg
}

fn history() -> LossHistory {
    let mut noise = Noise(1);
    let points = (1..=50).map(|k| {
        let t = f64::from(k);
        let loss = -18.0 - 9.0 * (1.0 - (-t / 12.0).exp()) + if k < 4 { 3e3 / t.powi(4) } else { 0.0 };
        LossPoint {
            epoch: t,
            train: loss + 0.15 * f64::from(noise.normal()),
            test: Some(loss + 0.4 + 0.5 * f64::from(noise.normal())),
            learning_rate: if k < 4 { 3e-4 } else { 1e-2 * 0.01f64.powf(t / 50.0) },
        }
    });
    LossHistory { points: points.collect(), kept: Some(31.0) }
}

#[test]
fn loss_curves_of_a_whole_training() {
    let (folder, mut history) = (Folder::new(), history());
    history.points[20].train = f64::NAN;
    loss_curves(&folder.path("loss"), &history).unwrap();
    check(
        &folder.path("loss"),
        &["Training", "train", "test", "loss (nats per row)", "epoch", "learning rate", "10⁻³", "model kept"],
    );
}

#[test]
fn loss_curves_of_odd_histories() {
    let folder = Folder::new();
    let point = LossPoint { epoch: 1.0, train: 3.5, test: None, learning_rate: 0.01 };
    loss_curves(&folder.path("loss_one"), &LossHistory { points: vec![point], kept: None }).unwrap();
    let svg = check(&folder.path("loss_one"), &["train"]);
    assert!(!svg.contains("\ntest\n"));
    let broken = LossPoint { train: f64::NAN, test: Some(f64::INFINITY), learning_rate: 0.0, ..point };
    loss_curves(&folder.path("loss_nan"), &LossHistory { points: vec![broken; 3], kept: Some(9.0) }).unwrap();
    check(&folder.path("loss_nan"), &["6 values not finite"]);
    let mut huge = history();
    huge.points[0].train = f64::MAX;
    huge.points[1].test = Some(-f64::MAX);
    huge.points[2].epoch = f64::NAN;
    huge.points[3].learning_rate = f64::INFINITY;
    loss_curves(&folder.path("loss_huge"), &huge).unwrap();
    check(&folder.path("loss_huge"), &["train", "test", "epoch", "−24", "first epochs cut off: 7 values"]);
    huge.points[4].epoch = 1e300;
    loss_curves(&folder.path("loss_far"), &huge).unwrap();
    check(&folder.path("loss_far"), &["epoch"]);
    assert!(loss_curves(&folder.path("loss_none"), &LossHistory::default()).is_err());
}

/// The intersection of two circles, as the Lens data have it, and something a flow might make of it.
fn lens(noise: &mut Noise, smooth: bool) -> Outline {
    let (r, angle) = (1.0 + noise.uniform(), TAU * noise.uniform());
    let d = 2.4 * r;
    let x = (d * d + r * r - 4.0 * r * r) / (2.0 * d);
    let tip = (r * r - x * x).sqrt();
    let arc = |centre: f32, radius: f32, from: f32, to: f32| {
        (0..60).map(move |k| {
            let a = from + (to - from) * k as f32 / 59.0;
            [centre + radius * a.cos(), radius * a.sin()]
        })
    };
    let (a, b) = (tip.atan2(x), tip.atan2(x - d));
    let sharp: Vec<[f32; 2]> = arc(0.0, r, -a, a).chain(arc(d, 2.0 * r, b, TAU - b)).collect();
    let turn = |[x, y]: [f32; 2]| [x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()];
    let sharp: Vec<[f32; 2]> = sharp.into_iter().map(turn).collect();
    let wave = if smooth { 0.03 } else { 0.0 };
    let shift = noise.normal();
    let points = sharp.iter().enumerate().map(|(k, [x, y])| {
        let w = wave * (shift + 3.0 * TAU * k as f32 / sharp.len() as f32).sin();
        [x + w + shift, y - w - shift]
    });
    let points: Vec<[f32; 2]> = points.collect();
    let reference = (!smooth).then(|| sharp.iter().map(|[x, y]| [x + shift + 0.04, y - shift]).collect());
    Outline { points, reference, ..Outline::default() }
}

#[test]
fn outlines_side_by_side() {
    let (folder, mut noise) = (Folder::new(), Noise(2));
    let mut sampled: Vec<Outline> = (0..17).map(|_| lens(&mut noise, true)).collect();
    sampled[3].points[7][0] = f32::NAN;
    // A curve far too large is cut off at its cell.
    sampled[5].points.iter_mut().flatten().for_each(|v| *v *= 5.0);
    let truth: Vec<Outline> = (0..16).map(|_| lens(&mut noise, false)).collect();
    // The longest titles of a training.
    let titles =
        ["samples given centre and rotation (blue), ratio 0.52", "data with nearly these; green: its own diameter"];
    outlines(&folder.path("outlines"), &sampled, &truth, titles).unwrap();
    let notes = "1 not finite left out, grey ÷k: shrunk to fit";
    check(&folder.path("outlines"), &[titles[0], notes, titles[1]]);
}

#[test]
fn outlines_of_one_kind_or_none() {
    let (folder, mut noise) = (Folder::new(), Noise(3));
    let few: Vec<Outline> = (0..3).map(|_| lens(&mut noise, true)).collect();
    outlines(&folder.path("outlines_few"), &few, &[], ["samples", "data"]).unwrap();
    let svg = check(&folder.path("outlines_few"), &["samples"]);
    assert!(!svg.contains("\ndata\n"));
    assert!(outlines(&folder.path("none"), &[], &[], ["samples", "data"]).is_err());
    let broken = Outline::from(vec![[f32::NAN, 0.0]]);
    assert!(outlines(&folder.path("none"), &[broken], &[Outline::default()], ["samples", "data"]).is_err());
}

/// The figure with which the paper introduces Fourier curves, in more orders.
#[test]
fn orders_of_a_natural_shape() {
    let folder = Folder::new();
    let single = |points: &[[f64; 2]]| points.iter().map(|p| p.map(|v| v as f32)).collect::<Vec<_>>();
    let orders = [1, 2, 3, 5, 8, 12, 16, 20, 32];
    let curves = orders.map(|order| Outline {
        points: single(&natural::curve(order).trace(600)),
        reference: Some(single(&natural::CORNERS)),
        ..Outline::default()
    });
    let title = "a natural shape, M = 1, 2, 3, 5, 8, 12, 16, 20, 32";
    outlines(&folder.path("natural"), &curves, &[], [title, ""]).unwrap();
    check(&folder.path("natural"), &[title]);
}

/// Rows of `dim` columns that depend on each other; `bend` makes a difference between data and samples.
fn table(rows: usize, dim: usize, bend: f32, seed: u64) -> Vec<f32> {
    let mut noise = Noise(seed);
    let mut table = Vec::new();
    for _ in 0..rows {
        let hidden = [noise.normal(), noise.normal(), noise.normal()];
        for k in 0..dim {
            let phase = k as f32 * 0.7;
            let mixed =
                phase.sin() * hidden[0] + phase.cos() * hidden[1] + (0.3 * phase).sin() * (1.0 - bend) * hidden[2];
            table.push(mixed + 0.3 * noise.normal() + if k == 2 { 0.5 * hidden[0] * hidden[0] } else { 0.0 });
        }
    }
    table
}

#[test]
fn correlation_of_a_fourier_vector() {
    let folder = Folder::new();
    let (dim, order) = (100, 12);
    let (mut data, mut samples) = (table(600, dim, 0.0, 4), table(600, dim, 0.2, 5));
    for row in data.chunks_exact_mut(dim) {
        row[62] = 0.0;
        row[87] = 0.0;
    }
    samples[30] = f32::INFINITY;
    correlation(&folder.path("correlation"), &data, &samples, dim, &fourier_blocks(order)).unwrap();
    let words =
        ["data: 600 rows", "samples: 599 rows (1 not finite)", "Re x", "Im y", "constant column", "−1.0", "0.5"];
    let svg = check(&folder.path("correlation"), &words);
    assert!(svg.contains("|difference|, mean 0.") && svg.len() < 400_000, "{} bytes", svg.len());
}

#[test]
fn correlation_of_small_and_middling_tables() {
    let folder = Folder::new();
    for (dim, name) in [(1, "correlation_1"), (2, "correlation_2"), (33, "correlation_33"), (100, "correlation_100")] {
        let path = folder.path(name);
        correlation(&path, &table(50, dim, 0.0, 6), &table(50, dim, 0.3, 7), dim, &[]).unwrap();
        check(&path, &["data: 50 rows", "samples: 50 rows"]);
    }
    let names: Vec<String> =
        ["shortening velocity", "aspect", "global_active_power_of_the_household", "t"].map(Into::into).into();
    correlation(&folder.path("correlation_4"), &table(50, 4, 0.0, 6), &table(50, 4, 0.3, 7), 4, &names).unwrap();
    check(&folder.path("correlation_4"), &["shortening velocity", "aspect"]);
}

#[test]
fn correlation_refuses_what_it_cannot_draw() {
    let folder = Folder::new();
    let good = table(10, 3, 0.0, 8);
    for (data, samples, dim) in [(&good[..], &[][..], 3), (&[], &good, 3), (&good[..4], &good, 3), (&good, &good, 0)] {
        assert!(correlation(&folder.path("none"), data, samples, dim, &[]).is_err());
    }
    assert!(correlation(&folder.path("none"), &good, &good, 3, &["a".into()]).is_err());
    // Nothing varies: an empty picture, but a picture.
    correlation(&folder.path("correlation_flat"), &[1.0; 9], &good, 3, &[]).unwrap();
    check(&folder.path("correlation_flat"), &["difference", "constant column"]);
}

#[test]
fn marginals_of_many_columns() {
    let folder = Folder::new();
    let (data, mut samples) = (table(5000, 43, 0.0, 9), table(2000, 43, 0.3, 10));
    samples[0] = f32::NAN;
    samples[43] = 1e30;
    let names: Vec<String> = (0..43).map(|k| format!("feature {k} <&>")).collect();
    marginals(&folder.path("marginals"), &data, &samples, 43, &names).unwrap();
    let note = "first 20 of 43 columns, 1 value of the samples not finite";
    check(&folder.path("marginals"), &["Marginal densities", note, "data", "samples", "feature 19 &lt;&amp;&gt;"]);
}

#[test]
fn pairs_of_the_first_columns() {
    let folder = Folder::new();
    let (data, mut samples) = (table(3000, 8, 0.0, 11), table(2000, 8, 0.4, 12));
    samples[9] = f32::NEG_INFINITY;
    pairs(&folder.path("pairs"), &data, &samples, 8, &[]).unwrap();
    check(&folder.path("pairs"), &["Pairs of columns", "column 1", "column 6", "data", "samples"]);
}

#[test]
fn tables_of_few_columns() {
    let folder = Folder::new();
    for dim in [1, 2, 3, 6] {
        let (data, samples) = (table(400, dim, 0.0, 13), table(300, dim, 0.3, 14));
        for (name, draw) in [("marginals", marginals as Draw), ("pairs", pairs as Draw)] {
            let path = folder.path(&format!("{name}_{dim}"));
            draw(&path, &data, &samples, dim, &[]).unwrap();
            check(&path, &["column 1", "data", "samples"]);
        }
    }
}

#[test]
fn tables_that_hold_nothing() {
    let folder = Folder::new();
    let good = table(10, 2, 0.0, 15);
    for draw in [marginals as Draw, pairs as Draw] {
        assert!(draw(&folder.path("none"), &[], &good, 2, &[]).is_err());
        assert!(draw(&folder.path("none"), &good, &[], 2, &[]).is_err());
        assert!(draw(&folder.path("none"), &good, &good[..3], 2, &[]).is_err());
        assert!(draw(&folder.path("none"), &good, &good, 0, &[]).is_err());
        assert!(draw(&folder.path("none"), &good, &good, 2, &["a".into()]).is_err());
        let huge: Vec<f32> =
            good.iter().enumerate().map(|(k, v)| if k % 5 == 0 { f32::MAX * v.signum() } else { *v }).collect();
        draw(&folder.path("huge"), &huge, &good, 2, &[]).unwrap();
        check(&folder.path("huge"), &["data"]);
        // Only NaN on one side, a constant on the other.
        draw(&folder.path("flat"), &[f32::NAN; 20], &[3.0; 20], 2, &[]).unwrap();
        check(&folder.path("flat"), &["20 values of the data not finite"]);
    }
}

/// The mean absolute Jacobian of an untrained model with large weights.
fn jacobian_of(title: &str, dim: u32, depth: u32, blocks: u32) -> JacobianMap {
    let engine = crate::Engine::cpu_with_threads(1).unwrap();
    let builder = crate::Flow::builder(dim).depth(depth).blocks(blocks).width(48).init_sigma(0.25);
    let flow = builder.mixing(crate::plan::Mixing::Fixed).mix_first(false).build(&engine).unwrap();
    let values = flow.mean_abs_jacobian(&table(100, dim as usize, 0.0, 16)).unwrap();
    JacobianMap { title: title.into(), dim: dim as usize, conditions: 0, values }
}

#[test]
fn colour_bars_of_galleries_end_in_a_point_where_values_go_on() {
    let folder = Folder::new();
    let row = |title: &str, largest: f64| GalleryRow {
        title: title.into(),
        outlines: vec![Outline {
            observed: vec![[[0.0, 0.0], [1.0, 1.0]]],
            ..Outline::from(vec![[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
        }],
        map: Some(GalleryMap::Difference {
            values: vec![Some(0.0), Some(largest), None, Some(0.0)],
            mean: Some(largest),
        }),
        labels: vec!["Re x".into(), "Im x".into()],
    };
    let points = |name: &str, rows: &[GalleryRow]| {
        let legend = [(Ink::Curve, "sample"), (Ink::Blue, "what was observed")];
        gallery(&folder.path(name), rows, GalleryScale::Common, &legend).unwrap();
        check(&folder.path(name), &["one", "two", "three", "what was observed"]).matches("<polygon").count()
    };
    let alike = points("alike", &[row("one", 0.2), row("two", 0.2), row("three", 0.2)]);
    let apart = points("apart", &[row("one", 0.1), row("two", 0.2), row("three", 0.9)]);
    assert_eq!(apart, alike + 1, "of the third alone");
}

#[test]
fn jacobians_of_models_side_by_side() {
    let folder = Folder::new();
    let maps = [jacobian_of("Real-NVP, 1 block", 20, 0, 1), jacobian_of("recursive, 1 block", 20, 99, 1)];
    jacobians(&folder.path("jacobians"), &maps, &fourier_blocks(2)).unwrap();
    let words = ["Real-NVP, 1 block: 70 % zero", "mean |dz/dx|", "exactly zero", "Re x", "z", "x"];
    let svg = check(&folder.path("jacobians"), &words);
    assert!(svg.contains("recursive, 1 block: 4") || svg.contains("recursive, 1 block: 5"), "half of it is dense");
    assert!(!svg.contains("not finite"));

    let mut many = vec![jacobian_of("two blocks", 33, 0, 2), jacobian_of("small", 5, 1, 1)];
    many.extend([maps[0].clone(), maps[1].clone()]);
    many[1].values[3] = f64::NAN;
    many[0].conditions = 3;
    jacobians(&folder.path("jacobians_many"), &many, &[]).unwrap();
    check(&folder.path("jacobians_many"), &["two blocks: 0 % zero", "not finite", "20", "y, x"]);
}

#[test]
fn jacobians_refuse_what_they_cannot_draw() {
    let folder = Folder::new();
    let map = |values: Vec<f64>| JacobianMap { title: "m".into(), dim: 2, conditions: 0, values };
    let path = folder.path("none");
    assert!(jacobians(&path, &[], &[]).is_err());
    assert!(jacobians(&path, &[map(vec![1.0; 3])], &[]).is_err());
    assert!(jacobians(&path, &[map(vec![1.0; 4])], &["a".into()]).is_err());
    assert!(jacobians(&path, &[JacobianMap { conditions: 3, ..map(vec![1.0; 4]) }], &[]).is_err());
    assert!(jacobians(&path, &[map(vec![0.0, f64::NAN, f64::INFINITY, 0.0])], &[]).is_err());
    jacobians(&folder.path("jacobian_one_value"), &[map(vec![3.0, 0.0, 0.0, 3.0])], &[]).unwrap();
    check(&folder.path("jacobian_one_value"), &["m: 50 % zero"]);
}

#[test]
fn sensitivity_of_a_lens() {
    use crate::data::shapes::lens;
    let (folder, path) = (Folder::new(), Folder::new().path("none"));
    let shape = lens::Lens::of_row(3, 5).coefficients(lens::Outline::Vertices);
    let names = crate::data::shapes::fourier::column_names(lens::ORDER);
    sensitivity(&folder.path("sensitivity"), &shape, &[1, 4, 8, 13], PAPER_OFFSET, 6, &names).unwrap();
    check(
        &folder.path("sensitivity"),
        &["One coefficient changed (black), the original (red)", "original", "+0.6", "re_x_-1", "im_x_1"],
    );
    sensitivity(&folder.path("sensitivity_one"), &shape, &[0], -0.3, 0, &[]).unwrap();
    check(&folder.path("sensitivity_one"), &["column 1", "original"]);

    assert!(sensitivity(&path, &shape, &[20], 0.1, 3, &[]).is_err());
    assert!(sensitivity(&path, &shape, &[], 0.1, 3, &[]).is_err());
    assert!(sensitivity(&path, &shape[..19], &[0], 0.1, 3, &[]).is_err());
    assert!(sensitivity(&path, &shape, &[0], 0.1, 3, &names[1..]).is_err());
    assert!(sensitivity(&path, &shape, &[0], f64::NAN, 3, &[]).is_err());
}

#[test]
fn corners_of_one_sample_and_of_several() {
    let folder = Folder::new();
    let names = |dim: usize| (1..=dim).map(|k| format!("theta {k}")).collect::<Vec<_>>();
    let sample = |name: &str, rows, dim, bend, seed| CornerSample {
        name: name.into(),
        rows: table(rows, dim, bend, seed),
        weights: None,
    };
    corner(&folder.path("corner_one"), &[sample("posterior", 3000, 3, 0.5, 1)], &names(3), None).unwrap();
    let svg = check(&folder.path("corner_one"), &["posterior", "theta 1", "theta 3", "lines: 50 % and 90 % regions"]);
    assert!(!svg.contains("\ntruth\n"));
    let mut both = [sample("HINT", 3000, 4, 0.5, 1), sample("a chain with a rather long name", 500, 4, 0.0, 2)];
    both[0].rows[5] = f32::NAN;
    corner(&folder.path("corner_two"), &both, &names(4), Some(&[0.1, -0.2, 0.3, 40.0])).unwrap();
    check(&folder.path("corner_two"), &["HINT", "truth", "1 value not finite", "theta 4"]);
    let all: Vec<CornerSample> = (0..MOST_SAMPLES as u64).map(|s| sample("x", 200, 1, 0.0, s)).collect();
    corner(&folder.path("corner_narrow"), &all, &names(1), Some(&[0.0])).unwrap();
    check(&folder.path("corner_narrow"), &["x", "theta 1"]);
    corner(&folder.path("corner_wide"), &[sample("x", 900, 12, 0.0, 3)], &names(12), None).unwrap();
    check(&folder.path("corner_wide"), &["theta 12"]);
    // What no density can be made of.
    let odd = |rows: Vec<f32>, weights| CornerSample { name: "odd".into(), rows, weights };
    for (number, odd) in [
        odd(vec![2.0; 40], None),
        odd(vec![f32::NAN; 40], None),
        odd(vec![f32::MAX, f32::MIN, 0.0, 1.0], None),
        odd((0..40u8).map(f32::from).collect(), Some((0..20u8).map(|row| f32::from(u8::from(row == 3))).collect())),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path(&format!("corner_odd{number}"));
        corner(&path, &[odd], &names(2), Some(&[f32::NAN, 1e30])).unwrap();
        check(&path, &["odd"]);
    }
    let path = folder.path("none");
    let one = || sample("x", 10, 2, 0.0, 1);
    assert!(corner(&path, &[], &names(2), None).is_err());
    assert!(corner(&path, &[one()], &names(13), None).is_err());
    assert!(corner(&path, &[one()], &names(2), Some(&[1.0])).is_err());
    assert!(corner(&path, &[CornerSample { weights: Some(vec![1.0]), ..one() }], &names(2), None).is_err());
    assert!(corner(&path, &[CornerSample { rows: vec![1.0; 3], ..one() }], &names(2), None).is_err());
}

#[test]
fn losses_of_several_trainings() {
    let folder = Folder::new();
    let course = |name: &str, shift: f64| {
        let points = history().points.iter().map(|p| (p.epoch, p.test.unwrap() + shift)).collect();
        Course { name: name.into(), points }
    };
    let broken = Course { name: "broken".into(), points: vec![(1.0, f64::NAN), (2.0, -20.0), (3.0, f64::INFINITY)] };
    let all = [course("wide", 0.0), course("a run with a name that is much too long for its place", 1.5), broken];
    compared_losses(&folder.path("losses"), &all).unwrap();
    check(&folder.path("losses"), &["wide", "epoch", "least -20.0000 in epoch 2"]);
    assert!(compared_losses(&folder.path("none"), &[]).is_err());
    assert!(
        compared_losses(&folder.path("none"), &[Course { name: "n".into(), points: vec![(1.0, f64::NAN)] }]).is_err()
    );
}

#[test]
fn correlations_of_one_table() {
    let folder = Folder::new();
    let names = ["rate", "dose", "z1"].map(String::from);
    correlation_map(
        &folder.path("map"),
        "A title that is wider than its map would be",
        &table(300, 3, 0.2, 4),
        3,
        &names,
    )
    .unwrap();
    check(&folder.path("map"), &["A title that is wider than its map would be", "rate", "z1", "−1.0"]);
    assert!(correlation_map(&folder.path("none"), "t", &table(300, 3, 0.2, 4), 3, &names[1..]).is_err());
}
