//! A device whose state, faults and log of writes are files.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sweetspot_device::{
    Actuator, AppliedKnob, AppliedSettings, Descriptor, Device, DeviceId, DeviceKind, Knob,
    OpenError, PowerLimits, ReadError, Reading, SensorKind, Settings, WriteError,
};
use sweetspot_quantity::Watts;

/// What is set on a device, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    pub set: Settings,
    /// Knobs that the caller may not set.
    pub denied: Vec<Knob>,
    /// Knobs that fail to be set, today.
    pub failing: Vec<Knob>,
    /// A write is taken, but something else is read back.
    pub lies: bool,
    /// It no longer answers.
    pub is_lost: bool,
    /// The power cap cannot be read.
    pub hides_cap: bool,
    /// How long a write takes.
    pub write_ms: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            set: Settings {
                power_cap: Some(Watts::new(250.0)),
                ..Settings::default()
            },
            denied: Vec::new(),
            failing: Vec::new(),
            lies: false,
            is_lost: false,
            hides_cap: false,
            write_ms: 0,
        }
    }
}

impl State {
    fn path(folder: &Path, id: &DeviceId) -> PathBuf {
        folder.join(format!("{id}.device"))
    }

    pub fn read(folder: &Path, id: &DeviceId) -> Self {
        let text = std::fs::read_to_string(Self::path(folder, id)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Whole at every moment: a guard may be reading.
    pub fn write(&self, folder: &Path, id: &DeviceId) {
        let new = folder.join(format!("{id}.new-{}", std::process::id()));
        std::fs::write(&new, serde_json::to_string(self).unwrap()).unwrap();
        std::fs::rename(new, Self::path(folder, id)).unwrap();
    }
}

/// A device behind such files. A locked clock cannot be read, as with NVML.
#[derive(Debug)]
pub struct FakeDevice {
    folder: PathBuf,
    descriptor: Descriptor,
}

impl FakeDevice {
    pub fn open(folder: &Path, id: &DeviceId) -> Result<Self, OpenError> {
        if !State::path(folder, id).exists() {
            return Err(OpenError::NotFound {
                device: id.clone(),
                reason: "there is no such device".to_owned(),
            });
        }
        let name = format!("Fake {id}");
        if State::read(folder, id).is_lost {
            return Err(OpenError::Lost { name });
        }
        Ok(Self {
            folder: folder.to_owned(),
            descriptor: Descriptor {
                id: id.clone(),
                name,
                kind: DeviceKind::Gpu,
                backend: "fake".to_owned(),
                parent: None,
                memory: None,
                sensors: Vec::new(),
                knobs: Vec::new(),
            },
        })
    }

    fn state(&self) -> State {
        State::read(&self.folder, &self.descriptor.id)
    }

    /// Checks, writes and logs one change.
    fn write(
        &mut self,
        knob: Knob,
        what: &str,
        set: impl FnOnce(&mut Settings),
    ) -> Result<State, WriteError> {
        let mut state = self.state();
        std::thread::sleep(Duration::from_millis(state.write_ms));
        if state.is_lost {
            return Err(WriteError::Lost);
        }
        if state.denied.contains(&knob) {
            return Err(WriteError::Denied(knob));
        }
        if state.failing.contains(&knob) {
            let reason = "it is one of those days".to_owned();
            return Err(WriteError::Failed { knob, reason });
        }
        set(&mut state.set);
        state.write(&self.folder, &self.descriptor.id);
        let log = self.folder.join("writes");
        let mut log = File::options().create(true).append(true).open(log).unwrap();
        writeln!(log, "{} {what}", self.descriptor.id).unwrap();
        Ok(state)
    }
}

impl Device for FakeDevice {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        Err(ReadError::Unsupported(sensor))
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        let state = self.state();
        if state.is_lost {
            return Err(ReadError::Lost);
        }
        let requested = state.set.power_cap.unwrap_or(Watts::new(300.0));
        Ok(PowerLimits {
            requested,
            enforced: requested,
            default: Watts::new(300.0),
        })
    }

    fn settings(&mut self) -> Result<Settings, ReadError> {
        let power_cap = Some(self.power_limits()?.requested);
        Ok(Settings {
            power_cap: power_cap.filter(|_| !self.state().hides_cap),
            ..Settings::default()
        })
    }
}

impl Actuator for FakeDevice {
    fn apply(&mut self, settings: &Settings) -> Result<AppliedSettings, WriteError> {
        let mut applied = AppliedSettings::default();
        let knob = |value| AppliedKnob {
            requested: value,
            enforced: value,
            shortfall: None,
        };
        if let Some(clock) = settings.memory_clock {
            self.write(Knob::MemoryClock, &format!("memory {clock}"), |set| {
                set.memory_clock = Some(clock);
            })?;
            applied.memory_clock = Some(AppliedKnob {
                requested: clock,
                enforced: clock,
                shortfall: None,
            });
        }
        if let Some(clock) = settings.core_clock {
            self.write(Knob::CoreClock, &format!("core {clock}"), |set| {
                set.core_clock = Some(clock);
            })?;
            applied.core_clock = Some(knob(clock));
        }
        if let Some(cap) = settings.power_cap {
            let state = self.write(Knob::PowerCap, &format!("cap {cap}"), |set| {
                set.power_cap = Some(cap);
            })?;
            if state.lies {
                return Err(WriteError::ReadBackDiffers {
                    knob: Knob::PowerCap,
                    written: cap.to_string(),
                    read: "something else".to_owned(),
                });
            }
            applied.power_cap = Some(AppliedKnob {
                requested: cap,
                enforced: cap,
                shortfall: None,
            });
        }
        Ok(applied)
    }

    fn reset(&mut self, knob: Knob) -> Result<(), WriteError> {
        let set = |set: &mut Settings| match knob {
            Knob::PowerCap => set.power_cap = Some(Watts::new(300.0)),
            Knob::CoreClock => set.core_clock = None,
            Knob::MemoryClock => set.memory_clock = None,
        };
        self.write(knob, &format!("reset {knob}"), set).map(drop)
    }
}
