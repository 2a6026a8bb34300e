//! Text from elsewhere (names of columns, files and devices, keys of settings), made safe to print.

use std::borrow::Cow;

/// The text with everything that a terminal would obey, or that would hide or turn around what stands beside it, written
/// as an escape: `\u{1b}`. Ends of lines stay, so that whole messages can be given too.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return text.into();
    }
    let escaped = |c: char| match is_plain(c) {
        true => vec![c],
        false => c.escape_default().collect(),
    };
    text.chars().flat_map(escaped).collect::<String>().into()
}

fn is_plain(c: char) -> bool {
    // Marks that turn the direction of writing, or have no width.
    let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    c == '\n' || !(c.is_control() || turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        for (text, expected) in [
            ("größe [m]\nx", "größe [m]\nx"),
            ("\u{1b}[2Jgone\u{7}", "\\u{1b}[2Jgone\\u{7}"),
            ("a\rb\tc", "a\\rb\\tc"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("\u{202e}evil\u{200b}", "\\u{202e}evil\\u{200b}"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert!(matches!(printable("plain"), Cow::Borrowed(_)));
    }
}
