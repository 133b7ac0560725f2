//! Random mixes of GPUs and programs, and what each program makes of every power cap.

use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim::{GpuProfile, Mode, Variant};
use sweetspot_stats::Seed;
use sweetspot_virtual_time::budget::{BudgetedGpu, SimulatedProgram};

use crate::GPUS;

/// The steps of the tables and of the offline optimum, in watts.
pub const STEP: f64 = 5.0;
/// The share of GPUs without a program.
const IDLE_SHARE: f64 = 0.15;
/// The programs of the mixes; those that do not run on a GPU are drawn again.
const NETWORKS: [&str; 14] = [
    "alexnet",
    "caffenet",
    "vgg16",
    "vgg19",
    "googlenet",
    "inception_v3",
    "inception_v4",
    "resnet50",
    "resnet101",
    "resnet152",
    "mobilenet_v1",
    "mobilenet_v2",
    "xception",
    "nasnet_mobile",
];

/// What a GPU does in the long run at a power cap.
#[derive(Clone, Copy)]
pub struct CapPoint {
    pub cap: f64,
    /// Throughput relative to that at the default cap; 0 without a program.
    pub share: f64,
    pub power: f64,
}

/// The programs of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    /// Every program uses one GPU and reports its progress.
    Reporting,
    /// A third of the programs report nothing, and a third of the GPUs work with an equal one on the same job.
    Varied,
}

/// A mix of GPUs and programs.
pub fn draw(profiles: &[(String, GpuProfile)], seed: Seed, programs: Programs) -> Vec<MixGpu> {
    let mut mix: Vec<MixGpu> = Vec::new();
    while mix.len() < GPUS {
        let seed = seed.number(mix.len() as u64);
        let mut gpu = MixGpu::draw(profiles, seed);
        if programs == Programs::Varied {
            let is_silent = seed.label("silent").uniform() < 1.0 / 3.0;
            gpu.set_reports(!is_silent);
            let is_pair = seed.label("pair").uniform() < 0.2 && gpu.program.is_some();
            if is_pair && mix.len() + 1 < GPUS {
                gpu.is_pair = true;
                mix.push(gpu.clone());
            }
        }
        mix.push(gpu);
    }
    mix
}

/// The GPUs of each job on several GPUs: two neighbours.
pub fn jobs(mix: &[MixGpu]) -> Vec<Vec<usize>> {
    let mut jobs = Vec::new();
    let mut number = 0;
    while number < mix.len() {
        if mix[number].is_pair {
            jobs.push(vec![number, number + 1]);
            number += 1;
        }
        number += 1;
    }
    jobs
}

/// A GPU of a mix, with its program and what that does at every cap.
#[derive(Clone)]
pub struct MixGpu {
    /// Whether the GPU works with a neighbour on one job.
    pub is_pair: bool,
    pub name: String,
    pub network: &'static str,
    pub gpu: BudgetedGpu,
    pub program: Option<SimulatedProgram>,
    /// The lowest and the default cap, in watts: no policy gives a GPU less or more.
    pub caps: (f64, f64),
    /// One entry for every step from the lowest cap.
    pub table: Vec<CapPoint>,
    /// Items per second at the default cap.
    pub full: f64,
}

impl MixGpu {
    /// Draws a GPU and a program.
    pub fn draw(profiles: &[(String, GpuProfile)], seed: Seed) -> Self {
        let pick = |seed: Seed, count: usize| (seed.uniform() * count as f64) as usize;
        let profile = &profiles[pick(seed.label("gpu"), profiles.len())];
        let is_idle = seed.label("idle").uniform() < IDLE_SHARE;
        let (mut program, mut network) = (None, "idle");
        let mut tries = 0;
        while program.is_none() && !is_idle {
            let draw = seed.label("network").number(tries);
            let mode = match draw.label("mode").uniform() < 0.5 {
                true => Mode::Train,
                false => Mode::Infer,
            };
            let variant = Variant {
                mode: Some(mode),
                ..Variant::default()
            };
            network = NETWORKS[pick(draw, NETWORKS.len())];
            program = SimulatedProgram::new(profile, network, &variant, draw).ok();
            tries += 1;
        }
        let mut gpu = BudgetedGpu::from_profile(profile.1.clone());
        gpu.run(program.clone());
        let caps = (profile.1.cap.min.get(), profile.1.cap.default.get());
        let full = measure(&gpu, caps.1).0;
        let steps = ((caps.1 - caps.0) / STEP) as usize;
        let points = (0..=steps).map(|step| {
            let cap = caps.0 + step as f64 * STEP;
            let (rate, power) = measure(&gpu, cap);
            let share = rate / full.max(1e-9);
            CapPoint { cap, share, power }
        });
        Self {
            is_pair: false,
            name: profile.0.clone(),
            network,
            table: points.collect(),
            gpu,
            program,
            caps,
            full,
        }
    }

    /// Sets whether the program reports its progress.
    fn set_reports(&mut self, reports: bool) {
        if let Some(program) = &mut self.program {
            program.reports = reports;
        }
        self.gpu.run(self.program.clone());
    }

    /// The power at a cap.
    pub fn power(&self, cap: f64) -> f64 {
        let step = (cap.clamp(self.caps.0, self.caps.1) - self.caps.0) / STEP;
        self.table[(step as usize).min(self.table.len() - 1)].power
    }

    /// The cap at which the GPU draws least with its program; the lowest one if several do.
    pub fn least_cap(&self) -> f64 {
        let points = self.table.iter();
        let least = points.min_by(|a, b| a.power.total_cmp(&b.power));
        least.map_or(self.caps.0, |point| point.cap)
    }
}

/// Items per second and power after a while at a fixed cap.
fn measure(gpu: &BudgetedGpu, cap: f64) -> (f64, f64) {
    let mut gpu = gpu.clone();
    gpu.set_cap(Watts::new(cap));
    gpu.advance(Seconds::new(30.0));
    let (before, time) = (gpu.items(), Seconds::new(20.0));
    let power = gpu.advance(time).power;
    ((gpu.items() - before) / time.get(), power)
}
