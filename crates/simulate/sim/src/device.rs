//! A simulated GPU with the same interface as a real device.

use std::sync::Arc;

use sweetspot_device::{
    Actuator, Amount, AppliedKnob, AppliedSettings, Clock, Descriptor, Device, DeviceId,
    DeviceKind, Domain, Knob, KnobDescriptor, KnobRange, Moment, PowerLimits, ReadError, Reading,
    SensorKind, Settings, Shortfall, WriteError,
};
use sweetspot_quantity::{Joules, Megahertz, Quantity, Ratio, Seconds, Watts};
use sweetspot_stats::Seed;

use crate::job::{GradientExchange, Job};
use crate::physics::{Chip, Limits, Load, State};
use crate::placement::MAX_GPUS;
use crate::profile::GpuProfile;
use crate::run::{GroupOutcome, Outcome, Rank, StretchSink, run, run_together};
use crate::sensors::COUNTER_PERIOD;

/// A simulated GPU in the time of any [`Clock`]. Each use first advances its state to the clock's present
/// time, under the load that was set last.
pub struct SimulatedGpu {
    descriptor: Descriptor,
    profile: GpuProfile,
    chip: Chip,
    clock: Arc<dyn Clock>,
    created_at: Moment,
    updated_at: Moment,
    state: State,
    settings: Settings,
    load: Load,
    counter: Counter,
    last_readings: Vec<Reading>,
}

/// An energy counter, which shows the energy drawn up to its last update.
struct Counter {
    shown: Joules,
    ticks: u64,
}

impl SimulatedGpu {
    /// Creates an idle, cool GPU with default settings. Its UUID is computed from the product's name and `index`.
    pub fn new(index: u64, profile: GpuProfile, clock: Arc<dyn Clock>) -> Self {
        let chip = Chip::new(&profile);
        let now = clock.now();
        Self {
            descriptor: describe(index, &profile),
            state: chip.rest_state(),
            chip,
            created_at: now,
            updated_at: now,
            clock,
            settings: Settings::default(),
            load: Load::None,
            counter: Counter {
                shown: Joules::ZERO,
                ticks: 0,
            },
            last_readings: Vec::new(),
            profile,
        }
    }

    /// The profile of the GPU.
    pub fn profile(&self) -> &GpuProfile {
        &self.profile
    }

    /// Sets the load from now on; the load is repeated until another one is set.
    pub fn set_load(&mut self, load: Load) {
        self.update();
        self.load = load;
    }

    /// Runs a job from start to end; the caller then has to advance the clock by the job's time. Fails if the GPU stops
    /// responding before the end.
    pub fn run(&mut self, job: &Job, sink: &mut impl StretchSink) -> Result<Outcome, ReadError> {
        self.update();
        let limits = self.limits();
        let outcome = run(&self.chip, &mut self.state, &limits, job, sink);
        self.finish_run(outcome.time)?;
        Ok(outcome)
    }

    /// Runs a job on at least one GPU, one part of the job on each, as [`SimulatedGpu::run`] does on a single GPU.
    /// `exchange` is the gradient exchange after each iteration.
    pub fn run_together(
        gpus: &mut [Self],
        jobs: &[Job],
        exchange: GradientExchange,
        sink: &mut (impl StretchSink + ?Sized),
    ) -> Result<GroupOutcome, ReadError> {
        let limits: Vec<Limits> = gpus
            .iter_mut()
            .map(|gpu| {
                gpu.update();
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
        let outcome = run_together(&mut ranks, exchange, sink);
        for gpu in gpus {
            gpu.finish_run(outcome.time)?;
        }
        Ok(outcome)
    }

    /// Advances the GPU's time by the length of a run; an error if the GPU is lost by then.
    fn finish_run(&mut self, time: Seconds) -> Result<(), ReadError> {
        self.updated_at = self.updated_at + time;
        self.counter.shown = self.state.energy();
        self.counter.ticks = ticks(self.updated_at - self.created_at);
        if self.is_lost_at(self.updated_at) {
            return Err(ReadError::Lost);
        }
        Ok(())
    }

    /// The limits that the GPU's settings put on its power and clocks.
    fn limits(&self) -> Limits {
        let cap = self.settings.power_cap.unwrap_or(self.profile.cap.default);
        self.chip.limits(
            self.profile.enforced_cap(cap),
            self.settings.core_clock,
            self.settings.memory_clock,
        )
    }

    /// Advances the GPU to the clock's present time.
    fn update(&mut self) {
        let now = self.clock.now();
        let limits = self.limits();
        while now > self.updated_at {
            let age = self.updated_at - self.created_at;
            let next_tick = Seconds::new((self.counter.ticks + 1) as f64 * COUNTER_PERIOD) - age;
            let whole = Ratio::new(1.0);
            let at_most = (now - self.updated_at).min(next_tick);
            let step = self
                .chip
                .step(&mut self.state, &limits, &self.load, whole, at_most);
            self.updated_at = if step.time == at_most && at_most == now - self.updated_at {
                now
            } else {
                self.updated_at + step.time.max(Seconds::new(1e-9))
            };
            if step.time >= next_tick {
                self.counter.ticks += 1;
                self.counter.shown = self.state.energy();
            }
        }
    }

    /// Whether a simulated fault has made the GPU stop responding at this moment.
    fn is_lost_at(&self, moment: Moment) -> bool {
        let age = moment - self.created_at;
        self.profile.faults.iter().any(|fault| fault.is_lost(age))
    }

    /// Whether a simulated fault makes the sensor repeat its value now.
    fn is_stuck(&self, sensor: SensorKind) -> bool {
        let age = self.updated_at - self.created_at;
        let mut faults = self.profile.faults.iter();
        faults.any(|fault| fault.is_stuck(sensor, age))
    }

    /// The energy that the counter shows, after simulated faults.
    fn counter_reading(&self) -> Joules {
        let faults = self.profile.faults.iter();
        let shown = faults.fold(self.counter.shown, |counted, fault| {
            fault.wrap_counter(counted)
        });
        Joules::new((shown.get() * 1e3).floor() / 1e3)
    }

    /// The present core clock, rounded down to a supported one.
    fn core_clock(&self) -> Megahertz {
        let exact = self.profile.core.default * self.state.clock();
        let levels = self.profile.core.levels();
        let below = levels.iter().rev().find(|level| **level <= exact);
        below.copied().unwrap_or(self.profile.core.min)
    }

    /// The present value of a sensor.
    fn amount(&self, sensor: SensorKind) -> Result<Amount, ReadError> {
        Ok(match sensor {
            SensorKind::EnergyCounter => Amount::Energy(self.counter_reading()),
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

    /// Checks a requested setting; `None` if the knob is not to be set.
    fn check_knob<Q: Quantity + std::fmt::Display>(
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
        self.update();
        if self.is_lost_at(self.updated_at) {
            return Err(ReadError::Lost);
        }
        if self.descriptor.sensor(sensor).is_none() {
            return Err(ReadError::Unsupported(sensor));
        }
        if self.is_stuck(sensor) {
            let held = self
                .last_readings
                .iter()
                .find(|reading| reading.source == sensor);
            if let Some(held) = held {
                return Ok(*held);
            }
        }
        let reading = Reading {
            source: sensor,
            at: self.updated_at,
            amount: self.amount(sensor)?,
        };
        self.last_readings.retain(|held| held.source != sensor);
        self.last_readings.push(reading);
        Ok(reading)
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        let default = self.profile.cap.default;
        let set = self.settings.power_cap.unwrap_or(default);
        Ok(PowerLimits {
            requested: set,
            enforced: self.profile.enforced_cap(set),
            default,
        })
    }
}

impl Actuator for SimulatedGpu {
    fn apply(&mut self, settings: &Settings) -> Result<AppliedSettings, WriteError> {
        self.update();
        if self.is_lost_at(self.updated_at) {
            return Err(WriteError::Lost);
        }
        let cores = Domain::Levels(self.profile.core.levels());
        let memories = Domain::Levels(self.profile.memory.clocks.clone());
        let mut cap = self.check_knob(
            Knob::PowerCap,
            settings.power_cap,
            &self.profile.cap.domain(),
        )?;
        if let Some(cap) = &mut cap {
            cap.enforced = self.profile.enforced_cap(cap.requested);
            cap.shortfall = (cap.enforced < cap.requested).then_some(Shortfall::BoardLimit);
        }
        let applied = AppliedSettings {
            power_cap: cap,
            core_clock: self.check_knob(Knob::CoreClock, settings.core_clock, &cores)?,
            memory_clock: self.check_knob(Knob::MemoryClock, settings.memory_clock, &memories)?,
        };
        self.settings = Settings {
            power_cap: settings.power_cap.or(self.settings.power_cap),
            core_clock: settings.core_clock.or(self.settings.core_clock),
            memory_clock: settings.memory_clock.or(self.settings.memory_clock),
        };
        Ok(applied)
    }

    fn reset(&mut self, knob: Knob) -> Result<(), WriteError> {
        self.update();
        if self.is_lost_at(self.updated_at) {
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

/// The number of counter updates since the creation of the GPU, which has this age.
fn ticks(age: Seconds) -> u64 {
    (age.get() / COUNTER_PERIOD) as u64
}

/// Describes the GPU's sensors and knobs.
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

/// Whether a device is simulated, also if a program sees it through the simulated NVML library.
pub fn is_simulated(device: &Descriptor) -> bool {
    device.backend == "sim" || (0..MAX_GPUS).any(|index| uuid(&device.name, index) == device.id)
}

/// The UUID of a simulated GPU, in NVIDIA's format and the same on every computer.
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
