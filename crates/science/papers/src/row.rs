//! The rows of a reproduction: printed values beside reproduced ones.

use crate::origin::ValueOrigin;

/// The quantity of a row: its key in JSON and CSV, and its heading and unit in tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueKind {
    /// The key in JSON and CSV, which ends with the SI unit if there is one.
    pub key: &'static str,
    /// The heading in tables, with the unit in brackets.
    pub words: &'static str,
    /// The factor that converts the SI unit to the unit in tables.
    pub scale: f64,
    /// The number of decimals with which tables show the value.
    pub digits: usize,
    /// Whether the deviation is relative to the printed value; if not, it is a difference in the SI unit.
    pub relative: bool,
}

impl ValueKind {
    /// A quantity whose deviation is relative to the printed value.
    pub(super) const fn relative(
        key: &'static str,
        words: &'static str,
        scale: f64,
        digits: usize,
    ) -> Self {
        Self {
            key,
            words,
            scale,
            digits,
            relative: true,
        }
    }

    /// A quantity whose deviation is a difference in the SI unit.
    pub(super) const fn difference(
        key: &'static str,
        words: &'static str,
        scale: f64,
        digits: usize,
    ) -> Self {
        Self {
            key,
            words,
            scale,
            digits,
            relative: false,
        }
    }
}

/// A label of a row: a text or a number.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// A text, such as the name of a network.
    Text(String),
    /// A number, such as a batch size.
    Number(f64),
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Label {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Label {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.pad(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// The tolerance of a row, and whether the row must meet it. A tolerance is a fraction, or in the SI unit if
/// `ValueKind::relative` is false.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// The row must be within this tolerance.
    Each(f64),
    /// The row counts if it is within this tolerance; a [`CountedTolerance`] says how many rows must count.
    Counted(f64),
    /// The row is only shown, without a tolerance.
    Shown,
}

/// A printed value beside the value of the reproduction.
#[derive(Clone, Debug, PartialEq)]
pub struct ReproducedRow {
    /// The table, figure or section of the paper that prints the value.
    pub table: String,
    /// The labels that identify the row, such as the network and the batch size.
    pub row: Vec<(&'static str, Label)>,
    /// The quantity that the value measures.
    pub kind: ValueKind,
    /// The printed value, in the SI unit or as a fraction; `None` if the table's cell is empty.
    pub published: Option<f64>,
    /// The value of the reproduction; `None` if it cannot be reproduced.
    pub reproduced: Option<f64>,
    /// The tolerance of the row, and whether the row must meet it.
    pub judgement: Judgement,
    /// Whether the printed value was used to make the profiles; `None` if that is not stated.
    pub origin: Option<ValueOrigin>,
    /// An explanation: an error in the printed table, or why a value or its tolerance is missing.
    pub note: Option<String>,
}

impl ReproducedRow {
    /// The deviation of the reproduced from the printed value: a fraction, or in the SI unit if `ValueKind::relative`
    /// is false. `None` if a value is missing.
    pub fn deviation(&self) -> Option<f64> {
        let (published, reproduced) = (self.published?, self.reproduced?);
        let deviation = match self.kind.relative {
            true => reproduced / published - 1.0,
            false => reproduced - published,
        };
        deviation.is_finite().then_some(deviation)
    }

    /// The tolerated deviation; `None` if the row is only shown.
    pub const fn tolerance(&self) -> Option<f64> {
        match self.judgement {
            Judgement::Each(tolerance) | Judgement::Counted(tolerance) => Some(tolerance),
            Judgement::Shown => None,
        }
    }

    /// Whether the deviation is within the tolerance; `None` if the row is only shown.
    pub fn is_within_tolerance(&self) -> Option<bool> {
        let tolerance = self.tolerance()?;
        // The margin covers rounding at exactly the tolerance; a missing value is not within it.
        let margin = 1e-9 * tolerance.max(self.published.unwrap_or(0.0).abs());
        Some(
            self.deviation()
                .is_some_and(|deviation| deviation.abs() <= tolerance + margin),
        )
    }

    /// Whether the reproduction requires the row to be within its tolerance.
    pub const fn must_hold(&self) -> bool {
        matches!(self.judgement, Judgement::Each(_))
    }
}

/// Collects the rows of one table.
pub(super) struct Rows {
    table: String,
    origin: Option<ValueOrigin>,
    pub rows: Vec<ReproducedRow>,
}

impl Rows {
    /// An empty list of rows for the table with this name.
    pub fn new(table: &str) -> Self {
        Self {
            table: table.to_owned(),
            origin: None,
            rows: Vec::new(),
        }
    }

    /// States the origin of all printed values of the table.
    pub fn with_origin(self, origin: ValueOrigin) -> Self {
        Self {
            origin: Some(origin),
            ..self
        }
    }

    /// States the origin of the printed value that was added last.
    pub fn set_origin(&mut self, origin: ValueOrigin) {
        if let Some(row) = self.rows.last_mut() {
            row.origin = Some(origin);
        }
    }

    /// Adds a row, and returns its note for the caller to fill in.
    pub fn add(
        &mut self,
        row: &[(&'static str, Label)],
        kind: ValueKind,
        published: Option<f64>,
        reproduced: Option<f64>,
        judgement: Judgement,
    ) -> &mut Option<String> {
        let index = self.rows.len();
        self.rows.push(ReproducedRow {
            table: self.table.clone(),
            row: row.to_vec(),
            kind,
            published,
            reproduced: reproduced.filter(|value| value.is_finite()),
            judgement,
            origin: self.origin.filter(|_| published.is_some()),
            note: None,
        });
        &mut self.rows[index].note
    }
}

/// The rule that at least a given number of rows must be within a tolerance.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedTolerance {
    /// The rule in words.
    pub what: String,
    /// The number of rows that are within the tolerance.
    pub met: usize,
    /// The number of rows to which the tolerance applies.
    pub of: usize,
    /// The number of rows that must be within the tolerance.
    pub needed: usize,
}

impl CountedTolerance {
    /// Whether enough rows are within the tolerance.
    pub const fn is_met(&self) -> bool {
        self.met >= self.needed
    }
}

/// A conclusion of a paper, and whether the reproduction confirms it.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// The paper's conclusion in words.
    pub what: String,
    /// Whether the reproduction confirms the conclusion; `None` if that is unknown.
    pub holds: Option<bool>,
    /// What the reproduction shows, in words.
    pub here: String,
}

impl Conclusion {
    pub(super) fn new(what: &str, holds: bool, here: String) -> Self {
        Self {
            what: what.to_owned(),
            holds: Some(holds),
            here,
        }
    }
}

/// The smallest and the largest of some numbers; both are zero if there are none.
pub(super) fn range_of(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let all = values.into_iter().map(|value| (value, value));
    let ends = all.reduce(|(low, high), (value, _)| (low.min(value), high.max(value)));
    ends.unwrap_or_default()
}

/// Whether both ends of a range are within a tolerance of the ends that a paper states, all of them as fractions.
pub(super) fn is_range_near(here: (f64, f64), stated: (f64, f64), tolerance: f64) -> bool {
    let is_near = |here: f64, stated: f64| (here - stated).abs() <= tolerance + 1e-9;
    is_near(here.0, stated.0) && is_near(here.1, stated.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_near_if_both_of_its_ends_are() {
        let stated = (0.196, 0.264);
        assert!(is_range_near((0.206, 0.254), stated, 0.01));
        assert!(!is_range_near((0.164, 0.266), stated, 0.01), "lower end");
        assert!(!is_range_near((0.2, 0.3), stated, 0.01), "upper end");
        assert!(!is_range_near((f64::NAN, 0.264), stated, 0.01));
    }
}
