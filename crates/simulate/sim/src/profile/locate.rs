//! Finds the line and the key of an error in a TOML file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Why a profile is invalid: file, line, key, what is wrong and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {}{message}", key.as_ref().map(|key| format!("`{key}`: ")).unwrap_or_default())]
pub struct ProfileError {
    /// The name of the file, or of a built-in profile.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The path of the key, such as `core.default`, if it is known.
    pub key: Option<String>,
    /// What is wrong and what is allowed.
    pub message: String,
}

/// A TOML file whose syntax is valid; its keys are not checked yet.
pub struct Document<'a> {
    file: &'a str,
    text: &'a str,
    table: Spanned<DeTable<'a>>,
}

impl<'a> Document<'a> {
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

    /// The error for a key or value that does not match the profile's structure.
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

    fn error(&self, line: usize, key: Option<String>, message: String) -> ProfileError {
        ProfileError {
            file: self.file.to_owned(),
            line,
            key,
            message,
        }
    }
}

fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start.min(text.len()));
    text.as_bytes()[..start]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

fn one_line(message: &str) -> String {
    message.lines().collect::<Vec<_>>().join(", ")
}

fn reworded(message: &str) -> String {
    one_line(message)
        .replace("unknown field", "unknown key")
        .replace("unknown variant", "unknown value")
        .replace("missing field", "missing key")
        .replace("expected u64", "expected a whole number from 0")
        .replace(", expected one of", ": use one of")
        .replace(", expected", ": expected")
}

/// The innermost key whose name or value contains this position in the text.
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

/// The position of a key's value in the text; for a missing key, the position of the table that should contain it.
fn span_of(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    span_within(value.get_ref(), rest).or_else(|| Some(key.span()))
}

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
