//! A simulated GPU under a load in virtual time, read through the same recorder as a real one.

// Each test file uses a part of it.
#![allow(dead_code, missing_docs, unused_imports)]

mod device;
mod load;
mod scores;

use std::sync::Arc;

use sweetspot_device::{
    Clock, Descriptor, Device, DrainedSamples, Moment, SensorKind, VirtualClock,
};
use sweetspot_measure::math::{Span, Trace};
use sweetspot_measure::{MethodChoice, Recorder, perform_task};
use sweetspot_quantity::{Bytes, Ratio, Seconds, Watts};
use sweetspot_sim::{Fault, Generation, Load, Phase, find_gpu};
use sweetspot_sim_host::{JobId, PowerSensor, VirtualGpu};
use sweetspot_stats::Seed;

use self::device::describe;
pub use self::load::{LOAD_SHAPES, LoadShape, LoadStep};
pub use self::scores::{marks, score_single_windows, score_windows};

pub const GENERATIONS: [Generation; 8] = [
    Generation::Maxwell,
    Generation::Pascal,
    Generation::Volta,
    Generation::Turing,
    Generation::AmpereGa100,
    Generation::Ampere,
    Generation::Ada,
    Generation::Hopper,
];

/// The sensors that the GPU has besides its generation's power sensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensors {
    pub buffer: bool,
    pub counter: bool,
}

pub const COUNTER_AND_BUFFER: Sensors = Sensors {
    buffer: true,
    counter: true,
};

/// A simulated GPU under a load, in virtual time.
pub struct SimulatedGpu {
    gpu: VirtualGpu,
    clock: Arc<VirtualClock>,
    descriptor: Descriptor,
    cap: Watts,
    load_steps: Box<dyn FnMut() -> LoadStep>,
    job: Option<JobId>,
    phase_name: &'static str,
    phase_begin: (Moment, f64),
    change_at: Moment,
    marks: Vec<Moment>,
    pub true_energies: Vec<f64>,
    pub spans: Vec<(&'static str, Span)>,
    /// The name, seconds and joules of each phase.
    pub energy_by_phase: Vec<(&'static str, f64, f64)>,
    drained: u64,
    reads: u64,
    seed: Seed,
    /// Whether marks that follow each other closely share reads of the counter.
    pub shares_reads: bool,
}

impl SimulatedGpu {
    pub fn new(
        generation: Generation,
        sensors: Sensors,
        load_steps: Box<dyn FnMut() -> LoadStep>,
        faults: Vec<Fault>,
        seed: Seed,
    ) -> Self {
        let (_, mut profile) = find_gpu("v100").unwrap();
        profile.sensors = generation;
        profile.faults = faults;
        let clock = Arc::new(VirtualClock::default());
        // The sensors' updates have a random phase against the load's.
        clock.advance(Seconds::new(5.0));
        let gpu = VirtualGpu::new(profile.clone(), clock.now(), seed.label("gpu"));
        let phase = 0.2 * seed.label("phase").uniform();
        let sensor = PowerSensor::of(generation);
        let descriptor = describe(generation, sensors, &sensor, &profile.name);
        let start = clock.now() + Seconds::new(phase);
        Self {
            gpu,
            descriptor,
            cap: profile.cap.default,
            load_steps,
            job: None,
            phase_name: "",
            phase_begin: (start, 0.0),
            change_at: start,
            clock,
            marks: Vec::new(),
            true_energies: Vec::new(),
            spans: Vec::new(),
            energy_by_phase: Vec::new(),
            drained: 0,
            reads: 0,
            seed,
            shares_reads: false,
        }
    }

    /// Applies the changes of load up to now and notes the true energy at each mark.
    fn advance_load(&mut self) {
        let now = self.clock.now();
        loop {
            let mark = self.marks.get(self.true_energies.len()).copied();
            let next = mark.map_or(self.change_at, |mark| mark.min(self.change_at));
            if next > now {
                break;
            }
            let mut live = self.gpu.advance(next);
            if let Some(job) = self.job {
                live.poll_job(job).unwrap();
            }
            let energy = live.energy().get();
            if mark == Some(next) {
                self.true_energies.push(energy);
                continue;
            }
            if !self.phase_name.is_empty() {
                let span = Span::new(self.phase_begin.0, next);
                self.spans.push((self.phase_name, span));
                let (time, drawn) = (span.length().get(), energy - self.phase_begin.1);
                match self
                    .energy_by_phase
                    .iter_mut()
                    .find(|row| row.0 == self.phase_name)
                {
                    Some(row) => (row.1, row.2) = (row.1 + time, row.2 + drawn),
                    None => self.energy_by_phase.push((self.phase_name, time, drawn)),
                }
            }
            let (name, length, switching) = (self.load_steps)();
            if switching != Some(-1.0) {
                let job = *self.job.get_or_insert_with(|| {
                    live.add_job(std::process::id(), Bytes::new(1e9)).unwrap()
                });
                live.grant_iterations(job, &[phase(switching)], 1).unwrap();
            }
            self.phase_name = name;
            self.phase_begin = (next, energy);
            self.change_at = next + Seconds::new(length);
        }
        let mut live = self.gpu.advance(now);
        if let Some(job) = self.job {
            live.poll_job(job).unwrap();
        }
    }

    /// Records for `length` seconds, with marks after the given times.
    pub fn record(&mut self, choice: MethodChoice, length: f64, marks: &[f64]) -> GpuRecording {
        let clock = Arc::clone(&self.clock);
        let start = clock.now();
        self.marks = marks
            .iter()
            .map(|after| start + Seconds::new(*after))
            .collect();
        let end = start + Seconds::new(length);
        let cap = Some(self.cap);
        let mut recorder = Recorder::new(&self.descriptor, cap, choice, start);
        let mut marked = 0;
        loop {
            let mark = self.marks.get(marked).copied();
            let due = recorder.next();
            let next = [due.map(|(at, _)| at), mark, Some(end)];
            let next = next.into_iter().flatten().min().unwrap();
            if next > clock.now() {
                clock.advance(next - clock.now());
            }
            if clock.now() >= end {
                break;
            }
            if mark.is_some_and(|mark| mark <= clock.now()) {
                match self.shares_reads {
                    true => recorder.mark_sharing_reads(self.marks[marked]),
                    false => recorder.mark(self.marks[marked]),
                }
                marked += 1;
                continue;
            }
            if let Some((_, task)) = due.filter(|(at, _)| *at <= clock.now()) {
                perform_task(&mut recorder, task, self, clock.as_ref());
            }
        }
        let mut last = Ok(DrainedSamples::default());
        if self.descriptor.sensor(SensorKind::BufferedPower).is_some() {
            last = self.drain();
        }
        self.advance_load();
        recorder.record_drain(clock.now(), last);
        let (trace, _) = recorder.snapshot(clock.now());
        GpuRecording {
            trace,
            marks: self.marks.clone(),
            true_energies: self.true_energies.clone(),
        }
    }
}

/// The readings of a simulated GPU, and the true energy at each mark.
pub struct GpuRecording {
    pub trace: Trace,
    pub marks: Vec<Moment>,
    pub true_energies: Vec<f64>,
}

fn phase(switching: Option<f64>) -> Phase {
    let load = match switching {
        Some(switching) => Load::Kernels {
            launch: Seconds::ZERO,
            core: Seconds::new(1e6),
            memory: Seconds::ZERO,
            switching: Ratio::new(switching),
            memory_activity: Ratio::new(1.0),
        },
        None => Load::Waiting {
            host: Seconds::new(1e6),
        },
    };
    Phase { name: 0, load }
}
