//! Means along one axis over all others (dvfs_2019, section IV).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::str::FromStr;

use sweetspot_quantity::Ratio;
use sweetspot_stats::{Summary, geometric_mean};

use crate::Direction;

/// How values are averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mean {
    /// So that every combination counts by its ratio, as in dvfs_2019.
    #[default]
    Geometric,
    /// So that large values count more.
    Arithmetic,
}

impl Mean {
    fn of(self, values: &[f64]) -> Option<f64> {
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
    /// Not the name of a mean.
    #[error("`{0}` is not a mean: write geometric or arithmetic")]
    Mean(String),
    /// Nothing to compare with.
    #[error("the default was not measured; add it to the axis")]
    NoDefault,
    /// Nothing in common.
    #[error(
        "no combination of the other settings was measured at every value of the axis; measure the missing ones, or take fewer values"
    )]
    NothingInCommon,
    /// A geometric mean of what is not above zero, or out of the range of numbers.
    #[error("the {0} mean needs other values; a geometric one takes only those above zero")]
    NoMean(Mean),
}

/// One measured configuration: a value of the axis, the other settings, and the value there.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell<B, O> {
    /// The value of the axis.
    pub by: B,
    /// The other settings, as one.
    pub over: O,
    /// What is averaged; nothing where it is missing.
    pub value: Option<f64>,
}

/// The mean at one value of the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<B> {
    /// The value of the axis.
    pub by: B,
    /// Over the combinations.
    pub mean: f64,
    /// Against that of the default: `g(f) / g(default)`.
    pub relative: Ratio,
}

/// The means along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups<B> {
    /// By rising value of the axis.
    pub groups: Vec<Group<B>>,
    /// Index of the best group; of equals, the first.
    pub best: usize,
    /// What the best is better by: `1 - min g(f) / g(default)`, or `max g(f) / g(default) - 1` where more is
    /// better.
    pub saving: Ratio,
    /// Combinations of the other settings that were averaged: those with a value everywhere on the axis.
    pub combinations: usize,
    /// Combinations that were left out, for want of a value somewhere on the axis.
    pub left_out: usize,
}

/// The mean at each value of an axis over the other settings, against that of the default.
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
    let everywhere = |over: &&O| columns.iter().all(|column| column.contains_key(*over));
    let common: Vec<&O> = all.iter().copied().filter(everywhere).collect();
    if common.is_empty() {
        return Err(GroupError::NothingInCommon);
    }
    let means: Option<Vec<f64>> = columns
        .iter()
        .map(|column| mean.of(&common.iter().map(|over| column[*over]).collect::<Vec<_>>()))
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

/// The values at one place of the axis; repeated ones are averaged.
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
