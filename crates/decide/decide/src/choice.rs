//! The choice of the best candidate, and how certain it is.

use crate::best::pick;
use crate::comparison::Entry;
use crate::margin::Judged;
use crate::{
    BrokenLimit, Comparison, Criteria, Estimate, Limit, Margin, NoChoice, NoValue, Objective,
    Outcome, Preference, Standing, Value,
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
    /// The indices of the allowed candidates that may be the best: none is significantly better.
    pub may_be_best: Vec<usize>,
    /// The indices of the candidates of which the choice is the preferred one: those that may be best, are better than
    /// the reference and cost at most [`MAX_TIE_LOSS`] more than the best; empty if no preference decided.
    pub preferred_of: Vec<usize>,
    /// The number of runs of the allowed candidate with the fewest runs. With a single run each, the noise of runs is
    /// assumed.
    pub fewest_runs: usize,
    /// The probability that the choice is not better than the reference; absent if the reference has no value or does
    /// not meet the limits.
    pub chance_of_no_gain: Option<f64>,
    /// The probability that no allowed candidate is better than the reference by more than [`NEGLIGIBLE_GAIN`], so that
    /// changing anything gains nothing; absent if the reference has no value or does not meet the limits.
    pub chance_nothing_gains: Option<f64>,
    /// The expected loss if the choice is used instead of the truly best allowed candidate, as a share; that of the
    /// reference if it is as good. Absent if the objective has no positive value for two candidates.
    pub expected_loss: Option<f64>,
    /// The candidates that could not be chosen, each with the reason.
    pub excluded: Vec<Excluded>,
    /// Whether time and energy were scaled to the same number of items before the comparison.
    pub per_item: bool,
}

impl Choice {
    /// Whether the reference meets the limits and is not significantly worse than the choice; `None` if that is
    /// unknown, for example without a reference.
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

    /// The other candidates that may be the best.
    pub fn tied_with(&self) -> Vec<usize> {
        let others = self.may_be_best.iter().copied();
        others.filter(|other| *other != self.candidate).collect()
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

/// The preferred candidate may be worse than the best by this share at most, by their expected costs: with noisy runs
/// even much worse candidates may be the best.
pub const MAX_TIE_LOSS: f64 = 0.01;

/// A gain of at most this share is none: no two settings are exactly alike, and among many some are always better by a
/// little.
pub const NEGLIGIBLE_GAIN: f64 = 0.005;

/// How the candidate is chosen among those that meet the limits.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// The best mean.
    BestMean,
    /// Of the candidates that may be best and are significantly better than the reference, the preferred one; if none
    /// is better, the best mean.
    Prefer(Preference),
    /// The candidate with this index, which a search recommends.
    Searched(usize),
}

impl Comparison {
    /// Chooses the candidate with the best mean that meets the limits. Equal candidates are ordered by less time, then
    /// by less energy, then by index.
    pub fn choose(&self, objective: Objective, limits: &[Limit]) -> Result<Choice, NoChoice> {
        self.choose_by(Rule::BestMean, objective, limits)
    }

    /// Chooses the candidate to recommend. Of the candidates that may be best, those count that are significantly
    /// better than the reference, and of these the preferred one is chosen. If none is significantly better, the
    /// choice has the best mean, and [`Choice::reference_is_as_good`] says so. A candidate that a search recommends is
    /// chosen if it meets the limits.
    pub fn recommend(
        &self,
        criteria: &Criteria,
        searched: Option<usize>,
    ) -> Result<Choice, NoChoice> {
        let rule = match searched {
            Some(point) => Rule::Searched(point),
            None => Rule::Prefer(criteria.preference),
        };
        self.choose_by(rule, criteria.objective, &criteria.limits)
    }

    /// The index of the candidate with the best mean that meets the limits, without any statistics.
    pub fn best_mean(&self, objective: Objective, limits: &[Limit]) -> Result<usize, NoChoice> {
        self.check(objective, limits)?;
        let (allowed, excluded) = self.partition(objective, limits);
        let best = self.pick(&allowed, objective);
        best.map(|position| allowed[position].0)
            .ok_or_else(|| NoChoice::from_exclusions(objective, excluded))
    }

    /// Divides the candidates into those that can be chosen and those that cannot.
    fn partition(
        &self,
        objective: Objective,
        limits: &[Limit],
    ) -> (Vec<(usize, Judged)>, Vec<Excluded>) {
        let mut excluded = Vec::new();
        let mut allowed: Vec<(usize, Judged)> = Vec::new();
        for (candidate, entry) in self.entries.iter().enumerate() {
            match self.admit(entry, objective, limits) {
                Ok(judged) => allowed.push((candidate, judged)),
                Err(why) => excluded.push(Excluded { candidate, why }),
            }
        }
        (allowed, excluded)
    }

    /// Chooses a candidate by a rule, and says how certain the choice is.
    fn choose_by(
        &self,
        rule: Rule,
        objective: Objective,
        limits: &[Limit],
    ) -> Result<Choice, NoChoice> {
        self.check(objective, limits)?;
        let (mut allowed, excluded) = self.partition(objective, limits);
        let indices: Vec<usize> = allowed.iter().map(|(index, _)| *index).collect();
        let assessment = self.assess(objective);
        let reference_breaks = self
            .reference
            .as_ref()
            .map_or_else(Vec::new, |reference| self.broken(reference, limits));
        let may_be_best = match &assessment {
            Some(assessment) => assessment.may_be_best(&indices),
            None => indices.clone(),
        };
        let mut preferred_of = Vec::new();
        let chosen = match rule {
            Rule::BestMean => None,
            Rule::Searched(point) => Some(point),
            Rule::Prefer(preference) => {
                let must_be_better = reference_breaks.is_empty() && self.reference().is_some();
                let is_better = |candidate: &usize| {
                    let standing = assessment.as_ref()?.against_reference(*candidate);
                    Some(standing == Standing::Better)
                };
                preferred_of.clone_from(&may_be_best);
                preferred_of.retain(|one| !must_be_better || is_better(one).unwrap_or(false));
                let loss = |candidate: &usize| {
                    let assessment = assessment.as_ref()?;
                    assessment.mean_loss(*candidate, &may_be_best)
                };
                preferred_of.retain(|one| loss(one).is_none_or(|loss| loss <= MAX_TIE_LOSS));
                self.preferred(&preferred_of, preference)
            }
        };
        let chosen = allowed
            .iter()
            .position(|(candidate, _)| Some(*candidate) == chosen);
        let Some(chosen) = chosen.or_else(|| self.pick(&allowed, objective)) else {
            return Err(NoChoice::from_exclusions(objective, excluded));
        };
        let fewest_runs = allowed.iter().map(|(_, judged)| judged.values.len()).min();
        let (candidate, judged) = allowed.swap_remove(chosen);
        allowed.sort_by_key(|(index, _)| *index);
        let runner_up = self.pick(&allowed, objective).map(|second| {
            let (index, other) = &allowed[second];
            // Two candidates that may both be the best do not differ significantly.
            let are_tied = [candidate, *index]
                .iter()
                .all(|one| may_be_best.contains(one));
            let standing = assessment.as_ref().map(|all| match are_tied {
                true => Standing::Same,
                false => all.against(candidate, *index),
            });
            (*index, judged.margin(other, objective, standing))
        });
        let reference = self.judge_reference(objective).ok();
        let standing = assessment
            .as_ref()
            .map(|all| all.against_reference(candidate));
        let standing = standing.filter(|_| !matches!(rule, Rule::Searched(_)));
        let can_keep_reference = reference.is_some() && reference_breaks.is_empty();
        let keeps_reference =
            can_keep_reference && matches!(standing, Some(Standing::Same | Standing::Worse));
        Ok(Choice {
            candidate,
            value: judged.estimate,
            runner_up,
            against_reference: reference.map(|reference| {
                let of_reference = reference.estimate.value;
                let all = assessment.as_ref().filter(|_| standing.is_some());
                Margin {
                    interval95: all
                        .and_then(|all| all.margin_interval(candidate, objective, of_reference)),
                    ..judged.margin(&reference, objective, standing)
                }
            }),
            reference_breaks,
            may_be_best,
            preferred_of,
            fewest_runs: fewest_runs.unwrap_or(0),
            chance_of_no_gain: assessment
                .as_ref()
                .filter(|_| can_keep_reference)
                .and_then(|assessment| assessment.chance_of_no_gain(candidate)),
            chance_nothing_gains: assessment
                .as_ref()
                .filter(|_| can_keep_reference)
                .and_then(|assessment| assessment.chance_nothing_gains(&indices)),
            expected_loss: assessment
                .as_ref()
                .and_then(|assessment| match keeps_reference {
                    true => assessment.expected_loss_of_reference(&indices),
                    false => assessment.expected_loss(candidate, &indices),
                }),
            excluded,
            per_item: self.is_per_item(),
        })
    }

    /// The preferred one of several candidates; `None` for the best mean or without candidates.
    fn preferred(&self, candidates: &[usize], preference: Preference) -> Option<usize> {
        let value = |candidate: usize| {
            let mean = self.mean(candidate)?;
            match preference {
                Preference::Time => Some(mean.time.get()),
                Preference::Energy => Some(mean.energy?.get()),
                Preference::Mean => None,
            }
        };
        let values = candidates.iter();
        values
            .filter_map(|candidate| Some((*candidate, value(*candidate)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(candidate, _)| candidate)
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
