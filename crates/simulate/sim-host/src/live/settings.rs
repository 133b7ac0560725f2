//! The settings of a GPU: power cap, clocks and persistence.

use sweetspot_quantity::{Megahertz, Ratio, Watts};
use sweetspot_sim::Knob;

use super::{LiveGpu, WriteDenied};

impl LiveGpu<'_> {
    /// Returns an error if a simulated fault prevents changes of a knob.
    fn check_writable(&self, knob: Knob) -> Result<(), WriteDenied> {
        if self.profile.faults.iter().any(|fault| fault.denies(knob)) {
            return Err(WriteDenied);
        }
        Ok(())
    }

    /// The power cap that was requested last.
    pub fn power_cap(&self) -> Watts {
        Watts::new(self.record.cap)
    }

    /// The power cap that the board enforces, which may be lower than the requested one.
    pub fn enforced_cap(&self) -> Watts {
        self.profile.enforced_cap(self.power_cap())
    }

    /// Sets the power cap; the caller must have checked that it is within the allowed range.
    pub fn set_power_cap(&mut self, cap: Watts) -> Result<(), WriteDenied> {
        self.check_writable(Knob::PowerCap)?;
        self.record.cap = cap.get();
        Ok(())
    }

    /// Sets the speed of the processor that feeds the GPU, relative to its speed without a power cap. The host's part of
    /// a job takes as much longer: its phases without kernels, and the launches of kernels.
    pub fn set_host_speed(&mut self, speed: Ratio) {
        self.record.host_speed = speed.get();
    }

    /// Locks the core clock to a range from lowest to highest; `None` removes the lock.
    pub fn lock_core_clock(
        &mut self,
        range: Option<(Megahertz, Megahertz)>,
    ) -> Result<(), WriteDenied> {
        self.check_writable(Knob::CoreClock)?;
        let (low, high) = range.map_or((0.0, 0.0), |(low, high)| (low.get(), high.get()));
        (self.record.core_low, self.record.core_high) = (low, high);
        Ok(())
    }

    /// The range to which the core clock is locked; `None` without a lock. NVML cannot report it; this method
    /// is for tests.
    pub fn core_lock(&self) -> Option<(Megahertz, Megahertz)> {
        let (low, high) = (self.record.core_low, self.record.core_high);
        (high > 0.0).then(|| (Megahertz::new(low), Megahertz::new(high)))
    }

    /// Locks the memory clock to a range from lowest to highest; `None` removes the lock.
    pub fn lock_memory_clock(
        &mut self,
        range: Option<(Megahertz, Megahertz)>,
    ) -> Result<(), WriteDenied> {
        self.check_writable(Knob::MemoryClock)?;
        let (low, high) = range.map_or((0.0, 0.0), |(low, high)| (low.get(), high.get()));
        (self.record.memory_low, self.record.memory_high) = (low, high);
        Ok(())
    }

    /// Shifts the memory clock from its default by an offset, which may be negative.
    pub fn set_memory_clock_offset(&mut self, offset: Megahertz) -> Result<(), WriteDenied> {
        self.check_writable(Knob::MemoryClock)?;
        self.record.memory_offset = offset.get();
        Ok(())
    }

    /// The offset of the memory clock from its default.
    pub fn memory_clock_offset(&self) -> Megahertz {
        Megahertz::new(self.record.memory_offset)
    }

    /// Sets the application clocks of memory and core; `None` resets them.
    pub fn set_application_clocks(
        &mut self,
        clocks: Option<(Megahertz, Megahertz)>,
    ) -> Result<(), WriteDenied> {
        self.check_writable(Knob::CoreClock)?;
        self.check_writable(Knob::MemoryClock)?;
        let (memory, core) = clocks.map_or((0.0, 0.0), |(memory, core)| (memory.get(), core.get()));
        (self.record.application_memory, self.record.application_core) = (memory, core);
        Ok(())
    }

    /// The application clocks of memory and core.
    pub fn application_clocks(&self) -> (Megahertz, Megahertz) {
        let set_or_default = |set: f64, default| {
            if set > 0.0 {
                Megahertz::new(set)
            } else {
                default
            }
        };
        (
            set_or_default(self.record.application_memory, self.profile.memory.default),
            set_or_default(self.record.application_core, self.profile.core.default),
        )
    }

    /// Whether persistence mode is on: the driver stays loaded without a client.
    pub fn persistence(&self) -> bool {
        self.record.persistence != 0
    }

    /// Turns persistence mode on or off: whether the driver stays loaded without a client.
    pub fn set_persistence(&mut self, on: bool) {
        self.record.persistence = u64::from(on);
    }

    /// The core clock that a lock or an application clock sets; `None` without either.
    pub(crate) fn core_clock_setting(&self) -> Option<Megahertz> {
        let record = &self.record;
        let default = self.profile.core.default.get();
        if record.core_high > 0.0 {
            Some(Megahertz::new(default.clamp(
                record.core_low.min(record.core_high),
                record.core_high,
            )))
        } else if record.application_core > 0.0 {
            Some(Megahertz::new(record.application_core))
        } else {
            None
        }
    }

    /// The memory clock that a lock, an application clock or an offset sets; `None` without any of them.
    pub(crate) fn memory_clock_setting(&self) -> Option<Megahertz> {
        let record = &self.record;
        let default = self.profile.memory.default.get();
        if record.memory_high > 0.0 {
            Some(Megahertz::new(default.clamp(
                record.memory_low.min(record.memory_high),
                record.memory_high,
            )))
        } else if record.application_memory > 0.0 {
            Some(Megahertz::new(record.application_memory))
        } else if record.memory_offset != 0.0 {
            Some(Megahertz::new(default + record.memory_offset))
        } else {
            None
        }
    }
}
