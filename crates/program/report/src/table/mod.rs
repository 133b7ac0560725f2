//! A table, drawn for a terminal or as Markdown.

mod columns;
mod draw;

use crate::text::Role;

/// A table: columns of text, followed by columns of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Row>,
    text_columns: usize,
    key_columns: usize,
    /// Columns whose cells have a role that depends on their text.
    column_roles: Vec<(usize, RoleOfCell)>,
}

/// The role of a cell by its text.
pub type RoleOfCell = fn(&str) -> Role;

/// A row of cells; `role` is that of its first cell.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    cells: Vec<String>,
    role: Role,
}

impl Table {
    /// An empty table with these headings. A line break in a heading is kept; the unit goes on its own line.
    pub fn new(header: &[&str]) -> Self {
        Self {
            header: header.iter().map(|text| (*text).to_owned()).collect(),
            rows: Vec::new(),
            text_columns: 1,
            key_columns: 1,
            column_roles: Vec::new(),
        }
    }

    /// Sets how many columns of text come before the numbers; one by default.
    pub fn with_text_columns(mut self, text_columns: usize) -> Self {
        self.text_columns = text_columns;
        self
    }

    /// Sets how many of the first columns identify a row; one by default. They are repeated if the table is folded.
    pub fn with_key_columns(mut self, key_columns: usize) -> Self {
        self.key_columns = key_columns;
        self
    }

    /// Sets the role of the cells in these columns by their text.
    pub fn with_column_roles(mut self, columns: &[usize], role: RoleOfCell) -> Self {
        let roles = columns.iter().map(|column| (*column, role));
        self.column_roles.extend(roles);
        self
    }

    /// Adds a row.
    pub fn push(&mut self, cells: Vec<String>) {
        self.push_with_role(cells, Role::Plain);
    }

    /// Adds a row whose first cell has a role.
    pub fn push_with_role(&mut self, cells: Vec<String>, role: Role) {
        self.rows.push(Row { cells, role });
    }

    /// Returns the headings.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns how many columns of text come before the numbers.
    pub const fn text_columns(&self) -> usize {
        self.text_columns
    }

    /// Whether the table has no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the cells of each row.
    pub fn rows(&self) -> impl Iterator<Item = &[String]> {
        self.rows.iter().map(|row| row.cells.as_slice())
    }

    /// The cells of one column.
    fn column(&self, column: usize) -> impl Iterator<Item = &str> {
        let cells = self
            .rows
            .iter()
            .filter_map(move |row| row.cells.get(column));
        cells.map(String::as_str)
    }

    /// Whether a column has numbers, which are aligned on the right.
    const fn has_numbers(&self, column: usize) -> bool {
        column >= self.text_columns
    }

    /// The role of a cell.
    fn role(&self, row: &Row, column: usize) -> Role {
        let by_text = self.column_roles.iter().find(|(with, _)| *with == column);
        match (by_text, row.cells.get(column)) {
            (Some((_, role)), Some(cell)) => role(cell),
            _ if column == 0 => row.role,
            _ => Role::Plain,
        }
    }

    /// Draws the table as Markdown.
    pub fn to_markdown(&self) -> String {
        let flat = |text: &str| text.replace('\n', " ").replace('|', "\\|");
        let header: Vec<String> = self.header.iter().map(|text| flat(text)).collect();
        let rows = self.rows.iter().map(|row| {
            let cells = (0..header.len()).map(|column| row.cells.get(column));
            cells
                .map(|cell| flat(cell.map_or("", String::as_str)))
                .collect()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let widths = (0..header.len()).map(|column| {
            let cells = rows.iter().map(|row| &row[column]);
            let cells = cells.chain([&header[column]]);
            cells.map(|cell| columns::width(cell)).max().unwrap_or(0)
        });
        let widths: Vec<usize> = widths.collect();
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, width))| {
                let space = " ".repeat(width - columns::width(cell));
                match self.has_numbers(column) {
                    true => format!(" {space}{cell} "),
                    false => format!(" {cell}{space} "),
                }
            });
            format!("|{}|", cells.collect::<Vec<_>>().join("|"))
        };
        let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        let mut lines = vec![line(&header), format!("|{}|", dashes.join("|"))];
        lines.extend(rows.iter().map(|row| line(row)));
        lines.join("\n")
    }
}
