//! The comparison of candidates by their means for the same work.

use sweetspot_stats::{Summary, any_differs};

use crate::margin::{Judged, shifted};
use crate::{Aim, Basis, Estimate, LinePosition, NoValue, Objective, Outcome, Tariff, pareto};

/// A configuration that can be chosen, and the outcomes of its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// The successful runs of the configuration.
    pub runs: Vec<Outcome>,
    /// Why a run failed, if one did. The candidate's other runs are then ignored: they would be a biased selection.
    pub failed: Option<String>,
}

impl Candidate {
    /// Creates a candidate from its runs, which all succeeded.
    pub fn of(runs: impl Into<Vec<Outcome>>) -> Self {
        Self {
            runs: runs.into(),
            failed: None,
        }
    }

    /// The mean of the candidate's runs; `None` without runs or if a run failed.
    fn mean(&self) -> Option<Outcome> {
        match self.failed {
            Some(_) => None,
            None => Outcome::mean(&self.runs),
        }
    }
}

/// Candidates, the reference and a tariff, ready to be compared.
///
/// If all runs took equally long and their numbers of items are known, time and energy are scaled to the reference's
/// number of items: commands that run for a fixed time are compared by the work that they did. The value of an
/// objective is computed from the mean time and the mean energy, as in the papers. Only `carbon` is computed for
/// each run and then averaged, because starting hours have no mean.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub(crate) entries: Vec<Entry>,
    pub(crate) reference: Option<Entry>,
    tariff: Tariff,
    /// Whether time and energy are scaled to the same number of items.
    per_item: bool,
    /// Whether all runs took equally long and their work is unknown.
    work_is_unknown: bool,
    /// The place of each candidate among the others.
    places: Vec<LinePosition>,
    /// The index of the candidate that is the reference, if one is.
    reference_index: Option<usize>,
}

/// A candidate of a comparison, with the means of its runs.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) candidate: Candidate,
    /// The candidate's runs, with time and energy scaled to the same number of items if the comparison needs that.
    runs: Vec<Outcome>,
    /// The mean of the scaled runs; `None` if a run failed.
    pub(crate) mean: Option<Outcome>,
    /// The mean of the runs as measured, before scaling; `None` if a run failed.
    pub(crate) measured: Option<Outcome>,
}

impl Entry {
    fn new(candidate: &Candidate, items: Option<f64>) -> Self {
        let runs: Vec<Outcome> = match items {
            Some(items) => candidate
                .runs
                .iter()
                .map(|run| run.for_items(items))
                .collect(),
            None => candidate.runs.clone(),
        };
        let measured = candidate.mean();
        Self {
            mean: measured.as_ref().and_then(|_| Outcome::mean(&runs)),
            measured,
            runs,
            candidate: candidate.clone(),
        }
    }
}

impl Comparison {
    /// Compares candidates with a reference. All results identify a candidate by its index in `candidates`.
    pub fn new(candidates: &[Candidate], reference: Option<&Candidate>, tariff: Tariff) -> Self {
        let successful: Vec<&Candidate> = candidates
            .iter()
            .chain(reference)
            .filter(|candidate| candidate.mean().is_some())
            .collect();
        let runs = || successful.iter().flat_map(|candidate| &candidate.runs);
        let items_are_known = runs().all(|run| crate::value::items(run).is_ok());
        let times_are_equal = equal_times(&successful);
        let items = reference
            .and_then(Candidate::mean)
            .or_else(|| successful.first()?.mean())
            .and_then(|mean| mean.items)
            .filter(|_| items_are_known && times_are_equal == Some(true));
        Self {
            entries: candidates
                .iter()
                .map(|candidate| Entry::new(candidate, items))
                .collect(),
            reference: reference
                .filter(|reference| reference.mean().is_some())
                .map(|reference| Entry::new(reference, items)),
            tariff,
            per_item: items.is_some() && runs().any(|run| run.items != items),
            work_is_unknown: !items_are_known && times_are_equal == Some(true),
            places: vec![LinePosition::WITHOUT_ORDER; candidates.len()],
            reference_index: candidates
                .iter()
                .position(|candidate| Some(candidate) == reference),
        }
    }

    /// Returns the comparison with the place of each candidate among the others, so that neighbours on an ordered axis
    /// inform each other.
    pub fn with_places(self, places: Vec<LinePosition>) -> Self {
        match places.len() == self.entries.len() {
            true => Self { places, ..self },
            false => self,
        }
    }

    /// The place of each candidate among the others.
    pub(crate) fn places(&self) -> impl Iterator<Item = LinePosition> {
        self.places.iter().copied()
    }

    /// The index of the candidate that is the reference, if one is.
    pub const fn reference_index(&self) -> Option<usize> {
        self.reference_index
    }

    /// The number of compared candidates.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether time and energy are scaled to the same number of items, because all runs took equally long and
    /// processed different, known numbers of items.
    pub const fn is_per_item(&self) -> bool {
        self.per_item
    }

    /// Whether all runs took equally long and their work is unknown: the command may run for a fixed time, and
    /// then only power can be compared.
    pub const fn is_work_unknown(&self) -> bool {
        self.work_is_unknown
    }

    /// The mean of a candidate's runs for the same work; `None` if a run failed.
    pub fn mean(&self, index: usize) -> Option<&Outcome> {
        self.entries.get(index)?.mean.as_ref()
    }

    /// The mean of the reference's runs; `None` without a reference or if one of its runs failed.
    pub fn reference(&self) -> Option<&Outcome> {
        self.reference.as_ref()?.mean.as_ref()
    }

    /// The reference and the tariff that values of objectives are computed with.
    pub fn basis(&self) -> Basis<'_> {
        Basis {
            reference: self.reference(),
            tariff: &self.tariff,
        }
    }

    /// Returns an objective's value for a candidate, or why there is none.
    pub fn estimate(&self, index: usize, objective: Objective) -> Result<Estimate, NoValue> {
        let entry = self.entries.get(index).ok_or(NoValue::NotRun)?;
        Ok(self.judge(entry, objective)?.estimate)
    }

    /// Returns the reference's value of an objective, or why there is none.
    pub(crate) fn judge_reference(&self, objective: Objective) -> Result<Judged, NoValue> {
        let reference = self.reference.as_ref().ok_or(NoValue::NoReference)?;
        self.judge(reference, objective)
            .map_err(|reason| NoValue::Reference(Box::new(reason)))
    }

    /// The indices of the candidates on the Pareto front. Candidates that lack a value are left out.
    pub fn pareto(&self, aims: &[Aim]) -> Vec<usize> {
        let (indices, outcomes): (Vec<usize>, Vec<&Outcome>) = (0..self.len())
            .filter_map(|index| Some((index, self.mean(index)?)))
            .unzip();
        let front = pareto(&outcomes, aims);
        front.into_iter().map(|index| indices[index]).collect()
    }

    /// Returns a candidate's value of an objective, from the mean and for each run, or why there is none.
    pub(crate) fn judge(&self, entry: &Entry, objective: Objective) -> Result<Judged, NoValue> {
        let mean = entry.mean.as_ref().ok_or(NoValue::NotRun)?;
        let runs = entry.runs.iter();
        let values: Vec<f64> = runs
            .filter_map(|run| objective.value(run, self.basis()).ok())
            .collect();
        let summary = Summary::of(&values);
        let value = match (objective, &summary) {
            (Objective::Carbon, Some(summary)) => summary.mean,
            _ => objective.value(mean, self.basis())?,
        };
        let spread = summary.and_then(|summary| Some((summary.mean, summary.interval95?)));
        let estimate = Estimate {
            value,
            interval95: spread.map(|(mean, interval)| shifted(interval, value - mean)),
            runs: values.len(),
        };
        Ok(Judged { estimate, values })
    }
}

/// Whether the mean times of all candidates are equal, within noise or half a percent; `None` for fewer than two
/// candidates.
fn equal_times(candidates: &[&Candidate]) -> Option<bool> {
    /// Mean times that differ by at most this share count as equal.
    const EQUAL_TIME_TOLERANCE: f64 = 0.005;
    let times: Vec<Vec<f64>> = candidates
        .iter()
        .map(|candidate| candidate.runs.iter().map(|run| run.time.get()).collect())
        .collect();
    let means: Vec<f64> = times
        .iter()
        .filter_map(|set| Some(Summary::of(set)?.mean))
        .collect();
    let shortest = means.iter().copied().reduce(f64::min)?;
    let longest = means.iter().copied().reduce(f64::max)?;
    (means.len() > 1 && longest > 0.0).then_some(
        longest - shortest <= EQUAL_TIME_TOLERANCE * longest || any_differs(&times) == Some(false),
    )
}
