//! Helpers for reading lines of output: control sequences, numbers, names and roles.

use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

use super::sample::Role;

/// A regular expression that is compiled when it is first used. `None` would be an invalid one; a test prevents that.
pub(super) type Pattern = LazyLock<Option<Regex>>;

/// Finds a pattern in a line.
pub(super) fn captures<'l>(pattern: &Pattern, line: &'l str) -> Option<Captures<'l>> {
    pattern.as_ref()?.captures(line)
}

/// The text of a group; empty if the group did not take part in the match.
pub(super) fn group<'l>(found: &Captures<'l>, index: usize) -> &'l str {
    found.get(index).map_or("", |group| group.as_str())
}

/// The number in a group.
pub(super) fn number(found: &Captures<'_>, index: usize) -> Option<f64> {
    parse_number(group(found, index))
}

/// Parses a number without a sign: `1,251`, `3.4`, `12k`, `1.5M`.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    let (digits, factor) = match text.char_indices().last()? {
        (end, 'k' | 'K') => (&text[..end], 1e3),
        (end, 'M') => (&text[..end], 1e6),
        (end, 'G') => (&text[..end], 1e9),
        (end, 'T') => (&text[..end], 1e12),
        _ => (text, 1.0),
    };
    let number: f64 = digits.trim().replace([',', '_'], "").parse().ok()?;
    let number = number * factor;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// A line as it looks on a terminal: without colours, cursor movements and other control characters.
pub(super) fn visible_text(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut visible = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_escape_sequence(&mut characters),
            '\t' => visible.push('\t'),
            control if control.is_control() => {}
            other => visible.push(other),
        }
    }
    visible
}

/// Skips the rest of an escape sequence (ECMA-48): a control sequence `[...m`, a command `]...` up to its end, or one
/// character.
fn skip_escape_sequence(characters: &mut std::str::Chars<'_>) {
    match characters.next() {
        Some('[') => {
            characters.find(|next| ('\u{40}'..='\u{7e}').contains(next));
        }
        Some(']') => {
            characters.find(|next| matches!(next, '\u{7}' | '\\'));
        }
        _ => {}
    }
}

/// The longest name of a bar, in bytes.
const MAX_NAME_BYTES: usize = 60;

/// The words of a description, in lower case, without any that contain a digit: `Epoch 3, loss 0.52` gives
/// `epoch loss`, so that a bar keeps its name while its numbers change.
pub(super) fn name_of(description: &str) -> String {
    let is_word = |word: &&str| !word.is_empty() && word.chars().all(char::is_alphabetic);
    let mut name = String::new();
    for word in description
        .split(|next: char| !next.is_alphanumeric())
        .filter(is_word)
    {
        if name.len() + word.len() >= MAX_NAME_BYTES {
            break;
        }
        if !name.is_empty() {
            name.push(' ');
        }
        name.push_str(&word.to_lowercase());
    }
    name
}

/// The first words of descriptions of work that comes before a training.
const PREPARATION: &str = "building caching capturing casting checking collecting compiling computing converting \
    copying creating download downloading extracting fetching filter flattening generating indexing loading map packing \
    preparing preprocessing reading resolving saving scanning tokenizing tokenising unpacking uploading";

/// Words that say, anywhere in a description, that work comes before a training.
const ALWAYS_PREPARATION: &str = "downloading scanning shards tokenizing";

/// Words in descriptions of validation, testing and prediction. `Instances` is a column of Ultralytics' validation bar.
const VALIDATION: &str = "dev eval evaluate evaluating evaluation inference instances predict predicting prediction \
    sanity test testing val valid validating validation";

/// Words in descriptions of training.
const TRAINING: &str = "epoch finetune finetuning fit fitting pretraining train training";

/// What a bar or counter with this name is for. A name such as `train: Scanning labels` is about preparation.
pub(super) fn role_of(name: &str) -> Role {
    let is_in = |list: &str, word: &str| list.split(' ').any(|listed| listed == word);
    let has = |list: &str| {
        name.split(' ')
            .any(|word| !word.is_empty() && is_in(list, word))
    };
    let first = name.split(' ').next().unwrap_or_default();
    if !first.is_empty() && is_in(PREPARATION, first) || has(ALWAYS_PREPARATION) {
        Role::Preparation
    } else if has(VALIDATION) {
        Role::Validation
    } else if has(TRAINING) {
        Role::Training
    } else {
        Role::Unknown
    }
}

/// Whether a unit counts bytes: such a bar shows a download.
pub(super) fn is_bytes(unit: &str) -> bool {
    let unit = unit.trim();
    let unit = unit
        .strip_prefix(['k', 'K', 'M', 'G', 'T', 'P'])
        .unwrap_or(unit);
    matches!(
        unit,
        "B" | "iB" | "b" | "bit" | "bits" | "byte" | "bytes" | "Byte" | "Bytes"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_removed() {
        let line = "\u{1b}[1m 2/18\u{1b}[0m \u{1b}]8;;x\u{7}1s\u{1b}[A\u{8}\u{8}\u{1b}";
        assert_eq!(visible_text(line.as_bytes()), " 2/18 1s");
    }

    #[test]
    fn names_have_no_numbers() {
        assert_eq!(name_of("Epoch 3/10, loss=0.52 (lr 1e-4)"), "epoch loss lr");
        assert_eq!(role_of("epoch loss lr"), Role::Training);
        assert_eq!(
            role_of(&name_of("Sanity Checking DataLoader 0")),
            Role::Validation
        );
        assert_eq!(
            role_of(&name_of("train: Scanning /data/labels")),
            Role::Preparation
        );
        assert_eq!(role_of(&name_of("Map (num_proc=4)")), Role::Preparation);
        assert_eq!(role_of(""), Role::Unknown);
    }

    #[test]
    fn numbers_have_separators_and_prefixes() {
        let numbers = [
            "1,251", "1_000", "3.5", "12k", "1.5M", "-3", "x", "", "1e400",
        ];
        let expected = [
            Some(1251.0),
            Some(1000.0),
            Some(3.5),
            Some(12e3),
            Some(1.5e6),
        ];
        let parsed: Vec<_> = numbers.iter().map(|text| parse_number(text)).collect();
        assert_eq!(parsed[..5], expected);
        assert_eq!(parsed[5..], [None; 4]);
    }
}
