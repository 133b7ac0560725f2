//! Reads the rules of a policy file. Every error names the line.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::rule::Rule;
use super::rule_keys::read_rule;
use super::slurm::{SlurmPolicy, read_slurm};
use super::values::quote;
use super::{Accounts, PolicyError};

/// A value with its position in the file.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// A key of a table with its value, both with their positions in the file.
pub(super) struct Entry<'a, 'text> {
    /// The name of the key.
    pub key: &'a str,
    /// The position of the key in the file.
    pub span: Range<usize>,
    /// The value of the key.
    pub value: &'a Value<'text>,
}

/// The file that is read, for messages.
#[derive(Clone, Copy)]
pub(super) struct PolicyFile<'a> {
    name: &'a str,
    text: &'a str,
}

/// Reads all rules of a policy file, and what it says about jobs of Slurm; `name` is the file's name in messages.
pub(super) fn read_policy(
    name: &str,
    text: &str,
    accounts: &dyn Accounts,
) -> Result<(Vec<Rule>, SlurmPolicy), PolicyError> {
    let file = PolicyFile { name, text };
    let table = DeTable::parse(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let span = error.span().unwrap_or_default();
        file.error(&span, None, format!("not valid TOML: {message}"))
    })?;
    let mut rules = Vec::new();
    let mut slurm = SlurmPolicy::default();
    for entry in entries(table.get_ref()) {
        if entry.key == "slurm" {
            slurm = read_slurm(file, &entry)?;
            continue;
        }
        if entry.key != "allow" {
            return Err(file.error(
                &entry.span,
                None,
                format!(
                    "unknown key {}: the keys of a rule come after a line `[[allow]]`, and beside rules only `[slurm]` may be there",
                    quote(entry.key)
                ),
            ));
        }
        let not_a_list = |span: &Range<usize>| {
            let message = "a rule begins with the line `[[allow]]`, with two brackets on each side";
            file.error(span, Some("allow"), message.to_owned())
        };
        let DeValue::Array(items) = entry.value.get_ref() else {
            return Err(not_a_list(&entry.span));
        };
        for item in items.iter() {
            let DeValue::Table(keys) = item.get_ref() else {
                return Err(not_a_list(&item.span()));
            };
            rules.push(read_rule(file, item.span(), keys, accounts)?);
        }
    }
    Ok((rules, slurm))
}

/// The keys and values of a table in the order of the file, so that the first mistake in the file is the one that is
/// reported.
pub(super) fn entries<'a, 'text>(table: &'a DeTable<'text>) -> Vec<Entry<'a, 'text>> {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref(),
            span: key.span(),
            value,
        })
        .collect();
    entries.sort_by_key(|entry| entry.span.start);
    entries
}

impl PolicyFile<'_> {
    /// The error for a position in the file. Control characters, which the file may contain in escaped form, do not
    /// reach the terminal or the log.
    pub fn error(&self, span: &Range<usize>, key: Option<&str>, message: String) -> PolicyError {
        let mut printable = String::with_capacity(message.len());
        for character in message.chars() {
            match character.is_control() {
                true => printable.extend(character.escape_default()),
                false => printable.push(character),
            }
        }
        PolicyError::Invalid {
            file: self.name.to_owned(),
            line: self.line(span),
            key: key.map(str::to_owned),
            message: printable,
        }
    }

    /// The number of the line in which a position is, counted from 1.
    pub fn line(&self, span: &Range<usize>) -> usize {
        line_at(self.text.as_bytes(), span.start)
    }

    /// The error for a value of the wrong type.
    pub fn wrong_type(&self, key: &str, value: &Value<'_>, expected: &str) -> PolicyError {
        let found = match value.get_ref() {
            DeValue::String(_) => "text in quotes",
            DeValue::Integer(_) | DeValue::Float(_) => "a number without quotes",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let message = format!("{found} is not allowed here: write {expected}");
        self.error(&value.span(), Some(key), message)
    }

    /// Reads `true` or `false`.
    pub fn boolean(&self, entry: &Entry<'_, '_>) -> Result<bool, PolicyError> {
        match entry.value.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.wrong_type(entry.key, entry.value, "true or false, without quotes")),
        }
    }

    /// Reads a list that is not empty and has no value twice.
    pub fn list<T: PartialEq>(
        &self,
        entry: &Entry<'_, '_>,
        example: &str,
        read_item: impl Fn(&Value<'_>) -> Result<T, PolicyError>,
    ) -> Result<Vec<T>, PolicyError> {
        let expected = format!("a list such as {example}");
        let DeValue::Array(items) = entry.value.get_ref() else {
            return Err(self.wrong_type(entry.key, entry.value, &expected));
        };
        let mut values = Vec::new();
        for item in items.iter() {
            let value = read_item(item)?;
            if values.contains(&value) {
                let message = "this is given twice: remove one".to_owned();
                return Err(self.error(&item.span(), Some(entry.key), message));
            }
            values.push(value);
        }
        if values.is_empty() {
            let message = format!("the list is empty: write {expected}, or remove the key");
            return Err(self.error(&entry.span, Some(entry.key), message));
        }
        Ok(values)
    }
}

/// The number of the line that contains a byte of the text, counted from 1.
pub(super) fn line_at(text: &[u8], position: usize) -> usize {
    let before = text.iter().take(position);
    before.filter(|byte| **byte == b'\n').count() + 1
}
