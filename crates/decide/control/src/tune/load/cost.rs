//! The savings at the chosen setting of a load compared with its reference, and the cost of exploring.

use sweetspot_decide::search::Noise;
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::super::TuneConfig;
use super::super::drift::Drift;
use super::super::outcome::{ExploringCost, LoadOutcome, PerItem, Savings};
use super::super::window::TuneWindow;
use super::{Activity, Consumption, LateReference, LoadSearch};

impl LoadSearch {
    /// The mean time and energy for an item at the chosen setting.
    fn per_item_at_choice(&self) -> Option<PerItem> {
        let point = self.choice?;
        let tried = self.tried.iter().filter(|window| window.point == point);
        let windows: Vec<&TuneWindow> = match self.choice_windows.is_empty() {
            true => tried.collect(),
            false => self.choice_windows.iter().collect(),
        };
        let count = windows.len() as f64;
        let mean = |value: &dyn Fn(&TuneWindow) -> Option<f64>| {
            let values: Option<Vec<f64>> = windows.iter().map(|window| value(window)).collect();
            let values = values.filter(|values| !values.is_empty())?;
            Some(values.iter().sum::<f64>() / count)
        };
        let noise = Noise {
            time: mean(&|window| Some(window.noise.time))? / count.sqrt(),
            energy: mean(&|window| Some(window.noise.energy))? / count.sqrt(),
        };
        Some(PerItem {
            time: Seconds::new(mean(&|window| Some(window.time_per_item()?.get()))?),
            energy: Joules::new(mean(&|window| Some(window.energy_per_item()?.get()))?),
            noise,
        })
    }

    /// The energy that exploring used beyond what the same items need at the best setting so far, as a share of the
    /// job's energy at that setting. `job` is the length of the job in seconds.
    pub(in crate::tune) fn excess_over_best(&self, config: &TuneConfig, job: f64) -> Option<f64> {
        let gain = |window: &&TuneWindow| self.gain(config, window).unwrap_or(f64::NEG_INFINITY);
        let best = self
            .tried
            .iter()
            .max_by(|a, b| gain(a).total_cmp(&gain(b)))?;
        let energy = best.energy_per_item()?.get();
        let items = self.reference.as_ref()?.items_per_second? * job;
        let mut sum = *self.consumption(Activity::Exploring);
        sum.add(self.consumption(Activity::Reference));
        Some((sum.energy - sum.items * energy) / (items * energy))
    }

    /// The additional energy if the job runs for `seconds` at the reference instead of the chosen setting, as a share
    /// of the job's energy.
    pub(in crate::tune) fn excess_at_reference(&self, seconds: f64, job: f64) -> Option<f64> {
        let reference = self.reference.as_ref()?.energy_per_item()?.get();
        let own = self.per_item_at_choice()?.energy.get();
        Some(seconds / job * (reference / own - 1.0))
    }

    /// Summarises the load: its choice, savings and cost of exploring.
    pub(in crate::tune) fn summarise(&self, config: &TuneConfig) -> LoadOutcome {
        let reference = self.warm_reference_per_item();
        let choice = self.per_item_at_choice();
        let is_reference = self.choice == Some(config.space.reference());
        let savings = reference.zip(choice).map(|(reference, own)| {
            let time = own.time.get() / reference.time.get();
            let energy = own.energy.get() / reference.energy.get();
            let noises = [reference.noise, own.noise, self.drift_noise()];
            match is_reference {
                true => Savings::NO_SAVINGS,
                false => Savings::from_ratios(time, energy, &noises),
            }
        });
        let mut steady = Consumption::default();
        for activity in [Activity::Reference, Activity::Exploring, Activity::Holding] {
            steady.add(self.consumption(activity));
        }
        let excess = |sum: &Consumption, per_item: PerItem| ExploringCost {
            time: Seconds::new(sum.time - sum.items * per_item.time.get()),
            energy: Joules::new(sum.energy - sum.items * per_item.energy.get()),
        };
        let exploring = self.consumption(Activity::Exploring);
        let mut with_reference = *exploring;
        with_reference.add(self.consumption(Activity::Reference));
        let mut load = LoadOutcome {
            phase: self.phase.clone(),
            steady_since: self.steady_since.map(Seconds::new),
            found_at: self.found_at.map(Seconds::new),
            choice: self.choice,
            expected_regret: self.expected_regret.map(Ratio::new),
            gain: self
                .choice
                .and_then(|point| self.gain_at(config, point))
                .map(Ratio::new),
            common_gain: self
                .common
                .and_then(|point| self.gain_at(config, point))
                .map(Ratio::new),
            evaluations: self.evaluations,
            savings,
            total_savings: None,
            energy_saved: None,
            exploring_cost: reference.map(|per_item| excess(exploring, per_item)),
            exploring_cost_against_choice: choice.map(|per_item| excess(&with_reference, per_item)),
            steady,
            waiting: *self.consumption(Activity::Waiting),
            reference,
            is_retuned: self.is_retuned,
            limit: self.limit,
            knob: config.clocks.is_some().then(|| self.space.knob()),
            outside_limits: self.outside_limits,
        };
        if let Some(PerItem { noise, .. }) = &mut load.reference {
            let drift = self.drift_noise();
            noise.time = noise.time.hypot(drift.time);
            noise.energy = noise.energy.hypot(drift.energy);
        }
        if let Some(total) = Savings::of_loads(std::slice::from_ref(&load)) {
            load.total_savings = Some(total.shares);
            load.energy_saved = Some(total.energy_saved);
        }
        load
    }

    /// The time and energy for an item at the reference, corrected to a warm chip.
    fn warm_reference_per_item(&self) -> Option<PerItem> {
        let window = self.late_reference.window().or(self.reference.as_ref())?;
        let (time, energy) = (window.time_per_item()?, window.energy_per_item()?);
        let drift = self.drift();
        let coldness = self.coldness(&drift, window);
        Some(PerItem {
            time: time * (drift.time.value * coldness).exp(),
            energy: energy * (drift.energy.value * coldness).exp(),
            noise: window.noise,
        })
    }

    /// The uncertainty of the reference because of drift: a chip takes minutes to warm up, which a short measurement
    /// window does not show.
    const fn drift_noise(&self) -> Noise {
        match self.late_reference {
            LateReference::WarmChip(_) => Noise {
                time: 0.003,
                energy: 0.0075,
            },
            LateReference::None | LateReference::WhileExploring(_) => Noise {
                time: 0.006,
                energy: 0.012,
            },
        }
    }

    /// How cold the chip was when the reference was measured, from 1 (cold) to 0 (warm). Later in the job, the chip has
    /// the temperature that the chosen setting leads to.
    fn coldness(&self, drift: &Drift, reference: &TuneWindow) -> f64 {
        match self.per_item_at_choice() {
            Some(own) if self.late_reference.is_warm() => {
                let power = own.energy.get() / own.time.get();
                (1.0 - power / reference.power.get()).clamp(0.0, 1.0)
            }
            _ => drift.coldness(reference),
        }
    }

    /// The additional time or energy of exploring so far, as a share of the job's time or energy, whichever is larger.
    pub(in crate::tune) fn cost_share(&self, job: Seconds) -> Option<Ratio> {
        let reference = self.reference.as_ref()?;
        let (time, energy) = (
            reference.time_per_item()?.get(),
            reference.energy_per_item()?.get(),
        );
        let sum = self.consumption(Activity::Exploring);
        let of_time = (sum.time - sum.items * time) / job.get();
        let of_energy = (sum.energy - sum.items * energy) / (reference.power * job).get();
        Some(Ratio::new(of_time.max(of_energy)))
    }
}
