//! A printed value beside the one that was come to here.

/// What a value is: its key in documents and how people read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// The key, with the SI unit where it has one.
    pub key: &'static str,
    /// The words and the unit for people.
    pub words: &'static str,
    /// From the SI unit to theirs.
    pub scale: f64,
    /// Behind the decimal point, in their unit.
    pub digits: usize,
    /// Whether values are compared by their quotient, else by their difference.
    pub relative: bool,
}

impl Kind {
    /// Compared by quotient.
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

    /// Compared by difference.
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

/// What a row is about: a name and a text or a number.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// A word.
    Text(String),
    /// A number.
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

/// How a deviation is judged; a fraction or in the SI unit, as the kind is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// Each must be within.
    Each(f64),
    /// Told for each; how many must be within is one of the counted tolerances.
    Counted(f64),
    /// Shown only.
    Shown,
}

/// A printed value beside the one that was come to here.
#[derive(Clone, Debug, PartialEq)]
pub struct ReproducedRow {
    /// The table, figure or section.
    pub table: String,
    /// What the row is about.
    pub row: Vec<(&'static str, Label)>,
    /// What the value is.
    pub kind: Kind,
    /// As printed, in SI units and fractions.
    pub published: Option<f64>,
    /// As come to here; none where it waits for something.
    pub reproduced: Option<f64>,
    /// How the deviation is judged.
    pub judgement: Judgement,
    /// What is to be known: a fault of the printed table, why a value is missing or not judged.
    pub note: Option<String>,
}

impl ReproducedRow {
    /// How far off: a fraction or in the SI unit, as the kind is compared.
    pub fn deviation(&self) -> Option<f64> {
        let (published, reproduced) = (self.published?, self.reproduced?);
        let deviation = match self.kind.relative {
            true => reproduced / published - 1.0,
            false => reproduced - published,
        };
        deviation.is_finite().then_some(deviation)
    }

    /// How far off it may be.
    pub const fn tolerance(&self) -> Option<f64> {
        match self.judgement {
            Judgement::Each(tolerance) | Judgement::Counted(tolerance) => Some(tolerance),
            Judgement::Shown => None,
        }
    }

    /// Whether it is near enough; nothing where it is only shown.
    pub fn within(&self) -> Option<bool> {
        let tolerance = self.tolerance()?;
        // A hair for values that are exactly as far off as they may be; what is missing is not near.
        let hair = 1e-9 * tolerance.max(self.published.unwrap_or(0.0).abs());
        Some(
            self.deviation()
                .is_some_and(|deviation| deviation.abs() <= tolerance + hair),
        )
    }

    /// Whether a tolerance is missed if this row is not near enough.
    pub const fn must_hold(&self) -> bool {
        matches!(self.judgement, Judgement::Each(_))
    }
}

/// Rows of one table.
pub(super) struct Rows {
    table: String,
    pub rows: Vec<ReproducedRow>,
}

impl Rows {
    pub fn new(table: &str) -> Self {
        Self {
            table: table.to_owned(),
            rows: Vec::new(),
        }
    }

    /// Adds one, and gives it back for a note.
    pub fn add(
        &mut self,
        row: &[(&'static str, Label)],
        kind: Kind,
        published: Option<f64>,
        reproduced: Option<f64>,
        judgement: Judgement,
    ) -> &mut Option<String> {
        let place = self.rows.len();
        self.rows.push(ReproducedRow {
            table: self.table.clone(),
            row: row.to_vec(),
            kind,
            published,
            reproduced: reproduced.filter(|value| value.is_finite()),
            judgement,
            note: None,
        });
        &mut self.rows[place].note
    }
}

/// A tolerance that so many rows must keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// In words.
    pub what: String,
    /// How many keep it.
    pub met: usize,
    /// Of how many.
    pub of: usize,
    /// How many must.
    pub needed: usize,
}

impl Counted {
    /// Whether enough keep it.
    pub const fn is_met(&self) -> bool {
        self.met >= self.needed
    }
}

/// What a paper concludes, and whether it holds here.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// In words.
    pub what: String,
    /// Whether it holds here; none where that cannot be told yet.
    pub holds: Option<bool>,
    /// What was found here.
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

/// The least and the most of some numbers; zeros for none.
pub(super) fn ends(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let all = values.into_iter().map(|value| (value, value));
    let ends = all.reduce(|(low, high), (value, _)| (low.min(value), high.max(value)));
    ends.unwrap_or_default()
}
