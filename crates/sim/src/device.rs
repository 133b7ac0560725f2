//! A simulated GPU as a device like any other.

use std::sync::Arc;

use sweetspot_device::{
    Actuator, Amount, Applied, AppliedKnob, Clock, Descriptor, Device, DeviceId, DeviceKind,
    Domain, Knob, KnobDescriptor, KnobRange, Moment, ReadError, Reading, SensorKind, Settings,
    WriteError,
};
use sweetspot_quantity::{Joules, Megahertz, Quantity, Ratio, Seconds, Watts};
use sweetspot_stats::Seed;

use crate::job::Job;
use crate::physics::{Chip, Limits, Load, State};
use crate::profile::{Fault, GpuProfile};
use crate::run::{Outcome, Sink, run};
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
    /// At rest and at its default settings; `name` and `index` make its UUID.
    pub fn new(name: &str, index: u64, profile: GpuProfile, clock: Arc<dyn Clock>) -> Self {
        let chip = Chip::new(&profile);
        let now = clock.now();
        Self {
            descriptor: describe(name, index, &profile),
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
        self.caught_up = self.caught_up + outcome.time;
        self.counter.shown = self.state.energy();
        self.counter.ticks = ticks(self.caught_up - self.made);
        if self.lost_at(self.caught_up) {
            return Err(ReadError::Lost);
        }
        Ok(outcome)
    }

    fn limits(&self) -> Limits {
        let cap = self.settings.power_cap.unwrap_or(self.profile.cap.default);
        self.chip
            .limits(cap, self.settings.core_clock, self.settings.memory_clock)
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
        let lost = |fault: &Fault| matches!(fault, Fault::Lost { after } if age >= *after);
        self.profile.faults.iter().any(lost)
    }

    fn is_stuck(&self, sensor: SensorKind) -> bool {
        let age = self.caught_up - self.made;
        self.profile.faults.iter().any(|fault| {
            matches!(fault, Fault::StuckSensor { sensor: stuck, after } if *stuck == sensor && age >= *after)
        })
    }

    fn counted(&self) -> Joules {
        let shown = self.counter.shown.get();
        let wrapped = self.profile.faults.iter().fold(shown, |value, fault| {
            if let Fault::CounterWraps { at } = fault {
                value % at.get()
            } else {
                value
            }
        });
        Joules::new((wrapped * 1e3).floor() / 1e3)
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
        let denied =
            |fault: &Fault| matches!(fault, Fault::WriteDenied { knob: denied } if *denied == knob);
        if self.profile.faults.iter().any(denied) {
            return Err(WriteError::Denied(knob));
        }
        if !domain.contains(asked) {
            return Err(WriteError::OutOfRange {
                knob,
                asked: asked.to_string(),
                offered: domain.offered_near(asked),
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
}

impl Actuator for SimulatedGpu {
    fn apply(&mut self, settings: &Settings) -> Result<Applied, WriteError> {
        self.catch_up();
        if self.lost_at(self.caught_up) {
            return Err(WriteError::Lost);
        }
        let cores = Domain::Levels(self.profile.core.levels());
        let memories = Domain::Levels(self.profile.memory.clocks.clone());
        let applied = Applied {
            power_cap: self.allowed(
                Knob::PowerCap,
                settings.power_cap,
                &self.profile.cap.domain(),
            )?,
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

    fn reset(&mut self) -> Result<(), WriteError> {
        self.catch_up();
        if self.lost_at(self.caught_up) {
            return Err(WriteError::Lost);
        }
        self.settings = Settings::default();
        Ok(())
    }
}

fn ticks(age: Seconds) -> u64 {
    (age.get() / COUNTER_PERIOD) as u64
}

fn describe(name: &str, index: u64, profile: &GpuProfile) -> Descriptor {
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
        id: uuid(name, index),
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

/// A UUID in NVIDIA's form that is the same on every machine.
fn uuid(name: &str, index: u64) -> DeviceId {
    let seed = Seed::new(0).label(name).number(index);
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
