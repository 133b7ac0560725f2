//! One table, drawn for a terminal or for Markdown.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle, presets};

use crate::words::COLUMNS;

/// A line under the header, and nothing else that takes room.
const PLAIN: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Rows of text; the first column is a label, the others are numbers.
pub struct Rows {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    texts: usize,
}

impl Rows {
    pub fn new(header: &[&str]) -> Self {
        Self {
            header: header.iter().map(|text| (*text).to_owned()).collect(),
            rows: Vec::new(),
            texts: 1,
        }
    }

    /// With so many columns of text before the numbers.
    pub fn with_texts(mut self, texts: usize) -> Self {
        self.texts = texts;
        self
    }

    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// The headings.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// How many columns of text come before the numbers.
    pub const fn texts(&self) -> usize {
        self.texts
    }

    /// The rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// However wide it is.
    pub fn terminal_as_is(&self) -> String {
        self.draw(PLAIN, self.header.clone(), None)
    }

    /// Cells are wrapped where the table would be wider than a terminal.
    pub fn terminal(&self) -> String {
        let natural = self.terminal_as_is();
        let widest = natural.lines().map(|line| line.chars().count()).max();
        match widest.is_some_and(|widest| widest > COLUMNS) {
            true => self.draw(PLAIN, self.header.clone(), Some(COLUMNS)),
            false => natural,
        }
    }

    pub fn markdown(&self) -> String {
        let flat = self.header.iter().map(|text| text.replace('\n', " "));
        self.draw(presets::ASCII_MARKDOWN, flat.collect(), None)
    }

    fn draw(&self, style: TableStyle, header: Vec<String>, width: Option<usize>) -> String {
        let mut table = Table::new();
        table
            .load_style(style)
            .set_content_arrangement(match width {
                Some(_) => ContentArrangement::Dynamic,
                None => ContentArrangement::Disabled,
            })
            .set_header(header)
            .add_rows(&self.rows);
        if let Some(width) = width {
            table.set_width(width as u16);
        }
        for column in table.column_iter_mut().skip(self.texts) {
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
