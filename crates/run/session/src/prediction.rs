//! What a network will cost on a GPU, and the best settings for it.

use sweetspot_decide::{Basis, Criteria, Outcome, best};
use sweetspot_device::Knob;
use sweetspot_network::{Network, Precision};
use sweetspot_predict::{
    Prediction, PredictionError, Predictor, has_predictions, largest_batch, predicted_precision,
};
use sweetspot_quantity::{Bytes, Megahertz, Ratio, Watts};
use sweetspot_sim::{GpuProfile, IterationWork, Mode, Steady, find_gpu};

use crate::NetworkUseError;

/// The number format of a network if the user gives none: bf16 where its cost can be predicted, which is how networks are
/// trained and served there, else fp32.
pub fn default_precision(gpu: Option<&str>) -> Result<Precision, NetworkUseError> {
    let Some(gpu) = gpu else {
        return Ok(Precision::default());
    };
    let (_, profile) = find_gpu(gpu)?;
    Ok(match has_predictions(&profile) {
        true => predicted_precision(&profile),
        false => Precision::default(),
    })
}

/// A prediction of what a network costs on a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuPrediction {
    /// The GPU profile's name.
    pub gpu: String,
    /// The GPU's product name.
    pub product: String,
    /// Whether no network was measured on this GPU: the constants are those of another one.
    pub is_transferred: bool,
    /// The memory that programs can allocate.
    pub capacity: Bytes,
    /// The default power cap.
    pub cap: Watts,
    /// What the network costs.
    pub prediction: Prediction,
    /// The largest batch that fits into the memory, if the requested one does not.
    pub largest_batch: Option<u64>,
    /// The best power cap and the best core clock for the objective; empty if the objective has no value here or nothing
    /// meets the limits.
    pub best: Vec<BestSetting>,
}

/// The best value of a setting for an objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestSetting {
    /// The setting: the power cap or the core clock.
    pub knob: Knob,
    /// The best value, in watts or megahertz.
    pub value: f64,
    /// The lowest and highest best value if the power is off by as much as predictions are.
    pub interval: [f64; 2],
    /// Whether the best is the GPU's default.
    pub is_default: bool,
    /// The change of the energy of an item by the setting.
    pub energy_change: Ratio,
    /// The change of the time of an item by the setting.
    pub time_change: Ratio,
}

/// Predicts what a network costs on a GPU, and the best settings by these criteria.
pub fn predict_on_gpu(
    gpu: &str,
    network: &Network,
    precision: Precision,
    batch: u64,
    mode: Mode,
    criteria: &Criteria,
) -> Result<Result<GpuPrediction, PredictionError>, NetworkUseError> {
    let (name, profile) = find_gpu(gpu)?;
    let predictor = match Predictor::new(network, (&name, &profile), precision, mode) {
        Ok(predictor) => predictor,
        Err(problem) => return Ok(Err(problem)),
    };
    let prediction = predictor.predict(batch);
    let capacity = profile.memory.capacity;
    let largest = largest_batch(&predictor.memory_need(), capacity);
    let search = SettingSearch {
        predictor: &predictor,
        prediction: &prediction,
        criteria,
    };
    Ok(Ok(GpuPrediction {
        best: search.best_settings(&profile),
        gpu: name,
        is_transferred: predictor.is_transferred(),
        product: profile.name,
        capacity,
        cap: profile.cap.default,
        largest_batch: (batch > largest).then_some(largest),
        prediction,
    }))
}

/// The distance of two power caps that are compared.
const CAP_STEP: Watts = Watts::new(5.0);

/// A search for the best settings of a prediction.
struct SettingSearch<'a> {
    predictor: &'a Predictor,
    prediction: &'a Prediction,
    criteria: &'a Criteria,
}

impl SettingSearch<'_> {
    /// The best power cap and the best core clock.
    fn best_settings(&self, profile: &GpuProfile) -> Vec<BestSetting> {
        let caps = ((profile.cap.max - profile.cap.min) / CAP_STEP).get() as u32;
        let caps: Vec<f64> = (0..=caps)
            .map(|step| (profile.cap.min + CAP_STEP * f64::from(step)).get())
            .collect();
        let clocks = profile.core.levels().into_iter().map(Megahertz::get);
        let clocks: Vec<f64> = clocks.collect();
        let best = [
            self.best_setting(Knob::PowerCap, &caps, profile.cap.default.get()),
            self.best_setting(Knob::CoreClock, &clocks, profile.core.default.get()),
        ];
        best.into_iter().flatten().collect()
    }

    /// The best of some values of a setting.
    fn best_setting(&self, knob: Knob, values: &[f64], default: f64) -> Option<BestSetting> {
        let work = &self.prediction.work;
        let value = self.best_value(work, knob, values)?;
        let error = 1.0 + self.prediction.errors[1].get();
        let factors = [1.0 / error, error];
        let others = factors.map(|factor| {
            self.best_value(&self.with_power(work, factor), knob, values)
                .unwrap_or(value)
        });
        let reference = self.steady(work, knob, default);
        let chosen = self.steady(work, knob, value);
        let energy = |steady: &Steady| steady.power * steady.time;
        Some(BestSetting {
            knob,
            value,
            interval: [
                others[0].min(others[1]).min(value),
                others[0].max(others[1]).max(value),
            ],
            is_default: chosen == reference,
            energy_change: energy(&chosen) / energy(&reference) - Ratio::new(1.0),
            time_change: chosen.time / reference.time - Ratio::new(1.0),
        })
    }

    /// The value of a setting that is the best for a work; `None` if no value meets the limits.
    fn best_value(&self, work: &IterationWork, knob: Knob, values: &[f64]) -> Option<f64> {
        let reference = self.outcome(&self.predictor.steady(work, None, None));
        let basis = || Basis {
            reference: Some(&reference),
            tariff: &self.criteria.tariff,
        };
        let (values, outcomes): (Vec<f64>, Vec<Outcome>) = values
            .iter()
            .map(|value| (*value, self.outcome(&self.steady(work, knob, *value))))
            .filter(|(_, outcome)| {
                let mut limits = self.criteria.limits.iter();
                limits.all(|limit| limit.check(outcome, basis()).is_ok())
            })
            .unzip();
        let index = best(&outcomes, basis(), self.criteria.objective)?;
        values.get(index).copied()
    }

    /// How the GPU runs a work with a setting.
    fn steady(&self, work: &IterationWork, knob: Knob, value: f64) -> Steady {
        match knob {
            Knob::PowerCap => self.predictor.steady(work, Some(Watts::new(value)), None),
            _ => self
                .predictor
                .steady(work, None, Some(Megahertz::new(value))),
        }
    }

    /// The outcome of an iteration.
    fn outcome(&self, steady: &Steady) -> Outcome {
        Outcome {
            items: Some(self.prediction.batch as f64),
            ..Outcome::new(steady.time, steady.power * steady.time)
        }
    }

    /// The work with another power at the default settings: multiplied by this factor.
    fn with_power(&self, work: &IterationWork, factor: f64) -> IterationWork {
        let power = self.prediction.at_default.power;
        let waiting = self.predictor.waiting_power(power);
        let factor = ((power * factor - waiting) / (power - waiting))
            .get()
            .max(0.0);
        let mut work = work.clone();
        for part in &mut work.parts {
            part.switching = part.switching * factor;
            part.memory_activity = part.memory_activity * factor;
        }
        work
    }
}
