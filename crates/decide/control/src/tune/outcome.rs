//! The outcome of tuning a job.

use sweetspot_decide::search::Noise;
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::load::Consumption;
use super::notice::{GiveUpReason, TuneNotice};
use super::window::TuneWindow;

/// A ratio to the reference with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInterval {
    /// The best estimate.
    pub value: Ratio,
    /// The lower end of the interval.
    pub low: Ratio,
    /// The upper end of the interval.
    pub high: Ratio,
}

/// The energy saved and the time lost compared with the reference, for the same items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Savings {
    /// The energy saved, which is negative where more was drawn.
    pub energy_saved: RatioInterval,
    /// The time lost, which is negative where less was taken.
    pub time_lost: RatioInterval,
}

/// The cost of exploring compared with the same items at one setting; negative where exploring saved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExploringCost {
    /// The additional time.
    pub time: Seconds,
    /// The additional energy.
    pub energy: Joules,
}

/// The outcome of one load of the job.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOutcome {
    /// The phase of the job, where the job names phases.
    pub phase: Option<String>,
    /// The start of the first steady window.
    pub steady_since: Option<Seconds>,
    /// The time at which the choice was set first.
    pub found_at: Option<Seconds>,
    /// The point of the setting that is held.
    pub choice: Option<usize>,
    /// The expected relative distance from the true best setting, where the strategy has a model.
    pub expected_regret: Option<Ratio>,
    /// The relative improvement of the objective over the reference.
    pub gain: Option<Ratio>,
    /// The number of windows that the strategy used, the reference included.
    pub evaluations: usize,
    /// The savings of the choice compared with the reference, item for item.
    pub savings: Option<Savings>,
    /// The savings since the load was steady, exploring included.
    pub total_savings: Option<Savings>,
    /// The energy saved since the load was steady.
    pub energy_saved: Option<Joules>,
    /// The cost of the tried settings compared with the same items at the reference.
    pub exploring_cost: Option<ExploringCost>,
    /// The cost of the reference window and of the tried settings compared with the same items at the choice.
    pub exploring_cost_against_choice: Option<ExploringCost>,
    /// Whether it is the previous load, which was tuned again.
    pub is_retuned: bool,
    /// Whether no tried setting meets the limits.
    pub outside_limits: bool,
    /// The consumption since the load was steady.
    pub(super) steady: Consumption,
    /// The consumption before that, at the reference.
    pub(super) waiting: Consumption,
    /// The reference, for each item.
    pub(super) reference: Option<PerItem>,
}

/// The time and the energy for each item, with their noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PerItem {
    pub(super) time: Seconds,
    pub(super) energy: Joules,
    pub(super) noise: Noise,
}

/// The outcome of tuning a job.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneOutcome {
    /// The loads of the job in order; the last one is that at its end.
    pub loads: Vec<LoadOutcome>,
    /// The windows, in order.
    pub windows: Vec<TuneWindow>,
    /// The notices with their times.
    pub notices: Vec<(Seconds, TuneNotice)>,
    /// The reason why the tuner gave up, where it did.
    pub gave_up: Option<GiveUpReason>,
    /// The time at which the tuner gave up.
    pub gave_up_at: Option<Seconds>,
    /// Whether the job ended before a setting was found.
    pub ended_early: bool,
    /// The savings of all loads since they were steady, exploring included.
    pub total_savings: Option<Savings>,
    /// The energy saved by all loads.
    pub energy_saved: Option<Joules>,
}

impl TuneOutcome {
    /// The load whose choice was held last: the last one, or the one before where it was tuned again and the job
    /// ended first.
    pub fn last_choice(&self) -> Option<&LoadOutcome> {
        for load in self.loads.iter().rev() {
            if load.choice.is_some() && load.found_at.is_some() {
                return Some(load);
            }
            if !load.is_retuned {
                return None;
            }
        }
        None
    }
}

/// The half width of a 95 % interval in standard deviations, with a margin because these are estimates.
const INTERVAL_HALF_WIDTH: f64 = 2.1;

impl Savings {
    /// The savings of the reference itself.
    pub(super) const NONE: Self = {
        let nothing = RatioInterval {
            value: Ratio::new(0.0),
            low: Ratio::new(0.0),
            high: Ratio::new(0.0),
        };
        Self {
            energy_saved: nothing,
            time_lost: nothing,
        }
    };

    /// The savings for ratios of time and energy to the reference.
    pub(super) fn from_ratios(time: f64, energy: f64, noises: &[Noise]) -> Self {
        let sum = |of: fn(&Noise) -> f64| {
            let all = noises.iter();
            all.map(|noise| of(noise).powi(2)).sum::<f64>().sqrt()
        };
        let interval = |value: f64, half: f64| RatioInterval {
            value: Ratio::new(value),
            low: Ratio::new(value - half),
            high: Ratio::new(value + half),
        };
        Self {
            energy_saved: interval(
                1.0 - energy,
                INTERVAL_HALF_WIDTH * energy * sum(|noise| noise.energy),
            ),
            time_lost: interval(
                time - 1.0,
                INTERVAL_HALF_WIDTH * time * sum(|noise| noise.time),
            ),
        }
    }

    /// The savings of several loads compared with their references, and the energy saved.
    pub(super) fn of_loads(loads: &[LoadOutcome]) -> Option<(Self, Joules)> {
        let (mut sum, mut reference) = (Consumption::default(), Consumption::default());
        let mut noise = Noise::NONE;
        for load in loads {
            let Some(per_item) = load.reference else {
                continue;
            };
            sum.add(&load.steady);
            sum.add(&load.waiting);
            reference.add(&load.waiting);
            let (time, energy) = (
                per_item.time.get() * load.steady.items,
                per_item.energy.get() * load.steady.items,
            );
            reference.time += time;
            reference.energy += energy;
            noise.time += (per_item.noise.time * time).powi(2);
            noise.energy += (per_item.noise.energy * energy).powi(2);
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
        Some((Self::from_ratios(time, energy, &[noise]), saved))
    }
}
