//! A study and a question about it, with all that answers and figures need worked out once.

use sweetspot_decide::{Choice, Comparison, Criteria, Estimate, NoChoice, Objective, Outcome};
use sweetspot_study::{Axis, BATCH_PARAMETER, Configuration, Point, Study};

use crate::choices::{axis_name, setting};
use crate::figure::{Kind, Ruler};

/// A study, seen with a question.
pub struct View<'a> {
    /// The study.
    pub study: &'a Study,
    /// The question.
    pub question: &'a Criteria,
    /// Its points against its reference.
    pub comparison: Comparison,
    /// The axes with several values.
    pub varied: Vec<Axis>,
    /// The answer, or why there is none.
    pub choice: Result<Choice, NoChoice>,
    reference_index: Option<usize>,
}

impl<'a> View<'a> {
    /// Works everything out.
    pub fn new(study: &'a Study, question: &'a Criteria) -> Self {
        let comparison = study.comparison(&question.tariff);
        let choice = study.choose(&comparison, question);
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
            question,
        }
    }

    /// The other axes with several values.
    pub fn others(&self, axis: &Axis) -> Vec<Axis> {
        let others = self.varied.iter().filter(|other| *other != axis);
        others.cloned().collect()
    }

    /// Where the knobs of a point stand.
    pub fn setting(&self, index: usize) -> String {
        setting(&self.varied, &self.study.points[index])
    }

    /// Where those of the reference stand.
    pub fn reference_setting(&self) -> String {
        setting(&self.varied, &self.study.reference)
    }

    /// The reference's place among the points, where it is one of them.
    pub const fn reference_index(&self) -> Option<usize> {
        self.reference_index
    }

    /// The chosen point.
    pub fn chosen(&self) -> Option<usize> {
        self.choice.as_ref().ok().map(|choice| choice.candidate)
    }

    /// Whether the reference is to stay: it is the best, or nothing is significantly better.
    pub fn keeps_reference(&self) -> bool {
        self.choice.as_ref().is_ok_and(|choice| {
            Some(choice.candidate) == self.reference_index()
                || choice.reference_is_as_good() == Some(true)
        })
    }

    /// What the best candidate is called: it is no choice where the reference is to stay.
    pub fn chosen_name(&self) -> &'static str {
        match self.keeps_reference() && self.chosen() != self.reference_index() {
            true => "best tried",
            false => "choice",
        }
    }

    /// The means of a point for the same work.
    pub fn mean(&self, index: usize) -> Option<&Outcome> {
        self.comparison.mean(index)
    }

    /// Time and energy over those of the reference; nothing where one of them is not known or zero.
    pub fn relative(&self, index: usize) -> Option<(f64, f64)> {
        let (here, there) = (self.mean(index)?, self.comparison.reference()?);
        let time = (here.time / there.time).get();
        let energy = (here.energy? / there.energy?).get();
        (time.is_finite() && energy.is_finite() && time > 0.0 && energy > 0.0)
            .then_some((time, energy))
    }

    /// An objective's value for a point, where it has one.
    pub fn estimate(&self, index: usize, objective: Objective) -> Option<Estimate> {
        self.comparison.estimate(index, objective).ok()
    }

    /// Whether anything was measured that tells energy.
    pub fn has_energy(&self) -> bool {
        (0..self.study.points.len()).any(|index| {
            let mean = self.mean(index).and_then(|mean| mean.energy);
            mean.is_some_and(|energy| energy.get() > 0.0)
        })
    }

    /// Whether what was done is known for every point that ran well.
    pub fn has_items(&self) -> bool {
        let mut means = (0..self.study.points.len())
            .filter_map(|index| self.mean(index))
            .peekable();
        means.peek().is_some() && means.all(|mean| mean.items.is_some_and(|items| items > 0.0))
    }

    /// The points that differ from a configuration in one axis at most, in the order of its values.
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

    /// The different values of an axis, by size where they are numbers, else in the order of the study.
    pub fn values(&self, axis: &Axis) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for point in &self.study.points {
            values.extend(
                axis.text(&point.configuration)
                    .filter(|text| !values.contains(text)),
            );
        }
        let numbers: Option<Vec<f64>> = values.iter().map(|text| finite(text)).collect();
        if numbers.is_some() {
            values.sort_by(|a, b| {
                finite(a)
                    .partial_cmp(&finite(b))
                    .unwrap_or(std::cmp::Ordering::Equal)
            });
        }
        values
    }

    /// Whether an axis has several values, all of them numbers.
    pub fn is_numeric(&self, axis: &Axis) -> bool {
        let values = self.values(axis);
        values.len() > 1 && values.iter().all(|text| finite(text).is_some())
    }

    /// An axis to draw along.
    pub fn ruler(&self, axis: &Axis) -> Ruler {
        let values = self.values(axis);
        let numbers: Option<Vec<f64>> = values.iter().map(|text| finite(text)).collect();
        let doubles = |numbers: &[f64]| match (numbers.first(), numbers.last()) {
            (Some(first), Some(last)) => *first > 0.0 && last / first >= 2.0,
            _ => false,
        };
        let sized =
            matches!(axis, Axis::Gpus) || *axis == Axis::Parameter(BATCH_PARAMETER.to_owned());
        let kind = match numbers {
            Some(numbers) if sized && doubles(&numbers) => Kind::Doubling(numbers),
            Some(_) => Kind::Linear,
            None => Kind::Names(values),
        };
        Ruler {
            label: axis_label(axis),
            kind,
            ..Ruler::default()
        }
    }

    /// A point's place along such an axis.
    pub fn place(&self, ruler: &Ruler, axis: &Axis, point: &Point) -> Option<f64> {
        match &ruler.kind {
            Kind::Names(names) => {
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

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// An axis in words, with its unit.
pub fn axis_label(axis: &Axis) -> String {
    let name = axis_name(axis);
    let mut letters = name.chars();
    let name: String = match (axis, letters.next()) {
        (Axis::Gpus, _) => "GPUs".to_owned(),
        (Axis::Parameter(_), _) | (_, None) => name,
        (_, Some(first)) => first.to_uppercase().chain(letters).collect(),
    };
    match axis {
        Axis::PowerCap => format!("{name} [W]"),
        Axis::CoreClock | Axis::MemoryClock => format!("{name} [MHz]"),
        _ => name,
    }
}
