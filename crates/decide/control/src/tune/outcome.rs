//! The outcome of tuning a job.

use sweetspot_decide::search::Noise;
use sweetspot_device::{Knob, Settings};
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::load::Consumption;
use super::notice::{GiveUpReason, TuneNotice};
use super::window::TuneWindow;
use crate::limit::LoadLimit;

/// A change relative to the reference, with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInterval {
    /// The best estimate of the relative change.
    pub value: Ratio,
    /// The lower end of the 95 % confidence interval.
    pub low: Ratio,
    /// The upper end of the 95 % confidence interval.
    pub high: Ratio,
}

/// The energy saved and the time lost compared with the same items at the reference, as shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Savings {
    /// The energy saved, as a share; negative if more energy was used.
    pub energy_saved: RatioInterval,
    /// The time lost, as a share; negative if the items took less time.
    pub time_lost: RatioInterval,
}

/// The time and energy that exploring cost compared with the same items at one setting; negative if exploring saved
/// time or energy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExploringCost {
    /// The additional time of exploring.
    pub time: Seconds,
    /// The additional energy of exploring.
    pub energy: Joules,
}

/// The outcome of tuning one load: a time span of the job with steady power.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOutcome {
    /// The phase of the job; absent if the job was in no named phase.
    pub phase: Option<String>,
    /// The time at which the load became steady, from the start of the job; absent if it never did.
    pub steady_since: Option<Seconds>,
    /// The time at which a setting was first chosen, from the start of the job; absent if none was.
    pub found_at: Option<Seconds>,
    /// The index of the chosen point; absent if none was chosen.
    pub choice: Option<usize>,
    /// By how much the choice is expected to be worse than the true best setting, as a fraction; only a strategy
    /// with a model can estimate it.
    pub expected_regret: Option<Ratio>,
    /// By how much the objective at the choice is better than at the reference, as a share; absent if it is unknown.
    pub gain: Option<Ratio>,
    /// The same for the setting for all GPUs from which the choice was derived; absent if all GPUs have the same setting.
    pub common_gain: Option<Ratio>,
    /// The number of measurements that were passed to the strategy, the reference included.
    pub evaluations: usize,
    /// The savings for each item at the choice compared with the reference.
    pub savings: Option<Savings>,
    /// The savings over the whole time since the load became steady, including exploring, compared with the reference.
    pub total_savings: Option<Savings>,
    /// The energy saved since the load became steady, compared with the same items at the reference.
    pub energy_saved: Option<Joules>,
    /// The additional time and energy at the tried settings compared with the same items at the reference.
    pub exploring_cost: Option<ExploringCost>,
    /// The additional time and energy at the reference and the tried settings compared with the same items at the
    /// choice.
    pub exploring_cost_against_choice: Option<ExploringCost>,
    /// Whether this is the same load as the previous one, tuned again because of `--retune-every`.
    pub is_retuned: bool,
    /// What limits the load at the reference; absent if the reference was not measured.
    pub limit: Option<LoadLimit>,
    /// The knob that the tuner chose for the load; absent if the knob was given.
    pub knob: Option<Knob>,
    /// Whether the limits cannot be met: no tried setting meets them.
    pub outside_limits: bool,
    /// The time, energy and items since the load became steady.
    pub(super) steady: Consumption,
    /// The time, energy and items before the load became steady; the reference was set then.
    pub(super) waiting: Consumption,
    /// The time and energy for each item at the reference; absent if it was not measured.
    pub(super) reference: Option<PerItem>,
}

/// The time and the energy for each item, with their relative standard deviations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PerItem {
    pub(super) time: Seconds,
    pub(super) energy: Joules,
    pub(super) noise: Noise,
}

/// A point that gives each GPU a setting of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct BalancedPoint {
    /// The index of the point with one setting for all GPUs from which this one was derived.
    pub base: usize,
    /// The settings of each GPU.
    pub settings: Vec<Settings>,
    /// The name of the point for display, such as `215/180 W`.
    pub label: String,
}

/// The outcome of tuning a job.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneOutcome {
    /// The points that give each GPU a setting of its own. Their indices follow those of the search space.
    pub balanced: Vec<BalancedPoint>,
    /// The loads of the job in chronological order; the last one was present at the end of the job.
    pub loads: Vec<LoadOutcome>,
    /// All measurement windows, in chronological order.
    pub windows: Vec<TuneWindow>,
    /// The notices to the user, each with its time since the start of the job.
    pub notices: Vec<(Seconds, TuneNotice)>,
    /// The reason why the tuner stopped tuning; absent if it did not.
    pub gave_up: Option<GiveUpReason>,
    /// The time at which the tuner stopped tuning; absent if it did not.
    pub gave_up_at: Option<Seconds>,
    /// Whether the job ended before a setting was found.
    pub ended_early: bool,
    /// The savings of all loads together, including exploring, compared with their references.
    pub total_savings: Option<Savings>,
    /// The energy saved by all loads together compared with their references.
    pub energy_saved: Option<Joules>,
    /// The time lost by all loads together compared with their references; negative if time was saved.
    pub time_lost: Option<Seconds>,
}

/// What the choices save in work that takes a day at the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DailySavings {
    /// The energy saved; negative if more energy is used.
    pub energy_saved: Joules,
    /// The additional time; negative if the work takes less time.
    pub time_lost: Seconds,
}

impl TuneOutcome {
    /// What the choices would save in work of a day, exploring not included: the loads in the proportions that this
    /// job had. `None` if no savings are known.
    pub fn daily_savings(&self) -> Option<DailySavings> {
        const DAY: Seconds = Seconds::new(86_400.0);
        let (mut reference_time, mut energy_saved, mut time_lost) =
            (Seconds::ZERO, Joules::ZERO, Seconds::ZERO);
        for load in &self.loads {
            let (Some(per_item), Some(savings)) = (load.reference, load.savings) else {
                continue;
            };
            let time = per_item.time * load.steady.items;
            reference_time += time;
            energy_saved += per_item.energy * load.steady.items * savings.energy_saved.value.get();
            time_lost += time * savings.time_lost.value.get();
        }
        let scale = DAY / reference_time;
        scale.is_finite().then_some(DailySavings {
            energy_saved: energy_saved * scale,
            time_lost: time_lost * scale,
        })
    }

    /// The load whose choice was set last: the last load, or the one before if the last one was being tuned again
    /// when the job ended.
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

/// The savings of several loads together.
#[derive(Clone, Copy, Debug)]
pub(super) struct TotalSavings {
    /// The savings as shares of the reference.
    pub(super) shares: Savings,
    pub(super) energy_saved: Joules,
    pub(super) time_lost: Seconds,
}

/// The half-width of a 95 % interval in standard deviations; above 1.96 because the deviations are estimates.
const INTERVAL_HALF_WIDTH: f64 = 2.1;

impl Savings {
    /// The savings of the reference itself, which are zero.
    pub(super) const NO_SAVINGS: Self = {
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

    /// Computes savings from the ratios of time and energy to the reference; `noises` are the relative errors of the
    /// measurements.
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

    /// The savings of several loads together compared with their references.
    pub(super) fn of_loads(loads: &[LoadOutcome]) -> Option<TotalSavings> {
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
        Some(TotalSavings {
            shares: Self::from_ratios(time, energy, &[noise]),
            energy_saved: Joules::new(reference.energy - sum.energy),
            time_lost: Seconds::new(sum.time - reference.time),
        })
    }
}
