//! Means of an objective for each value of one axis, taken over the other axes, as in dvfs_2019.

use sweetspot_decide::{Cell, Groups, Mean, group};
use sweetspot_study::Axis;

use crate::analysis::view::StudyView;
use crate::settings::axis_label;
use crate::settings::{axis_name, value_text};
use crate::table::Table;
use crate::wording::{format_amount, format_percent, join_words};

/// The grouped means that the user requested.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouping {
    /// The axis for each of whose values a mean is computed.
    pub by: Axis,
    /// The axes over which the means are taken; if this is empty, all other axes.
    pub over: Vec<Axis>,
    /// The kind of mean, such as geometric.
    pub mean: Mean,
}

/// The means of an objective along one axis.
pub struct GroupedMeans {
    /// The axis for each of whose values a mean is computed.
    pub by: Axis,
    /// The axes over which the means are taken.
    pub over: Vec<Axis>,
    /// The axes that are fixed at the value of the reference.
    pub fixed: Vec<Axis>,
    /// The kind of mean, such as geometric.
    pub mean: Mean,
    /// The values of the axis `by`, as text.
    pub values: Vec<String>,
    /// The index in `values` of the reference's value.
    pub default: usize,
    /// The mean at each of the `values`, and the best of them.
    pub groups: Groups<usize>,
}

/// Why the requested means of a study cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum GroupingError {
    /// The study does not vary the axis.
    #[error("the study does not vary `{name}`; it varies {known}")]
    NotVaried {
        /// The axis that the user requested.
        name: String,
        /// The axes that the study varies.
        known: String,
    },
    /// The axis with this name is both the one to group by and one to average over.
    #[error("cannot average over `{0}`, because the means are grouped by it")]
    Itself(String),
    /// The means cannot be computed.
    #[error(transparent)]
    Means(#[from] sweetspot_decide::GroupError),
}

/// Computes the means of a study along an axis.
pub fn group_study(view: &StudyView<'_>, how: &Grouping) -> Result<GroupedMeans, GroupingError> {
    let known = || {
        view.varied
            .iter()
            .map(|axis| axis.name().to_owned())
            .collect::<Vec<_>>()
    };
    for axis in [&how.by].into_iter().chain(&how.over) {
        if !view.varied.contains(axis) {
            return Err(GroupingError::NotVaried {
                name: axis.name().to_owned(),
                known: join_words(&known()),
            });
        }
    }
    if how.over.contains(&how.by) {
        return Err(GroupingError::Itself(how.by.name().to_owned()));
    }
    let others = view.varied.iter().filter(|axis| **axis != how.by);
    let (over, fixed): (Vec<Axis>, Vec<Axis>) = others
        .cloned()
        .partition(|axis| how.over.is_empty() || how.over.contains(axis));
    let reference = &view.study.reference.configuration;
    let values = view.values(&how.by);
    let place = |text: Option<String>| values.iter().position(|value| Some(value) == text.as_ref());
    let objective = view.criteria.objective;
    let mut cells = Vec::new();
    for (index, point) in view.study.points.iter().enumerate() {
        let here = &point.configuration;
        if fixed
            .iter()
            .any(|axis| axis.text(here) != axis.text(reference))
        {
            continue;
        }
        let Some(by) = place(how.by.text(here)) else {
            continue;
        };
        cells.push(Cell {
            by,
            over: over.iter().map(|axis| axis.text(here)).collect::<Vec<_>>(),
            value: view
                .estimate(index, objective)
                .map(|estimate| estimate.value),
        });
    }
    let default = place(how.by.text(reference)).ok_or(sweetspot_decide::GroupError::NoDefault)?;
    let groups = group(&cells, default, how.mean, objective.direction())?;
    Ok(GroupedMeans {
        by: how.by.clone(),
        over,
        fixed,
        mean: how.mean,
        values,
        default,
        groups,
    })
}

impl GroupedMeans {
    /// Describes the best value of the axis and how much it saves.
    pub fn sentence(&self, view: &StudyView<'_>) -> String {
        let best = &self.groups.groups[self.groups.best];
        let point = |text: &str| {
            let points = view.study.points.iter();
            points
                .clone()
                .find(|point| self.by.text(&point.configuration).as_deref() == Some(text))
        };
        let named = |index: usize| {
            let text = &self.values[index];
            point(text).map_or_else(|| text.clone(), |point| value_text(&self.by, point))
        };
        let others: Vec<String> = self.over.iter().map(axis_name).collect();
        let over = match others.is_empty() {
            true => String::new(),
            false => format!(
                " over {} combinations of {}",
                self.groups.combinations,
                join_words(&others)
            ),
        };
        let mut text = format!(
            "Best {} by {}: {}, {:.1} % better than {} ({} mean{over}).",
            view.criteria.objective,
            axis_name(&self.by),
            named(best.by),
            100.0 * self.groups.saving.get(),
            named(self.default),
            self.mean,
        );
        if self.groups.left_out > 0 {
            text += &match self.groups.left_out {
                1 => " 1 combination has no result for some value and is left out.".to_owned(),
                many => {
                    format!(" {many} combinations have no result for some value and are left out.")
                }
            };
        }
        if !self.fixed.is_empty() {
            let fixed: Vec<String> = self.fixed.iter().map(axis_name).collect();
            text += &format!(" As at the reference: {}.", join_words(&fixed));
        }
        text
    }

    /// Makes a table with a row for each value. If there are more than `most` values, only some have a row, including
    /// the best and the default.
    pub fn rows(&self, view: &StudyView<'_>, most: usize) -> Table {
        let objective = view.criteria.objective;
        let unit = objective.unit(&view.criteria.tariff);
        let mean = format!("{objective}\n{} mean", self.mean);
        let mut rows = Table::new(&[&axis_label(&self.by), &mean, "vs default\n[%]", ""]);
        let every = self.groups.groups.len().div_ceil(most.max(1)).max(1);
        for (index, one) in self.groups.groups.iter().enumerate() {
            let mark = match (index == self.groups.best, one.by == self.default) {
                (true, true) => "best, default",
                (true, false) => "best",
                (false, true) => "default",
                _ if index % every == 0 => "",
                _ => continue,
            };
            rows.push(vec![
                self.values[one.by].clone(),
                format_amount(one.mean, unit),
                format_percent(one.relative.get() - 1.0).replace(" %", ""),
                mark.to_owned(),
            ]);
        }
        rows
    }
}
