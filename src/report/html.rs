//! A page of HTML in one file: no script, nothing from elsewhere, for light and dark screens of any width.
//!
//! Everything that is not a picture goes through [`escaped`]. Pictures are those that this program drew, read back from
//! their files, and only if they hold nothing but what it draws; the page forbids scripts and connections by its policy, too.

use std::fmt::Write as _;

use crate::printable::printable;

/// How a page looks.
const STYLE: &str = include_str!("html/style.css");

/// Nothing runs and nothing is fetched, whatever the page holds.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'";
/// The elements of pictures that this program draws. A file with others is none of them.
const DRAWN: [&str; 7] = ["svg", "circle", "image", "polygon", "polyline", "rect", "text"];

/// The least part of its width at which the letters of a picture can be read.
const SMALLEST: f64 = 0.7;

/// The width that a picture has on a phone, in CSS pixels.
const PHONE: f64 = 342.0;

/// What shows a picture at its full width, to be scrolled; the style hides it from wide screens.
const FULL_SIZE: &str = "<label class=\"full\"><input type=\"checkbox\"> full size</label>";

/// What the frame of a picture adds to its width, as the style has it.
const FRAME: f64 = 16.0;

/// The body of a page that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Html {
    body: String,
}

/// What a verdict says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// All is well, as far as was seen.
    Good,
    /// Something is wrong.
    Bad,
    /// Nobody looked yet.
    Open,
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// Words, to the left.
    Text(String),
    /// A number, to the right.
    Number(String),
}

impl Cell {
    fn class(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Number(_) => "number",
        }
    }

    fn content(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
        }
    }
}

/// A row of a table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Its cells.
    pub cells: Vec<Cell>,
    /// Whether it tells of something that is wrong.
    pub is_bad: bool,
}

impl Html {
    /// A page that begins with its title and a line below it.
    pub(crate) fn titled(title: &str, below: &str) -> Self {
        let mut html = Self::default();
        html.add(&format!("<h1>{}</h1>", escaped(title)));
        html.add(&format!("<p class=\"muted\">{}</p>", escaped(below)));
        html
    }

    fn add(&mut self, text: &str) {
        self.body.push_str(text);
        self.body.push('\n');
    }

    /// Begins a part of the page.
    pub(crate) fn part(&mut self, title: &str) {
        self.add(&format!("<h2>{}</h2>", escaped(title)));
    }

    /// Begins a part of a part.
    pub(crate) fn smaller_part(&mut self, title: &str) {
        self.add(&format!("<h3>{}</h3>", escaped(title)));
    }

    /// A sentence in a box, and what there is to say beside it.
    pub(crate) fn verdict(&mut self, mood: Mood, sentence: &str, beside: &[String]) {
        let class = match mood {
            Mood::Good => "good",
            Mood::Bad => "bad",
            Mood::Open => "open",
        };
        let beside: String = beside.iter().map(|text| format!("<p>{}</p>", with_code(text))).collect();
        self.add(&format!("<div class=\"verdict {class}\"><p>{}</p>{beside}</div>", with_code(sentence)));
    }

    /// A paragraph; what stands between `backticks` is code.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.add(&format!("<p>{}</p>", with_code(text)));
    }

    /// A list.
    pub(crate) fn list(&mut self, items: &[String]) {
        let items: String = items.iter().map(|item| format!("<li>{}</li>", with_code(item))).collect();
        self.add(&format!("<ul>{items}</ul>"));
    }

    /// Names and what there is to say of each.
    pub(crate) fn facts(&mut self, facts: &[(&str, String)]) {
        let facts: String = facts
            .iter()
            .map(|(name, fact)| format!("<dt>{}</dt><dd>{}</dd>", escaped(name), with_code(fact)))
            .collect();
        self.add(&format!("<dl>{facts}</dl>"));
    }

    /// A table, which scrolls by itself if it is wide.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Row]) {
        self.add_table("<table>", head, rows);
    }

    /// A table of which narrow screens show each row as a block of cells with their names, for cells of many words.
    pub(crate) fn stacking_table(&mut self, head: &[&str], rows: &[Row]) {
        self.add_table("<table class=\"stacking\">", head, rows);
    }

    fn add_table(&mut self, begin: &str, head: &[&str], rows: &[Row]) {
        let mut text = format!("<div class=\"scroll\" tabindex=\"0\">{begin}<thead><tr>");
        for (place, name) in head.iter().enumerate() {
            let class = rows.first().and_then(|row| row.cells.get(place)).map_or("text", Cell::class);
            let _ = write!(text, "<th class=\"{class}\" scope=\"col\">{}</th>", escaped(name));
        }
        text.push_str("</tr></thead><tbody>\n");
        for row in rows {
            text.push_str(if row.is_bad { "<tr class=\"bad\">" } else { "<tr>" });
            for (cell, name) in row.cells.iter().zip(head) {
                let (class, name, content) = (cell.class(), escaped(name), escaped(cell.content()));
                let _ = write!(text, "<td class=\"{class}\" data-name=\"{name}\">{content}</td>");
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody></table></div>");
        self.add(&text);
    }

    /// A picture from its SVG file, with words below it. Returns false, and leaves it out, if the file holds something else.
    pub(crate) fn figure(&mut self, svg: &str, caption: &str) -> bool {
        let Some((svg, width)) = inline(svg, caption) else { return false };
        // Letters of a wide picture are small on a phone: there a reader may have it as wide as it was drawn.
        let full = if SMALLEST * width > PHONE { FULL_SIZE } else { "" };
        self.add(&format!(
            "<figure>{full}<div class=\"scroll\" tabindex=\"0\" style=\"max-width:{:.0}px\">{svg}</div>\
             <figcaption>{}</figcaption></figure>",
            width + FRAME,
            with_code(caption)
        ));
        true
    }

    /// Text as it is, in lines; long ones are broken if `wrapped`.
    pub(crate) fn code(&mut self, text: &str, wrapped: bool) {
        let class = if wrapped { " class=\"wrapped\"" } else { "" };
        self.add(&format!("<pre{class} tabindex=\"0\">{}</pre>", escaped(text)));
    }

    /// What is shown if the reader asks for it.
    pub(crate) fn details(&mut self, summary: &str, inner: Html) {
        self.add(&format!("<details><summary>{}</summary>\n{}</details>", escaped(summary), inner.body));
    }

    /// The whole page.
    pub(crate) fn finish(self, title: &str) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            escaped(title),
            self.body
        )
    }
}

/// Text as HTML, in content and in attributes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// The same, with what stands between backticks as code. One without a partner is itself. Numbers stay with their sign of
/// per cent.
fn with_code(text: &str) -> String {
    let safe = escaped(text).replace(" %", "\u{a0}%");
    let parts: Vec<&str> = safe.split('`').collect();
    let whole = if parts.len() % 2 == 1 { parts.len() } else { parts.len() - 1 };
    let mut html = String::new();
    for (place, part) in parts[..whole].iter().enumerate() {
        let _ = if place % 2 == 1 { write!(html, "<code>{part}</code>") } else { write!(html, "{part}") };
    }
    parts[whole..].iter().for_each(|rest| {
        html.push('`');
        html.push_str(rest);
    });
    html
}

/// The `<svg>` of a file, scaled to the width that there is, and the width that it is drawn for.
fn inline(svg: &str, caption: &str) -> Option<(String, f64)> {
    let svg = svg.trim();
    const END: &str = "</svg>";
    let is_one = |rest: &&str| rest.find(END).is_some_and(|at| at + END.len() == rest.len());
    let name =
        |tag: &str| tag.trim_start_matches('/').split(|c: char| !c.is_ascii_alphanumeric()).next().map(str::to_owned);
    let is_drawn = svg.split('<').skip(1).all(|tag| name(tag).is_some_and(|name| DRAWN.contains(&name.as_str())));
    let rest = svg.strip_prefix("<svg ").filter(|rest| is_drawn && is_one(rest))?;
    let width: f64 = svg.split_once(" width=\"")?.1.split_once('"')?.0.parse().ok()?;
    let svg = format!(
        "<svg role=\"img\" aria-label=\"{}\" style=\"width:100%;--drawn:{width:.0}px\" {rest}",
        escaped(caption).replace('`', "")
    );
    Some((svg, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let evil = "<script>alert(1)</script>&\"'\u{202e}\u{1b}[2J";
        let mut html = Html::titled(evil, evil);
        html.paragraph(evil);
        html.facts(&[("<b>", evil.into())]);
        html.list(&[evil.into()]);
        html.table(&["<i>"], &[Row { cells: vec![Cell::Text(evil.into())], is_bad: true }]);
        html.code(evil, true);
        html.verdict(Mood::Bad, evil, &[evil.into()]);
        html.smaller_part(evil);
        let mut inner = Html::default();
        inner.part(evil);
        html.details(evil, inner);
        assert!(html.figure("<svg width=\"9\"></svg>", evil));
        let page = html.finish(evil);
        for bad in ["<script", "<b>", "<i>", "\u{202e}", "\u{1b}", "\"'"] {
            assert!(!page.contains(bad), "{bad}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("\\u{202e}"));
    }

    #[test]
    fn code_is_between_backticks() {
        assert_eq!(with_code("run `a <b>` now"), "run <code>a &lt;b&gt;</code> now");
        assert_eq!(with_code("a ` b"), "a ` b");
        assert_eq!(with_code("`a` and ` b"), "<code>a</code> and ` b");
        assert_eq!(with_code("of 9 %"), "of 9\u{a0}%");
    }

    #[test]
    fn pictures_are_whole_and_shrink() {
        let svg = inline("<svg xmlns=\"x\" width=\"640\" height=\"3\">\n<rect/></svg>\n", "loss of `run`").unwrap();
        let (svg, width) = svg;
        assert!(svg.contains("width:100%;--drawn:640px") && svg.ends_with("<rect/></svg>"), "{svg}");
        assert_eq!(width, 640.0);
        assert!(svg.contains("aria-label=\"loss of run\""), "{svg}");
        // Letters of the wide one are too small on a phone.
        let figure = |width: u32| {
            let mut html = Html::default();
            assert!(html.figure(&format!("<svg xmlns=\"x\" width=\"{width}\" height=\"3\"><rect/></svg>"), ""));
            html.body
        };
        assert!(figure(640).contains(FULL_SIZE) && !figure(480).contains(FULL_SIZE));
        for other in [
            "",
            "<svg ",
            "<p>",
            "<svg width=\"x\"></svg>",
            "<svg width=\"9\"></svg><script>x</script></svg>",
            "<svg width=\"9\">",
        ] {
            assert_eq!(inline(other, ""), None, "{other}");
        }
    }
}
