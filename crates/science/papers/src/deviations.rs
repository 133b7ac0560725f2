//! The deviations of the simulator from published or measured values.

use sweetspot_quantity::Ratio;

use crate::held_out::with_held_out;
use crate::origin::{OriginCounts, ValueOrigin};
use crate::{
    PapersError, Profiles, batch_sizer_2021, dvfs_2019, h200, multi_gpu_2018,
    node_power_capping_2023, power_capping_2022,
};

/// How the deviation of a value is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviationKind {
    /// The ratio of the simulated to the published value, minus 1.
    Relative,
    /// The simulated minus the published value, in the column's unit.
    Difference,
}

/// A column of a table of deviations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// The heading of the column with its unit, such as `s`, `kJ` or `% saved`.
    pub unit: &'static str,
    /// The number of decimals with which the column's values are shown.
    pub digits: usize,
    /// How the deviations of the column are computed.
    pub deviation_kind: DeviationKind,
}

impl Column {
    /// A column whose deviations are relative to the published values.
    pub(crate) const fn relative(unit: &'static str, digits: usize) -> Self {
        Self {
            unit,
            digits,
            deviation_kind: DeviationKind::Relative,
        }
    }

    /// A column whose deviations are differences in the column's unit.
    pub(crate) const fn difference(unit: &'static str, digits: usize) -> Self {
        Self {
            unit,
            digits,
            deviation_kind: DeviationKind::Difference,
        }
    }
}

/// A published or measured value beside the simulated one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The published or measured value.
    pub published: f64,
    /// The simulated value, without noise.
    pub here: f64,
    /// The tolerated deviation, as a fraction or in the column's unit. `None` if the published value is only shown,
    /// because it contradicts other published values.
    pub tolerance: Option<f64>,
    /// Whether the published value was used to make the profiles; `None` if that is not stated. An input is not counted.
    pub origin: Option<ValueOrigin>,
}

impl Value {
    /// The deviation of the simulated from the published value.
    pub fn deviation(&self, kind: DeviationKind) -> f64 {
        match kind {
            DeviationKind::Relative => self.here / self.published - 1.0,
            DeviationKind::Difference => self.here - self.published,
        }
    }

    /// Whether the deviation is within the tolerance.
    pub fn is_met(&self, kind: DeviationKind) -> bool {
        // The margin covers rounding at exactly the tolerance.
        self.tolerance
            .is_none_or(|tolerance| self.deviation(kind).abs() <= tolerance * (1.0 + 1e-9))
    }
}

/// A table of published values beside simulated ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The title, which says what the rows are and where the published values come from.
    pub title: String,
    /// The columns; each row has one value for each of them.
    pub columns: Vec<Column>,
    /// The rows: each has a label and one value for each column.
    pub rows: Vec<(String, Vec<Value>)>,
}

impl Table {
    /// Iterates over all values of the table, each with the way in which its deviation is computed.
    pub fn values(&self) -> impl Iterator<Item = (&Value, DeviationKind)> {
        let kinds: Vec<DeviationKind> = self
            .columns
            .iter()
            .map(|column| column.deviation_kind)
            .collect();
        self.rows.iter().flat_map(move |(_, values)| {
            let kinds = kinds.clone();
            values.iter().zip(kinds)
        })
    }

    /// The number of values that profiles were fitted to.
    pub(crate) fn count_fitted(&self) -> usize {
        let all = self.values();
        all.filter(|(value, _)| value.origin == Some(ValueOrigin::Fitted))
            .count()
    }

    /// The table with only some of its values and their rows; divided into a table for each column if rows keep different
    /// columns.
    pub(crate) fn only(mut self, is_kept: impl Fn(&Value) -> bool) -> Vec<Self> {
        let has_any = |values: &[Value]| values.iter().any(&is_kept);
        self.rows.retain(|(_, values)| has_any(values));
        let mut all = self.rows.iter().flat_map(|(_, values)| values);
        if self.rows.is_empty() || all.all(&is_kept) {
            return if self.rows.is_empty() {
                Vec::new()
            } else {
                vec![self]
            };
        }
        let columns = self.columns.iter().enumerate();
        let of_column = columns.map(|(index, column)| Self {
            title: self.title.clone(),
            columns: vec![*column],
            rows: self
                .rows
                .iter()
                .filter_map(|(label, values)| {
                    let value = values.get(index).filter(|value| is_kept(value))?;
                    Some((label.clone(), vec![*value]))
                })
                .collect(),
        });
        of_column.filter(|table| !table.rows.is_empty()).collect()
    }
}

/// All deviations of the simulator from one study.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatorDeviations {
    /// The name of the published or measured study.
    pub study: String,
    /// The number of profile parameters that were fitted to the study.
    pub free_parameters: usize,
    /// The number of these parameters that were not fitted but chosen by hand with the published values in view.
    pub by_hand: usize,
    /// The number of different published values that the parameters were fitted to.
    pub values: usize,
    /// The tables that compare published with simulated values.
    pub tables: Vec<Table>,
    /// The predictions of values that a fit did not use; empty if the study was not fitted without some of its values.
    pub held_out: Vec<HeldOut>,
    /// The number of fitted values of a study for which no fits without a part of it are stored.
    pub not_held_out: usize,
    /// The profiles that are not as they were fitted, because somebody has changed them.
    pub changed_profiles: Vec<String>,
}

/// The predictions of values by profiles that were fitted to the other values of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// What the fit did not use, such as `8 GPUs`.
    pub without: String,
    /// The tables of the values that were not used, beside their predictions.
    pub tables: Vec<Table>,
}

impl std::fmt::Display for HeldOut {
    /// Writes how far predictions are off: `without 8 GPUs: 6 values, off by 5.9 % on average and 7.3 % at most,
    /// percentages by 5.3 and 7.4 points`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "without {}: {}", self.without, self.errors())
    }
}

impl HeldOut {
    /// How many values there are and how far they are off, in words.
    pub fn errors(&self) -> String {
        let count = self.count();
        let mut text = format!("{count} value{}", if count == 1 { "" } else { "s" });
        if let Some((mean, largest)) = self.mean_and_largest(DeviationKind::Relative) {
            let (mean, largest) = (100.0 * mean, 100.0 * largest);
            text += &format!(", off by {mean:.1} % on average and {largest:.1} % at most");
        }
        if let Some((mean, largest)) = self.mean_and_largest(DeviationKind::Difference) {
            text +=
                &format!(", percentages by {mean:.1} points on average and {largest:.1} at most");
        }
        text
    }

    /// The number of values that were held out.
    pub fn count(&self) -> usize {
        self.tables.iter().flat_map(Table::values).count()
    }

    /// The mean and the largest deviation of the values with deviations of this kind, whatever their sign; `None` if there
    /// are none.
    pub fn mean_and_largest(&self, kind: DeviationKind) -> Option<(f64, f64)> {
        let values = self.tables.iter().flat_map(Table::values);
        let own = values.filter(|(_, own)| *own == kind);
        let own: Vec<f64> = own.map(|(value, _)| value.deviation(kind).abs()).collect();
        let largest = own.iter().copied().reduce(f64::max)?;
        Some((own.iter().sum::<f64>() / own.len() as f64, largest))
    }
}

impl SimulatorDeviations {
    /// The values that the parameters were fitted to, beside the simulated ones.
    pub fn fitted(&self) -> HeldOut {
        let tables = self.tables.iter().cloned();
        let is_fitted = |value: &Value| value.origin == Some(ValueOrigin::Fitted);
        HeldOut {
            without: String::new(),
            tables: tables.flat_map(|table| table.only(is_fitted)).collect(),
        }
    }

    /// How many values are inputs, fitted or predicted; values of unknown origin do not count.
    pub fn count_origins(&self) -> OriginCounts {
        let values = self.tables.iter().flat_map(Table::values);
        OriginCounts::of(values.map(|(value, _)| value.origin))
    }

    /// The number of values within their tolerance, and the number of values that have a tolerance. Inputs have none,
    /// because they cannot be missed.
    pub fn count_met(&self) -> (usize, usize) {
        let judged = self.tables.iter().flat_map(Table::values);
        let judged: Vec<_> = judged
            .filter(|(value, _)| value.tolerance.is_some())
            .collect();
        let met = judged.iter().filter(|(value, kind)| value.is_met(*kind));
        (met.count(), judged.len())
    }

    /// The largest deviation in a column of a table; only values with a tolerance are considered.
    pub fn worst(&self, table: usize, column: usize) -> Option<f64> {
        let table = self.tables.get(table)?;
        let kind = table.columns.get(column)?.deviation_kind;
        let values = table
            .rows
            .iter()
            .filter_map(|(_, values)| values.get(column));
        values
            .filter(|value| value.tolerance.is_some())
            .map(|value| value.deviation(kind))
            .max_by(|a, b| a.abs().total_cmp(&b.abs()))
    }
}

/// Computes the simulator's deviations from every study, with the predictions of values that a fit did not use.
pub fn deviations(profiles: &Profiles) -> Result<Vec<SimulatorDeviations>, PapersError> {
    let each = STUDIES.iter();
    each.map(|(_, study)| with_held_out(study(profiles, &|_, _| true)?, profiles))
        .collect()
}

/// Computes the simulator's deviations from the study with this name, without predictions of values that a fit did not use.
pub fn compare_with(
    study: &str,
    profiles: &Profiles,
) -> Result<Option<SimulatorDeviations>, PapersError> {
    compare_rows(study, profiles, &|_, _| true)
}

/// The same, in which rows that are not wanted may be left out to save time.
pub fn compare_rows(
    study: &str,
    profiles: &Profiles,
    is_wanted: IsWanted<'_>,
) -> Result<Option<SimulatorDeviations>, PapersError> {
    let found = STUDIES.iter().find(|(name, _)| *name == study);
    found
        .map(|(_, study)| study(profiles, is_wanted))
        .transpose()
}

/// Whether a row is wanted, by the title of its table and its label.
pub type IsWanted<'a> = &'a dyn Fn(&str, &str) -> bool;

/// The names of the studies, in the order of [`deviations`].
pub fn studies() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|(name, _)| *name)
}

/// A function that compares the simulator with one study.
type Compare = fn(&Profiles, IsWanted<'_>) -> Result<SimulatorDeviations, PapersError>;

/// Each study's name and the function that compares the simulator with it.
const STUDIES: [(&str, Compare); 8] = [
    ("power_capping_2022", power_capping_2022::compare),
    ("dvfs_2019", |profiles, _| dvfs_2019::compare(profiles)),
    ("node_power_capping_2023", |profiles, _| {
        node_power_capping_2023::compare(profiles)
    }),
    ("multi_gpu_2018", multi_gpu_2018::compare),
    ("batch_sizer_2021", |profiles, _| {
        batch_sizer_2021::compare(profiles)
    }),
    ("h200", h200::compare),
    (
        power_capping_2022::FROM_LAYERS,
        power_capping_2022::compare_from_layers,
    ),
    (batch_sizer_2021::ONE_HOST_TIME, |profiles, _| {
        batch_sizer_2021::compare_with_one_host_time(profiles)
    }),
];

/// The tolerance of most values: 2 %.
pub(crate) const TWO_PERCENT: Ratio = Ratio::new(0.02);
