//! A line of prose, which is wrapped if it is too long.

use super::wrap::{Wrapping, wrap};
use super::{Role, Styled};

/// A line of prose. If it is longer than the terminal is wide, it is wrapped between words, and its other lines are
/// indented.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    letters: Styled,
    /// The number of letters before a command that a user may copy into a shell; `None` if there is no command.
    command_at: Option<usize>,
}

impl Line {
    /// A line in the plain role.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self::with_role_of(Role::Plain, text)
    }

    /// A line that begins with text in this role.
    pub fn with_role_of(role: Role, text: impl AsRef<str>) -> Self {
        Self {
            letters: Styled::new(text.as_ref(), role),
            command_at: None,
        }
    }

    /// A line with a command that a user may copy into a shell, after the words that introduce it. If it is wrapped, the
    /// shell still reads it as one command.
    pub fn with_command(introduction: &str, command: &str) -> Self {
        let mut line = Self::with_role_of(Role::Heading, introduction).and("");
        line.command_at = Some(line.letters.len());
        line.letters.push(command, Role::Plain);
        line
    }

    /// A line whose first words, up to the first colon, introduce a result.
    pub fn with_introduction(role: Role, text: &str) -> Self {
        match text.split_once(':') {
            Some((introduction, rest)) => {
                let mut line = Self::with_role_of(role, format!("{introduction}:"));
                line.letters.push(rest, Role::Plain);
                line
            }
            None => Self::new(text),
        }
    }

    /// Adds a space and text in the plain role.
    pub fn and(self, text: impl AsRef<str>) -> Self {
        self.and_in_role(Role::Plain, text)
    }

    /// Adds a space and text in a role.
    pub fn and_in_role(mut self, role: Role, text: impl AsRef<str>) -> Self {
        self.letters.push_spaces(1);
        self.letters.push(text.as_ref(), role);
        self
    }

    /// Shows the whole line in a role.
    pub fn with_role(self, role: Role) -> Self {
        Self {
            letters: Styled::new(&self.plain(), role),
            ..self
        }
    }

    /// The line without its roles.
    pub fn plain(&self) -> String {
        self.letters.plain()
    }

    /// Wraps the line at this number of columns; `None` does not wrap it.
    pub(super) fn wrapped(&self, columns: Option<usize>) -> Vec<Styled> {
        let Some(columns) = columns else {
            return vec![self.letters.clone()];
        };
        let plain = self.plain();
        let wrapping = match self.command_at {
            Some(command_at) => Wrapping {
                columns,
                indent: 2,
                command_at: Some(command_at),
            },
            None => Wrapping {
                columns,
                indent: hanging_indent(&plain, columns),
                command_at: None,
            },
        };
        wrap(&self.letters, wrapping)
    }
}

/// The indent of all lines but the first. Text in columns, which are separated by two spaces or more, is wrapped within
/// its last column; other text gets two spaces more than its first line.
fn hanging_indent(text: &str, columns: usize) -> usize {
    let letters: Vec<char> = text.chars().collect();
    let first = letters.iter().take_while(|letter| **letter == ' ').count();
    let gaps = letters[first..].windows(3);
    let last_column = gaps
        .enumerate()
        .filter(|(_, gap)| gap[0] == ' ' && gap[1] == ' ' && gap[2] != ' ')
        .map(|(index, _)| first + index + 2)
        .next_back();
    match last_column {
        Some(column) if column <= columns * 2 / 3 => column,
        _ => (first + 2).min(columns / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(line: &Line, columns: usize) -> Vec<String> {
        let lines = line.wrapped(Some(columns)).into_iter();
        lines
            .map(|line| line.plain().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn text_in_columns_is_wrapped_within_its_last_column() {
        let line = Line::new("  ok  driver    it is there and answers every question");
        assert_eq!(
            wrapped(&line, 34),
            [
                "  ok  driver    it is there and",
                "                answers every",
                "                question"
            ]
        );
    }

    #[test]
    fn words_of_a_command_are_not_broken() {
        let script = "for n in 1 2 3; do ./train --step $n; done";
        let line = Line::with_command("Next:", &format!("sweetspot sweep -- sh -c '{script}' x"));
        assert_eq!(
            wrapped(&line, 30),
            [
                "Next: sweetspot sweep -- sh \\",
                "  -c \\",
                &format!("  '{script}' \\"),
                "  x"
            ]
        );
    }

    #[test]
    fn wrapped_command_is_still_one_command() {
        let line = Line::with_command(
            "Figures:",
            "sweetspot report 'my study' --export-html a.html",
        );
        assert_eq!(
            wrapped(&line, 40),
            [
                "Figures: sweetspot report 'my study' \\",
                "  --export-html a.html"
            ]
        );
        assert_eq!(line.wrapped(None)[0].plain(), line.plain());
    }
}
