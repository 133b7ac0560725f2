//! The constants as lists of numbers for the fit.

use std::sync::OnceLock;

use sweetspot_predict::{GpuRates, KernelCost, Predictor, iteration_work};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{Chip, GpuProfile, IterationWork, KernelErrors, Kernels, find_gpu};
use sweetspot_stats::{Bounds, fit};

use crate::rows::MeasuredRow;

/// The ratios of prediction and measurement: time, power and energy.
pub type Energies = [f64; 3];

/// The number of constants of time, of energy and of training.
pub const TIME: usize = START.len();
pub const ENERGY: usize = ENERGY_START.len();
pub const TRAINING: usize = 2;

/// The names of the constants of time, with the value that a fit starts with and its bounds. Times are in microseconds.
const START: [(&str, f64, f64, f64); 15] = [
    ("start", 2.0, 0.5, 10.0),
    ("convolution_start", 5.0, 1.0, 30.0),
    ("grouped_start", 5.0, 1.0, 30.0),
    ("matrix", 0.8, 0.3, 0.95),
    ("tile_exponent", 0.5, 0.05, 1.0),
    ("tile_overhead", 200.0, 10.0, 1000.0),
    ("bandwidth", 0.8, 0.4, 0.95),
    ("vector", 0.2, 0.02, 1.0),
    ("grouped", 0.3, 0.02, 0.95),
    ("misaligned", 0.5, 0.05, 1.0),
    ("misaligned_groups", 0.3, 0.02, 1.0),
    ("other_windows", 0.5, 0.05, 1.0),
    ("pooling", 0.3, 0.02, 1.0),
    ("normalisation", 0.4, 0.02, 1.0),
    ("attention", 0.5, 0.05, 0.95),
];

/// The relative speed of a product with an odd number of columns. No network of the fit has one; GPT-2's last product with
/// 8192 x 768 x 50257 took 6.675 ms, which is 95 TFLOP/s, where aligned ones reach 940 TFLOP/s.
const UNALIGNED: Ratio = Ratio::new(0.101);

/// The same for energy: watts and picojoules.
const ENERGY_START: [(&str, f64, f64, f64); 5] = [
    ("base_power", 130.0, 80.0, 200.0),
    ("operation_energy", 0.9, 0.1, 5.0),
    ("memory_energy", 150.0, 10.0, 500.0),
    ("cache_energy", 100.0, 5.0, 500.0),
    ("vector_power", 200.0, 5.0, 500.0),
];

/// The same for training: microseconds, and a factor.
const TRAINING_START: [(&str, f64, f64, f64); 2] = [
    ("host_time", 150.0, 10.0, 1000.0),
    ("backward", 2.0, 1.0, 5.0),
];

/// The weight of a constant's distance from its start in the fit: as a row that is off by this much for a factor of e.
const TOWARDS_START: f64 = 0.05;
/// Errors above this count less than their square, because a network may have a kernel that the model lacks.
const LARGE_ERROR: f64 = 0.15;

/// Fits the constants of time, at the clock that was measured.
pub fn fit_time(rows: &[MeasuredRow], near: Option<&[f64]>) -> Vec<f64> {
    let steps = if near.is_some() { 8 } else { 60 };
    fit_logarithms(&START, near, steps, |values| {
        let gpu = rates(values, &starts(&ENERGY_START), &starts(&TRAINING_START));
        let error = |row: &MeasuredRow| {
            let costs = costs(row, &gpu);
            let time: f64 = costs.iter().map(|cost| cost.time).sum();
            let core: f64 = costs.iter().map(|cost| cost.core_time).sum();
            ((time + core * (1.0 / row.clock - 1.0)) / row.time).ln()
        };
        rows.iter().map(error).collect()
    })
}

/// Fits the constants of energy to the power that the predicted times lead to.
pub fn fit_energy(rows: &[MeasuredRow], time: &[f64]) -> Vec<f64> {
    let training = starts(&TRAINING_START);
    let gpu = rates(time, &starts(&ENERGY_START), &training);
    let costs: Vec<Vec<KernelCost>> = rows.iter().map(|row| costs(row, &gpu)).collect();
    let (_, profile) = h200();
    let chip = Chip::new(&profile);
    let limits = chip.limits(profile.cap.default, None, None);
    fit_logarithms(&ENERGY_START, None, 30, |values| {
        let gpu = rates(time, values, &training);
        let error = |(row, costs): (&MeasuredRow, &Vec<KernelCost>)| {
            let parts = iteration_work(costs, Seconds::ZERO, row.mode, &gpu, &chip);
            let batch = row.batch;
            let steady = chip.steady(&limits, &IterationWork { batch, parts }.loads());
            (steady.power.get() / row.power).ln()
        };
        rows.iter().zip(&costs).map(error).collect()
    })
}

/// Fits the constants of training.
pub fn fit_training(rows: &[MeasuredRow], time: &[f64], energy: &[f64]) -> Vec<f64> {
    fit_logarithms(&TRAINING_START, None, 30, |values| {
        rows.iter()
            .map(|row| ratios(row, time, energy, values).0[0].ln())
            .collect()
    })
}

/// Fits the logarithms of constants, which are close to their start where the rows say nothing about them.
pub fn fit_logarithms(
    start: &[(&str, f64, f64, f64)],
    near: Option<&[f64]>,
    steps: usize,
    errors: impl Fn(&[f64]) -> Vec<f64>,
) -> Vec<f64> {
    let logarithms: Vec<f64> = start.iter().map(|(_, value, ..)| value.ln()).collect();
    let from = match near {
        Some(near) => near.iter().map(|value| value.ln()).collect(),
        None => logarithms.clone(),
    };
    let bounds: Vec<Bounds> = start
        .iter()
        .map(|(_, _, low, high)| Bounds {
            low: low.ln(),
            high: high.ln(),
        })
        .collect();
    let residuals = |values: &[f64]| {
        let plain: Vec<f64> = values.iter().map(|value| value.exp()).collect();
        let robust = |error: f64| {
            let relative = error / LARGE_ERROR;
            let size = LARGE_ERROR * (2.0 * ((1.0 + relative * relative).sqrt() - 1.0)).sqrt();
            size.copysign(error)
        };
        let mut all: Vec<f64> = errors(&plain).into_iter().map(robust).collect();
        let pairs = values.iter().zip(&logarithms);
        all.extend(pairs.map(|(value, start)| TOWARDS_START * (value - start)));
        all
    };
    let fitted = fit(residuals, &from, &bounds, steps);
    fitted.parameters.iter().map(|value| value.exp()).collect()
}

fn starts(start: &[(&str, f64, f64, f64)]) -> Vec<f64> {
    start.iter().map(|(_, value, ..)| *value).collect()
}

/// The costs of the kernels of a row, in inference.
fn costs(row: &MeasuredRow, gpu: &GpuRates) -> Vec<KernelCost> {
    let kernels = row.kernels.iter();
    kernels
        .map(|kernel| KernelCost::of(kernel, row.batch as f64, gpu))
        .collect()
}

/// The prediction of a row divided by its measurement, and the predicted memory in bytes.
pub fn ratios(
    row: &MeasuredRow,
    time: &[f64],
    energy: &[f64],
    training: &[f64],
) -> (Energies, f64) {
    let (name, mut profile) = h200();
    profile.kernels = Some(kernels(time, energy, training, [[0.0; 3]; 2]));
    let precision = sweetspot_network::Precision::Bf16;
    match Predictor::new(&row.network, (&name, &profile), precision, row.mode) {
        Ok(predictor) => {
            let predicted = predictor.predict(row.batch);
            let ratios = [
                predicted.at_default.time.get() / row.time,
                predicted.at_default.power.get() / row.power,
                predicted.energy().get() / (row.power * row.time),
            ];
            (ratios, predicted.memory.get())
        }
        Err(problem) => panic!("{}: {problem}", row.network.name),
    }
}

/// The rates of the H200 with these constants.
fn rates(time: &[f64], energy: &[f64], training: &[f64]) -> GpuRates {
    let (name, mut profile) = h200();
    profile.kernels = Some(kernels(time, energy, training, [[0.0; 3]; 2]));
    match GpuRates::new(&name, &profile, sweetspot_network::Precision::Bf16) {
        Ok(rates) => rates,
        Err(problem) => panic!("{problem}"),
    }
}

/// The name and the profile of the H200.
fn h200() -> (String, GpuProfile) {
    static H200: OnceLock<(String, GpuProfile)> = OnceLock::new();
    let found = H200.get_or_init(|| match find_gpu("nvidia_h200") {
        Ok(found) => found,
        Err(problem) => panic!("{problem}"),
    });
    found.clone()
}

/// The constants of a profile.
fn kernels(time: &[f64], energy: &[f64], training: &[f64], errors: [[f64; 3]; 2]) -> Kernels {
    let micros = |value: f64| Seconds::new(1e-6 * value);
    Kernels {
        start: micros(time[0]),
        convolution_start: micros(time[1]),
        grouped_start: micros(time[2]),
        matrix: Ratio::new(time[3]),
        tile_exponent: time[4],
        tile_overhead: time[5],
        bandwidth: Ratio::new(time[6]),
        vector: Ratio::new(time[7]),
        grouped: Ratio::new(time[8]),
        misaligned: Ratio::new(time[9]),
        unaligned: UNALIGNED,
        misaligned_groups: Ratio::new(time[10]),
        other_windows: Ratio::new(time[11]),
        pooling: Ratio::new(time[12]),
        normalisation: Ratio::new(time[13]),
        attention: Ratio::new(time[14]),
        base_power: Watts::new(energy[0]),
        operation_energy: energy[1],
        memory_energy: energy[2],
        cache_energy: energy[3],
        vector_power: Watts::new(energy[4]),
        host_time: micros(training[0]),
        backward: Ratio::new(training[1]),
        errors: KernelErrors {
            time: Ratio::new(errors[0][0]),
            power: Ratio::new(errors[0][1]),
            energy: Ratio::new(errors[0][2]),
            training_time: Ratio::new(errors[1][0]),
            training_power: Ratio::new(errors[1][1]),
            training_energy: Ratio::new(errors[1][2]),
        },
    }
}

/// The constants as they stand in a profile, with three digits.
pub fn to_toml(time: &[f64], energy: &[f64], training: &[f64], errors: [[f64; 3]; 2]) -> String {
    let digits = |value: f64| {
        let places = (2 - value.abs().log10().floor() as i32).max(0) as usize;
        format!("{value:.places$}")
    };
    let mut text = "[kernels]\n".to_owned();
    let all = START
        .iter()
        .zip(time)
        .chain(ENERGY_START.iter().zip(energy))
        .chain(TRAINING_START.iter().zip(training));
    for ((name, ..), value) in all {
        let value = match *name {
            name if name.ends_with("start") || name == "host_time" => {
                format!("\"{} us\"", digits(*value))
            }
            "tile_exponent" | "tile_overhead" | "operation_energy" | "memory_energy"
            | "cache_energy" => digits(*value),
            name if name.ends_with("power") => format!("\"{} W\"", digits(*value)),
            _ => format!("\"{} %\"", digits(100.0 * value)),
        };
        text += &format!("{name} = {value}\n");
        if *name == "misaligned" {
            text += &format!("unaligned = \"{} %\"\n", digits(100.0 * UNALIGNED.get()));
        }
    }
    text += "\n[kernels.errors]\n";
    for (prefix, errors) in ["", "training_"].iter().zip(errors) {
        for (name, error) in ["time", "power", "energy"].iter().zip(errors) {
            text += &format!("{prefix}{name} = \"{} %\"\n", digits(100.0 * error));
        }
    }
    text
}
