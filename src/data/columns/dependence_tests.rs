//! Relations that are found, and none in columns without any.

use super::*;
use crate::rng::{Stream, fill_normals};

fn normals(count: usize) -> Vec<f32> {
    let mut z = vec![0.0; count];
    fill_normals(3, Stream::Data, 0, 0, &mut z);
    z
}

/// Rows of some functions of a few normals.
fn rows<const N: usize>(n: usize, f: impl Fn(&[f32]) -> [f32; N]) -> Vec<f32> {
    normals(4 * n).chunks_exact(4).flat_map(f).collect()
}

fn one(values: &[f32], dim: usize) -> Dependent {
    let mut found = find(values, dim);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn copies_sums_and_parts_of_a_whole_are_found() {
    for n in [30, 2000, 7000] {
        let copy = one(&rows(n, |z| [z[0], z[1], 1000.0 - 3.0 * z[0]]), 3);
        assert_eq!((copy.column, copy.terms.len(), copy.terms[0].0), (2, 1, 0));
        assert!((copy.terms[0].1 + 3.0).abs() < 1e-3 && (copy.constant - 1000.0).abs() < 1e-2, "{copy:?}");

        let sum = one(&rows(n, |z| [z[0], 1e3 * z[1], z[2], z[0] + 1e3 * z[1] + 5.0]), 4);
        assert_eq!((sum.column, sum.terms.iter().map(|t| t.0).collect::<Vec<_>>()), (3, vec![1]));
        let sum = one(&rows(n, |z| [z[0], 7.0, 2.0 * z[1], z[2], z[0] + 2.0 * z[1]]), 5);
        assert_eq!((sum.column, sum.terms.iter().map(|t| t.0).collect::<Vec<_>>()), (4, vec![0, 2]));
        assert!(sum.terms.iter().all(|t| (t.1 - 1.0).abs() < 1e-3), "{sum:?}");

        let part = one(
            &rows(n, |z| {
                let e = [z[0].exp(), z[1].exp(), z[2].exp()];
                e.map(|e2| e2 / (e[0] + e[1] + e[2]))
            }),
            3,
        );
        assert!(part.column == 2 && part.terms.iter().all(|t| (t.1 + 1.0).abs() < 1e-3), "{part:?}");
        assert!((part.constant - 1.0).abs() < 1e-3);
    }
}

#[test]
fn columns_that_are_only_near_are_none() {
    let near = |left: f32| find(&rows(4000, move |z| [z[0], z[1], z[0] + left * z[2]]), 3).len();
    assert_eq!((near(1e-2), near(2e-3), near(3e-4)), (0, 0, 1));
    assert_eq!(find(&rows(4000, |z| [z[0], z[0] * z[0], z[0].abs(), z[1]]), 4), []);
    // As many columns as rows: all of them would fit.
    assert_eq!(find(&normals(40 * 50), 50), []);
    assert_eq!(find(&normals(9), 3), []);
    // Constant columns are told elsewhere.
    assert_eq!(find(&rows(100, |z| [1.0, z[0], 2.0, 1.0]), 4), []);
}

/// A common far value does not make two columns copies, and one that is missing does not hide a copy.
#[test]
fn far_values_say_nothing() {
    let mut apart = rows(3000, |z| [z[0], z[1]]);
    (apart[40], apart[41]) = (1e30, 1e30);
    assert_eq!(find(&apart, 2), []);
    let mut copies = rows(3000, |z| [z[0], z[0], z[1]]);
    copies[30] = -9999.0;
    assert_eq!(one(&copies, 3).column, 1);
    // Codes in many rows.
    let codes = rows(3000, |z| [z[0], z[0], if z[2] > 0.5 { -9999.0 } else { z[1] }]);
    assert_eq!(one(&codes, 3).column, 1);
}

#[test]
fn wide_tables_are_looked_through() {
    let (n, dim) = (900, 120);
    let mut values = normals(n * dim);
    for row in values.chunks_exact_mut(dim) {
        row[100] = row[3];
        row[119] = row[..50].iter().sum();
    }
    let found = find(&values, dim);
    assert_eq!(found.iter().map(|f| f.column).collect::<Vec<_>>(), [100, 119]);
    assert_eq!(found[1].terms.len(), 50);
}

#[test]
fn rows_that_repeat_are_counted() {
    let mut values = rows(1000, |z| [z[0], z[1]]);
    assert_eq!(repeated_rows(&values, 2), None);
    let row = [values[8], values[9]];
    for at in [20, 700] {
        values[2 * at..2 * at + 2].copy_from_slice(&row);
    }
    assert_eq!(repeated_rows(&values, 2), Some((2, [4, 20])));
    assert_eq!(repeated_rows(&[0.0, -0.0], 1), Some((1, [0, 1])));
    assert_eq!(repeated_rows(&[1.0, 2.0, 2.0, 1.0], 2), None);
}
