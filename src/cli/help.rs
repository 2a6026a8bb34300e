//! The words after the options of a command, so that they read well in terminals of 80 columns and more.
//!
//! Lines of the sources are as long as is good for sources. clap wraps every one of them to the terminal, and what was
//! wrapped before would be wrapped twice. So lines of a paragraph become one, which clap wraps; and lines that are indented
//! (examples, lists) are wrapped here, with what follows indented below its beginning.

use clap::Command;

/// Columns of the narrowest terminal.
const WIDTH: usize = 80;

/// The command and all of its subcommands, with words that flow.
pub(super) fn flowing(command: Command) -> Command {
    let text = |text: Option<&clap::builder::StyledStr>| text.map(|text| flow(&text.to_string()));
    let (short, long) = (text(command.get_after_help()), text(command.get_after_long_help()));
    let command = short.into_iter().fold(command, Command::after_help);
    let command = long.into_iter().fold(command, Command::after_long_help);
    command.mut_subcommands(flowing)
}

fn flow(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    // Whether the last line is one of a paragraph, so that others may be put to it.
    let mut is_open = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            lines.push(String::new());
            is_open = false;
        } else if line.starts_with(' ') {
            lines.extend(hanging(line));
            is_open = false;
        } else {
            match lines.last_mut().filter(|_| is_open) {
                Some(last) => *last = format!("{last} {line}"),
                None => lines.push(line.to_owned()),
            }
            is_open = true;
        }
    }
    lines.join("\n")
}

/// An indented line as one or several: what is too long goes on below the beginning of its last part, behind two blanks or more.
fn hanging(line: &str) -> Vec<String> {
    /// Indentation of what has no room beside its first part.
    const BELOW: usize = 6;
    /// Least columns that are room.
    const ROOM: usize = 30;
    if line.chars().count() <= WIDTH {
        return vec![line.to_owned()];
    }
    let start = line.len() - line.trim_start().len();
    let Some(gap) = line[start..].find("  ").map(|gap| start + gap) else { return command(line, start) };
    let last = gap + line[gap..].len() - line[gap..].trim_start().len();
    let at = line[..last].chars().count();
    match at + ROOM <= WIDTH {
        true => wrapped(&line[last..], line[..last].to_owned(), at, ""),
        false => {
            let below = wrapped(&line[last..], " ".repeat(BELOW), BELOW, "");
            [vec![line[..gap].to_owned()], below].concat()
        }
    }
}

/// A command over several lines, as a shell takes it.
fn command(line: &str, start: usize) -> Vec<String> {
    wrapped(&line[start..], " ".repeat(start), start + 4, " \\")
}

/// Words behind `first`, in lines that end with `end` if another follows, which are indented by so much.
fn wrapped(words: &str, first: String, indentation: usize, end: &str) -> Vec<String> {
    let (mut lines, mut line, mut is_empty) = (Vec::new(), first, true);
    for word in words.split(' ') {
        let is_full = line.chars().count() + word.chars().count() + usize::from(!is_empty) + end.len() > WIDTH;
        if is_full && !is_empty {
            lines.push(line + end);
            (line, is_empty) = (" ".repeat(indentation), true);
        }
        line += if is_empty { "" } else { " " };
        line += word;
        is_empty = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn paragraphs_are_joined_and_long_lines_hang() {
        let text = "One line\nand another.\n\nExamples:\n  hintflow a b\n  name    what it is";
        assert_eq!(flow(text), "One line and another.\n\nExamples:\n  hintflow a b\n  name    what it is");
        let long = format!("  name    {}", "word ".repeat(30).trim_end());
        let lines = hanging(&long);
        assert!(lines.len() == 3 && lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        assert!(lines[1].starts_with("          word") && lines[0].starts_with("  name    word"), "{lines:?}");
        let command = format!("  hintflow {}", ["--option x"; 10].join(" "));
        let lines = hanging(&command);
        assert!(
            lines[0].ends_with(" \\") && lines[1].starts_with("      --") | lines[1].starts_with("      x"),
            "{lines:?}"
        );
        let far = format!("  {}  and what is beside", "x".repeat(70));
        assert_eq!(hanging(&far)[1], "      and what is beside");
    }

    /// Fails at a line that ends although the first word of the next had room in it: it was wrapped twice.
    fn is_wrapped_once(name: &str, text: &str) {
        for pair in text.lines().collect::<Vec<_>>().windows(2) {
            let [line, next] = pair else { unreachable!() };
            assert!(line.chars().count() <= WIDTH, "{name}: {line}");
            let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let word = next.split(' ').next().unwrap_or_default();
            let room = line.chars().count() + 1 + word.chars().count() <= WIDTH;
            assert!(!(is_text(line) && is_text(next) && room), "{name}:\n{line}\n{next}");
        }
    }

    fn each(command: &mut Command, see: &mut dyn FnMut(&str, &str)) {
        let name = command.get_name().to_owned();
        see(&name, &command.render_help().to_string());
        see(&name, &command.render_long_help().to_string());
        command.get_subcommands_mut().for_each(|command| each(command, see));
    }

    #[test]
    fn help_reads_well_in_80_columns() {
        // What every command inherits from the whole program.
        let mut all = flowing(crate::cli::Cli::command().term_width(WIDTH));
        all.build();
        each(&mut all, &mut is_wrapped_once);
    }
}
