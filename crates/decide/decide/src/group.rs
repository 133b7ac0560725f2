//! For each value of one axis, the mean over all combinations of the other axes (dvfs_2019, section IV).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::str::FromStr;

use sweetspot_quantity::Ratio;
use sweetspot_stats::{Summary, geometric_mean};

use crate::Direction;

/// The kind of mean by which values are averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mean {
    /// The geometric mean, as in dvfs_2019: each combination has the same weight, whatever the size of its values.
    #[default]
    Geometric,
    /// The arithmetic mean: combinations with larger values dominate.
    Arithmetic,
}

impl Mean {
    /// The mean of these values; `None` if it does not exist.
    fn compute(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Geometric => geometric_mean(values),
            Self::Arithmetic => Summary::of(values).map(|set| set.mean),
        }
        .filter(|mean| mean.is_finite())
    }
}

impl Display for Mean {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Geometric => "geometric",
            Self::Arithmetic => "arithmetic",
        })
    }
}

impl FromStr for Mean {
    type Err = GroupError;

    fn from_str(text: &str) -> Result<Self, GroupError> {
        [Self::Geometric, Self::Arithmetic]
            .into_iter()
            .find(|mean| mean.to_string() == text)
            .ok_or_else(|| GroupError::Mean(text.to_owned()))
    }
}

/// Why there are no means to compare.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The name of the kind of mean is neither `geometric` nor `arithmetic`.
    #[error("unknown mean `{0}`: use geometric or arithmetic")]
    Mean(String),
    /// No configuration was measured at the default value of the axis.
    #[error(
        "no configuration was measured at the default value of the axis; add that value to the axis"
    )]
    NoDefault,
    /// No combination was measured at every value of the axis.
    #[error(
        "no combination of the other settings was measured at every value of the axis; measure the missing ones, or use fewer values"
    )]
    NothingInCommon,
    /// The mean does not exist: it overflows, or it is geometric and a value is not above zero.
    #[error("the values have no {0} mean; a geometric mean needs values above zero")]
    NoMean(Mean),
}

/// A measured configuration: its value on the grouped axis, its other settings, and the value to average.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell<B, O> {
    /// The configuration's value on the axis by which configurations are grouped.
    pub by: B,
    /// The configuration's settings on all other axes.
    pub over: O,
    /// The value to average; absent if it was not measured.
    pub value: Option<f64>,
}

/// The mean over all configurations that share one value of the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<B> {
    /// The value of the axis that the configurations share.
    pub by: B,
    /// The mean over the combinations of the other settings.
    pub mean: f64,
    /// This mean divided by the mean at the default value of the axis: `g(f) / g(default)`.
    pub relative: Ratio,
}

/// The mean at each value of an axis, and which value is best.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups<B> {
    /// One mean for each value of the axis, in ascending order of that value.
    pub groups: Vec<Group<B>>,
    /// The index in `groups` of the best mean; the first one among equal means.
    pub best: usize,
    /// By how much the best group is better than the default: `1 - min g(f) / g(default)`, or `max g(f) / g(default)
    /// - 1` if more is better.
    pub saving: Ratio,
    /// The number of combinations of the other settings that were averaged: those with a value at every value of the
    /// axis.
    pub combinations: usize,
    /// The number of combinations that were left out because they lack a value at some value of the axis.
    pub left_out: usize,
}

/// Computes the mean at each value of an axis over the other settings, relative to the mean at the axis's default
/// value.
pub fn group<B: Copy + PartialOrd, O: Clone + Ord>(
    cells: &[Cell<B, O>],
    default: B,
    mean: Mean,
    direction: Direction,
) -> Result<Groups<B>, GroupError> {
    let mut axis: Vec<B> = Vec::new();
    for cell in cells {
        if !axis.contains(&cell.by) {
            axis.push(cell.by);
        }
    }
    axis.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let at_default = axis
        .iter()
        .position(|by| *by == default)
        .ok_or(GroupError::NoDefault)?;
    let all: BTreeSet<&O> = cells.iter().map(|cell| &cell.over).collect();
    let columns: Vec<BTreeMap<&O, f64>> = axis.iter().map(|by| column(cells, *by)).collect();
    let is_everywhere = |over: &&O| columns.iter().all(|column| column.contains_key(*over));
    let common: Vec<&O> = all.iter().copied().filter(is_everywhere).collect();
    if common.is_empty() {
        return Err(GroupError::NothingInCommon);
    }
    let means: Option<Vec<f64>> = columns
        .iter()
        .map(|column| mean.compute(&common.iter().map(|over| column[*over]).collect::<Vec<_>>()))
        .collect();
    let means = means.ok_or(GroupError::NoMean(mean))?;
    let of_default = means[at_default];
    let groups: Vec<Group<B>> = axis
        .iter()
        .zip(&means)
        .map(|(by, mean)| Group {
            by: *by,
            mean: *mean,
            relative: Ratio::new(mean / of_default),
        })
        .collect();
    if groups.iter().any(|group| !group.relative.is_finite()) {
        return Err(GroupError::NoMean(mean));
    }
    let order = |index: &usize| direction.as_cost(means[*index]);
    let best = (0..means.len())
        .min_by(|a, b| order(a).total_cmp(&order(b)))
        .unwrap_or(at_default);
    let change = groups[best].relative - Ratio::new(1.0);
    Ok(Groups {
        best,
        saving: Ratio::new(-direction.as_cost(change.get()) + 0.0),
        combinations: common.len(),
        left_out: all.len() - common.len(),
        groups,
    })
}

/// The measured values at one value of the axis, by the other settings; repeated measurements are averaged.
fn column<B: PartialEq, O: Ord>(cells: &[Cell<B, O>], by: B) -> BTreeMap<&O, f64> {
    let mut values: BTreeMap<&O, Vec<f64>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.by == by) {
        let usable = cell.value.filter(|value| value.is_finite());
        values.entry(&cell.over).or_default().extend(usable);
    }
    values
        .into_iter()
        .filter_map(|(over, values)| Some((over, Summary::of(&values)?.mean)))
        .collect()
}
