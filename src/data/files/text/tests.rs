//! Text tables as people have them.

use super::*;
use crate::data::files::source::ALL;
use crate::error::Error;

/// Reads a text with settings: names, numbers, and what was assumed.
fn read(text: &str, settings: &TextSettings) -> Result<Table> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.txt");
    std::fs::write(&path, text).unwrap();
    read_chosen(&path, &Reading { text: settings.clone(), ..Reading::default() }, ALL)
}

fn plainly(text: &str) -> Result<Table> {
    read(text, &TextSettings::default())
}

/// The message of a text that cannot be read.
fn message(text: &str) -> String {
    plainly(text).unwrap_err().to_string()
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn tables_of_numpy_are_read() {
    let numbers = [1.0, -2.0, 3.0, 4.0];
    for text in ["# a,b\n1,-2\n3,4\n", "#a b\n1e0 -2\n3 4", "a   b\r\n  1  -2 \r\n\r\n   \r\n3 4\r\n"] {
        let table = plainly(text).unwrap();
        assert_eq!((&table.columns, table.values()), (&names(&["a", "b"]), &numbers[..]), "{text:?}");
    }
    let table = plainly("1.0 -2.0\n3.0 4.0\n").unwrap();
    assert_eq!((table.columns.len(), table.values()), (0, &numbers[..]));
    let table = plainly("# my number\n1\n2\n").unwrap();
    assert_eq!((&table.columns, table.values()), (&names(&["my number"]), &[1.0, 2.0][..]));
    let error = message("# 1,2\n3,4\n");
    assert!(error.contains("`# 1` is not a number"), "a row that is a comment: {error}");
    assert_eq!(plainly("#,b\n3,4\n").unwrap().columns, ["#", "b"]);
    let error = message("1 2\n3 4\n5\n");
    assert!(error.contains("line 3") && error.contains("1 cell where 2 are expected"), "{error}");
}

#[test]
fn comments_at_the_head_are_skipped() {
    let numbers = [1.0, 2.0, 3.0, 4.0];
    for text in [
        "# made by a script, version 2\n#\n\n# a,b\n1,2\n3,4\n",
        "# one\n# two\na\tb\n1\t2\n3\t4\n",
        "## a quote \" that is never closed\r\n# a b\r\n1 2\r\n3  4\r\n",
        "#first\r#a;b\r1;2\r3;4\r",
        "# numpy.savetxt with a header\n# a, b\n1.0 2.0\n3.0 4.0\n",
        "\u{feff}# of a spreadsheet\na,b\n1,2\n3,4\n",
    ] {
        let table = plainly(text).unwrap();
        assert_eq!((&table.columns, table.values()), (&names(&["a", "b"]), &numbers[..]), "{text:?}");
    }
    for text in ["# three words here\n1,2\n3,4\n", "# run 3\n1 2\n3 4\n", "# a,b\n# 5 chains\n1 2\n3 4\n"] {
        let table = plainly(text).unwrap();
        assert_eq!((table.columns.len(), table.values()), (0, &numbers[..]), "{text:?}");
    }
    let error = message("# one\n# 7 8\n# two\n1 2\n");
    assert!(error.contains("`#") && error.contains("not a number"), "{error}");
    let error = message("# one\n# two\na,b\n1,2\n3\n");
    assert!(error.contains("line 5"), "lines are counted as they are in the file: {error}");
    assert!(plainly("# one\n# two\n").is_err());
    assert!(message("1,2\n# later\n3,4\n").contains("row 2"));
}

#[test]
fn lines_are_counted_whatever_their_ends() {
    for end in ["\n", "\r\n", "\r"] {
        let rows: Vec<String> = (0..30).map(|i| if i == 20 { "1,2".into() } else { format!("{i},{i},0.5") }).collect();
        let error = message(&format!("a,b,c{end}{}{end}", rows.join(end)));
        assert!(error.contains("row 21 (line 22) has 2 cells where 3"), "{end:?}: {error}");
    }
}

/// A text, the names and the numbers of the table that it is, and a part of what is said to be assumed.
type Case<'a> = (&'a str, &'a [&'a str], &'a [f32], &'a str);

#[test]
fn tables_of_other_programs_are_read() {
    let cases: [Case<'_>; 19] = [
        // R: write.table with its defaults, tabs, no quotes; write.csv.
        ("\"x\" \"y\"\n\"1\" 0.5 1\n\"2\" -0.75 2\n", &["x", "y"], &[0.5, 1.0, -0.75, 2.0], "names the rows"),
        ("\"x\"\t\"y\"\n\"a\"\t0.5\t1\n\"b\"\t-0.75\t2\n", &["x", "y"], &[0.5, 1.0, -0.75, 2.0], "names the rows"),
        ("x y\n1 0.5 1\n2 -0.75 2\n", &["x", "y"], &[0.5, 1.0, -0.75, 2.0], "names the rows"),
        ("\"\",\"x\"\n\"1\",0.5\n\"2\",1\n", &["x"], &[0.5, 1.0], "names the rows"),
        // pandas: an index, also of chosen rows; names that are numbers.
        (",x\n3,0.5\n17,1\n", &["x"], &[0.5, 1.0], "names the rows"),
        ("0,1\n0.5,1\n1.5,2\n", &["0", "1"], &[0.5, 1.0, 1.5, 2.0], "data.header=false"),
        ("2019,2020\n0.5,1\n1.5,2\n", &["2019", "2020"], &[0.5, 1.0, 1.5, 2.0], "data.header=false"),
        ("\"7\",\"5\"\n1,2\n3,4\n", &["7", "5"], &[1.0, 2.0, 3.0, 4.0], "quotes"),
        // Excel.
        ("sep=;\r\na;b\r\n1.5;2\r\n3;4\r\n", &["a", "b"], &[1.5, 2.0, 3.0, 4.0], ""),
        ("\"sep=,\"\na,b\n1,2\n", &["a", "b"], &[1.0, 2.0], ""),
        ("sep=\\t\na\tb\n1\t2\n", &["a", "b"], &[1.0, 2.0], ""),
        ("a;b\n1,5;2\n3;4,25\n", &["a", "b"], &[1.5, 2.0, 3.0, 4.25], "behind commas"),
        // Separators at the ends of lines: of rows alone, everywhere, without names, and not of the last.
        ("a,b\n1,2,\n3,4,\n", &["a", "b"], &[1.0, 2.0, 3.0, 4.0], "end in a separator"),
        ("a,b,\n1,2,\n3,4,\n", &["a", "b"], &[1.0, 2.0, 3.0, 4.0], "end in a separator"),
        ("1,2,\n3,4,\n5,6", &[], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "end in a separator"),
        // Fortran, and bars.
        ("  1.0D+00  2.5D-01\n -3.0D+00  4.0D+02\n", &[], &[1.0, 0.25, -3.0, 400.0], ""),
        ("x|y\n1.0|2.5\n", &["x", "y"], &[1.0, 2.5], ""),
        ("1,5\n2,25\n-0,75\n", &[], &[1.5, 2.25, -0.75], "behind commas"),
        ("1,5\n2,25\n", &[], &[1.0, 5.0, 2.0, 25.0], "data.decimal=comma"),
    ];
    for (text, expected, values, assumed) in cases {
        let table = plainly(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!((&table.columns, table.values()), (&names(expected), values), "{text:?}");
        let told = table.assumed().join("; ");
        assert!(told.contains(assumed) && told.is_empty() == assumed.is_empty(), "{text:?}: {told}");
    }
}

#[test]
fn what_might_be_two_things_is_an_error_or_stays_a_row() {
    // A row is a row unless its line counts, and its rows do not.
    assert_eq!(plainly("0,1\n5,1\n2,2\n").unwrap().rows, 3);
    assert_eq!(plainly("3,1\n0.5,1\n").unwrap().rows, 2);
    for (text, parts) in [
        ("a,b\n1,2,3\n4,5,6\n", &["3 cells where 2"][..]),
        ("Ozone Wind\nNA 7.4\n36 8\n", &["row 1, column 1", "Ozone", "data.missing=NA"]),
        ("41 7.4\nNA 8.0\n", &["row 2, column 1", "data.missing=NA"]),
        ("x y\n***** 2.5\n3.5 4.5\n", &["row 1", "Fortran"]),
        ("a,,b\n1,2,3\n", &["column 2 has no name"]),
        ("1,2,\n3,4,5\n", &["row 1, column 3", "empty"]),
        ("a,s\n1,1e-46\n2,3e-46\n", &["column 2 (`s`)", "3.0e-46", "multiply them by 1e46", "105.9189 lower"]),
        ("a,b\n1,2,\n3,4,\n5,6,7\n", &["3 cells where 2"]),
        ("a,b\n1,2\n\"3,4\n5,6\n", &["quote opened in line 3 is never closed"]),
    ] {
        let error = message(text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text:?}: {error}");
    }
    // Beyond the lines that are looked at, too.
    let rows: String = (0..200).map(|i| if i < 150 { "1,2,\n" } else { "1,2,3\n" }).collect();
    assert!(message(&rows).contains("row 151 (line 151) has a cell behind the separator"));
}

#[test]
fn settings_say_what_is_not_to_be_found_out() {
    let said = |text: &str, settings: TextSettings| {
        read(text, &settings).map(|table| (table.columns.clone(), table.values().to_vec()))
    };
    let none = TextSettings::default;
    let header = |header| TextSettings { header: Some(header), ..none() };
    assert_eq!(said("0,1\n0.5,1\n", header(false)).unwrap(), (vec![], vec![0.0, 1.0, 0.5, 1.0]));
    assert_eq!(said("1,2\n3,4\n", header(true)).unwrap(), (names(&["1", "2"]), vec![3.0, 4.0]));
    let by = |separator| TextSettings { separator: Some(separator), ..none() };
    assert_eq!(said("1 2\n3 4\n", by(Separator::Blanks)).unwrap().1, [1.0, 2.0, 3.0, 4.0]);
    assert!(said("1;2\n3;4\n", by(Separator::Comma)).is_err());
    let comma = TextSettings { decimal: Some(Decimal::Comma), ..none() };
    assert_eq!(said("1,5\n2,25\n", comma.clone()).unwrap().1, [1.5, 2.25]);
    let both = TextSettings { separator: Some(Separator::Comma), ..comma };
    assert_eq!(said("\"1,5\",\"2,25\"\n3,4\n", both).unwrap().1, [1.5, 2.25, 3.0, 4.0]);
    let missing = TextSettings { missing: names(&["NA", "-999", "empty"]), ..none() };
    let table = read("a,b\n1,2\nNA,3\n4,-999\n5,\n6,7\n", &missing).unwrap();
    assert_eq!((table.values(), table.left_out()), (&[1.0, 2.0, 6.0, 7.0][..], 3));
    assert!(table.assumed()[0].contains("left out 3 of 5 rows"), "{:?}", table.assumed());
    let error = read("a\nNA\nna\n", &missing).unwrap_err();
    assert!(matches!(error, Error::Format { .. }) && error.to_string().contains("data.missing"), "{error}");
}

#[test]
fn columns_that_are_not_read_may_hold_anything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "\"\",x,y\n\"1\",0.5,hot\n\"2\",1.5,cold\n").unwrap();
    let table = read_chosen(&path, &Reading::default(), &|names, dim| {
        assert_eq!((names.len(), dim), (3, 3));
        Ok(Some(vec![1]))
    });
    let table = table.unwrap();
    assert_eq!((table.values(), table.file_numbers()), (&[0.5, 1.5][..], &[2][..]));
}
