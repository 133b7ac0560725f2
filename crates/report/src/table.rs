//! One table, drawn for a terminal or for Markdown.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle, presets};

/// A line under the header, and nothing else that takes room.
const PLAIN: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Rows of text; the first column is a label, the others are numbers.
pub struct Rows {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    pub fn new(header: &[&str]) -> Self {
        Self {
            header: header.iter().map(|text| (*text).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub fn terminal(&self) -> String {
        self.draw(PLAIN, self.header.clone())
    }

    pub fn markdown(&self) -> String {
        let flat = self.header.iter().map(|text| text.replace('\n', " "));
        self.draw(presets::ASCII_MARKDOWN, flat.collect())
    }

    fn draw(&self, style: TableStyle, header: Vec<String>) -> String {
        let mut table = Table::new();
        table
            .load_style(style)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(header)
            .add_rows(&self.rows);
        for column in table.column_iter_mut().skip(1) {
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
