//! The parameters of a fit, the profile they make, and how far that is from the rows.

use sweetspot_quantity::{Bytes, Ratio, Seconds, Watts};
use sweetspot_sim::{
    GpuProfile, ItemWork, MemoryNeed, Mode, PhaseShare, Workload, WorkloadProfile,
};
use sweetspot_stats::Bounds;
use sweetspot_study::{Configuration, RunEnding};

use super::{FitError, FitRequest, MeasuredRow, different_batches, different_settings};
use sweetspot_virtual_time::SimulatedJob;

/// A parameter; all but the share are logarithms, because they may be off by a factor and never below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Device time of an item in the largest batch: core and memory work.
    Item,
    /// Switching power.
    Switching,
    /// Launches of an iteration, in seconds.
    Launch,
    /// `half_speed_batch`.
    HalfSpeed,
    /// Memory work of an iteration, against the device time of the largest batch.
    PerBatch,
    /// The part of the device time that follows the memory clock.
    MemoryShare,
    /// Host work of an item, against its device time.
    Host,
}

/// A value for every parameter, free or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed([f64; 7]);

impl Assumed {
    pub fn get(&self, key: Key) -> f64 {
        self.0[key as usize]
    }

    fn set(mut self, key: Key, value: f64) -> Self {
        self.0[key as usize] = value;
        self
    }

    pub fn with(self, keys: &[Key], values: &[f64]) -> Self {
        let pairs = keys.iter().zip(values);
        pairs.fold(self, |all, (key, value)| all.set(*key, *value))
    }
}

/// Convolutional networks on the boards of the zoo spend about so much of their device time on memory;
/// rows at one setting cannot tell.
const MEMORY_SHARE: f64 = 0.3;

/// A batch of one item for so many arithmetic units keeps half of them busy, on the H200 and the P40.
const UNITS_PER_ITEM: f64 = 600.0;

/// By how much that may be off, as the standard deviation of a logarithm.
const HALF_SPEED_SPREAD: f64 = 1.0;

/// How far off values may be, as the simulator is judged: from this batch size on rows are smooth; below,
/// the host sets the pace, and its time is not.
const SMOOTH_BATCH: u64 = 64;
const SMOOTH: f64 = 0.10;
const NOT_SMOOTH: f64 = 0.35;

/// A host that is interrupted is only ever slower: its time is taken to be a little longer than measured.
const HOST_SLOWER: f64 = 1.04;

/// Deviations above this are more likely odd rows than a wrong model.
const LARGE: f64 = 0.05;

/// Deviations near or above what is allowed are odd rows as well, but they are to be met.
const BARELY: f64 = 0.8;
const FORBIDDEN: f64 = 1.1;

/// Nothing: smaller than any row can tell.
const NEGLIGIBLE: f64 = 1e-4;

/// Batches of so many times the largest measured one are taken to fit.
const ROOM: f64 = 8.0;

pub struct Model<'a> {
    request: &'a FitRequest,
    /// The largest batch and its shortest iteration at the rows' fastest setting.
    largest: u64,
    item: f64,
    shortest: f64,
    spread: Vec<f64>,
}

impl<'a> Model<'a> {
    pub fn new(request: &'a FitRequest) -> Result<Self, FitError> {
        let rows = &request.rows;
        let times = rows.iter().map(|row| row.iteration.get());
        let shortest = times.fold(f64::INFINITY, f64::min);
        let largest = rows.iter().map(|row| row.batch).max().unwrap_or(1);
        let of_largest = rows.iter().filter(|row| row.batch == largest);
        let item = of_largest
            .map(|row| row.iteration.get() / largest as f64)
            .fold(f64::INFINITY, f64::min);
        let spread = rows.iter().map(|row| match is_host_bound(row, rows) {
            true => NOT_SMOOTH,
            false => SMOOTH,
        });
        let model = Self {
            request,
            largest,
            item,
            shortest,
            spread: spread.collect(),
        };
        // A setting that the GPU does not offer is told before anything is fitted.
        let profile = model.profile(&model.usual(), &[])?;
        for row in rows {
            simulate(request, &profile, row)?;
        }
        Ok(model)
    }

    /// What can be told from the rows, with fewer parameters than values: those that are always free, and
    /// those that must show their worth.
    pub fn keys(&self) -> Result<(Vec<Key>, Vec<Key>), FitError> {
        let rows = &self.request.rows;
        let (batches, settings) = (different_batches(rows), different_settings(rows));
        let different = rows.iter().enumerate().filter(|(index, row)| {
            !rows[..*index]
                .iter()
                .any(|other| other.batch == row.batch && other.settings == row.settings)
        });
        let different = different.count();
        if different < 2 {
            return Err(FitError::TooFew { rows: different });
        }
        let mut keys = vec![Key::Item, Key::Switching];
        if batches >= 2 {
            keys.push(Key::Launch);
        }
        if batches >= 3 {
            keys.push(Key::HalfSpeed);
        }
        if settings >= 3 {
            keys.push(Key::MemoryShare);
        }
        keys.truncate((2 * different).saturating_sub(1));
        let mut optional = Vec::new();
        if batches >= 4 {
            optional.push(Key::PerBatch);
        }
        if settings >= 4 {
            optional.push(Key::Host);
        }
        Ok((keys, optional))
    }

    /// Before anything is fitted.
    fn usual(&self) -> Assumed {
        let gpu = &self.request.gpu;
        Assumed([0.0; 7])
            .set(Key::Item, self.item.ln())
            .set(Key::Switching, 0.7f64.ln())
            .set(Key::Launch, f64::NEG_INFINITY)
            .set(Key::HalfSpeed, typical_half_speed(gpu).ln())
            .set(Key::PerBatch, f64::NEG_INFINITY)
            .set(Key::MemoryShare, MEMORY_SHARE)
            .set(Key::Host, f64::NEG_INFINITY)
    }

    pub fn starts(&self, keys: &[Key]) -> Vec<Assumed> {
        let usual = self.usual();
        let typical = usual.get(Key::HalfSpeed);
        let mut starts = Vec::new();
        for launch in [0.3, 0.95] {
            for half_speed in [0.3, 1.0, 3.0f64] {
                let values: Vec<f64> = keys
                    .iter()
                    .map(|key| match key {
                        Key::Launch => (launch * self.shortest).ln(),
                        Key::HalfSpeed => typical + half_speed.ln(),
                        Key::PerBatch => 0.05f64.ln(),
                        Key::Host => 0.1f64.ln(),
                        other => usual.get(*other),
                    })
                    .collect();
                starts.push(usual.with(keys, &values));
            }
        }
        starts.dedup();
        starts
    }

    pub fn bounds(&self, keys: &[Key]) -> Vec<Bounds> {
        let around = |middle: f64, factor: f64| (middle - factor.ln(), middle + factor.ln());
        let typical = self.usual().get(Key::HalfSpeed);
        keys.iter()
            .map(|key| match key {
                Key::Item => around(self.item.ln(), 30.0),
                Key::Switching => (0.01f64.ln(), 3f64.ln()),
                Key::Launch => (
                    (NEGLIGIBLE * self.shortest).ln(),
                    (10.0 * self.shortest).ln(),
                ),
                Key::HalfSpeed => around(typical, 50.0),
                Key::PerBatch => (NEGLIGIBLE.ln(), 0.0),
                Key::MemoryShare => (0.02, 0.95),
                Key::Host => (NEGLIGIBLE.ln(), 10f64.ln()),
            })
            .map(|(low, high)| Bounds { low, high })
            .collect()
    }

    /// Logarithms of simulated over measured throughput and power, against how far off they may be; large
    /// ones count less than their square. What was assumed of the half-speed batch counts as one more value.
    pub fn residuals(&self, at: &Assumed, keys: &[Key]) -> Vec<f64> {
        let rows = &self.request.rows;
        let count = 2 * rows.len() + 1;
        let Ok(profile) = self.profile(at, keys) else {
            return vec![1e3; count];
        };
        let mut all = Vec::with_capacity(count);
        for (row, spread) in rows.iter().zip(&self.spread) {
            let Ok((iteration, power)) = simulate(self.request, &profile, row) else {
                return vec![1e3; count];
            };
            let slower = match is_host_bound(row, rows) {
                true => HOST_SLOWER,
                false => 1.0,
            };
            let time = iteration / (row.iteration * slower);
            all.push(softened(time.get().ln(), *spread));
            all.push(softened((power / row.power).get().ln(), *spread));
        }
        let away = at.get(Key::HalfSpeed) - self.usual().get(Key::HalfSpeed);
        all.push(match keys.contains(&Key::HalfSpeed) {
            true => away / HALF_SPEED_SPREAD,
            false => 0.0,
        });
        all
    }

    /// The workload that these parameters make.
    pub fn profile(&self, at: &Assumed, keys: &[Key]) -> Result<WorkloadProfile, FitError> {
        let request = self.request;
        let item = at.get(Key::Item).exp();
        let share = at.get(Key::MemoryShare);
        // What is too small to be told is nothing.
        let part = |key: Key, of: f64| {
            let value = at.get(key).exp();
            Seconds::new(if value <= 1.01 * NEGLIGIBLE * of {
                0.0
            } else {
                value
            })
        };
        let capacity = request.gpu.memory.capacity;
        let fixed = Bytes::new(0.5e9).min(capacity * 0.1);
        let names = |wanted: &[(Key, &[&str])]| -> Vec<String> {
            let free = wanted.iter().filter(|(key, _)| keys.contains(key));
            free.flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned()))
                .collect()
        };
        Ok(WorkloadProfile {
            network: request.network.clone(),
            mode: request.mode,
            batch: self.largest,
            half_speed_batch: at.get(Key::HalfSpeed).exp(),
            split_batch: false,
            gradients: Bytes::ZERO,
            fitted: names(&[(Key::HalfSpeed, &["half_speed_batch"])]),
            memory: MemoryNeed {
                fixed,
                per_item: (capacity - fixed) / (ROOM * self.largest as f64),
            },
            phases: phases(request.mode),
            conv_algorithms: Vec::new(),
            datasets: Vec::new(),
            on: vec![ItemWork {
                gpu: request.gpu_name.clone(),
                fitted: names(&[
                    (Key::Host, &["host"]),
                    (Key::Launch, &["launch"]),
                    (Key::Item, &["core"]),
                    (Key::MemoryShare, &["memory"]),
                    (Key::PerBatch, &["memory_per_batch"]),
                    (Key::Switching, &["switching"]),
                ]),
                items: self.usual_items(),
                startup: Seconds::ZERO,
                host_per_batch: Seconds::ZERO,
                host: part(Key::Host, 1.0) * item,
                launch: part(Key::Launch, self.shortest),
                core: Seconds::new(item * (1.0 - share)),
                memory: Seconds::new(item * share),
                memory_per_batch: part(Key::PerBatch, 1.0) * (item * self.largest as f64),
                switching: Ratio::new(at.get(Key::Switching).exp()),
                memory_activity: Ratio::new(1.0),
            }],
        })
    }

    /// As many items as the longest of the rows with the largest batch.
    fn usual_items(&self) -> u64 {
        let of_largest = self
            .request
            .rows
            .iter()
            .filter(|row| row.batch == self.largest);
        let iterations = of_largest.map(|row| row.iterations).max().unwrap_or(1);
        iterations.saturating_mul(self.largest).min(MOST_ITEMS)
    }
}

/// A billion items take years on any GPU.
const MOST_ITEMS: u64 = 1_000_000_000;

fn typical_half_speed(gpu: &GpuProfile) -> f64 {
    gpu.core.units as f64 / UNITS_PER_ITEM
}

/// A small batch whose items take more than twice as long as those of the largest one: the host sets the
/// pace.
fn is_host_bound(row: &MeasuredRow, rows: &[MeasuredRow]) -> bool {
    let each = |row: &MeasuredRow| row.iteration.get() / row.batch as f64;
    let alike = rows.iter().filter(|other| other.settings == row.settings);
    let largest = alike.max_by_key(|other| other.batch);
    row.batch < SMOOTH_BATCH && largest.is_some_and(|largest| each(row) > 2.0 * each(largest))
}

/// Against its spread; its square grows like the square of small deviations and in a straight line with
/// large ones, until they are more than is allowed.
fn softened(deviation: f64, spread: f64) -> f64 {
    let against = deviation / LARGE;
    let square = 2.0 * ((1.0 + against * against).sqrt() - 1.0);
    let too_much = (deviation.abs() - BARELY * spread).max(0.0);
    (square.sqrt() * LARGE + FORBIDDEN * too_much).copysign(deviation) / spread
}

pub(crate) fn phases(mode: Mode) -> Vec<PhaseShare> {
    let phase = |name: &str, share: f64| PhaseShare {
        name: name.to_owned(),
        core: Ratio::new(share),
        memory: Ratio::new(share),
        switching: Ratio::new(1.0),
    };
    match mode {
        Mode::Infer => vec![phase("forward", 1.0)],
        Mode::Train => vec![phase("forward", 0.333), phase("backward", 0.667)],
    }
}

/// A run like that of a row, without noise: time of an iteration and mean power.
pub fn simulate(
    request: &FitRequest,
    profile: &WorkloadProfile,
    row: &MeasuredRow,
) -> Result<(Seconds, Watts), FitError> {
    let refused = |reason: String| FitError::Row {
        batch: row.batch,
        reason,
    };
    let workload = Workload {
        name: request.network.clone(),
        profile: profile.clone(),
    };
    let gpus = vec![(request.gpu_name.clone(), request.gpu.clone())];
    let mut job = SimulatedJob::from_profiles(gpus, None, workload)
        .map_err(|problem| refused(problem.to_string()))?;
    job.items = row.batch.saturating_mul(row.iterations);
    let configuration = Configuration::on(1)
        .with_settings(row.settings)
        .with_batch(row.batch);
    match job.run(&configuration, None) {
        Ok(RunEnding::Done(run)) => {
            let energy = run.energies.job_gpus.map(|energy| energy.value / run.time);
            let power = energy.ok_or_else(|| refused("it came to no energy".to_owned()))?;
            Ok((run.time / row.iterations as f64, power))
        }
        Ok(RunEnding::Failed(failure)) => Err(refused(failure.reason)),
        Err(problem) => Err(refused(problem.to_string())),
    }
}
