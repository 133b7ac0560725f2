//! The points among which the search of a load chooses.

use sweetspot_decide::search::{Proposal, Recommendation, SearchSpace};
use sweetspot_device::Knob;

use super::super::TuneConfig;
use super::LoadSearch;

/// The search space of a load. A strategy counts the points of its space from zero; [`LoadSpace::point`] and
/// [`LoadSpace::index`] convert between that index and the index among all points of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tune) enum LoadSpace {
    /// The settings of [`TuneConfig::space`].
    #[default]
    Main,
    /// The core clocks of [`TuneConfig::clocks`].
    Clocks,
}

impl LoadSpace {
    /// The space in which a knob is tuned, if the tuner chooses the knob.
    pub(in crate::tune) fn of_knob(knob: Knob) -> Self {
        match knob {
            Knob::CoreClock => Self::Clocks,
            Knob::PowerCap | Knob::MemoryClock => Self::Main,
        }
    }

    /// The knob of the space, if the tuner chooses the knob.
    pub(in crate::tune) const fn knob(self) -> Knob {
        match self {
            Self::Main => Knob::PowerCap,
            Self::Clocks => Knob::CoreClock,
        }
    }

    /// The other space.
    pub(in crate::tune) const fn other(self) -> Self {
        match self {
            Self::Main => Self::Clocks,
            Self::Clocks => Self::Main,
        }
    }

    /// The settings of the space.
    pub(in crate::tune) fn settings(self, config: &TuneConfig) -> &SearchSpace {
        match (self, &config.clocks) {
            (Self::Clocks, Some(clocks)) => clocks,
            _ => &config.space,
        }
    }

    /// The point with this index in the space.
    pub(in crate::tune) fn point(self, config: &TuneConfig, index: usize) -> usize {
        match self {
            Self::Main => index,
            Self::Clocks if index == self.settings(config).reference() => config.space.reference(),
            Self::Clocks => config.space.points().len() + index - 1,
        }
    }

    /// The index of a point in the space; `None` if it is not in it.
    pub(in crate::tune) fn index(self, config: &TuneConfig, point: usize) -> Option<usize> {
        let count = config.space.points().len();
        let index = match self {
            Self::Main => point,
            Self::Clocks if point == config.space.reference() => self.settings(config).reference(),
            Self::Clocks => (point + 1).checked_sub(count).filter(|index| *index > 0)?,
        };
        (index < self.settings(config).points().len()).then_some(index)
    }

    /// The point with the lowest value of every knob; `None` if that is the reference.
    pub(in crate::tune) fn lowest_point(self, config: &TuneConfig) -> Option<usize> {
        let points = self.settings(config).points();
        let sum = |index: usize| points[index].iter().sum::<f64>();
        let lowest = (0..points.len()).min_by(|a, b| sum(*a).total_cmp(&sum(*b)))?;
        let lowest = self.point(config, lowest);
        (lowest != config.space.reference()).then_some(lowest)
    }
}

impl LoadSearch {
    /// Chooses among the points of another space from now on.
    pub(in crate::tune) fn search_in(&mut self, config: &TuneConfig, space: LoadSpace) {
        if self.space != space {
            self.space = space;
            self.restart_strategy(config);
        }
    }

    /// The point that the strategy wants to be measured next; `None` if it needs no more.
    pub(in crate::tune) fn next_proposal(&mut self, config: &TuneConfig) -> Option<usize> {
        let count = self.space.settings(config).points().len();
        match self.strategy.ask() {
            Proposal::Evaluate(index) if index < count => Some(self.space.point(config, index)),
            _ => None,
        }
    }

    /// The strategy's recommendation, with its index among all points.
    pub(in crate::tune) fn recommend(&mut self, config: &TuneConfig) -> Option<Recommendation> {
        let count = self.space.settings(config).points().len();
        let answer = self.strategy.recommend();
        let answer = answer.filter(|answer| answer.point < count)?;
        Some(Recommendation {
            point: self.space.point(config, answer.point),
            ..answer
        })
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_decide::Objective;
    use sweetspot_decide::search::{KnobKind, StrategyName};
    use sweetspot_quantity::{Ratio, Seconds};

    use super::*;
    use crate::tune::JobLength;

    /// Three caps and four clocks that share the reference.
    fn config() -> TuneConfig {
        let space = |knob, values: &[f64]| SearchSpace::of_one_knob(knob, values).unwrap();
        TuneConfig {
            space: space(KnobKind::PowerCap, &[300.0, 200.0, 100.0]),
            clocks: Some(space(KnobKind::CoreClock, &[1500.0, 1200.0, 900.0, 600.0])),
            suggests_clocks: false,
            labels: vec![String::new(); 6],
            criteria: Objective::Energy.into(),
            strategy: StrategyName::Exhaustive,
            gpus: 1,
            each: None,
            settle: Seconds::new(1.0),
            budget: Ratio::new(0.05),
            job: JobLength::Unknown,
            retune_every: None,
            remembered: None,
            lowest_cap: None,
            seed: 1,
        }
    }

    #[test]
    fn both_spaces_share_the_reference_and_no_other_point() {
        let config = config();
        let points = |space: LoadSpace| {
            let count = space.settings(&config).points().len();
            let points = (0..count).map(|index| space.point(&config, index));
            points.collect::<Vec<_>>()
        };
        assert_eq!(points(LoadSpace::Main), [0, 1, 2]);
        assert_eq!(points(LoadSpace::Clocks), [0, 3, 4, 5]);
        for space in [LoadSpace::Main, LoadSpace::Clocks] {
            for point in 0..7 {
                let index = space.index(&config, point);
                let is_in_it = points(space).contains(&point);
                assert_eq!(index.is_some(), is_in_it, "{space:?} {point}");
                let back = index.map(|index| space.point(&config, index));
                assert_eq!(back.unwrap_or(point), point);
            }
        }
        assert_eq!(LoadSpace::Main.lowest_point(&config), Some(2));
        assert_eq!(LoadSpace::Clocks.lowest_point(&config), Some(5));
    }
}
