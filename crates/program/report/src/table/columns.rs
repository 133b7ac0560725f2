//! Fits the columns of a table into a terminal.
//!
//! A table that is too wide becomes narrower in steps: its headings are wrapped, then its cells are wrapped between words,
//! and then it is folded into blocks, each with some of the columns and all with the labels of the rows. No cell is cut
//! off, and no number is wrapped.

use unicode_width::UnicodeWidthStr;

use super::Table;
use crate::text::{WORD_PARTS, split_word};

/// The number of spaces between two columns.
pub const GAP: usize = 2;
/// The number of spaces before the first column.
pub const MARGIN: usize = 1;

/// A column of a block: its index in the table, and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedColumn {
    pub column: usize,
    pub width: usize,
}

/// The least width of a word in a column of text, such as a path, that is broken after punctuation rather than to fold the
/// table.
const LONG_WORD: usize = 24;

/// What a piece of a table is, which decides where it may be wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A heading is wrapped at any space.
    Heading,
    /// A cell in a column of text is not wrapped between a number and its unit.
    Label,
    /// A cell in a column of numbers is wrapped only between two words without numbers.
    Number,
}

impl Piece {
    /// Whether the text may be wrapped between these two words.
    fn is_breakable(self, left: &str, right: &str) -> bool {
        let has_letter = |word: &str| word.contains(char::is_alphabetic);
        let is_word =
            |word: &str| has_letter(word) && !word.contains(|letter: char| letter.is_ascii_digit());
        match self {
            _ if left.ends_with([',', ';', ':']) => true,
            Self::Heading => true,
            Self::Label => has_letter(left) && has_letter(right),
            Self::Number => is_word(left) && is_word(right),
        }
    }

    /// The kind of a column's cells.
    pub fn of_column(table: &Table, column: usize) -> Self {
        match table.has_numbers(column) {
            true => Self::Number,
            false => Self::Label,
        }
    }
}

/// The widths of a column in the steps of making it narrower.
#[derive(Clone, Copy, Debug)]
struct Widths {
    /// The width without any wrapping.
    natural: usize,
    /// The least width at which no cell is wrapped, but the heading may be.
    unwrapped_cells: usize,
    /// The least width at which no word is broken, except long ones after punctuation.
    whole_words: usize,
}

/// The number of terminal columns of a text in one line.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Fits a table into this many terminal columns: the blocks to draw, each with its columns.
pub fn fit(table: &Table, available: usize) -> Vec<Vec<PlacedColumn>> {
    let widths: Vec<Widths> = (0..table.header.len())
        .map(|column| column_widths(table, column))
        .collect();
    let all: Vec<usize> = (0..widths.len()).collect();
    if let Some(block) = place(&all, &widths, available) {
        return vec![block];
    }
    fold(table, &widths, available)
}

/// The widths of one column.
fn column_widths(table: &Table, column: usize) -> Widths {
    let heading = &table.header[column];
    let longest = |cells: &mut dyn Iterator<Item = &str>| cells.map(width).max().unwrap_or(0);
    let cells = longest(&mut table.column(column).flat_map(str::lines));
    let kind = Piece::of_column(table, column);
    let pieces = table
        .column(column)
        .flat_map(str::lines)
        .flat_map(|cell| unbreakable_pieces(cell, kind))
        .map(|piece| match kind {
            Piece::Label if width(&piece) >= LONG_WORD => longest_part(&piece),
            _ => width(&piece),
        });
    let pieces = pieces.max().unwrap_or(0);
    let heading_word = longest(&mut heading.split_whitespace());
    Widths {
        natural: cells.max(longest(&mut heading.lines())),
        unwrapped_cells: cells.max(heading_word),
        whole_words: pieces.max(heading_word),
    }
}

/// The parts of a cell that are not separated by wrapping.
fn unbreakable_pieces(cell: &str, kind: Piece) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut before: Option<&str> = None;
    for word in cell.split(' ') {
        match (pieces.last_mut(), before) {
            (Some(piece), Some(left)) if !kind.is_breakable(left, word) => {
                piece.push(' ');
                piece.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
        before = Some(word);
    }
    pieces
}

/// The width of the longest part between two punctuation marks of a word.
fn longest_part(word: &str) -> usize {
    let parts = word.split_inclusive(WORD_PARTS);
    parts.map(width).max().unwrap_or(0)
}

/// The width of a block with columns of these widths.
fn total(widths: impl Iterator<Item = usize>) -> usize {
    let (count, sum) = widths.fold((0, 0), |(count, sum), width| (count + 1, sum + width));
    MARGIN + sum + GAP * usize::saturating_sub(count, 1)
}

/// Places columns side by side; `None` if they do not fit without breaking words.
fn place(columns: &[usize], widths: &[Widths], available: usize) -> Option<Vec<PlacedColumn>> {
    let least = |column: &usize| widths[*column].whole_words;
    let mut room = available.checked_sub(total(columns.iter().map(least)))?;
    let mut placed: Vec<PlacedColumn> = columns
        .iter()
        .map(|column| PlacedColumn {
            column: *column,
            width: widths[*column].whole_words,
        })
        .collect();
    // Room is first given to cells, and then to headings.
    let steps: [fn(&Widths) -> usize; 2] =
        [|widths| widths.unwrapped_cells, |widths| widths.natural];
    for step in steps {
        for one in &mut placed {
            let wanted = step(&widths[one.column]).saturating_sub(one.width);
            one.width += wanted.min(room);
            room -= wanted.min(room);
        }
    }
    Some(placed)
}

/// Folds a table into blocks, which all begin with the columns that identify a row.
fn fold(table: &Table, widths: &[Widths], available: usize) -> Vec<Vec<PlacedColumn>> {
    let count = widths.len();
    let keys = table.key_columns.min(count.saturating_sub(1)).max(1);
    let mut widths = widths.to_vec();
    // A column that is wider than half of a block is broken, and so are the keys if they leave too little room.
    let half = (available / 2).saturating_sub(GAP);
    for one in &mut widths[keys..] {
        one.whole_words = one.whole_words.min(half);
    }
    let widest = widths[keys..].iter().map(|one| one.whole_words).max();
    let room = available.saturating_sub(widest.unwrap_or(0) + GAP);
    let unwrapped = total(widths[..keys].iter().map(|one| one.unwrapped_cells));
    for one in &mut widths[..keys] {
        // Labels that are repeated in each block are easier to read in one line.
        if unwrapped <= room {
            one.whole_words = one.unwrapped_cells;
        }
    }
    while total(widths[..keys].iter().map(|one| one.whole_words)) > room {
        let widest = widths[..keys].iter_mut().max_by_key(|one| one.whole_words);
        match widest {
            Some(one) if one.whole_words > 1 => one.whole_words -= 1,
            _ => break,
        }
    }
    let mut blocks = Vec::new();
    let mut block: Vec<usize> = (0..keys).collect();
    for column in keys..count {
        let with_this = block.iter().chain([&column]);
        let needed = total(with_this.map(|column| widths[*column].whole_words));
        if needed > available && block.len() > keys {
            blocks.push(std::mem::replace(&mut block, (0..keys).collect()));
        }
        block.push(column);
    }
    blocks.push(block);
    let placed = blocks
        .iter()
        .filter_map(|block| place(block, &widths, available));
    placed.collect()
}

/// Wraps a cell or a heading to a width.
pub fn wrap_cell(text: &str, columns: usize, kind: Piece) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut current = String::new();
        for piece in unbreakable_pieces(line, kind) {
            let space = usize::from(!current.is_empty());
            if width(&current) + space + width(&piece) <= columns {
                current.push_str(&" ".repeat(space));
                current.push_str(&piece);
                continue;
            }
            if !current.is_empty() {
                lines.push(std::mem::take(&mut current));
            }
            let mut rest = piece.as_str();
            while width(rest) > columns {
                let (part, other) = split_word(rest, columns.max(1));
                lines.push(part.trim_end().to_owned());
                rest = other.trim_start();
            }
            current = rest.to_owned();
        }
        lines.push(current);
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with a label and `numbers` columns of numbers.
    fn table(numbers: usize) -> Table {
        let names: Vec<String> = (0..numbers).map(|name| format!("Number {name}")).collect();
        let header = std::iter::once("Layer").chain(names.iter().map(String::as_str));
        let mut table = Table::new(&header.collect::<Vec<_>>());
        let cells = (0..numbers).map(|number| format!("12345.{number}"));
        table.push(
            std::iter::once("a.name.that.is.long".repeat(2))
                .chain(cells)
                .collect(),
        );
        table
    }

    #[test]
    fn narrow_tables_are_folded_and_keep_every_number() {
        for numbers in [1, 3, 6, 20] {
            for columns in [20, 40, 60, 80, 200] {
                let table = table(numbers);
                let blocks = fit(&table, columns);
                let placed: Vec<usize> = blocks
                    .iter()
                    .flat_map(|block| block.iter().skip(1).map(|one| one.column))
                    .collect();
                assert_eq!(placed, (1..=numbers).collect::<Vec<_>>());
                for block in &blocks {
                    assert_eq!(block[0].column, 0);
                    assert!(total(block.iter().map(|one| one.width)) <= columns);
                    // No number is wrapped.
                    assert!(block.iter().skip(1).all(|one| one.width >= 7));
                }
            }
        }
    }

    #[test]
    fn headings_are_wrapped_before_cells() {
        let mut table = Table::new(&["Target metric", "Average power\n[W]"]);
        table.push(vec!["min EDP and more".to_owned(), "257.1".to_owned()]);
        let widths = |columns| {
            fit(&table, columns)[0]
                .iter()
                .map(|one| one.width)
                .collect::<Vec<_>>()
        };
        assert_eq!(widths(80), [16, 13]);
        assert_eq!(widths(28), [16, 9]);
        assert_eq!(widths(20), [10, 7]);
    }

    #[test]
    fn cells_are_wrapped_between_words() {
        let label = |text, columns| wrap_cell(text, columns, Piece::Label);
        assert_eq!(label("150 W, batch 64", 9), ["150 W,", "batch 64"]);
        assert_eq!(label("v100 resnet50 260 W", 14), ["v100", "resnet50 260 W"]);
        let number = |text, columns| wrap_cell(text, columns, Piece::Number);
        assert_eq!(number("12.5 - 13.5", 11), ["12.5 - 13.5"]);
        assert_eq!(number("cannot be read", 8), ["cannot", "be read"]);
        let heading = wrap_cell("Average power\n[W]", 8, Piece::Heading);
        assert_eq!(heading, ["Average", "power", "[W]"]);
        assert_eq!(label("", 8), [""]);
    }
}
