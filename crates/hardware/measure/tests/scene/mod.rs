//! A simulated GPU under a load in virtual time, read through the same recorder as a real one.

#![allow(dead_code, missing_docs)]

use std::sync::Arc;

use sweetspot_device::{
    Amount, Clock, Descriptor, Device, DeviceKind, Drained, Moment, PowerLimits, ReadError,
    Reading, Scope, SensorDescriptor, SensorKind, VirtualClock,
};
use sweetspot_measure::math::{Span, Trace};
use sweetspot_measure::{MethodChoice, Recorder, perform_task};
use sweetspot_quantity::{Bytes, Joules, Ratio, Seconds, Watts};
use sweetspot_sim::{Fault, Generation, Load, Phase, find_gpu, uuid};
use sweetspot_sim_host::{JobId, LoneGpu, PowerSensor};
use sweetspot_stats::Seed;

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

/// A stretch of a load: its name, its length, and its switching activity; nothing is waiting.
pub type Stretch = (&'static str, f64, Option<f64>);

/// What a GPU is made to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Constant,
    /// On and off for half a period each, seconds.
    Square(f64),
    /// Forward, backward, update and a wait for data; the seconds of an iteration.
    Training(f64),
    /// Nobody there, then a constant load after so many seconds.
    FromIdle(f64),
}

pub const SHAPES: [Shape; 8] = [
    Shape::Constant,
    Shape::Square(0.05),
    Shape::Square(0.1),
    Shape::Square(0.2),
    Shape::Square(0.5),
    Shape::Square(2.0),
    Shape::Training(0.06),
    Shape::FromIdle(3.2),
];

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&match self {
            Self::Constant => "constant".to_owned(),
            Self::Square(period) => format!("square {} ms", period * 1e3),
            Self::Training(iteration) => format!("training {} ms", iteration * 1e3),
            Self::FromIdle(_) => "from idle".to_owned(),
        })
    }
}

impl Shape {
    pub fn stretches(self, seed: Seed) -> Box<dyn FnMut() -> Stretch> {
        let mut step = 0;
        Box::new(move || {
            step += 1;
            let draw = seed.number(step);
            match self {
                Self::Constant => ("work", 10.0, Some(0.8)),
                Self::Square(period) if step % 2 == 1 => ("on", period / 2.0, Some(0.8)),
                Self::Square(period) => ("off", period / 2.0, None),
                Self::Training(iteration) => {
                    let long = iteration * (1.0 + 0.15 * draw.normal()).clamp(0.5, 1.6);
                    match step % 4 {
                        1 => ("forward", 0.28 * long, Some(0.7)),
                        2 => ("backward", 0.5 * long, Some(0.9)),
                        3 => ("update", 0.1 * long, Some(0.25)),
                        _ => ("data", 0.12 * long, None),
                    }
                }
                Self::FromIdle(until) if step == 1 => ("idle", until, Some(-1.0)),
                Self::FromIdle(_) => ("work", 10.0, Some(0.8)),
            }
        })
    }
}

/// What the device has besides its generation's power sensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Has {
    pub buffer: bool,
    pub counter: bool,
}

pub const BOTH: Has = Has {
    buffer: true,
    counter: true,
};

pub struct Scene {
    gpu: LoneGpu,
    clock: Arc<VirtualClock>,
    descriptor: Descriptor,
    averaged: bool,
    cap: Watts,
    stretches: Box<dyn FnMut() -> Stretch>,
    job: Option<JobId>,
    now_name: &'static str,
    begun: (Moment, f64),
    change_at: Moment,
    marks: Vec<Moment>,
    pub truths: Vec<f64>,
    pub spans: Vec<(&'static str, Span)>,
    pub by_name: Vec<(&'static str, f64, f64)>,
    drained: u64,
    reads: u64,
    seed: Seed,
}

impl Scene {
    pub fn new(
        generation: Generation,
        has: Has,
        stretches: Box<dyn FnMut() -> Stretch>,
        faults: Vec<Fault>,
        seed: Seed,
    ) -> Self {
        let (_, mut profile) = find_gpu("v100").unwrap();
        profile.sensors = generation;
        profile.faults = faults;
        let clock = Arc::new(VirtualClock::default());
        // The sensors' beat has any phase against the load's.
        clock.advance(Seconds::new(5.0));
        let gpu = LoneGpu::new(profile.clone(), clock.now(), seed.label("gpu"));
        let phase = 0.2 * seed.label("phase").uniform();
        let sensor = PowerSensor::of(generation);
        let descriptor = describe(generation, has, &sensor, &profile.name);
        let start = clock.now() + Seconds::new(phase);
        Self {
            gpu,
            descriptor,
            averaged: sensor.averaged,
            cap: profile.cap.default,
            stretches,
            job: None,
            now_name: "",
            begun: (start, 0.0),
            change_at: start,
            clock,
            marks: Vec::new(),
            truths: Vec::new(),
            spans: Vec::new(),
            by_name: Vec::new(),
            drained: 0,
            reads: 0,
            seed,
        }
    }

    fn catch_up(&mut self) {
        let now = self.clock.now();
        loop {
            let mark = self.marks.get(self.truths.len()).copied();
            let next = mark.map_or(self.change_at, |mark| mark.min(self.change_at));
            if next > now {
                break;
            }
            let mut live = self.gpu.advance(next);
            if let Some(job) = self.job {
                live.show(job).unwrap();
            }
            let energy = live.energy().get();
            if mark == Some(next) {
                self.truths.push(energy);
                continue;
            }
            if !self.now_name.is_empty() {
                let span = Span::new(self.begun.0, next);
                self.spans.push((self.now_name, span));
                let (time, drawn) = (span.length().get(), energy - self.begun.1);
                match self.by_name.iter_mut().find(|row| row.0 == self.now_name) {
                    Some(row) => (row.1, row.2) = (row.1 + time, row.2 + drawn),
                    None => self.by_name.push((self.now_name, time, drawn)),
                }
            }
            let (name, length, switching) = (self.stretches)();
            if switching != Some(-1.0) {
                let job = *self
                    .job
                    .get_or_insert_with(|| live.join(std::process::id(), Bytes::new(1e9)).unwrap());
                live.grant(job, &[phase(switching)], 1).unwrap();
            }
            self.now_name = name;
            self.begun = (next, energy);
            self.change_at = next + Seconds::new(length);
        }
        let mut live = self.gpu.advance(now);
        if let Some(job) = self.job {
            live.show(job).unwrap();
        }
    }

    /// Reads for so many seconds, with marks after the times given, and gives what was recorded and the true
    /// energy at each mark.
    pub fn record(&mut self, choice: MethodChoice, length: f64, marks: &[f64]) -> Recording {
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
                recorder.mark(self.marks[marked]);
                marked += 1;
                continue;
            }
            if let Some((_, task)) = due.filter(|(at, _)| *at <= clock.now()) {
                perform_task(&mut recorder, task, self, clock.as_ref());
            }
        }
        let mut last = Ok(Drained::default());
        if self.descriptor.sensor(SensorKind::BufferedPower).is_some() {
            last = self.drain();
        }
        self.catch_up();
        recorder.record_drain(clock.now(), last);
        let (trace, _) = recorder.snapshot(clock.now());
        Recording {
            trace,
            marks: self.marks.clone(),
            truths: self.truths.clone(),
        }
    }
}

pub struct Recording {
    pub trace: Trace,
    pub marks: Vec<Moment>,
    pub truths: Vec<f64>,
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

fn describe(generation: Generation, has: Has, sensor: &PowerSensor, name: &str) -> Descriptor {
    let mut sensors = Vec::new();
    let mut add = |kind, period: u64, window: u64| {
        let seconds = |nanos: u64| (nanos > 0).then(|| Seconds::new(nanos as f64 * 1e-9));
        sensors.push(SensorDescriptor {
            kind,
            scope: Scope::Device,
            source: "scene".to_owned(),
            update_period: seconds(period),
            window: seconds(window),
        });
    };
    add(SensorKind::InstantPower, sensor.period, sensor.window);
    if sensor.averaged {
        add(SensorKind::AveragePower, 100_000_000, 1_000_000_000);
    }
    if has.counter && generation.has_energy_counter() {
        add(SensorKind::EnergyCounter, 0, 0);
    }
    if has.buffer {
        add(SensorKind::BufferedPower, 0, 0);
    }
    Descriptor {
        id: uuid(name, 0),
        name: name.to_owned(),
        kind: DeviceKind::Gpu,
        backend: "scene".to_owned(),
        parent: None,
        memory: None,
        sensors,
        knobs: Vec::new(),
    }
}

impl Device for Scene {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        self.reads += 1;
        // Mostly 2.8 ms, now and then much more (H200).
        let draw = self.seed.label("read").number(self.reads).uniform();
        let slow = 0.0024 + 0.0004 / (1.0 - 0.97 * draw);
        if sensor == SensorKind::EnergyCounter {
            self.clock.advance(Seconds::new(0.5 * slow));
        }
        self.catch_up();
        let at = self.clock.now();
        let live = self.gpu.advance(at);
        if live.is_lost() {
            return Err(ReadError::Lost);
        }
        let milli = |value: f64| (value * 1e3).floor() / 1e3;
        let amount = match sensor {
            SensorKind::EnergyCounter => {
                let counter = live.counter().ok_or(ReadError::Unsupported(sensor))?;
                Amount::Energy(Joules::new(milli(counter.get())))
            }
            SensorKind::InstantPower => {
                Amount::Power(Watts::new(milli(live.instant_power().get())))
            }
            SensorKind::AveragePower => {
                Amount::Power(Watts::new(milli(live.average_power().get())))
            }
            other => return Err(ReadError::Unsupported(other)),
        };
        if sensor == SensorKind::EnergyCounter {
            self.clock.advance(Seconds::new(0.5 * slow));
            self.catch_up();
        }
        Ok(Reading {
            source: sensor,
            at,
            amount,
        })
    }

    fn drain(&mut self) -> Result<Drained, ReadError> {
        self.catch_up();
        let live = self.gpu.advance(self.clock.now());
        if live.is_lost() {
            return Err(ReadError::Lost);
        }
        let fresh: Vec<_> = live
            .samples()
            .into_iter()
            .filter(|sample| sample.at > self.drained)
            .collect();
        self.drained = fresh.last().map_or(self.drained, |sample| sample.at);
        let readings = fresh
            .into_iter()
            .map(|sample| Reading {
                source: SensorKind::BufferedPower,
                // The driver stamps microseconds and shows milliwatts.
                at: Moment::from_nanos(sample.at / 1000 * 1000),
                amount: Amount::Power(Watts::new((sample.watts * 1e3).round() / 1e3)),
            })
            .collect();
        Ok(Drained {
            readings,
            clock_stepped: false,
        })
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        Ok(PowerLimits {
            requested: self.cap,
            enforced: self.cap,
            default: self.cap,
        })
    }
}

/// Marks about `apart` seconds from each other, for this long, at any phase.
pub fn marks(seed: Seed, apart: f64, length: f64) -> Vec<f64> {
    let mut marks = Vec::new();
    let mut at = 2.0;
    while at < length - 2.0 {
        at += apart * (0.99 + 0.02 * seed.number(marks.len() as u64).uniform());
        marks.push(at);
    }
    marks
}

/// Errors and widths of one combination.
#[derive(Clone, Debug, Default)]
pub struct Score {
    pub errors: Vec<f64>,
    pub halves: Vec<f64>,
    pub held: usize,
}

impl Score {
    pub fn add(&mut self, value: f64, interval: (f64, f64), truth: f64) {
        self.errors.push(value / truth - 1.0);
        self.halves.push(0.5 * (interval.1 - interval.0) / truth);
        self.held += usize::from(interval.0 <= truth && truth <= interval.1);
    }

    pub fn count(&self) -> usize {
        self.errors.len()
    }

    pub fn coverage(&self) -> f64 {
        self.held as f64 / self.count().max(1) as f64
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

    pub fn median_half(&self) -> f64 {
        let mut halves = self.halves.clone();
        halves.sort_by(f64::total_cmp);
        halves.get(halves.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Lengths of windows in marks that are half a second apart.
pub const LENGTHS: [(usize, f64); 4] = [(1, 0.5), (2, 1.0), (10, 5.0), (40, 20.0)];

/// Scores of every window length for one generation, load and method, over `seeds` traces of about a minute.
pub fn scores(
    generation: Generation,
    has: Has,
    shape: Shape,
    choice: MethodChoice,
    seeds: u64,
    length: f64,
) -> Vec<(f64, Score)> {
    let mut result: Vec<(f64, Score)> = LENGTHS
        .iter()
        .map(|(_, length)| (*length, Score::default()))
        .collect();
    for number in 0..seeds {
        let seed = Seed::new(number)
            .label(&format!("{generation:?}"))
            .label(&shape.to_string());
        let stretches = shape.stretches(seed.label("load"));
        let mut scene = Scene::new(generation, has, stretches, Vec::new(), seed);
        let length = if matches!(shape, Shape::FromIdle(_)) {
            26.0
        } else {
            length
        };
        let marks = marks(seed.label("marks"), 0.5, length);
        let recording = scene.record(choice, length, &marks);
        let estimator = sweetspot_measure::math::EnergyEstimator::new(&recording.trace);
        for (slot, (step, _)) in LENGTHS.iter().enumerate() {
            let stride = 1 + step / 20;
            for begin in (0..recording.marks.len()).step_by(stride) {
                let end = begin + step;
                if end >= recording.truths.len() {
                    break;
                }
                let window = Span::new(recording.marks[begin], recording.marks[end]);
                let truth = recording.truths[end] - recording.truths[begin];
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

/// Scores of one window in each of many short traces: nothing but its two marks makes the counter be read.
pub fn lone_scores(
    generation: Generation,
    has: Has,
    shape: Shape,
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
        let stretches = shape.stretches(seed.label("load"));
        let mut scene = Scene::new(generation, has, stretches, Vec::new(), seed);
        let begin = 2.0 + 0.5 * seed.label("begin").uniform();
        let end = begin + length * (0.95 + 0.1 * seed.label("end").uniform());
        let recording = scene.record(choice, end + 0.3, &[begin, end]);
        let window = Span::new(recording.marks[0], recording.marks[1]);
        let truth = recording.truths[1] - recording.truths[0];
        let estimator = sweetspot_measure::math::EnergyEstimator::new(&recording.trace);
        if let Ok(energy) = estimator.energy(&window, choice) {
            let interval = (energy.interval95.0.get(), energy.interval95.1.get());
            score.add(energy.value.get(), interval, truth);
        }
    }
    score
}
