//! A user's CSV file: a header, then lines by their number; lines that begin with `#` are left out.

/// By line and column.
pub struct CsvText {
    /// As the header names them.
    pub columns: Vec<String>,
    /// Below the header.
    pub lines: Vec<CsvLine>,
}

/// One line.
pub struct CsvLine {
    /// In the file, from 1.
    pub number: u64,
    /// As many as there are columns, without blanks around them.
    pub cells: Vec<String>,
}

impl CsvText {
    /// What is wrong is told without the file's name.
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
