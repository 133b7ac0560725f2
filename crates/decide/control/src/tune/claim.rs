//! What a tuning came to.

use sweetspot_decide::search::Noise;
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::load::Sum;
use super::notice::{GaveUp, Notice};
use super::window::Window;

/// A share of what the reference would have taken, with a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The best guess.
    pub value: Ratio,
    /// Not less.
    pub low: Ratio,
    /// Not more.
    pub high: Ratio,
}

/// Energy saved and time lost against the reference, for the same items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Positive where energy was saved.
    pub energy_saved: Share,
    /// Positive where time was lost.
    pub time_lost: Share,
}

/// What exploring cost beyond the same items at some setting; negative where it saved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Of time.
    pub time: Seconds,
    /// Of energy.
    pub energy: Joules,
}

/// What became of one load of the job.
#[derive(Clone, Debug, PartialEq)]
pub struct TunedLoad {
    /// The phase it is of, where the job names them.
    pub phase: Option<String>,
    /// When its first steady window began.
    pub steady_since: Option<Seconds>,
    /// Where the choice was set for the first time.
    pub found_at: Option<Seconds>,
    /// What is held.
    pub choice: Option<usize>,
    /// By how much it is expected to be worse than the true best, where the strategy has a model.
    pub expected_regret: Option<f64>,
    /// By how much its objective is better than the reference's, as a fraction.
    pub gain: Option<f64>,
    /// Windows that were told to the strategy, the reference included.
    pub evaluations: usize,
    /// The choice against the reference, item for item.
    pub claim: Option<Claim>,
    /// All of the load since it was steady, exploring included, against the reference.
    pub whole: Option<Claim>,
    /// Energy saved since it was steady, in all.
    pub energy_saved: Option<Joules>,
    /// Of settings that were tried, beyond the same items at the reference.
    pub cost: Option<Cost>,
    /// Of the reference window and of settings that were tried, beyond the same items at the choice.
    pub cost_against_choice: Option<Cost>,
    /// Whether it is the load before, looked at again.
    pub is_again: bool,
    /// Whether no setting that was tried keeps within the limits.
    pub outside_limits: bool,
    /// Time, energy and items since it was steady.
    pub(super) total: Sum,
    /// The same before that, at the reference: it cost what it would have cost.
    pub(super) waited: Sum,
    /// What the reference takes for an item.
    pub(super) reference: Option<(Seconds, Joules, Noise)>,
}

/// What a tuning came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Every load that was met, in order; the last one is that of the job's end.
    pub loads: Vec<TunedLoad>,
    /// Every window, in order.
    pub windows: Vec<Window>,
    /// What was told, and when.
    pub notices: Vec<(Seconds, Notice)>,
    /// Why nothing more was tried, where so.
    pub gave_up: Option<GaveUp>,
    /// When that was.
    pub gave_up_at: Option<Seconds>,
    /// Whether the job ended while settings were tried.
    pub ended_early: bool,
    /// All loads since they were steady, exploring included, against their references.
    pub whole: Option<Claim>,
    /// Energy saved in all.
    pub energy_saved: Option<Joules>,
}

impl Tuned {
    /// The load whose choice was held last: the last one, or the one before where it was looked at again and
    /// the job ended first.
    pub fn last_choice(&self) -> Option<&TunedLoad> {
        for load in self.loads.iter().rev() {
            if load.choice.is_some() && load.found_at.is_some() {
                return Some(load);
            }
            if !load.is_again {
                return None;
            }
        }
        None
    }
}

/// 95 % of a normal distribution, and somewhat for a spread that is itself estimated.
const TWO_SIDED: f64 = 2.1;
impl Claim {
    /// Of the reference itself.
    pub(super) const NOTHING: Self = {
        let nothing = Share {
            value: Ratio::new(0.0),
            low: Ratio::new(0.0),
            high: Ratio::new(0.0),
        };
        Self {
            energy_saved: nothing,
            time_lost: nothing,
        }
    };

    /// From time and energy over those of the reference.
    pub(super) fn of(time: f64, energy: f64, noises: &[Noise]) -> Self {
        let sum = |of: fn(&Noise) -> f64| {
            let all = noises.iter();
            all.map(|noise| of(noise).powi(2)).sum::<f64>().sqrt()
        };
        let share = |value: f64, half: f64| Share {
            value: Ratio::new(value),
            low: Ratio::new(value - half),
            high: Ratio::new(value + half),
        };
        Self {
            energy_saved: share(1.0 - energy, TWO_SIDED * energy * sum(|noise| noise.energy)),
            time_lost: share(time - 1.0, TWO_SIDED * time * sum(|noise| noise.time)),
        }
    }

    /// Of several loads: what was drawn against what the references would have.
    pub(super) fn of_all(loads: &[TunedLoad]) -> Option<(Self, Joules)> {
        let (mut sum, mut reference) = (Sum::default(), Sum::default());
        let mut noise = Noise::NONE;
        for load in loads {
            let Some((time, energy, of_load)) = load.reference else {
                continue;
            };
            sum.add(&load.total);
            sum.add(&load.waited);
            reference.add(&load.waited);
            let (time, energy) = (
                time.get() * load.total.items,
                energy.get() * load.total.items,
            );
            reference.time += time;
            reference.energy += energy;
            noise.time += (of_load.time * time).powi(2);
            noise.energy += (of_load.energy * energy).powi(2);
        }
        if reference.time <= 0.0 || reference.energy <= 0.0 {
            return None;
        }
        let noise = Noise {
            time: noise.time.sqrt() / reference.time,
            energy: noise.energy.sqrt() / reference.energy,
        };
        let (time, energy) = (sum.time / reference.time, sum.energy / reference.energy);
        let saved = Joules::new(reference.energy - sum.energy);
        Some((Self::of(time, energy, &[noise]), saved))
    }
}
