//! Finds the line and the key of an error in a TOML file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The error when a profile is invalid: file, line, key, what is wrong and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {}{message}", key.as_ref().map(|key| format!("`{key}`: ")).unwrap_or_default())]
pub struct ProfileError {
    /// The path of the file, or the name of a built-in profile.
    pub file: String,
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The path of the key, such as `core.default`; `None` if it is unknown.
    pub key: Option<String>,
    /// What is wrong with the value, and which values are allowed.
    pub message: String,
}

/// A TOML file whose syntax is valid; its keys are not checked yet.
pub struct Document<'a> {
    file: &'a str,
    text: &'a str,
    table: Spanned<DeTable<'a>>,
}

impl<'a> Document<'a> {
    /// Parses the text of a TOML file; `file` is its name in messages.
    pub fn new(file: &'a str, text: &'a str) -> Result<Self, ProfileError> {
        let table = DeTable::parse(text).map_err(|error| ProfileError {
            file: file.to_owned(),
            line: line_of(text, error.span()),
            key: None,
            message: format!("not valid TOML: {}", one_line(error.message())),
        })?;
        Ok(Self { file, text, table })
    }

    /// Whether there is a top-level table of this name.
    pub fn has_table(&self, name: &str) -> bool {
        let mut keys = self.table.get_ref().iter();
        keys.any(|(key, value)| key.get_ref() == name && value.get_ref().is_table())
    }

    /// The error for a key or value that the profile's structure does not allow.
    pub fn invalid_form(&self, error: &toml::de::Error) -> ProfileError {
        let span = error.span();
        // A key that is missing at the top level has no position in the document.
        let missing = error.message().starts_with("missing field");
        let is_whole_document = |span: &Range<usize>| missing && span.start == 0;
        let key = span
            .as_ref()
            .filter(|span| !is_whole_document(span))
            .and_then(|span| key_at(self.table.get_ref(), span.start));
        self.error(line_of(self.text, span), key, reworded(error.message()))
    }

    /// The error for a value that has the right type but is not allowed.
    pub fn invalid_value(&self, key: &str, message: String) -> ProfileError {
        let span = span_of(self.table.get_ref(), key);
        self.error(line_of(self.text, span), Some(key.to_owned()), message)
    }

    /// The error about a line of this file.
    fn error(&self, line: usize, key: Option<String>, message: String) -> ProfileError {
        ProfileError {
            file: self.file.to_owned(),
            line,
            key,
            message,
        }
    }
}

/// The number of the line that contains the beginning of a span of the text.
fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start.min(text.len()));
    text.as_bytes()[..start]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

/// Joins the lines of a message.
fn one_line(message: &str) -> String {
    message.lines().collect::<Vec<_>>().join(", ")
}

/// Replaces the parser's words by those of this project.
fn reworded(message: &str) -> String {
    one_line(message)
        .replace("unknown field", "unknown key")
        .replace("unknown variant", "unknown value")
        .replace("missing field", "missing key")
        .replace("expected u64", "expected a whole number from 0")
        .replace(", expected one of", ": use one of")
        .replace(", expected", ": expected")
}

/// The innermost key whose name or value contains this byte position of the text.
fn key_at(table: &DeTable<'_>, position: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref();
        if key.span().contains(&position) {
            return Some(name.to_string());
        }
        let inner = match value.get_ref() {
            DeValue::Table(table) => key_at(table, position),
            DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
                let DeValue::Table(table) = item.get_ref() else {
                    return None;
                };
                key_at(table, position).map(|inner| format!("{index}.{inner}"))
            }),
            _ => None,
        };
        match inner {
            Some(inner) => Some(format!("{name}.{inner}")),
            None => value.span().contains(&position).then(|| name.to_string()),
        }
    })
}

/// The byte range of a key's value in the text; for a missing key, that of the table that should contain it.
fn span_of(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    span_within(value.get_ref(), rest).or_else(|| Some(key.span()))
}

/// The byte range of a key's value within another value.
fn span_within(value: &DeValue<'_>, path: &str) -> Option<Range<usize>> {
    if path.is_empty() {
        return None;
    }
    match value {
        DeValue::Table(table) => span_of(table, path),
        DeValue::Array(items) => {
            let (index, rest) = path.split_once('.').unwrap_or((path, ""));
            let item = items.get(index.parse::<usize>().ok()?)?;
            span_within(item.get_ref(), rest).or_else(|| Some(item.span()))
        }
        _ => None,
    }
}
