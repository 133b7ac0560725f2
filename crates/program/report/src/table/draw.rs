//! Draws a table for a terminal: a line under the header, and no other lines.

use super::columns::{GAP, MARGIN, Piece, PlacedColumn, fit, width, wrap_cell};
use super::{Row, Table};
use crate::text::{Role, Styled};

/// A column of a block with its wrapped heading and cells.
struct DrawnColumn {
    column: usize,
    width: usize,
    heading: Vec<String>,
    /// The lines of each row's cell.
    cells: Vec<Vec<String>>,
}

impl Table {
    /// Draws the table into this many columns. If it is too wide, it is folded into blocks one below the other.
    pub(crate) fn draw(&self, columns: usize) -> Vec<Styled> {
        let mut lines = Vec::new();
        for block in fit(self, columns) {
            if !lines.is_empty() {
                lines.push(Styled::default());
            }
            lines.extend(self.draw_block(&block));
        }
        lines
    }

    /// Draws some of the columns.
    fn draw_block(&self, block: &[PlacedColumn]) -> Vec<Styled> {
        let columns: Vec<DrawnColumn> = block.iter().map(|one| self.wrap_column(*one)).collect();
        let mut lines = Vec::new();
        let height = columns.iter().map(|column| column.heading.len()).max();
        for line in 0..height.unwrap_or(0) {
            let cells = columns.iter().map(|column| {
                let text = heading_line(&column.heading, line, height.unwrap_or(0));
                (column, text, Role::Heading)
            });
            lines.push(self.draw_line(cells));
        }
        let sum: usize = columns.iter().map(|column| column.width).sum();
        let rule = MARGIN + sum + GAP * columns.len().saturating_sub(1);
        lines.push(Styled::new(&"─".repeat(rule), Role::Secondary));
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(self.draw_row(&columns, row, index));
        }
        lines
    }

    /// Draws a row, whose cells may have several lines.
    fn draw_row(&self, columns: &[DrawnColumn], row: &Row, index: usize) -> Vec<Styled> {
        let height = columns.iter().map(|column| column.cells[index].len());
        let lines = (0..height.max().unwrap_or(0)).map(|line| {
            let cells = columns.iter().map(|column| {
                let text = column.cells[index].get(line).map_or("", String::as_str);
                (column, text, self.role(row, column.column))
            });
            self.draw_line(cells)
        });
        lines.collect()
    }

    /// Draws one line from its cells, each with its column and role.
    fn draw_line<'a>(
        &self,
        cells: impl Iterator<Item = (&'a DrawnColumn, &'a str, Role)>,
    ) -> Styled {
        let mut line = Styled::default();
        for (index, (column, text, role)) in cells.enumerate() {
            line.push_spaces(if index == 0 { MARGIN } else { GAP });
            let space = column.width.saturating_sub(width(text));
            let is_right = self.has_numbers(column.column);
            line.push_spaces(if is_right { space } else { 0 });
            line.push(text, role);
            line.push_spaces(if is_right { 0 } else { space });
        }
        line
    }

    /// Wraps the heading and the cells of a column, and makes the column as narrow as they are then.
    fn wrap_column(&self, placed: PlacedColumn) -> DrawnColumn {
        let PlacedColumn {
            column,
            width: most,
        } = placed;
        let kind = Piece::of_column(self, column);
        let heading = wrap_cell(&self.header[column], most, Piece::Heading);
        let cells: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| {
                let cell = row.cells.get(column).map_or("", String::as_str);
                wrap_cell(cell, most, kind)
            })
            .collect();
        let lines = cells.iter().flatten().chain(&heading);
        DrawnColumn {
            column,
            width: lines.map(|line| width(line)).max().unwrap_or(0),
            heading,
            cells,
        }
    }
}

/// A line of a heading. Headings begin at the top, and their units are all on the last line.
fn heading_line(heading: &[String], line: usize, height: usize) -> &str {
    let unit = heading.last().filter(|last| last.starts_with('['));
    match unit {
        Some(unit) if line + 1 == height => unit,
        Some(_) if line + 1 >= heading.len() => "",
        _ => heading.get(line).map_or("", String::as_str),
    }
}
