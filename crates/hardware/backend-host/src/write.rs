//! Writes the power cap of a package. Only the guard process does so.

use sweetspot_device::{
    Actuator, AppliedKnob, AppliedSettings, Device, Knob, KnobDescriptor, Settings, Shortfall,
    WriteError, is_same_cap,
};
use sweetspot_quantity::Watts;

use crate::error::write_error;
use crate::part::{CapFiles, HostPart};
use crate::sysfs::write_number;

impl HostPart {
    /// The cap that the package is made for; `None` if it has no cap.
    pub(crate) fn default_cap(&self) -> Option<Watts> {
        match self.descriptor.knob(Knob::PowerCap)? {
            KnobDescriptor::PowerCap(range) => Some(range.default),
            _ => None,
        }
    }

    /// Rejects settings that the part does not support.
    fn check(&self, settings: &Settings) -> Result<(), WriteError> {
        for knob in settings.knobs() {
            match (self.descriptor.knob(knob), settings.power_cap) {
                (Some(KnobDescriptor::PowerCap(range)), Some(cap)) => {
                    if !range.domain.contains(cap) {
                        return Err(WriteError::OutOfRange {
                            knob,
                            asked: cap.to_string(),
                            offered: range.domain.describe_nearest(cap),
                        });
                    }
                }
                _ => return Err(WriteError::Unsupported(knob)),
            }
        }
        Ok(())
    }

    /// The files of the cap.
    fn cap_files(&self) -> Result<&CapFiles, WriteError> {
        let missing = WriteError::Unsupported(Knob::PowerCap);
        self.cap.as_ref().ok_or(missing)
    }

    /// Writes the cap and reads it back; its time window stays as it is.
    fn write_cap(&mut self, cap: Watts) -> Result<AppliedKnob<Watts>, WriteError> {
        const KNOB: Knob = Knob::PowerCap;
        let microwatts = (cap.get() * 1e6).round() as u64;
        let limit = &self.cap_files()?.limit;
        write_number(limit, microwatts).map_err(|error| write_error(&error))?;
        let limits = self.power_limits().map_err(|error| WriteError::Failed {
            knob: KNOB,
            reason: error.to_string(),
        })?;
        let (read_back, enforced) = (limits.requested, limits.enforced);
        tracing::info!(device = %self.descriptor.id, written = %cap, %read_back, %enforced, "power cap written");
        if !is_same_cap(read_back, cap) {
            return Err(WriteError::ReadBackDiffers {
                knob: KNOB,
                written: cap.to_string(),
                read: read_back.to_string(),
            });
        }
        Ok(AppliedKnob {
            requested: read_back,
            enforced,
            shortfall: (enforced < read_back).then_some(Shortfall::BoardLimit),
        })
    }
}

impl Actuator for HostPart {
    fn apply(&mut self, settings: &Settings) -> Result<AppliedSettings, WriteError> {
        self.check(settings)?;
        let Some(cap) = settings.power_cap else {
            return Ok(AppliedSettings::default());
        };
        let applied = self.write_cap(cap)?;
        // A limit that is switched off would not limit anything.
        if self.cap_is_enabled() == Some(false) {
            self.enable_cap(true)?;
        }
        Ok(AppliedSettings {
            power_cap: Some(applied),
            ..AppliedSettings::default()
        })
    }

    fn restore(&mut self, settings: &Settings) -> Result<(), WriteError> {
        // Firmware often starts with a limit above the one that the package is made for: what was there is written.
        match settings.power_cap {
            Some(cap) => self.write_cap(cap).map(drop),
            None => Ok(()),
        }
    }

    fn reset(&mut self, knob: Knob) -> Result<(), WriteError> {
        let default = self.default_cap().filter(|_| knob == Knob::PowerCap);
        let default = default.ok_or(WriteError::Unsupported(knob))?;
        self.write_cap(default).map(drop)
    }

    fn enable_cap(&mut self, on: bool) -> Result<(), WriteError> {
        let Some(path) = &self.cap_files()?.enabled else {
            return Ok(());
        };
        write_number(path, u64::from(on)).map_err(|error| write_error(&error))?;
        tracing::info!(device = %self.descriptor.id, on, "power cap switched");
        match self.cap_is_enabled() {
            Some(now) if now == on => Ok(()),
            now => Err(WriteError::Failed {
                knob: Knob::PowerCap,
                reason: format!("`enabled` reads {now:?} after {on} was written"),
            }),
        }
    }
}
