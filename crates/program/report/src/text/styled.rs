//! One line of output: letters with their roles.

use unicode_width::UnicodeWidthChar;

use super::Role;

/// Letters with their roles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Styled {
    letters: Vec<(char, Role)>,
}

impl Styled {
    /// Letters that all have the same role.
    pub fn new(text: &str, role: Role) -> Self {
        let mut line = Self::default();
        line.push(text, role);
        line
    }

    /// Adds letters. Control characters, such as those in the output of a command, must not reach the terminal.
    pub fn push(&mut self, text: &str, role: Role) {
        let letters = text.chars().map(|letter| match letter {
            '\t' => ' ',
            control if control.is_control() => char::REPLACEMENT_CHARACTER,
            letter => letter,
        });
        self.letters.extend(letters.map(|letter| (letter, role)));
    }

    /// Adds spaces.
    pub fn push_spaces(&mut self, count: usize) {
        self.letters
            .extend(std::iter::repeat_n((' ', Role::Plain), count));
    }

    /// Adds other letters.
    pub fn append(&mut self, other: &Self) {
        self.letters.extend(&other.letters);
    }

    /// The letters without their roles.
    pub fn plain(&self) -> String {
        self.letters.iter().map(|(letter, _)| *letter).collect()
    }

    /// The letters in this range.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        Self {
            letters: self.letters[range].to_vec(),
        }
    }

    /// The number of letters.
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// The number of terminal columns.
    pub fn width(&self) -> usize {
        self.letters.iter().map(|(letter, _)| width(*letter)).sum()
    }

    /// Writes the line without spaces at its end, with the escape codes of its roles if `has_colours`.
    pub fn write(&self, text: &mut String, has_colours: bool) {
        let end = self.letters.iter().rposition(|(letter, _)| *letter != ' ');
        let shown = &self.letters[..end.map_or(0, |end| end + 1)];
        let mut before = Role::Plain;
        for (letter, role) in shown {
            if has_colours && *role != before {
                if before != Role::Plain {
                    text.push_str(&before.style().render_reset().to_string());
                }
                text.push_str(&role.style().render().to_string());
                before = *role;
            }
            text.push(*letter);
        }
        if before != Role::Plain {
            text.push_str(&before.style().render_reset().to_string());
        }
    }
}

/// The number of terminal columns of a letter.
pub fn width(letter: char) -> usize {
    letter.width().unwrap_or(0)
}
