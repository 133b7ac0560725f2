//! A table, drawn for a terminal or as Markdown.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table as DrawnTable,
    TableStyle, Width, presets,
};

use crate::wording::TERMINAL_COLUMNS;

/// The style of tables: a line under the header, and no other lines.
const HEADER_LINE_ONLY: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The smallest width of a label column, in letters, to which long words are split before numbers are split.
const MIN_LABEL_WIDTH: usize = 13;

/// Whether a drawn table fits into a terminal.
fn fits(drawn: &str) -> bool {
    drawn
        .lines()
        .all(|line| line.chars().count() <= TERMINAL_COLUMNS)
}

/// A table: columns of text, followed by columns of numbers.
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    text_columns: usize,
}

impl Table {
    /// An empty table with these headings.
    pub fn new(header: &[&str]) -> Self {
        Self {
            header: header.iter().map(|text| (*text).to_owned()).collect(),
            rows: Vec::new(),
            text_columns: 1,
        }
    }

    /// Sets how many columns of text come before the numbers; one by default.
    pub fn with_text_columns(mut self, text_columns: usize) -> Self {
        self.text_columns = text_columns;
        self
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Returns the headings.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns how many columns of text come before the numbers.
    pub const fn text_columns(&self) -> usize {
        self.text_columns
    }

    /// Returns the rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Draws the table for a terminal without wrapping cells, however wide it is.
    pub fn to_terminal_unwrapped(&self) -> String {
        self.draw(HEADER_LINE_ONLY, self.header.clone(), None)
    }

    /// Draws the table for a terminal. If it is too wide, cells are wrapped: first between words, then within long
    /// words of labels, and last within numbers.
    pub fn to_terminal(&self) -> String {
        let natural = self.to_terminal_unwrapped();
        if fits(&natural) {
            return natural;
        }
        let draw = |min_widths| {
            self.draw(
                HEADER_LINE_ONLY,
                self.header.clone(),
                Some((TERMINAL_COLUMNS, min_widths)),
            )
        };
        let unconstrained = draw(Vec::new());
        let all = std::iter::once(&self.header).chain(&self.rows);
        let words = |text: &str| text.split_whitespace().count();
        let lines = unconstrained.lines().filter(|line| !line.starts_with('─'));
        let drawn: usize = lines.map(words).sum();
        let expected: usize = all.flatten().map(|text| words(text)).sum();
        if drawn == expected {
            return unconstrained;
        }
        let attempts = [
            (usize::MAX, true),
            (MIN_LABEL_WIDTH, true),
            (MIN_LABEL_WIDTH, false),
            (0, false),
        ];
        attempts
            .into_iter()
            .map(|(label, headings)| draw(self.longest_words(label, headings)))
            .find(|drawn| fits(drawn))
            .unwrap_or(unconstrained)
    }

    /// Returns the length of the longest word in each column. Words of labels count with at most `label` letters, and
    /// headings count if `headings` is true.
    fn longest_words(&self, label: usize, headings: bool) -> Vec<usize> {
        let columns = 0..self.header.len();
        let widths = columns.map(|column| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let text_columns = cells.chain(headings.then_some(&self.header[column]));
            let words = text_columns.flat_map(|text| text.split_whitespace());
            let longest = words.map(|word| word.chars().count()).max().unwrap_or(0);
            match column < self.text_columns {
                true => longest.min(label),
                false => longest,
            }
        });
        widths.collect()
    }

    /// Draws the table as Markdown.
    pub fn to_markdown(&self) -> String {
        let flat = self.header.iter().map(|text| text.replace('\n', " "));
        self.draw(presets::ASCII_MARKDOWN, flat.collect(), None)
    }

    /// Draws the table in a style; `width` limits the table and its columns.
    fn draw(
        &self,
        style: TableStyle,
        header: Vec<String>,
        width: Option<(usize, Vec<usize>)>,
    ) -> String {
        let mut table = DrawnTable::new();
        table
            .load_style(style)
            .set_content_arrangement(match &width {
                Some(_) => ContentArrangement::Dynamic,
                None => ContentArrangement::Disabled,
            })
            .set_header(header)
            .add_rows(&self.rows);
        if let Some((width, min_widths)) = width {
            table.set_width(width as u16);
            for (column, min_widths) in table.column_iter_mut().zip(min_widths) {
                let with_padding = Width::Fixed(min_widths as u16 + 2);
                column.set_constraint(ColumnConstraint::LowerBoundary(with_padding));
            }
        }
        for column in table.column_iter_mut().skip(self.text_columns) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let drawn = table.to_string();
        drawn
            .lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_whole() {
        let mut rows = Table::new(&["Layer", "Some heading", "A", "B", "C", "D", "E"]);
        let number = "123456.789".to_owned();
        rows.push(
            [
                vec!["a.name.that.is.long".repeat(3)],
                vec![number.clone(); 6],
            ]
            .concat(),
        );
        let drawn = rows.to_terminal();
        assert!(fits(&drawn), "{drawn}");
        assert_eq!(drawn.matches(&number).count(), 6, "{drawn}");
    }
}
