//! One table, drawn for a terminal or for Markdown.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width,
    presets,
};

use crate::wording::COLUMNS;

/// A line under the header, and nothing else that takes room.
const PLAIN: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Letters of a label's word that stay together where there is little room.
const LABEL: usize = 13;

fn fits(drawn: &str) -> bool {
    drawn.lines().all(|line| line.chars().count() <= COLUMNS)
}

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

    /// Cells are wrapped where the table would be wider than a terminal: between words as long as that is
    /// enough, then within long words of labels, and within a number last of all.
    pub fn terminal(&self) -> String {
        let natural = self.terminal_as_is();
        if fits(&natural) {
            return natural;
        }
        let draw = |least| self.draw(PLAIN, self.header.clone(), Some((COLUMNS, least)));
        let as_it_comes = draw(Vec::new());
        let all = std::iter::once(&self.header).chain(&self.rows);
        let words = |text: &str| text.split_whitespace().count();
        let lines = as_it_comes.lines().filter(|line| !line.starts_with('─'));
        let drawn: usize = lines.map(words).sum();
        let meant: usize = all.flatten().map(|text| words(text)).sum();
        if drawn == meant {
            return as_it_comes;
        }
        let tries = [
            (usize::MAX, true),
            (LABEL, true),
            (LABEL, false),
            (0, false),
        ];
        tries
            .into_iter()
            .map(|(label, headings)| draw(self.longest_words(label, headings)))
            .find(|drawn| fits(drawn))
            .unwrap_or(as_it_comes)
    }

    /// Of each column the longest word of its cells, of labels at most so long, with its heading or without.
    fn longest_words(&self, label: usize, headings: bool) -> Vec<usize> {
        let columns = 0..self.header.len();
        let widths = columns.map(|column| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let texts = cells.chain(headings.then_some(&self.header[column]));
            let words = texts.flat_map(|text| text.split_whitespace());
            let longest = words.map(|word| word.chars().count()).max().unwrap_or(0);
            match column < self.texts {
                true => longest.min(label),
                false => longest,
            }
        });
        widths.collect()
    }

    pub fn markdown(&self) -> String {
        let flat = self.header.iter().map(|text| text.replace('\n', " "));
        self.draw(presets::ASCII_MARKDOWN, flat.collect(), None)
    }

    fn draw(
        &self,
        style: TableStyle,
        header: Vec<String>,
        width: Option<(usize, Vec<usize>)>,
    ) -> String {
        let mut table = Table::new();
        table
            .load_style(style)
            .set_content_arrangement(match &width {
                Some(_) => ContentArrangement::Dynamic,
                None => ContentArrangement::Disabled,
            })
            .set_header(header)
            .add_rows(&self.rows);
        if let Some((width, least)) = width {
            table.set_width(width as u16);
            for (column, least) in table.column_iter_mut().zip(least) {
                let with_padding = Width::Fixed(least as u16 + 2);
                column.set_constraint(ColumnConstraint::LowerBoundary(with_padding));
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_whole() {
        let mut rows = Rows::new(&["Layer", "Some heading", "A", "B", "C", "D", "E"]);
        let number = "123456.789".to_owned();
        rows.push(
            [
                vec!["a.name.that.is.long".repeat(3)],
                vec![number.clone(); 6],
            ]
            .concat(),
        );
        let drawn = rows.terminal();
        assert!(fits(&drawn), "{drawn}");
        assert_eq!(drawn.matches(&number).count(), 6, "{drawn}");
    }
}
