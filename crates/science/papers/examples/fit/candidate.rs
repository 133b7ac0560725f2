//! The fitted parameters of a study with candidate values.

use std::error::Error;
use std::path::Path;

use sweetspot_papers::{Parameter, ParameterValue, Profiles, compare_with};
use sweetspot_sim::{GpuProfile, use_profiles};
use sweetspot_stats::Bounds;

use crate::residuals_without;

/// The fitted parameters of a study, with values that a fit tries.
#[derive(Clone)]
pub struct Candidate {
    pub study: String,
    pub parameters: Vec<Parameter>,
    pub units: Vec<ParameterValue>,
    pub bounds: Vec<Bounds>,
    pub values: Vec<f64>,
}

impl Candidate {
    /// The parameters with the values of the built-in profiles.
    pub fn built_in(study: &str) -> Result<Self, Box<dyn Error>> {
        let profiles = stored_profiles()?;
        let parameters = profiles.parameters(study);
        let units: Vec<ParameterValue> = parameters
            .iter()
            .map(|parameter| profiles.value(parameter))
            .collect::<Result<_, _>>()?;
        let values: Vec<f64> = units.iter().map(|value| value.number).collect();
        let bounds = parameters.iter().zip(&values);
        Ok(Self {
            study: study.to_owned(),
            bounds: bounds
                .map(|(parameter, start)| bounds_of(&parameter.key, *start))
                .collect(),
            parameters,
            units,
            values,
        })
    }

    /// The same with only some of the parameters.
    pub fn only(&self, is_kept: impl Fn(&Parameter) -> bool) -> Self {
        let kept: Vec<usize> = (0..self.parameters.len())
            .filter(|index| is_kept(&self.parameters[*index]))
            .collect();
        let pick = |index: &usize| self.parameters[*index].clone();
        Self {
            study: self.study.clone(),
            parameters: kept.iter().map(pick).collect(),
            units: kept
                .iter()
                .map(|index| self.units[*index].clone())
                .collect(),
            bounds: kept.iter().map(|index| self.bounds[*index]).collect(),
            values: kept.iter().map(|index| self.values[*index]).collect(),
        }
    }

    /// The parameters with their values and units.
    pub fn with_units(&self) -> impl Iterator<Item = (&Parameter, ParameterValue)> {
        let units = self.units.iter().zip(&self.values);
        let values = units.map(|(unit, value)| unit.with_number(*value));
        self.parameters.iter().zip(values)
    }

    /// Some profiles with these values.
    pub fn profiles(&self, profiles: &Profiles) -> Result<Profiles, Box<dyn Error>> {
        Ok(profiles.with_parameters(self.with_units())?)
    }

    /// Some profiles with these values; `None` if the simulator would reject them.
    pub fn checked_profiles(&self, profiles: &Profiles) -> Option<Profiles> {
        let profiles = self.profiles(profiles).ok()?;
        let is_valid = profiles.gpus.values().all(can_keep_lowest_cap);
        is_valid.then_some(profiles)
    }

    /// A function that computes the residuals at some values, without the rows whose label begins with a text.
    pub fn residuals(
        &self,
        without: &str,
    ) -> Result<impl Fn(&[f64]) -> Vec<f64> + use<>, Box<dyn Error>> {
        let (built_in, without) = (stored_profiles()?, without.to_owned());
        let candidate = self.clone();
        let residuals = move |values: &[f64]| -> Option<Vec<f64>> {
            let values = values.to_vec();
            let candidate = Candidate {
                values,
                ..candidate.clone()
            };
            let profiles = candidate.checked_profiles(&built_in)?;
            let deviations = compare_with(&candidate.study, &profiles).ok()??;
            Some(residuals_without(&deviations, &without))
        };
        let start = residuals(&self.values).ok_or("the profiles cannot be simulated")?;
        // Profiles that cannot be simulated are far off.
        Ok(move |values: &[f64]| {
            let own = residuals(values);
            own.filter(|own| own.len() == start.len() && own.iter().all(|value| value.is_finite()))
                .unwrap_or_else(|| vec![1e6; start.len()])
        })
    }

    /// Prints every parameter with its value.
    pub fn print(&self) {
        for (parameter, value) in self.with_units() {
            println!("{parameter} = {value}");
        }
    }
}

/// The profiles in the repository, which may be newer than those in this program.
pub fn stored_profiles() -> Result<Profiles, Box<dyn Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../simulate/sim/profiles");
    use_profiles(Path::new(folder))?;
    Ok(Profiles::built_in()?)
}

/// Whether a GPU can keep its lowest power cap, which a profile requires.
fn can_keep_lowest_cap(gpu: &GpuProfile) -> bool {
    let power = &gpu.power;
    let lowest = (gpu.core.min / gpu.core.default).get() * gpu.core.voltage_floor.get().powi(2);
    power.idle + power.context + power.memory + power.core * lowest <= gpu.cap.min
}

/// The bounds of a parameter, in the unit in which it is written.
fn bounds_of(key: &str, start: f64) -> Bounds {
    let name = key.rsplit('.').next().unwrap_or_default();
    let (low, high) = match name {
        "voltage_floor" => (60.0, 99.0),
        "voltage_knee" => (0.5 * start, 1.5 * start),
        "switching" => (1.0, 280.0),
        "memory_activity" => (0.0, 150.0),
        "share" => (10.0, 60.0),
        "half_speed_batch" => (0.0, 200.0),
        "context" => (3.0, 70.0),
        "overlap" | "activity" => (0.0, 100.0),
        // Tensors that stay in a cache are not moved.
        "traffic" if key.starts_with("framework") => (50.0, 200.0),
        "efficiency" if key.starts_with("boards") => (20.0, 90.0),
        "winograd" => (25.0, 100.0),
        "gap" => (0.0, 100.0),
        // With all cores busy at its highest clock a board would draw more than its cap, which is why it is capped.
        "core" if key.starts_with("boards") => (100.0, 400.0),
        "efficiency" => (20.0, 75.0),
        "waiting" => (0.0, 100.0),
        // The memory clock hardly affects training, says the text, so that its kernels move little more than their tensors.
        "traffic" if key.starts_with("training") => (50.0, 120.0),
        "traffic" => (50.0, 400.0),
        "launch" if key.starts_with("training") || key.starts_with("inference") => (0.0, 100.0),
        // The text calls Winograd faster than a matrix product, and FFT slower.
        "work" if key.starts_with("winograd") => (50.0, 85.0),
        "work" => (110.0, 300.0),
        // A 2080 Ti with less would draw less than data sheets allow.
        "core" if key == "power.core" => (100.0, 200.0),
        "bandwidth" => (0.1, 100.0),
        "fans" => (0.0, 700.0),
        "idle" | "per_gpu" => (0.0, 4.0 * start),
        _ => (0.0, 5.0 * start.max(0.01)),
    };
    Bounds { low, high }
}

/// Rounds to four decimals, or to five digits if those are more.
pub fn rounded(value: f64) -> f64 {
    let scale = 10f64.powi(4 - value.abs().max(1e-9).log10().floor().min(0.0) as i32);
    (value * scale).round() / scale
}
