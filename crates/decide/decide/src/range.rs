//! Ranges of settings that are better than the reference (power_capping_2022, sections 5.3 and 5.4).

use crate::{Comparison, NoChoice, Objective, Standing};

/// The evidence that is required to call a setting better than the reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// The mean of the runs is better, as in power_capping_2022.
    #[default]
    Means,
    /// The difference from the reference is statistically significant.
    Significant,
}

/// A range of neighbouring settings that are all better than the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Range<S> {
    /// The lowest setting of the range.
    pub low: S,
    /// The highest setting of the range.
    pub high: S,
    /// The indices of the candidates in the range, by rising setting.
    pub candidates: Vec<usize>,
}

impl Comparison {
    /// Returns the ranges of an axis in which an objective is better than at the reference, in ascending order, or
    /// why they are unknown. `axis` lists each setting with the index of its candidate, in any order. A candidate
    /// without a value ends a range.
    pub fn better_than_reference<S: Copy + PartialOrd>(
        &self,
        axis: &[(S, usize)],
        objective: Objective,
        evidence: Evidence,
    ) -> Result<Vec<Range<S>>, NoChoice> {
        self.check_work(objective)?;
        let reference = self
            .judge_reference(objective)
            .map_err(|reason| NoChoice::NoValue { objective, reason })?;
        let assessment = match evidence {
            Evidence::Means => None,
            Evidence::Significant => self.assess(objective),
        };
        let is_better = |index: usize| match evidence {
            Evidence::Means => {
                let entry = self.entries.get(index);
                let judged = entry.and_then(|entry| self.judge(entry, objective).ok());
                judged.is_some_and(|own| own.margin(&reference, objective, None).by > 0.0)
            }
            Evidence::Significant => assessment
                .as_ref()
                .is_some_and(|all| all.against_reference(index) == Standing::Better),
        };
        let mut axis = axis.to_vec();
        axis.sort_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        let mut ranges: Vec<Range<S>> = Vec::new();
        let mut is_in_range = false;
        for (setting, index) in axis {
            let better = is_better(index);
            match ranges.last_mut() {
                Some(range) if better && is_in_range => {
                    range.high = setting;
                    range.candidates.push(index);
                }
                _ if better => ranges.push(Range {
                    low: setting,
                    high: setting,
                    candidates: vec![index],
                }),
                _ => {}
            }
            is_in_range = better;
        }
        Ok(ranges)
    }
}
