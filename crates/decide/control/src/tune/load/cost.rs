//! What a load came to: savings against its reference, and what exploring cost.

use sweetspot_decide::search::Noise;
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::super::Terms;
use super::super::claim::{Claim, Cost, TunedLoad};
use super::super::drift::Drift;
use super::super::window::Window;
use super::{Load, Spent, Sum};

impl Load {
    /// Time and energy of an item in the windows at the choice, and how sure that is.
    fn at_choice(&self) -> Option<(f64, f64, Noise)> {
        let place = self.choice?;
        let tried = self.tried.iter().filter(|window| window.place == place);
        let windows: Vec<&Window> = match self.held.is_empty() {
            true => tried.collect(),
            false => self.held.iter().collect(),
        };
        let count = windows.len() as f64;
        let mean = |of: &dyn Fn(&Window) -> Option<f64>| {
            let values: Option<Vec<f64>> = windows.iter().map(|window| of(window)).collect();
            let values = values.filter(|values| !values.is_empty())?;
            Some(values.iter().sum::<f64>() / count)
        };
        let noise = Noise {
            time: mean(&|window| Some(window.noise.time))? / count.sqrt(),
            energy: mean(&|window| Some(window.noise.energy))? / count.sqrt(),
        };
        let time = mean(&|window| Some(window.time_per_item()?.get()))?;
        let energy = mean(&|window| Some(window.energy_per_item()?.get()))?;
        Some((time, energy, noise))
    }

    /// Energy beyond the same items at the best setting so far, as a share of what the job takes there.
    pub(in crate::tune) fn cost_beyond_best(&self, terms: &Terms, job: f64) -> Option<f64> {
        let gain = |window: &&Window| self.gain(terms, window).unwrap_or(f64::NEG_INFINITY);
        let best = self
            .tried
            .iter()
            .max_by(|a, b| gain(a).total_cmp(&gain(b)))?;
        let energy = best.energy_per_item()?.get();
        let items = self.reference.as_ref()?.items_per_second? * job;
        let mut sum = *self.spent(Spent::Exploring);
        sum.add(self.spent(Spent::Reference));
        Some((sum.energy - sum.items * energy) / (items * energy))
    }

    /// What some seconds at the reference draw beyond the choice, as a share of what the job takes there.
    pub(in crate::tune) fn cost_at_reference(&self, seconds: f64, job: f64) -> Option<f64> {
        let reference = self.reference.as_ref()?.energy_per_item()?.get();
        let (_, own, _) = self.at_choice()?;
        Some(seconds / job * (reference / own - 1.0))
    }

    /// What it came to.
    pub(in crate::tune) fn tuned(&self, terms: &Terms) -> TunedLoad {
        let reference = self.warm.as_ref().or(self.reference.as_ref());
        let reference = reference.and_then(|window| {
            let (time, energy) = (window.time_per_item()?, window.energy_per_item()?);
            let drift = self.drift();
            let cold = self.coldness(&drift, window);
            Some((
                time * (drift.time.value * cold).exp(),
                energy * (drift.energy.value * cold).exp(),
                window.noise,
            ))
        });
        let is_reference = self.choice == Some(terms.space.reference());
        let claim = reference.zip(self.at_choice()).map(
            |((time, energy, of_reference), (own_time, own_energy, own))| {
                let (time, energy) = (own_time / time.get(), own_energy / energy.get());
                match is_reference {
                    true => Claim::NOTHING,
                    false => Claim::of(time, energy, &[of_reference, own, drift(self.rechecked)]),
                }
            },
        );
        let mut total = Sum::default();
        for on in [Spent::Reference, Spent::Exploring, Spent::Holding] {
            total.add(self.spent(on));
        }
        let beyond = |sum: &Sum, time: f64, energy: f64| Cost {
            time: Seconds::new(sum.time - sum.items * time),
            energy: Joules::new(sum.energy - sum.items * energy),
        };
        let exploring = self.spent(Spent::Exploring);
        let mut both = *exploring;
        both.add(self.spent(Spent::Reference));
        let mut load = TunedLoad {
            phase: self.phase.clone(),
            steady_since: self.steady_since.map(Seconds::new),
            found_at: self.found_at.map(Seconds::new),
            choice: self.choice,
            expected_regret: self.expected_regret,
            gain: self.choice.and_then(|place| self.gain_at(terms, place)),
            evaluations: self.evaluations,
            claim,
            whole: None,
            energy_saved: None,
            cost: reference.map(|(time, energy, _)| beyond(exploring, time.get(), energy.get())),
            cost_against_choice: self
                .at_choice()
                .map(|(time, energy, _)| beyond(&both, time, energy)),
            total,
            waited: *self.spent(Spent::Waiting),
            reference,
            is_again: self.is_again,
            outside_limits: self.outside_limits,
        };
        if let Some((_, _, noise)) = &mut load.reference {
            let drift = drift(self.rechecked);
            noise.time = noise.time.hypot(drift.time);
            noise.energy = noise.energy.hypot(drift.energy);
        }
        if let Some((whole, saved)) = Claim::of_all(std::slice::from_ref(&load)) {
            load.whole = Some(whole);
            load.energy_saved = Some(saved);
        }
        load
    }

    /// How far the chip is from where the reference would have brought it: it begins cold, and later it is as
    /// cool as the choice leaves it.
    fn coldness(&self, drift: &Drift, reference: &Window) -> f64 {
        match self.at_choice() {
            Some((time, energy, _)) if self.rechecked => {
                (1.0 - energy / time / reference.power.get()).clamp(0.0, 1.0)
            }
            _ => drift.coldness(reference),
        }
    }

    /// The share of a job that exploring has cost so far.
    pub(in crate::tune) fn cost_share(&self, since: &Sum, job: Seconds) -> Option<Ratio> {
        let reference = self.reference.as_ref()?;
        let (time, energy) = (
            reference.time_per_item()?.get(),
            reference.energy_per_item()?.get(),
        );
        let mut sum = *self.spent(Spent::Exploring);
        sum.add(since);
        let of_time = (sum.time - sum.items * time) / job.get();
        let of_energy = (sum.energy - sum.items * energy) / (reference.power * job).get();
        Some(Ratio::new(of_time.max(of_energy)))
    }
}

/// What a short reference window does not know, as a standard deviation: a chip takes minutes to warm up, and
/// leaks more when it is warm.
const fn drift(rechecked: bool) -> Noise {
    match rechecked {
        true => Noise {
            time: 0.003,
            energy: 0.0075,
        },
        false => Noise {
            time: 0.006,
            energy: 0.012,
        },
    }
}
