//! A study with an objective and limits, and the values that texts and figures share.

use sweetspot_decide::{Choice, Comparison, Criteria, Estimate, NoChoice, Objective, Outcome};
use sweetspot_study::{Axis, BATCH_PARAMETER, Configuration, Point, Study};

use crate::analysis::choices::gain;
use crate::figure::{AxisKind, ChartAxis};
use crate::settings::{axis_label, setting};

/// A study together with the objective and limits by which it is evaluated.
pub struct StudyView<'a> {
    /// The study that is shown.
    pub study: &'a Study,
    /// The objective and the limits that the user requested.
    pub criteria: &'a Criteria,
    /// The comparison of the study's points with its reference.
    pub comparison: Comparison,
    /// The axes that have several values in the study.
    pub varied: Vec<Axis>,
    /// The best point within the limits, or why there is none.
    pub choice: Result<Choice, NoChoice>,
    reference_index: Option<usize>,
}

impl<'a> StudyView<'a> {
    /// Compares the points of a study and chooses the best.
    pub fn new(study: &'a Study, criteria: &'a Criteria) -> Self {
        let comparison = study.comparison(&criteria.tariff);
        let choice = study.choose(&comparison, criteria);
        let reference = &study.reference.configuration;
        Self {
            varied: study.varied_axes(),
            choice,
            comparison,
            reference_index: study
                .points
                .iter()
                .position(|point| point.configuration == *reference),
            study,
            criteria,
        }
    }

    /// Returns the axes with several values, except this one.
    pub fn others(&self, axis: &Axis) -> Vec<Axis> {
        let others = self.varied.iter().filter(|other| *other != axis);
        others.cloned().collect()
    }

    /// Describes the setting of a point.
    pub fn setting(&self, index: usize) -> String {
        setting(&self.varied, &self.study.points[index])
    }

    /// Describes the setting of the reference.
    pub fn reference_setting(&self) -> String {
        setting(&self.varied, &self.study.reference)
    }

    /// Returns the index of the reference among the points; `None` if it is not one of them.
    pub const fn reference_index(&self) -> Option<usize> {
        self.reference_index
    }

    /// Returns the index of the chosen point; `None` if there is no choice.
    pub fn chosen(&self) -> Option<usize> {
        self.choice.as_ref().ok().map(|choice| choice.candidate)
    }

    /// Whether the recommendation is to keep the reference: it is the best, or no point is significantly better.
    pub fn keeps_reference(&self) -> bool {
        self.choice.as_ref().is_ok_and(|choice| {
            Some(choice.candidate) == self.reference_index()
                || choice.reference_is_as_good() == Some(true)
        })
    }

    /// Names the best point: `choice`, or `best tried` if the recommendation is to keep the reference.
    pub fn chosen_name(&self) -> &'static str {
        match self.keeps_reference() && self.chosen() != self.reference_index() {
            true => "best tried",
            false => "choice",
        }
    }

    /// Returns the mean time and energy of a point, for the same work as at the other points.
    pub fn mean(&self, index: usize) -> Option<&Outcome> {
        self.comparison.mean(index)
    }

    /// Returns time and energy divided by those of the reference; `None` if one of them is unknown or zero.
    pub fn relative(&self, index: usize) -> Option<(f64, f64)> {
        let (here, there) = (self.mean(index)?, self.comparison.reference()?);
        let time = (here.time / there.time).get();
        let energy = (here.energy? / there.energy?).get();
        (time.is_finite() && energy.is_finite() && time > 0.0 && energy > 0.0)
            .then_some((time, energy))
    }

    /// Describes the change from the reference to a point: `26.8 % less energy and 18.8 % more time`; `None` if it is
    /// unknown.
    pub fn gain(&self, index: usize) -> Option<String> {
        gain(self.mean(index), self.comparison.reference())
    }

    /// Describes the change from one point to another, as [`StudyView::gain`] does.
    pub fn change_between(&self, here: usize, there: usize) -> Option<String> {
        gain(self.mean(here), self.mean(there))
    }

    /// Returns the value of an objective at a point; `None` if it cannot be computed.
    pub fn estimate(&self, index: usize, objective: Objective) -> Option<Estimate> {
        self.comparison.estimate(index, objective).ok()
    }

    /// Whether any point has a measured energy.
    pub fn has_energy(&self) -> bool {
        (0..self.study.points.len()).any(|index| {
            let mean = self.mean(index).and_then(|mean| mean.energy);
            mean.is_some_and(|energy| energy.get() > 0.0)
        })
    }

    /// Whether the number of items is known for every successful point.
    pub fn has_items(&self) -> bool {
        let mut means = (0..self.study.points.len())
            .filter_map(|index| self.mean(index))
            .peekable();
        means.peek().is_some() && means.all(|mean| mean.items.is_some_and(|items| items > 0.0))
    }

    /// Returns the points that differ from the configuration `others_as` only in this axis, ordered by its value.
    pub fn slice(&self, axis: &Axis, others_as: &Configuration) -> Vec<usize> {
        let others: Vec<&Axis> = self.varied.iter().filter(|other| *other != axis).collect();
        let wanted: Vec<_> = others.iter().map(|other| other.text(others_as)).collect();
        let points = self.study.points.iter().enumerate();
        let mut found: Vec<usize> = points
            .filter(|(_, point)| {
                let mut pairs = others.iter().zip(&wanted);
                pairs.all(|(other, wanted)| other.text(&point.configuration) == *wanted)
            })
            .map(|(index, _)| index)
            .collect();
        let number = |index: &usize| axis.number(&self.study.points[*index].configuration);
        found.sort_by(|a, b| {
            number(a)
                .partial_cmp(&number(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        found
    }

    /// Returns the different values of an axis: sorted if they are numbers, otherwise in the order of the study.
    pub fn values(&self, axis: &Axis) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for point in &self.study.points {
            values.extend(
                axis.text(&point.configuration)
                    .filter(|text| !values.contains(text)),
            );
        }
        let numbers: Option<Vec<f64>> = values.iter().map(|text| parse_finite(text)).collect();
        if numbers.is_some() {
            values.sort_by(|a, b| {
                parse_finite(a)
                    .partial_cmp(&parse_finite(b))
                    .unwrap_or(std::cmp::Ordering::Equal)
            });
        }
        values
    }

    /// Whether an axis has several values and all are numbers.
    pub fn is_numeric(&self, axis: &Axis) -> bool {
        let values = self.values(axis);
        values.len() > 1 && values.iter().all(|text| parse_finite(text).is_some())
    }

    /// Makes the chart axis for an axis of the study.
    pub fn chart_axis(&self, axis: &Axis) -> ChartAxis {
        let values = self.values(axis);
        let numbers: Option<Vec<f64>> = values.iter().map(|text| parse_finite(text)).collect();
        let doubles = |numbers: &[f64]| match (numbers.first(), numbers.last()) {
            (Some(first), Some(last)) => *first > 0.0 && last / first >= 2.0,
            _ => false,
        };
        let sized =
            matches!(axis, Axis::Gpus) || *axis == Axis::Parameter(BATCH_PARAMETER.to_owned());
        let kind = match numbers {
            Some(numbers) if sized && doubles(&numbers) => AxisKind::Logarithmic(numbers),
            Some(_) => AxisKind::Linear,
            None => AxisKind::Categories(values),
        };
        ChartAxis {
            label: axis_label(axis),
            kind,
            ..ChartAxis::default()
        }
    }

    /// Returns the position of a point on a chart axis; `None` if the point has no value there.
    pub fn place(&self, chart_axis: &ChartAxis, axis: &Axis, point: &Point) -> Option<f64> {
        match &chart_axis.kind {
            AxisKind::Categories(names) => {
                let text = axis.text(&point.configuration)?;
                names
                    .iter()
                    .position(|name| *name == text)
                    .map(|at| at as f64)
            }
            _ => axis.number(&point.configuration),
        }
    }
}

/// Parses a finite number.
fn parse_finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}
