//! Writes the settings of a GPU. Only the guard process does so.

use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::enums::device::GpuLockedClocksSetting;
use sweetspot_device::{
    Actuator, AppliedKnob, AppliedSettings, Device, Domain, Knob, KnobDescriptor, Settings,
    Shortfall, WriteError,
};
use sweetspot_quantity::{Megahertz, Quantity, Watts};

use crate::NvmlGpu;
use crate::capabilities::can_lock_core_clock;
use crate::error::write_error;
use crate::memory_clock::MemoryClockControl;

impl NvmlGpu {
    /// Rejects settings that the device does not support, before any is written.
    fn check(&self, settings: &Settings) -> Result<(), WriteError> {
        for knob in [Knob::PowerCap, Knob::CoreClock, Knob::MemoryClock] {
            let requested = match knob {
                Knob::PowerCap => settings.power_cap.is_some(),
                Knob::CoreClock => settings.core_clock.is_some(),
                Knob::MemoryClock => settings.memory_clock.is_some(),
            };
            if !requested {
                continue;
            }
            match (self.descriptor.knob(knob), settings) {
                (None, _) => return Err(WriteError::Unsupported(knob)),
                (Some(KnobDescriptor::PowerCap(range)), s) => {
                    check_supported(knob, s.power_cap, &range.domain)?
                }
                (Some(KnobDescriptor::CoreClock(range)), s) => {
                    check_supported(knob, s.core_clock, &range.domain)?
                }
                (Some(KnobDescriptor::MemoryClock(range)), s) => {
                    check_supported(knob, s.memory_clock, &range.domain)?
                }
            }
        }
        Ok(())
    }

    /// Sets the power cap and reads it back.
    fn set_power_cap(&mut self, cap: Watts) -> Result<AppliedKnob<Watts>, WriteError> {
        const KNOB: Knob = Knob::PowerCap;
        let milliwatts = (cap.get() * 1e3).round() as u32;
        self.device
            .set_power_management_limit(milliwatts)
            .map_err(|error| write_error(KNOB, error))?;
        let limits = self.power_limits().map_err(|error| WriteError::Failed {
            knob: KNOB,
            reason: error.to_string(),
        })?;
        let (device, read_back, enforced) =
            (&self.descriptor.id, limits.requested, limits.enforced);
        tracing::info!(%device, written = %cap, %read_back, %enforced, "power cap written");
        if (limits.requested - cap).abs() > Watts::new(0.5) {
            return Err(WriteError::ReadBackDiffers {
                knob: KNOB,
                written: cap.to_string(),
                read: limits.requested.to_string(),
            });
        }
        Ok(AppliedKnob {
            requested: limits.requested,
            enforced: limits.enforced,
            shortfall: (limits.enforced < limits.requested).then_some(Shortfall::BoardLimit),
        })
    }

    /// Locks a clock. NVML cannot read a clock lock back, so the requested clock is returned.
    fn lock(&mut self, knob: Knob, clock: Megahertz) -> Result<AppliedKnob<Megahertz>, WriteError> {
        let mhz = clock.get().round() as u32;
        let locked = match knob {
            Knob::MemoryClock => self.device.set_mem_locked_clocks(mhz, mhz),
            _ => self
                .device
                .set_gpu_locked_clocks(GpuLockedClocksSetting::Numeric {
                    min_clock_mhz: mhz,
                    max_clock_mhz: mhz,
                }),
        };
        locked.map_err(|error| write_error(knob, error))?;
        let device = &self.descriptor.id;
        tracing::info!(%device, %knob, written = %clock, "clock locked (NVML cannot read a lock back)");
        Ok(AppliedKnob {
            requested: clock,
            enforced: clock,
            shortfall: None,
        })
    }

    /// The part of the settings that application clocks set: on boards that cannot lock clocks.
    fn part_by_application_clocks(&self, settings: &Settings) -> Settings {
        let mut part = Settings::default();
        if !can_lock_core_clock(&self.architecture) {
            part.core_clock = settings.core_clock;
        }
        if self.memory_control == Some(MemoryClockControl::ApplicationClocks) {
            part.memory_clock = settings.memory_clock;
        }
        part
    }

    /// Sets the application clocks of an older board, which cannot lock clocks, and reads them back.
    fn set_application_clocks(
        &mut self,
        settings: &Settings,
    ) -> Result<AppliedSettings, WriteError> {
        const KNOB: Knob = Knob::CoreClock;
        let fail = |error| write_error(KNOB, error);
        let now = |kind| self.device.applications_clock(kind).map_err(fail);
        let pick = |requested: Option<Megahertz>, kind| match requested {
            Some(clock) => Ok(clock.get().round() as u32),
            None => now(kind),
        };
        let memory = pick(settings.memory_clock, Clock::Memory)?;
        let core = pick(settings.core_clock, Clock::Graphics)?;
        self.device
            .set_applications_clocks(memory, core)
            .map_err(fail)?;
        for (kind, knob, written) in [
            (Clock::Graphics, Knob::CoreClock, core),
            (Clock::Memory, Knob::MemoryClock, memory),
        ] {
            let read = self.device.applications_clock(kind).map_err(fail)?;
            let device = &self.descriptor.id;
            tracing::info!(%device, %knob, written, read_back = read, "application clock written");
            if read != written {
                return Err(WriteError::ReadBackDiffers {
                    knob,
                    written: format!("{written} MHz"),
                    read: format!("{read} MHz"),
                });
            }
        }
        let applied = |clock: Option<Megahertz>| {
            clock.map(|clock| AppliedKnob {
                requested: clock,
                enforced: clock,
                shortfall: None,
            })
        };
        Ok(AppliedSettings {
            power_cap: None,
            core_clock: applied(settings.core_clock),
            memory_clock: applied(settings.memory_clock),
        })
    }
}

/// Rejects a value that is not among the supported ones.
fn check_supported<Q: Quantity + std::fmt::Display>(
    knob: Knob,
    requested: Option<Q>,
    domain: &Domain<Q>,
) -> Result<(), WriteError> {
    match requested {
        Some(value) if !domain.contains(value) => Err(WriteError::OutOfRange {
            knob,
            asked: value.to_string(),
            offered: domain.describe_nearest(value),
        }),
        _ => Ok(()),
    }
}

impl Actuator for NvmlGpu {
    fn apply(&mut self, settings: &Settings) -> Result<AppliedSettings, WriteError> {
        self.check(settings)?;
        let mut applied = AppliedSettings::default();
        let mut rest = *settings;
        let application_clocks = self.part_by_application_clocks(settings);
        if application_clocks != Settings::default() {
            applied = self.set_application_clocks(&application_clocks)?;
            for knob in application_clocks.knobs() {
                rest = rest.without(knob);
            }
        }
        if let Some(clock) = rest.memory_clock {
            applied.memory_clock = Some(match self.memory_control {
                Some(MemoryClockControl::Offset(range)) => {
                    self.set_memory_clock_by_offset(&range, clock)?
                }
                _ => self.lock(Knob::MemoryClock, clock)?,
            });
        }
        if let Some(clock) = rest.core_clock {
            applied.core_clock = Some(self.lock(Knob::CoreClock, clock)?);
        }
        if let Some(cap) = settings.power_cap {
            applied.power_cap = Some(self.set_power_cap(cap)?);
        }
        Ok(applied)
    }

    fn reset(&mut self, knob: Knob) -> Result<(), WriteError> {
        let reset = match knob {
            Knob::PowerCap => {
                let default = self.device.power_management_limit_default();
                default.and_then(|limit| self.device.set_power_management_limit(limit))
            }
            Knob::CoreClock if !can_lock_core_clock(&self.architecture) => {
                self.device.reset_applications_clocks()
            }
            Knob::CoreClock => self.device.reset_gpu_locked_clocks(),
            Knob::MemoryClock => match self.memory_control {
                Some(MemoryClockControl::ApplicationClocks) => {
                    self.device.reset_applications_clocks()
                }
                Some(MemoryClockControl::Offset(_)) => self.write_memory_offset(0),
                Some(MemoryClockControl::Lock) | None => self.device.reset_mem_locked_clocks(),
            },
        };
        reset.map_err(|error| write_error(knob, error))?;
        tracing::info!(device = %self.descriptor.id, %knob, "setting reset to its default");
        Ok(())
    }

    fn set_persistence(&mut self, on: bool) -> Result<(), WriteError> {
        let set = self.device.set_persistent(on);
        set.map_err(|error| WriteError::Persistence(error.to_string()))?;
        tracing::info!(device = %self.descriptor.id, on, "persistence mode set");
        Ok(())
    }
}
