//! Curves of time and energy over the power cap: those that were fitted to power_capping_2022, random ones of the same
//! form, and the measured ones of the Zeus project.

use std::path::Path;

use anyhow::{Context, Result};
use sweetspot_decide::Outcome;
use sweetspot_fit::{EnergyColumn, RecordColumns, RecordedKnob, read_curves};
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_stats::Seed;

const FITTED: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../data/published/power_capping_2022_fitted_curves.csv"
));

/// Time and energy of a job at every cap.
pub struct Curve {
    /// The GPU and the network, or the number of a random workload.
    pub name: String,
    /// The power caps in watts, in ascending order.
    pub caps: Vec<f64>,
    /// The time and the energy at each cap.
    pub points: Vec<Outcome>,
}

/// The model that was fitted to power_capping_2022: a job waits for the host, does work that does not depend on the core
/// clock, and work that does. Times are in seconds, powers in watts, clocks relative to the highest.
struct JobModel {
    host_power: f64,
    static_power: f64,
    /// The clock above which the voltage rises.
    voltage_knee: f64,
    voltage_slope: f64,
    host_time: f64,
    memory_time: f64,
    /// The time of the work that depends on the clock, at the highest clock.
    core_time: f64,
    uncapped_power: f64,
}

impl JobModel {
    fn outcome_at(&self, cap: f64) -> Outcome {
        let voltage = |clock: f64| 1.0 + self.voltage_slope * (clock - self.voltage_knee).max(0.0);
        let power = cap.min(self.uncapped_power);
        let share = (power - self.static_power) / (self.uncapped_power - self.static_power);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            match middle * (voltage(middle) / voltage(1.0)).powi(2) < share {
                true => low = middle,
                false => high = middle,
            }
        }
        let clock = high.max(0.05);
        let busy = self.memory_time + self.core_time / clock;
        let energy = self.host_power * self.host_time + power * busy;
        Outcome::new(Seconds::new(self.host_time + busy), Joules::new(energy))
    }

    fn curve(&self, name: String, low: f64, high: f64, step: f64) -> Curve {
        let count = ((high - low) / step + 1e-9) as usize;
        let caps: Vec<f64> = (0..=count)
            .map(|number| low + step * number as f64)
            .collect();
        Curve {
            name,
            points: caps.iter().map(|cap| self.outcome_at(*cap)).collect(),
            caps,
        }
    }
}

/// Reads the twelve curves that were fitted to power_capping_2022.
pub fn published_curves() -> Result<Vec<Curve>> {
    let mut lines = FITTED.lines();
    let header: Vec<&str> = lines
        .next()
        .context("the file has no header")?
        .split(',')
        .collect();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let cell = |name: &str| {
                let place = header.iter().position(|column| *column == name);
                place
                    .and_then(|place| cells.get(place).copied())
                    .context("a column is missing")
            };
            let number = |name: &str| -> Result<f64> { Ok(cell(name)?.parse()?) };
            let model = JobModel {
                host_power: number("P0")?,
                static_power: number("Ps")?,
                voltage_knee: number("ft")?,
                voltage_slope: number("v")?,
                host_time: number("t0")?,
                memory_time: number("tm")?,
                core_time: number("tc")?,
                uncapped_power: number("Pu")?,
            };
            let name = format!("{} {}", cell("gpu")?, cell("net")?);
            Ok(model.curve(name, number("cap_min")?, number("cap_max")?, 5.0))
        })
        .collect()
}

/// The curve of a random workload of the same form.
pub fn random_curve(number: u64) -> Curve {
    let seed = Seed::new(77).number(number);
    let within =
        |label: &str, low: f64, high: f64| low + (high - low) * seed.label(label).uniform();
    let high = within("high", 150.0, 700.0);
    let low = high * within("low", 0.3, 0.5);
    let full = high * within("full", 0.5, 1.2);
    let waiting = within("waiting", 0.0, 0.5);
    let bound = within("bound", 0.05, 0.95);
    let model = JobModel {
        host_power: full * within("waiting power", 0.1, 0.35),
        static_power: low * within("still", 0.3, 0.85),
        voltage_knee: within("knee", 0.6, 0.9),
        voltage_slope: within("rise", 0.0, 0.6),
        host_time: waiting,
        memory_time: (1.0 - waiting) * (1.0 - bound),
        core_time: (1.0 - waiting) * bound,
        uncapped_power: full,
    };
    let step = if high > 400.0 { 10.0 } else { 5.0 };
    model.curve(format!("random {number}"), low, high, step)
}

/// Reads the measured curves of a GPU in the Zeus project; `None` if the file is absent.
pub fn measured_curves(gpu: &str) -> Result<Option<Vec<Curve>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/measured_zeus");
    let file = folder.join(format!("summary_power_{gpu}.csv"));
    let Ok(text) = std::fs::read_to_string(&file) else {
        return Ok(None);
    };
    let columns = RecordColumns {
        knobs: vec![RecordedKnob::named("power_limit")],
        time: "time_per_epoch".to_owned(),
        energy: EnergyColumn::Power("average_power".to_owned()),
        group: ["dataset", "network", "batch_size", "optimizer"]
            .map(str::to_owned)
            .to_vec(),
        reference: None,
    };
    let curves = read_curves(&file.display().to_string(), &text, &columns)?;
    let curve = |curve: sweetspot_fit::RecordedCurve| {
        let caps = curve.space.points().iter().map(|point| point[0]).collect();
        let points = curve.records.iter().filter_map(|runs| Outcome::mean(runs));
        Curve {
            name: format!("{gpu} {}", curve.name()),
            caps,
            points: points.collect(),
        }
    };
    Ok(Some(curves.into_iter().map(curve).collect()))
}
