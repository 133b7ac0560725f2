//! GPUs in memory that record every write.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sweetspot_device::{
    Actuator, Amount, AppliedKnob, AppliedSettings, Clock, Descriptor, Device, DeviceId,
    DeviceKind, Domain, HostDevice, Knob, KnobDescriptor, KnobRange, MonotonicClock, OpenError,
    PowerLimits, ReadError, Reading, Scope, SensorDescriptor, SensorKind, Settings, WriteError,
};
use sweetspot_quantity::{Joules, Megahertz, Quantity, Watts};

/// The number of GPUs.
pub const GPUS: usize = 3;

/// The settings of each GPU before the test.
pub const CAP: f64 = 300.0;
pub const PERSISTENCE: bool = true;

/// What was written to a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// A knob was set to this value in its base unit.
    Set(Knob, f64),
    Reset(Knob),
    Persistence(bool),
}

/// A GPU's settings and what was written to it.
#[derive(Debug)]
pub struct State {
    pub settings: Settings,
    pub persistence: bool,
    /// What was written, and whether it was there already.
    pub writes: Vec<(Change, bool)>,
    /// The processes that the GPU reports.
    pub processes: Vec<u32>,
    /// How often the processes were listed and the sensors were read.
    pub listings: usize,
    pub readings: usize,
    /// How long a write takes.
    pub write_time: Duration,
}

/// The GPUs of the test.
#[derive(Clone)]
pub struct Gpus(Vec<Arc<Mutex<State>>>);

impl Gpus {
    pub fn new() -> Self {
        let state = || State {
            settings: before(),
            persistence: PERSISTENCE,
            writes: Vec::new(),
            processes: Vec::new(),
            listings: 0,
            readings: 0,
            write_time: Duration::ZERO,
        };
        Self((0..GPUS).map(|_| Arc::new(Mutex::new(state()))).collect())
    }

    pub fn state(&self, gpu: usize) -> MutexGuard<'_, State> {
        self.0[gpu].lock().unwrap()
    }

    pub fn open(&self, id: &DeviceId) -> Result<Box<FakeGpu>, OpenError> {
        let place = (0..GPUS).find(|place| *id == id_of(*place));
        let place = place.ok_or_else(|| OpenError::NotFound {
            device: id.clone(),
            reason: "there is no such GPU".to_owned(),
        })?;
        Ok(Box::new(FakeGpu {
            state: self.0[place].clone(),
            index: place as u32,
            descriptor: descriptor(id),
        }))
    }
}

/// The settings of a GPU before the test.
pub fn before() -> Settings {
    Settings {
        power_cap: Some(Watts::new(CAP)),
        ..Settings::default()
    }
}

/// The identity of a GPU.
pub fn id_of(gpu: usize) -> DeviceId {
    DeviceId::new(format!("GPU-{gpu}0000000-1111-2222-3333-444444444444"))
}

fn descriptor(id: &DeviceId) -> Descriptor {
    let sensor = |kind| SensorDescriptor {
        kind,
        scope: Scope::Device,
        source: "memory".to_owned(),
        update_period: None,
        window: None,
    };
    let clock = |levels: &[f64]| KnobRange {
        domain: Domain::Levels(levels.iter().copied().map(Megahertz::new).collect()),
        default: Megahertz::new(levels[0]),
        readable: false,
    };
    Descriptor {
        id: id.clone(),
        name: "Fake GPU".to_owned(),
        kind: DeviceKind::Gpu,
        backend: "fake".to_owned(),
        parent: None,
        memory: None,
        sensors: vec![
            sensor(SensorKind::InstantPower),
            sensor(SensorKind::EnergyCounter),
        ],
        knobs: vec![
            KnobDescriptor::PowerCap(KnobRange {
                domain: Domain::Range {
                    min: Watts::new(100.0),
                    max: Watts::new(CAP),
                },
                default: Watts::new(CAP),
                readable: true,
            }),
            KnobDescriptor::CoreClock(clock(&[900.0, 1000.0, 1100.0, 1200.0, 1300.0])),
            KnobDescriptor::MemoryClock(clock(&[810.0, 877.0])),
        ],
    }
}

/// An open GPU.
pub struct FakeGpu {
    state: Arc<Mutex<State>>,
    index: u32,
    descriptor: Descriptor,
}

impl FakeGpu {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Checks all values as a driver does: rejected ones change nothing.
    fn check(&self, settings: &Settings) -> Result<(), WriteError> {
        for knob in &self.descriptor.knobs {
            match knob {
                KnobDescriptor::PowerCap(cap) => {
                    check(Knob::PowerCap, &cap.domain, settings.power_cap)?;
                }
                KnobDescriptor::CoreClock(clock) => {
                    check(Knob::CoreClock, &clock.domain, settings.core_clock)?;
                }
                KnobDescriptor::MemoryClock(clock) => {
                    check(Knob::MemoryClock, &clock.domain, settings.memory_clock)?;
                }
            }
        }
        Ok(())
    }
}

/// Checks one value.
fn check<Q: Quantity + std::fmt::Display>(
    knob: Knob,
    domain: &Domain<Q>,
    value: Option<Q>,
) -> Result<(), WriteError> {
    match value {
        Some(value) if !domain.contains(value) => Err(WriteError::OutOfRange {
            knob,
            asked: value.to_string(),
            offered: domain.describe_nearest(value),
        }),
        _ => Ok(()),
    }
}

/// The values of all knobs in their base units.
fn base_values(settings: &Settings) -> [(Knob, Option<f64>); 3] {
    [
        (Knob::PowerCap, settings.power_cap.map(Quantity::base)),
        (Knob::CoreClock, settings.core_clock.map(Quantity::base)),
        (Knob::MemoryClock, settings.memory_clock.map(Quantity::base)),
    ]
}

/// A knob that does what was asked.
fn applied<Q: Copy>(value: Q) -> AppliedKnob<Q> {
    AppliedKnob {
        requested: value,
        enforced: value,
        shortfall: None,
    }
}

impl Device for FakeGpu {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        self.state().readings += 1;
        let amount = match sensor {
            SensorKind::InstantPower => Amount::Power(Watts::new(75.0)),
            SensorKind::EnergyCounter => Amount::Energy(Joules::new(1234.5)),
            other => return Err(ReadError::Unsupported(other)),
        };
        Ok(Reading {
            source: sensor,
            at: MonotonicClock.now(),
            amount,
        })
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        let requested = self.state().settings.power_cap.unwrap_or_default();
        Ok(PowerLimits {
            requested,
            enforced: requested,
            default: Watts::new(CAP),
        })
    }

    fn persistence(&self) -> Option<bool> {
        Some(self.state().persistence)
    }
}

impl Actuator for FakeGpu {
    fn apply(&mut self, settings: &Settings) -> Result<AppliedSettings, WriteError> {
        self.check(settings)?;
        let write_time = self.state().write_time;
        std::thread::sleep(write_time);
        let mut state = self.state();
        let now = base_values(&state.settings);
        for ((knob, value), (_, now)) in base_values(settings).into_iter().zip(now) {
            let write = value.map(|value| (Change::Set(knob, value), now == Some(value)));
            state.writes.extend(write);
        }
        state.settings = state.settings.with(settings);
        Ok(AppliedSettings {
            power_cap: settings.power_cap.map(applied),
            core_clock: settings.core_clock.map(applied),
            memory_clock: settings.memory_clock.map(applied),
        })
    }

    fn reset(&mut self, knob: Knob) -> Result<(), WriteError> {
        let mut state = self.state();
        let is_there = state.settings.only(knob) == before().only(knob);
        state.writes.push((Change::Reset(knob), is_there));
        state.settings = state.settings.without(knob).with(&before().only(knob));
        Ok(())
    }

    fn set_persistence(&mut self, on: bool) -> Result<(), WriteError> {
        let mut state = self.state();
        let is_there = state.persistence == on;
        state.writes.push((Change::Persistence(on), is_there));
        state.persistence = on;
        Ok(())
    }
}

impl HostDevice for FakeGpu {
    fn index(&self) -> u32 {
        self.index
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn reopen(&self) -> Result<Box<dyn HostDevice>, OpenError> {
        Ok(Box::new(Self {
            state: self.state.clone(),
            index: self.index,
            descriptor: self.descriptor.clone(),
        }))
    }

    fn architecture(&self) -> String {
        "Fake".to_owned()
    }

    fn processes(&self) -> Result<Vec<u32>, String> {
        let mut state = self.state();
        state.listings += 1;
        Ok(state.processes.clone())
    }

    fn pci_address(&self) -> Option<String> {
        None
    }

    fn power_is_averaged(&self) -> bool {
        false
    }
}
