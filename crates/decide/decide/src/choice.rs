//! The choice of the best candidate, and how certain it is.

use crate::comparison::Entry;
use crate::margin::Judged;
use crate::objective::same;
use crate::{
    Basis, BrokenLimit, Comparison, Estimate, Limit, Margin, NoChoice, NoValue, Objective, Outcome,
    Standing, Value,
};

/// The best candidate by an objective among those that meet the limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The index of the chosen candidate.
    pub candidate: usize,
    /// The value of the objective for the chosen candidate.
    pub value: Estimate,
    /// The index of the second best allowed candidate, and by how much the choice is better than it; absent if no
    /// other candidate is allowed.
    pub runner_up: Option<(usize, Margin)>,
    /// By how much the choice is better than the reference; absent if the objective has no value for the reference.
    pub against_reference: Option<Margin>,
    /// The limits that the reference itself breaks; if it breaks any, the reference cannot be used instead of the
    /// choice.
    pub reference_breaks: Vec<BrokenLimit>,
    /// The indices of the allowed candidates that do not differ significantly from the choice.
    pub tied_with: Vec<usize>,
    /// The indices of the allowed candidates that have too few runs to test whether they differ from the choice.
    pub undecided: Vec<usize>,
    /// The candidates that could not be chosen, each with the reason.
    pub excluded: Vec<Excluded>,
    /// Whether time and energy were scaled to the same number of items before the comparison.
    pub per_item: bool,
}

impl Choice {
    /// Whether the reference meets the limits and is not significantly worse than the choice; `None` without a
    /// reference or with too few repeats.
    pub fn reference_is_as_good(&self) -> Option<bool> {
        let margin = self.against_reference?;
        if !self.reference_breaks.is_empty() {
            return Some(false);
        }
        match margin.standing {
            Standing::Better => Some(false),
            Standing::Same | Standing::Worse => Some(true),
            Standing::Unknown => (margin.by <= 0.0).then_some(true),
        }
    }
}

/// A candidate that could not be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Excluded {
    /// The index of the excluded candidate.
    pub candidate: usize,
    /// Why the candidate could not be chosen.
    pub why: Exclusion,
}

/// Why a candidate could not be chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Exclusion {
    /// A run of the candidate failed, for this reason.
    Failed(String),
    /// The candidate has no runs.
    NotRun,
    /// The objective has no value for the candidate, for this reason.
    NoValue(NoValue),
    /// The candidate breaks these limits.
    Limits(Vec<BrokenLimit>),
}

impl std::fmt::Display for Exclusion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed(reason) => write!(f, "failed: {reason}"),
            Self::NotRun => f.write_str("has no runs"),
            Self::NoValue(reason) => write!(f, "has no value: {reason}"),
            Self::Limits(broken) => {
                let broken: Vec<String> = broken.iter().map(BrokenLimit::to_string).collect();
                f.write_str(&broken.join(", "))
            }
        }
    }
}

impl Comparison {
    /// Chooses the best candidate that meets the limits. Equal candidates are ordered by less time, then by less
    /// energy, then by index.
    pub fn choose(&self, objective: Objective, limits: &[Limit]) -> Result<Choice, NoChoice> {
        self.choose_preferring(objective, limits, None)
    }

    /// Chooses like [`Self::choose`], but takes the preferred candidate (the one that a search recommends) if it
    /// meets the limits.
    pub fn choose_preferring(
        &self,
        objective: Objective,
        limits: &[Limit],
        preferred: Option<usize>,
    ) -> Result<Choice, NoChoice> {
        self.check(objective, limits)?;
        let mut excluded = Vec::new();
        let mut allowed: Vec<(usize, Judged)> = Vec::new();
        for (candidate, entry) in self.entries.iter().enumerate() {
            match self.admit(entry, objective, limits) {
                Ok(judged) => allowed.push((candidate, judged)),
                Err(why) => excluded.push(Excluded { candidate, why }),
            }
        }
        let preferred = allowed
            .iter()
            .position(|(candidate, _)| Some(*candidate) == preferred);
        let Some(chosen) = preferred.or_else(|| self.pick(&allowed, objective)) else {
            return Err(NoChoice::from_exclusions(objective, excluded));
        };
        let (candidate, judged) = allowed.swap_remove(chosen);
        let mut tied_with = Vec::new();
        let mut undecided = Vec::new();
        allowed.sort_by_key(|(index, _)| *index);
        for (index, other) in &allowed {
            match judged.margin(other, objective).standing {
                Standing::Same => tied_with.push(*index),
                Standing::Unknown => undecided.push(*index),
                Standing::Better | Standing::Worse => {}
            }
        }
        let runner_up = self.pick(&allowed, objective).map(|second| {
            let (index, other) = &allowed[second];
            (*index, judged.margin(other, objective))
        });
        let reference = self.judge_reference(objective).ok();
        Ok(Choice {
            candidate,
            value: judged.estimate,
            runner_up,
            against_reference: reference.map(|reference| judged.margin(&reference, objective)),
            reference_breaks: self
                .reference
                .as_ref()
                .map_or_else(Vec::new, |reference| self.broken(reference, limits)),
            tied_with,
            undecided,
            excluded,
            per_item: self.is_per_item(),
        })
    }

    /// Returns an error if no candidate at all can be chosen, for example because none has runs.
    fn check(&self, objective: Objective, limits: &[Limit]) -> Result<(), NoChoice> {
        if self.is_empty() {
            return Err(NoChoice::Nothing);
        }
        let reference = self.reference.as_ref().map(|entry| &entry.candidate);
        if let [only] = &self.entries[..]
            && reference.is_none_or(|reference| *reference == only.candidate)
        {
            return Err(NoChoice::OnlyOne);
        }
        let means = || self.entries.iter().filter_map(|entry| entry.mean.as_ref());
        for limit in limits {
            if let Value::Reported(name) = limit.value()
                && means().next().is_some()
                && !means().any(|mean| mean.values.contains_key(name))
            {
                let mut known: Vec<String> = Value::measured_names().map(str::to_owned).collect();
                known.extend(means().flat_map(|mean| mean.values.keys().cloned()));
                known.sort();
                known.dedup();
                return Err(NoChoice::UnknownValue {
                    limit: limit.clone(),
                    known,
                });
            }
        }
        self.check_work(objective)
    }

    /// Checks that the work of the runs is known or that their times differ; otherwise only power can be compared.
    pub(crate) fn check_work(&self, objective: Objective) -> Result<(), NoChoice> {
        match self.is_work_unknown() && objective != Objective::Power {
            true => Err(NoChoice::EqualTimes),
            false => Ok(()),
        }
    }

    /// Returns a candidate's value of the objective, or why the candidate cannot be chosen.
    fn admit(
        &self,
        entry: &Entry,
        objective: Objective,
        limits: &[Limit],
    ) -> Result<Judged, Exclusion> {
        if let Some(reason) = &entry.candidate.failed {
            return Err(Exclusion::Failed(reason.clone()));
        }
        if entry.mean.is_none() {
            return Err(Exclusion::NotRun);
        }
        let judged = self.judge(entry, objective).map_err(Exclusion::NoValue)?;
        let broken = self.broken(entry, limits);
        match broken.is_empty() {
            true => Ok(judged),
            false => Err(Exclusion::Limits(broken)),
        }
    }

    /// Returns the limits that a candidate breaks.
    fn broken(&self, entry: &Entry, limits: &[Limit]) -> Vec<BrokenLimit> {
        let check = |limit: &Limit| {
            // A percentage limit compares the means for the same work; an absolute limit applies to the values as
            // measured.
            let outcome = match limit.is_relative() {
                true => entry.mean.as_ref(),
                false => entry.measured.as_ref(),
            };
            let broken = limit.check(outcome?, self.basis()).err()?;
            Some(*broken)
        };
        limits.iter().filter_map(check).collect()
    }

    /// The position in `allowed` of the best candidate.
    fn pick(&self, allowed: &[(usize, Judged)], objective: Objective) -> Option<usize> {
        let (positions, judged): (Vec<usize>, Vec<(f64, &Outcome)>) = allowed
            .iter()
            .enumerate()
            .filter_map(|(position, (index, judged))| {
                Some((position, (judged.estimate.value, self.mean(*index)?)))
            })
            .unzip();
        pick(&judged, objective).map(|position| positions[position])
    }
}

/// The index of the best outcome; equal outcomes are ordered by less time, then by less energy, then by index.
/// `None` if the objective has no value for any outcome.
pub fn best<'a>(
    outcomes: &[Outcome],
    basis: impl Into<Basis<'a>>,
    objective: Objective,
) -> Option<usize> {
    let basis = basis.into();
    let (indices, judged): (Vec<usize>, Vec<(f64, &Outcome)>) = outcomes
        .iter()
        .enumerate()
        .filter_map(|(index, outcome)| {
            let value = objective.value(outcome, basis).ok()?;
            Some((index, (value, outcome)))
        })
        .unzip();
    pick(&judged, objective).map(|index| indices[index])
}

/// The position in `judged`, pairs of objective value and outcome, of the best outcome. Values that differ only by
/// floating-point rounding count as equal; otherwise the unit of a value could decide between equal outcomes.
fn pick(judged: &[(f64, &Outcome)], objective: Objective) -> Option<usize> {
    let direction = objective.direction();
    let mut left: Vec<usize> = (0..judged.len()).collect();
    let value = |index: usize| direction.as_cost(judged[index].0);
    let time = |index: usize| judged[index].1.time.get();
    let energy = |index: usize| judged[index].1.energy.map_or(f64::INFINITY, |e| e.get());
    retain_least(&mut left, value, |a, b| objective.is_same(a, b));
    retain_least(&mut left, time, same);
    retain_least(&mut left, energy, same);
    left.first().copied()
}

/// Removes all indices from `left` whose cost is not the least.
fn retain_least(
    left: &mut Vec<usize>,
    cost: impl Fn(usize) -> f64,
    same: impl Fn(f64, f64) -> bool,
) {
    if let Some(least) = left.iter().map(|index| cost(*index)).reduce(f64::min) {
        left.retain(|index| same(cost(*index), least));
    }
}
