//! The text of a command: lines of prose and tables, which are laid out when they are printed.
//!
//! A command describes its result as [`Text`], without knowing the terminal. The program chooses a [`TextLayout`], and
//! [`Text::render`] fits the tables into its columns, wraps the prose and adds the colours. This is the only place where
//! any of that is done.

mod line;
mod role;
mod styled;
mod wrap;

pub use line::Line;
pub use role::Role;

pub(crate) use role::change_role;
pub(crate) use styled::Styled;
pub(crate) use wrap::{WORD_PARTS, split_word};

use crate::table::Table;

/// How a text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLayout {
    /// The number of columns into which tables are fitted.
    pub table_columns: usize,
    /// The number of columns at which prose is wrapped; `None` if each paragraph is one line.
    pub prose_columns: Option<usize>,
    /// Whether the text has colours.
    pub has_colours: bool,
}

impl TextLayout {
    /// The fewest columns into which a text is fitted.
    const MIN_COLUMNS: usize = 20;

    /// The layout for files and pipes. It is the same on every machine. A paragraph is one line, so that `grep` finds a
    /// whole sentence and the next program can wrap it as it likes.
    pub const PLAIN: Self = Self {
        table_columns: 80,
        prose_columns: None,
        has_colours: false,
    };

    /// The layout for a terminal with this number of columns.
    pub fn terminal(columns: usize, has_colours: bool) -> Self {
        let columns = columns.max(Self::MIN_COLUMNS);
        Self {
            table_columns: columns,
            prose_columns: Some(columns),
            has_colours,
        }
    }
}

/// The text of a command, which is laid out when it is printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    blocks: Vec<Block>,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
enum Block {
    Line(Line),
    Table(Table),
}

impl Text {
    /// One empty line.
    pub fn empty_line() -> Self {
        Line::default().into()
    }

    /// Joins parts with an empty line between them.
    pub fn from_parts(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut text = Self::default();
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                text += Self::empty_line();
            }
            text += part;
        }
        text
    }

    /// Shows everything in this text in a role.
    pub fn with_role(mut self, role: Role) -> Self {
        for block in &mut self.blocks {
            if let Block::Line(line) = block {
                *line = std::mem::take(line).with_role(role);
            }
        }
        self
    }

    /// Lays out the text.
    pub fn render(&self, layout: &TextLayout) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            let lines = match block {
                Block::Line(line) => line.wrapped(layout.prose_columns),
                Block::Table(table) => table.draw(layout.table_columns),
            };
            for line in lines {
                line.write(&mut text, layout.has_colours);
                text.push('\n');
            }
        }
        text
    }

    /// Writes the text as Markdown: tables as Markdown tables, lines as they are.
    pub fn to_markdown(&self) -> String {
        let blocks = self.blocks.iter().map(|block| match block {
            Block::Line(line) => line.plain() + "\n",
            Block::Table(table) => table.to_markdown() + "\n",
        });
        blocks.collect()
    }
}

impl From<Line> for Text {
    fn from(line: Line) -> Self {
        Self {
            blocks: vec![Block::Line(line)],
        }
    }
}

impl From<Table> for Text {
    fn from(table: Table) -> Self {
        Self {
            blocks: vec![Block::Table(table)],
        }
    }
}

/// Each line of a string becomes a line of the text.
impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.lines().map(Line::new).collect()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Self {
        text.clone()
    }
}

impl FromIterator<Line> for Text {
    fn from_iter<I: IntoIterator<Item = Line>>(lines: I) -> Self {
        Self {
            blocks: lines.into_iter().map(Block::Line).collect(),
        }
    }
}

impl<T: Into<Text>> std::ops::AddAssign<T> for Text {
    fn add_assign(&mut self, other: T) {
        self.blocks.extend(other.into().blocks);
    }
}

impl<T: Into<Text>> std::ops::Add<T> for Text {
    type Output = Self;

    fn add(mut self, other: T) -> Self {
        self += other;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_decides_about_lines_and_colours() {
        let mut table = Table::new(&["Setting", "Energy\n[J]"]);
        table.push(vec!["150 W".to_owned(), "12.5".to_owned()]);
        let sentence = Line::with_role_of(Role::Heading, "Recommendation:").and("set the cap");
        let text = Text::from_parts([table.into(), sentence.into()]);
        assert_eq!(
            text.render(&TextLayout::PLAIN),
            " Setting  Energy\n             [J]\n────────────────\n 150 W      12.5\n\nRecommendation: set the cap\n"
        );
        let narrow = text.render(&TextLayout::terminal(20, true));
        assert!(
            narrow.ends_with("\u{1b}[1mRecommendation:\u{1b}[0m set\n  the cap\n"),
            "{narrow:?}"
        );
        assert_eq!(
            text.to_markdown(),
            "| Setting | Energy [J] |\n|---------|------------|\n| 150 W   |       12.5 |\n\nRecommendation: set the cap\n"
        );
    }
}
