//! Wraps lines between words.

use super::Styled;

/// How a line is wrapped.
#[derive(Clone, Copy, Debug)]
pub struct Wrapping {
    /// The number of columns of the terminal.
    pub columns: usize,
    /// The number of spaces before all lines but the first.
    pub indent: usize,
    /// The number of letters before a shell command, whose lines end with a backslash if it is wrapped.
    pub command_at: Option<usize>,
}

/// Letters after which a long word, such as a path, is broken rather than elsewhere.
pub const WORD_PARTS: [char; 10] = ['/', '_', '-', '.', ',', ':', ';', '@', '=', '('];

/// The least room at the end of a line for the beginning of a word that is longer than a line.
const MIN_PART: usize = 8;

/// Wraps a line between words. A word that is longer than a line is broken, unless it belongs to a command.
pub fn wrap(line: &Styled, wrapping: Wrapping) -> Vec<Styled> {
    let Wrapping {
        columns, indent, ..
    } = wrapping;
    if line.width() <= columns {
        return vec![line.clone()];
    }
    let plain: Vec<char> = line.plain().chars().collect();
    let mut lines = Vec::new();
    let mut current = Styled::default();
    let mut at = 0;
    while at < plain.len() {
        let end = end_of_word(&plain, at, wrapping.command_at);
        let is_command = wrapping.command_at.is_some_and(|begin| at > begin);
        // A command needs room for a space and a backslash at the end of each line but the last.
        let room = match wrapping.command_at.is_some() && end < plain.len() {
            true => columns.saturating_sub(2),
            false => columns,
        };
        let word = line.slice(at..end);
        let used = current.width();
        if used + word.width() <= room {
            current.append(&word);
            at = end;
            continue;
        }
        let is_at_start = current.plain().trim().is_empty();
        let full_line = room.saturating_sub(indent);
        if is_command && is_at_start {
            // The shell would read the parts of a broken word as two: the terminal itself wraps it.
            current.append(&word);
            at = end;
            continue;
        }
        let is_too_long = word.width() - leading_spaces(&word) > full_line;
        if !is_command && (is_at_start || is_too_long) {
            // The word does not fit into any line.
            let spaces = if is_at_start {
                0
            } else {
                leading_spaces(&word)
            };
            let left = room.saturating_sub(used + spaces);
            let text: String = plain[at + spaces..end].iter().collect();
            let (part, _) = split_word(&text, left.max(1));
            let length = part.chars().count();
            if is_at_start || left >= MIN_PART && length >= left / 2 {
                current.append(&line.slice(at..at + spaces + length));
                at += spaces + length;
            }
        } else {
            at += leading_spaces(&word);
        }
        if is_command {
            current.push(" \\", super::Role::Plain);
        }
        lines.push(std::mem::take(&mut current));
        current.push_spaces(indent);
        at += plain[at..]
            .iter()
            .take_while(|letter| **letter == ' ')
            .count();
    }
    lines.push(current);
    lines
}

/// The end of the word at this place, with the spaces before it. Words of a command in quotes stay together.
fn end_of_word(plain: &[char], at: usize, command_at: Option<usize>) -> usize {
    let mut quoted = false;
    let mut has_letters = false;
    for (index, letter) in plain.iter().enumerate().skip(at) {
        let is_command = command_at.is_some_and(|begin| index >= begin);
        match letter {
            '\'' if is_command => quoted = !quoted,
            ' ' if has_letters && !quoted && !is_before_unit(&plain[index..]) => return index,
            _ => {}
        }
        has_letters |= *letter != ' ';
    }
    plain.len()
}

/// Whether these letters are a space and a unit, which stays with the number before it.
fn is_before_unit(rest: &[char]) -> bool {
    let word = rest.iter().skip(1).take_while(|letter| **letter != ' ');
    let word: String = word.collect();
    let unit = word.trim_end_matches([',', '.', ';', ':', ')']);
    ["%", "W", "J", "kJ", "MJ", "s", "ms", "MHz"].contains(&unit)
}

/// The number of spaces at the start of a word.
fn leading_spaces(word: &Styled) -> usize {
    let plain = word.plain();
    plain.len() - plain.trim_start_matches(' ').len()
}

/// Splits a long word at most `columns` from its start, if possible after a punctuation mark, and not within a number.
pub fn split_word(word: &str, columns: usize) -> (&str, &str) {
    let mut used = 0;
    let mut last = None;
    let mut nicest = None;
    let mut before = ' ';
    for (index, letter) in word.char_indices() {
        if index > 0 {
            let is_in_number = before.is_ascii_digit() && letter.is_ascii_digit();
            if WORD_PARTS.contains(&before) && !letter.is_ascii_digit() || before == '/' {
                nicest = Some(index);
            }
            if !is_in_number || last.is_none() {
                last = Some(index);
            }
        }
        used += super::styled::width(letter);
        if used > columns {
            let at = nicest.or(last).unwrap_or(index.max(letter.len_utf8()));
            return word.split_at(at);
        }
        before = letter;
    }
    (word, "")
}

#[cfg(test)]
mod tests {
    use super::super::Role;
    use super::*;

    #[test]
    fn lines_fit_and_nothing_is_lost() {
        let long = format!("one {} two three", "x".repeat(250));
        let exact = format!("{} b c", "a".repeat(60));
        let full = format!("{} {} f", "word".repeat(5), "x".repeat(85));
        for text in [
            exact.as_str(),
            full.as_str(),
            long.as_str(),
            "",
            " ",
            "short",
            &"word ".repeat(90),
        ] {
            for columns in 20..100 {
                let wrapping = Wrapping {
                    columns,
                    indent: 4,
                    command_at: None,
                };
                let lines = wrap(&Styled::new(text, Role::Plain), wrapping);
                let all: String = lines.iter().map(Styled::plain).collect();
                for line in &lines {
                    let shown = line.plain().trim_end().chars().count();
                    assert!(shown <= columns, "{columns}: {lines:?}");
                }
                assert_eq!(all.replace(' ', ""), text.replace(' ', ""));
            }
        }
    }

    #[test]
    fn long_words_are_split_after_punctuation_and_not_within_numbers() {
        assert_eq!(
            split_word("studies/resnet50-v100", 12),
            ("studies/", "resnet50-v100")
        );
        assert_eq!(split_word("abcdefg1234567", 10), ("abcdefg", "1234567"));
        assert_eq!(split_word("short", 10), ("short", ""));
    }
}
