//! A simulated GPU as a device like any other.

use std::sync::Arc;

use sweetspot_device::{
    Actuator, Amount, AppliedKnob, AppliedSettings, Clock, Descriptor, Device, DeviceId,
    DeviceKind, Domain, Knob, KnobDescriptor, KnobRange, Moment, PowerLimits, ReadError, Reading,
    SensorKind, Settings, Shortfall, WriteError,
};
use sweetspot_quantity::{Joules, Megahertz, Quantity, Ratio, Seconds, Watts};
use sweetspot_stats::Seed;

use crate::job::{Exchange, Job};
use crate::physics::{Chip, Limits, Load, State};
use crate::profile::GpuProfile;
use crate::run::{Outcome, Rank, Sink, Together, run, run_together};
use crate::sensors::COUNTER_PERIOD;

/// A GPU that exists only as its physics, on any clock: it catches up with the clock whenever it is
/// asked, under the load it was last given.
pub struct SimulatedGpu {
    descriptor: Descriptor,
    profile: GpuProfile,
    chip: Chip,
    clock: Arc<dyn Clock>,
    made: Moment,
    caught_up: Moment,
    state: State,
    settings: Settings,
    load: Load,
    counter: Counter,
    stuck: Vec<Reading>,
}

/// The energy counter shows what had been drawn at its last tick.
struct Counter {
    shown: Joules,
    ticks: u64,
}

impl SimulatedGpu {
    /// At rest and at its default settings; the product's name and `index` make its UUID.
    pub fn new(index: u64, profile: GpuProfile, clock: Arc<dyn Clock>) -> Self {
        let chip = Chip::new(&profile);
        let now = clock.now();
        Self {
            descriptor: describe(index, &profile),
            state: chip.rest(),
            chip,
            made: now,
            caught_up: now,
            clock,
            settings: Settings::default(),
            load: Load::None,
            counter: Counter {
                shown: Joules::ZERO,
                ticks: 0,
            },
            stuck: Vec::new(),
            profile,
        }
    }

    /// The profile it was made from.
    pub fn profile(&self) -> &GpuProfile {
        &self.profile
    }

    /// From now on it is under this load, repeated without end.
    pub fn occupy(&mut self, load: Load) {
        self.catch_up();
        self.load = load;
    }

    /// Runs a job from start to end and returns what it came to; the caller lets its clock pass by
    /// the job's time. Fails if the GPU is lost before the end.
    pub fn run(&mut self, job: &Job, sink: &mut impl Sink) -> Result<Outcome, ReadError> {
        self.catch_up();
        let limits = self.limits();
        let outcome = run(&self.chip, &mut self.state, &limits, job, sink);
        self.ran_for(outcome.time)?;
        Ok(outcome)
    }

    /// Runs the parts of a job on several GPUs, one each, as [`SimulatedGpu::run`] does on one; `exchange` is
    /// what they need after each iteration to agree. At least one GPU.
    pub fn run_together(
        gpus: &mut [Self],
        jobs: &[Job],
        exchange: Exchange,
        sink: &mut (impl Sink + ?Sized),
    ) -> Result<Together, ReadError> {
        let limits: Vec<Limits> = gpus
            .iter_mut()
            .map(|gpu| {
                gpu.catch_up();
                gpu.limits()
            })
            .collect();
        let mut ranks: Vec<Rank<'_>> = gpus
            .iter_mut()
            .zip(jobs)
            .zip(&limits)
            .map(|((gpu, job), limits)| Rank {
                chip: &gpu.chip,
                state: &mut gpu.state,
                limits,
                job,
            })
            .collect();
        let together = run_together(&mut ranks, exchange, sink);
        for gpu in gpus {
            gpu.ran_for(together.time)?;
        }
        Ok(together)
    }

    fn ran_for(&mut self, time: Seconds) -> Result<(), ReadError> {
        self.caught_up = self.caught_up + time;
        self.counter.shown = self.state.energy();
        self.counter.ticks = ticks(self.caught_up - self.made);
        if self.lost_at(self.caught_up) {
            return Err(ReadError::Lost);
        }
        Ok(())
    }

    fn limits(&self) -> Limits {
        let cap = self.settings.power_cap.unwrap_or(self.profile.cap.default);
        self.chip.limits(
            self.profile.enforced(cap),
            self.settings.core_clock,
            self.settings.memory_clock,
        )
    }

    fn catch_up(&mut self) {
        let now = self.clock.now();
        let limits = self.limits();
        while now > self.caught_up {
            let age = self.caught_up - self.made;
            let next_tick = Seconds::new((self.counter.ticks + 1) as f64 * COUNTER_PERIOD) - age;
            let whole = Ratio::new(1.0);
            let at_most = (now - self.caught_up).min(next_tick);
            let step = self
                .chip
                .step(&mut self.state, &limits, &self.load, whole, at_most);
            self.caught_up = if step.time == at_most && at_most == now - self.caught_up {
                now
            } else {
                self.caught_up + step.time.max(Seconds::new(1e-9))
            };
            if step.time >= next_tick {
                self.counter.ticks += 1;
                self.counter.shown = self.state.energy();
            }
        }
    }

    fn lost_at(&self, moment: Moment) -> bool {
        let age = moment - self.made;
        self.profile.faults.iter().any(|fault| fault.is_lost(age))
    }

    fn is_stuck(&self, sensor: SensorKind) -> bool {
        let age = self.caught_up - self.made;
        let mut faults = self.profile.faults.iter();
        faults.any(|fault| fault.sticks(sensor, age))
    }

    fn counted(&self) -> Joules {
        let faults = self.profile.faults.iter();
        let shown = faults.fold(self.counter.shown, |counted, fault| fault.wrapped(counted));
        Joules::new((shown.get() * 1e3).floor() / 1e3)
    }

    fn core_clock(&self) -> Megahertz {
        let exact = self.profile.core.default * self.state.clock();
        let levels = self.profile.core.levels();
        let below = levels.iter().rev().find(|level| **level <= exact);
        below.copied().unwrap_or(self.profile.core.min)
    }

    fn amount(&self, sensor: SensorKind) -> Result<Amount, ReadError> {
        Ok(match sensor {
            SensorKind::EnergyCounter => Amount::Energy(self.counted()),
            SensorKind::InstantPower => Amount::Power(self.state.power()),
            SensorKind::Temperature => Amount::Temperature(self.state.temperature()),
            SensorKind::CoreClock => Amount::Frequency(self.core_clock()),
            SensorKind::MemoryClock => {
                let set = self.settings.memory_clock;
                Amount::Frequency(set.unwrap_or(self.profile.memory.default))
            }
            other => return Err(ReadError::Unsupported(other)),
        })
    }

    fn allowed<Q: Quantity + std::fmt::Display>(
        &self,
        knob: Knob,
        asked: Option<Q>,
        domain: &Domain<Q>,
    ) -> Result<Option<AppliedKnob<Q>>, WriteError> {
        let Some(asked) = asked else { return Ok(None) };
        if self.profile.faults.iter().any(|fault| fault.denies(knob)) {
            return Err(WriteError::Denied(knob));
        }
        if !domain.contains(asked) {
            return Err(WriteError::OutOfRange {
                knob,
                asked: asked.to_string(),
                offered: domain.describe_nearest(asked),
            });
        }
        Ok(Some(AppliedKnob {
            requested: asked,
            enforced: asked,
            shortfall: None,
        }))
    }
}

impl Device for SimulatedGpu {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        self.catch_up();
        if self.lost_at(self.caught_up) {
            return Err(ReadError::Lost);
        }
        if self.descriptor.sensor(sensor).is_none() {
            return Err(ReadError::Unsupported(sensor));
        }
        if self.is_stuck(sensor) {
            let held = self.stuck.iter().find(|reading| reading.source == sensor);
            if let Some(held) = held {
                return Ok(*held);
            }
        }
        let reading = Reading {
            source: sensor,
            at: self.caught_up,
            amount: self.amount(sensor)?,
        };
        self.stuck.retain(|held| held.source != sensor);
        self.stuck.push(reading);
        Ok(reading)
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        let default = self.profile.cap.default;
        let set = self.settings.power_cap.unwrap_or(default);
        Ok(PowerLimits {
            requested: set,
            enforced: self.profile.enforced(set),
            default,
        })
    }
}

impl Actuator for SimulatedGpu {
    fn apply(&mut self, settings: &Settings) -> Result<AppliedSettings, WriteError> {
        self.catch_up();
        if self.lost_at(self.caught_up) {
            return Err(WriteError::Lost);
        }
        let cores = Domain::Levels(self.profile.core.levels());
        let memories = Domain::Levels(self.profile.memory.clocks.clone());
        let mut cap = self.allowed(
            Knob::PowerCap,
            settings.power_cap,
            &self.profile.cap.domain(),
        )?;
        if let Some(cap) = &mut cap {
            cap.enforced = self.profile.enforced(cap.requested);
            cap.shortfall = (cap.enforced < cap.requested).then_some(Shortfall::BoardLimit);
        }
        let applied = AppliedSettings {
            power_cap: cap,
            core_clock: self.allowed(Knob::CoreClock, settings.core_clock, &cores)?,
            memory_clock: self.allowed(Knob::MemoryClock, settings.memory_clock, &memories)?,
        };
        self.settings = Settings {
            power_cap: settings.power_cap.or(self.settings.power_cap),
            core_clock: settings.core_clock.or(self.settings.core_clock),
            memory_clock: settings.memory_clock.or(self.settings.memory_clock),
        };
        Ok(applied)
    }

    fn reset(&mut self, knob: Knob) -> Result<(), WriteError> {
        self.catch_up();
        if self.lost_at(self.caught_up) {
            return Err(WriteError::Lost);
        }
        if self.profile.faults.iter().any(|fault| fault.denies(knob)) {
            return Err(WriteError::Denied(knob));
        }
        match knob {
            Knob::PowerCap => self.settings.power_cap = None,
            Knob::CoreClock => self.settings.core_clock = None,
            Knob::MemoryClock => self.settings.memory_clock = None,
        }
        Ok(())
    }
}

fn ticks(age: Seconds) -> u64 {
    (age.get() / COUNTER_PERIOD) as u64
}

fn describe(index: u64, profile: &GpuProfile) -> Descriptor {
    let knob = |domain, default: Megahertz| KnobRange {
        domain: Domain::Levels(domain),
        default,
        readable: false,
    };
    let cap: KnobRange<Watts> = KnobRange {
        domain: profile.cap.domain(),
        default: profile.cap.default,
        readable: true,
    };
    Descriptor {
        id: uuid(&profile.name, index),
        name: profile.name.clone(),
        kind: DeviceKind::Gpu,
        backend: "sim".to_owned(),
        parent: None,
        memory: Some(profile.memory.capacity),
        sensors: profile.sensors.sensors(),
        knobs: vec![
            KnobDescriptor::PowerCap(cap),
            KnobDescriptor::CoreClock(knob(profile.core.levels(), profile.core.default)),
            KnobDescriptor::MemoryClock(knob(
                profile.memory.clocks.clone(),
                profile.memory.default,
            )),
        ],
    }
}

/// The UUID of a simulated GPU: in NVIDIA's form, and the same on every machine.
pub fn uuid(product: &str, index: u64) -> DeviceId {
    let seed = Seed::new(0).label(product).number(index);
    let (a, b) = (seed.number(0).get(), seed.number(1).get());
    DeviceId::new(format!(
        "GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xffff,
        b >> 48,
        b & 0xffff_ffff_ffff
    ))
}
