//! `simulate --errors`: how far the simulator is from what was published or measured.

use sweetspot_quantity::Ratio;

use crate::{
    PapersError, Profiles, batch_sizer_2021, dvfs_2019, h200, multi_gpu_2018,
    node_power_capping_2023, power_capping_2022,
};

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Off {
    /// By their quotient, less one.
    Relative,
    /// By their difference, in the unit they are given in.
    Difference,
}

/// A column of a table: one kind of value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// With its unit: `s`, `kJ`, `% saved`.
    pub unit: &'static str,
    /// Behind the decimal point.
    pub digits: usize,
    /// How two values are compared.
    pub off: Off,
}

impl Column {
    pub(crate) const fn relative(unit: &'static str, digits: usize) -> Self {
        let off = Off::Relative;
        Self { unit, digits, off }
    }

    pub(crate) const fn difference(unit: &'static str, digits: usize) -> Self {
        let off = Off::Difference;
        Self { unit, digits, off }
    }
}

/// A value that the simulator is to meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// As published or measured.
    pub published: f64,
    /// As simulated, without noise.
    pub here: f64,
    /// How far off it may be, a fraction or in the column's unit; none where the published value
    /// contradicts others, so that it is shown and not judged.
    pub tolerance: Option<f64>,
}

impl Value {
    /// How far off it is.
    pub fn off(&self, how: Off) -> f64 {
        match how {
            Off::Relative => self.here / self.published - 1.0,
            Off::Difference => self.here - self.published,
        }
    }

    /// Whether that is near enough.
    pub fn is_met(&self, how: Off) -> bool {
        // A hair for values that are exactly as far off as they may be.
        self.tolerance
            .is_none_or(|tolerance| self.off(how).abs() <= tolerance * (1.0 + 1e-9))
    }
}

/// Rows of values of the same kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What the rows are, and where from.
    pub title: String,
    /// One for each value of a row.
    pub columns: Vec<Column>,
    /// A label and its values.
    pub rows: Vec<(String, Vec<Value>)>,
}

impl Table {
    /// Every value and how it is compared.
    pub fn values(&self) -> impl Iterator<Item = (&Value, Off)> {
        let offs: Vec<Off> = self.columns.iter().map(|column| column.off).collect();
        self.rows.iter().flat_map(move |(_, values)| {
            let offs = offs.clone();
            values.iter().zip(offs)
        })
    }
}

/// All deviations of one study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyDeviations {
    /// The study's name.
    pub study: String,
    /// Parameters of the profiles that were fitted to it.
    pub free_parameters: usize,
    /// Different values that they are to meet.
    pub values: usize,
    /// What is compared.
    pub tables: Vec<Table>,
}

impl StudyDeviations {
    /// Those that are judged, and how many of them are near enough.
    pub fn met(&self) -> (usize, usize) {
        let judged = self.tables.iter().flat_map(Table::values);
        let judged: Vec<_> = judged
            .filter(|(value, _)| value.tolerance.is_some())
            .collect();
        let met = judged.iter().filter(|(value, off)| value.is_met(*off));
        (met.count(), judged.len())
    }

    /// The largest deviation of a column of a table, among those that are judged.
    pub fn worst(&self, table: usize, column: usize) -> Option<f64> {
        let table = self.tables.get(table)?;
        let off = table.columns.get(column)?.off;
        let values = table
            .rows
            .iter()
            .filter_map(|(_, values)| values.get(column));
        values
            .filter(|value| value.tolerance.is_some())
            .map(|value| value.off(off))
            .max_by(|a, b| a.abs().total_cmp(&b.abs()))
    }
}

/// Every study whose figures are part of this build, compared value by value.
pub fn deviations(profiles: &Profiles) -> Result<Vec<StudyDeviations>, PapersError> {
    STUDIES.iter().map(|(_, study)| study(profiles)).collect()
}

/// One study by name.
pub fn deviations_of(
    study: &str,
    profiles: &Profiles,
) -> Result<Option<StudyDeviations>, PapersError> {
    let found = STUDIES.iter().find(|(name, _)| *name == study);
    found.map(|(_, study)| study(profiles)).transpose()
}

/// The names of the studies, as [`deviations`] goes through them.
pub fn studies() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|(name, _)| *name)
}

type Compare = fn(&Profiles) -> Result<StudyDeviations, PapersError>;

const STUDIES: [(&str, Compare); 6] = [
    ("power_capping_2022", power_capping_2022::compare),
    ("dvfs_2019", dvfs_2019::compare),
    ("node_power_capping_2023", node_power_capping_2023::compare),
    ("multi_gpu_2018", multi_gpu_2018::compare),
    ("batch_sizer_2021", batch_sizer_2021::compare),
    ("h200", h200::compare),
];

pub(crate) const TWO_PERCENT: Ratio = Ratio::new(0.02);
