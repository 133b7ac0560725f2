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

/// The settings of a device, and its faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceState {
    pub settings: Settings,
    /// Knobs that the caller has no permission to set.
    pub denied: Vec<Knob>,
    /// Knobs whose writes fail temporarily.
    pub failing: Vec<Knob>,
    /// The number of writes that still fail before they succeed again.
    pub failing_writes: u32,
    /// Whether another value is read back than was written.
    pub reads_back_other: bool,
    /// Whether the device no longer answers.
    pub is_lost: bool,
    /// Whether the power cap cannot be read.
    pub cap_unreadable: bool,
    /// The duration of a write, in milliseconds.
    pub write_ms: u64,
}

impl Default for DeviceState {
    fn default() -> Self {
        Self {
            settings: Settings {
                power_cap: Some(Watts::new(250.0)),
                ..Settings::default()
            },
            denied: Vec::new(),
            failing: Vec::new(),
            failing_writes: 0,
            reads_back_other: false,
            is_lost: false,
            cap_unreadable: false,
            write_ms: 0,
        }
    }
}

impl DeviceState {
    fn path(folder: &Path, id: &DeviceId) -> PathBuf {
        folder.join(format!("{id}.device"))
    }

    pub fn read(folder: &Path, id: &DeviceId) -> Self {
        let text = std::fs::read_to_string(Self::path(folder, id)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Replaces the file in one step, because a guard may be reading it.
    pub fn write(&self, folder: &Path, id: &DeviceId) {
        let new = folder.join(format!("{id}.new-{}", std::process::id()));
        std::fs::write(&new, serde_json::to_string(self).unwrap()).unwrap();
        std::fs::rename(new, Self::path(folder, id)).unwrap();
    }
}

/// A device that is stored in such files. A locked clock cannot be read, as with NVML.
#[derive(Debug)]
pub struct FakeDevice {
    folder: PathBuf,
    descriptor: Descriptor,
}

impl FakeDevice {
    pub fn open(folder: &Path, id: &DeviceId) -> Result<Self, OpenError> {
        if !DeviceState::path(folder, id).exists() {
            return Err(OpenError::NotFound {
                device: id.clone(),
                reason: "there is no such device".to_owned(),
            });
        }
        let name = format!("Fake {id}");
        if DeviceState::read(folder, id).is_lost {
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

    fn state(&self) -> DeviceState {
        DeviceState::read(&self.folder, &self.descriptor.id)
    }

    /// Checks, performs and logs one write.
    fn write(
        &mut self,
        knob: Knob,
        what: &str,
        change: impl FnOnce(&mut Settings),
    ) -> Result<DeviceState, WriteError> {
        let mut state = self.state();
        std::thread::sleep(Duration::from_millis(state.write_ms));
        if state.is_lost {
            return Err(WriteError::Lost);
        }
        if state.denied.contains(&knob) {
            return Err(WriteError::Denied(knob));
        }
        if state.failing.contains(&knob) {
            let reason = "temporary failure".to_owned();
            return Err(WriteError::Failed { knob, reason });
        }
        if let Some(left) = state.failing_writes.checked_sub(1) {
            state.failing_writes = left;
            state.write(&self.folder, &self.descriptor.id);
            let reason = "temporary failure".to_owned();
            return Err(WriteError::Failed { knob, reason });
        }
        change(&mut state.settings);
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
        let requested = state.settings.power_cap.unwrap_or(Watts::new(300.0));
        Ok(PowerLimits {
            requested,
            enforced: requested,
            default: Watts::new(300.0),
        })
    }

    fn settings(&mut self) -> Result<Settings, ReadError> {
        let power_cap = Some(self.power_limits()?.requested);
        Ok(Settings {
            power_cap: power_cap.filter(|_| !self.state().cap_unreadable),
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
            self.write(Knob::MemoryClock, &format!("memory {clock}"), |settings| {
                settings.memory_clock = Some(clock);
            })?;
            applied.memory_clock = Some(AppliedKnob {
                requested: clock,
                enforced: clock,
                shortfall: None,
            });
        }
        if let Some(clock) = settings.core_clock {
            self.write(Knob::CoreClock, &format!("core {clock}"), |settings| {
                settings.core_clock = Some(clock);
            })?;
            applied.core_clock = Some(knob(clock));
        }
        if let Some(cap) = settings.power_cap {
            let state = self.write(Knob::PowerCap, &format!("cap {cap}"), |settings| {
                settings.power_cap = Some(cap);
            })?;
            if state.reads_back_other {
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
        let change = |settings: &mut Settings| match knob {
            Knob::PowerCap => settings.power_cap = Some(Watts::new(300.0)),
            Knob::CoreClock => settings.core_clock = None,
            Knob::MemoryClock => settings.memory_clock = None,
        };
        self.write(knob, &format!("reset {knob}"), change).map(drop)
    }
}
