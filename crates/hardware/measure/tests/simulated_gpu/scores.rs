//! Errors of estimated energies against the true ones.

use sweetspot_measure::MethodChoice;
use sweetspot_measure::math::{EnergyEstimator, Span};
use sweetspot_sim::Generation;
use sweetspot_stats::Seed;

use super::{LoadShape, Sensors, SimulatedGpu};

/// Marks about `apart` seconds from each other, for `length` seconds, at random phases.
pub fn marks(seed: Seed, apart: f64, length: f64) -> Vec<f64> {
    let mut marks = Vec::new();
    let mut at = 2.0;
    while at < length - 2.0 {
        at += apart * (0.99 + 0.02 * seed.number(marks.len() as u64).uniform());
        marks.push(at);
    }
    marks
}

/// The relative errors and interval widths of many windows.
#[derive(Clone, Debug, Default)]
pub struct Score {
    pub errors: Vec<f64>,
    pub half_widths: Vec<f64>,
    pub within: usize,
}

impl Score {
    pub fn add(&mut self, value: f64, interval: (f64, f64), truth: f64) {
        self.errors.push(value / truth - 1.0);
        self.half_widths
            .push(0.5 * (interval.1 - interval.0) / truth);
        self.within += usize::from(interval.0 <= truth && truth <= interval.1);
    }

    pub fn count(&self) -> usize {
        self.errors.len()
    }

    pub fn coverage(&self) -> f64 {
        self.within as f64 / self.count().max(1) as f64
    }

    pub fn rms(&self) -> f64 {
        let squares: f64 = self.errors.iter().map(|error| error * error).sum();
        (squares / self.count().max(1) as f64).sqrt()
    }

    pub fn quantile(&self, part: f64) -> f64 {
        let mut sizes: Vec<f64> = self.errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let place = ((sizes.len() as f64 - 1.0) * part).round() as usize;
        sizes.get(place).copied().unwrap_or(f64::NAN)
    }

    pub fn median_half_width(&self) -> f64 {
        let mut half_widths = self.half_widths.clone();
        half_widths.sort_by(f64::total_cmp);
        half_widths
            .get(half_widths.len() / 2)
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// Lengths of windows: in marks that are half a second apart, and in seconds.
pub const WINDOW_LENGTHS: [(usize, f64); 4] = [(1, 0.5), (2, 1.0), (10, 5.0), (40, 20.0)];

/// Scores every window length for one generation, load and method, over `seeds` traces of `length` seconds.
pub fn score_windows(
    generation: Generation,
    sensors: Sensors,
    shape: LoadShape,
    choice: MethodChoice,
    seeds: u64,
    length: f64,
) -> Vec<(f64, Score)> {
    let mut result: Vec<(f64, Score)> = WINDOW_LENGTHS
        .iter()
        .map(|(_, length)| (*length, Score::default()))
        .collect();
    for number in 0..seeds {
        let seed = Seed::new(number)
            .label(&format!("{generation:?}"))
            .label(&shape.to_string());
        let load_steps = shape.load_steps(seed.label("load"));
        let mut gpu = SimulatedGpu::new(generation, sensors, load_steps, Vec::new(), seed);
        let length = if matches!(shape, LoadShape::FromIdle(_)) {
            26.0
        } else {
            length
        };
        let marks = marks(seed.label("marks"), 0.5, length);
        let recording = gpu.record(choice, length, &marks);
        let estimator = EnergyEstimator::new(&recording.trace);
        for (slot, (step, _)) in WINDOW_LENGTHS.iter().enumerate() {
            let stride = 1 + step / 20;
            for begin in (0..recording.marks.len()).step_by(stride) {
                let end = begin + step;
                if end >= recording.true_energies.len() {
                    break;
                }
                let window = Span::new(recording.marks[begin], recording.marks[end]);
                let truth = recording.true_energies[end] - recording.true_energies[begin];
                let Ok(energy) = estimator.energy(&window, choice) else {
                    continue;
                };
                if energy.covered != window {
                    continue;
                }
                let interval = (energy.interval95.0.get(), energy.interval95.1.get());
                result[slot].1.add(energy.value.get(), interval, truth);
            }
        }
    }
    result
}

/// Scores one window in each of many short traces, in which the counter is read only for its two marks.
pub fn score_single_windows(
    generation: Generation,
    sensors: Sensors,
    shape: LoadShape,
    choice: MethodChoice,
    seeds: u64,
    length: f64,
) -> Score {
    let mut score = Score::default();
    for number in 0..seeds {
        let seed = Seed::new(number)
            .label("lone")
            .label(&format!("{generation:?}"))
            .label(&shape.to_string());
        let load_steps = shape.load_steps(seed.label("load"));
        let mut gpu = SimulatedGpu::new(generation, sensors, load_steps, Vec::new(), seed);
        let begin = 2.0 + 0.5 * seed.label("begin").uniform();
        let end = begin + length * (0.95 + 0.1 * seed.label("end").uniform());
        let recording = gpu.record(choice, end + 0.3, &[begin, end]);
        let window = Span::new(recording.marks[0], recording.marks[1]);
        let truth = recording.true_energies[1] - recording.true_energies[0];
        let estimator = EnergyEstimator::new(&recording.trace);
        if let Ok(energy) = estimator.energy(&window, choice) {
            let interval = (energy.interval95.0.get(), energy.interval95.1.get());
            score.add(energy.value.get(), interval, truth);
        }
    }
    score
}
