//! Parses Prometheus's text format (version 0.0.4), and OpenMetrics as far as it is the same.

use std::borrow::Cow;

/// The names and values of labels.
pub type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// One value of a metrics page.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The name of the metric, with its ending such as `_bucket`.
    pub name: &'a str,
    /// The labels in the order of the page.
    pub labels: Labels<'a>,
    /// The value; it may be infinite or not a number.
    pub value: f64,
}

impl Sample<'_> {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        let mut labels = self.labels.iter();
        labels
            .find(|(label, _)| *label == name)
            .map(|(_, value)| &**value)
    }
}

/// The values of a page. A line that is neither a comment nor a value is an error with the line.
pub fn samples(page: &str) -> impl Iterator<Item = Result<Sample<'_>, &str>> {
    page.lines().filter_map(|line| {
        let line = line.trim();
        match line.is_empty() || line.starts_with('#') {
            true => None,
            false => Some(parse_line(line).ok_or(line)),
        }
    })
}

/// The largest number of labels that a value may have; further ones make the line invalid.
const MAX_LABELS: usize = 64;

/// Parses `name{label="value",...} value [timestamp] [# exemplar]`.
fn parse_line(line: &str) -> Option<Sample<'_>> {
    let end = line
        .find(|c: char| !is_name_character(c))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => parse_labels(rest)?,
        None => (Vec::new(), rest),
    };
    let mut words = rest.split_ascii_whitespace();
    let value = parse_value(words.next()?)?;
    // A time in milliseconds may follow, and an exemplar after `#`.
    let is_rest_valid = match words.next() {
        None => true,
        Some(word) => word.starts_with('#') || word.parse::<f64>().is_ok(),
    };
    is_rest_valid.then_some(Sample {
        name,
        labels,
        value,
    })
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// Parses labels up to the closing brace; returns what follows it.
fn parse_labels(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after) = rest.split_once('=')?;
        let name = name.trim();
        if name.is_empty() || !name.chars().all(is_name_character) || labels.len() >= MAX_LABELS {
            return None;
        }
        let after = after.trim_start().strip_prefix('"')?;
        let (value, after) = parse_quoted(after)?;
        labels.push((name, value));
        rest = after;
    }
}

/// Parses a label's value up to its closing quotation mark; returns what follows it.
fn parse_quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut escaped = false;
    let mut has_escapes = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => {
                escaped = true;
                has_escapes = true;
            }
            '"' => {
                let (value, rest) = (&text[..at], &text[at + 1..]);
                let value = match has_escapes {
                    true => Cow::Owned(unescape(value)),
                    false => Cow::Borrowed(value),
                };
                return Some((value, rest));
            }
            _ => {}
        }
    }
    None
}

/// Replaces the escapes of a line feed, a quotation mark and a backslash.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, c == '\\') {
            (_, false) => plain.push(c),
            (_, true) => match characters.next() {
                Some('n') => plain.push('\n'),
                Some(other) => plain.push(other),
                None => {}
            },
        }
    }
    plain
}

/// Parses a number, with Prometheus's names of the infinities.
fn parse_value(text: &str) -> Option<f64> {
    match text {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok(),
    }
}

/// The upper bound of a bucket, from its label.
pub(crate) fn parse_bound(text: &str) -> Option<f64> {
    parse_value(text).filter(|bound| !bound.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_of_every_form_are_parsed() {
        let page = "# HELP a b\n# TYPE a counter\na 1\n  b{x=\"1\",y=\"q\\\"\\\\\\n,}\"} +Inf 1700000000000\n\
                    c{} NaN\nd_bucket{le=\"0.5\",} 2 # {trace=\"1\"} 0.3\n# EOF\n";
        let read: Vec<_> = samples(page).map(Result::unwrap).collect();
        assert_eq!(read.len(), 4);
        assert_eq!((read[0].name, read[0].value), ("a", 1.0));
        assert_eq!(read[1].label("y"), Some("q\"\\\n,}"));
        assert_eq!(read[1].value, f64::INFINITY);
        assert!(read[2].value.is_nan() && read[2].labels.is_empty());
        assert_eq!(read[3].label("le"), Some("0.5"));
    }

    #[test]
    fn lines_of_other_pages_are_not() {
        for line in [
            "<!DOCTYPE html>",
            "{\"a\": 1}",
            "a",
            "a{b} 1",
            "a{b=\"1} 2",
            "1a 3",
            "a b c",
            "a{b=\"1\" 2",
            "é 1",
        ] {
            assert!(samples(line).all(|one| one.is_err()), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(page in "[ -~\\n\"\\\\é{}=,#]{0,200}") {
            let _ = samples(&page).count();
        }

        #[test]
        fn labels_are_read_back(value in "[ -~é]{0,30}") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("m{{a=\"{escaped}\"}} 7");
            let sample = samples(&line).next().unwrap().unwrap();
            prop_assert_eq!(sample.label("a"), Some(value.as_str()));
        }
    }
}
