//! Reads a user's CSV file: a header, then rows; lines that begin with `#` are comments.

/// A CSV file as the texts of its cells.
pub struct CsvText {
    /// The names of the columns, from the header line.
    pub columns: Vec<String>,
    /// The lines after the header, without comments.
    pub lines: Vec<CsvLine>,
}

/// One line of a CSV file.
pub struct CsvLine {
    /// The number of the line in the file, from 1.
    pub number: u64,
    /// The cells, one for each column, without surrounding blanks.
    pub cells: Vec<String>,
}

impl CsvText {
    /// Reads the text of a CSV file. The error message does not contain the file's name; the caller adds it.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| error.to_string())?;
        let columns = header.iter().map(str::to_owned).collect();
        let lines = reader.records().map(|record| {
            let record = record.map_err(|error| error.to_string())?;
            Ok(CsvLine {
                number: record.position().map_or(0, csv::Position::line),
                cells: record.iter().map(str::to_owned).collect(),
            })
        });
        Ok(Self {
            columns,
            lines: lines.collect::<Result<_, String>>()?,
        })
    }
}
