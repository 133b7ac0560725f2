//! How the memory clock of a GPU is set: a lock, an offset, or application clocks.
//!
//! A lock cannot be tried without writing, so it is known from the GPU's generation; the driver is asked for the others.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, PerformanceState};
use nvml_wrapper::enums::device::DeviceArchitecture;
use nvml_wrapper::error::NvmlError;
use sweetspot_device::{AppliedKnob, Domain, Knob, KnobRange, ReadError, SensorKind, WriteError};
use sweetspot_quantity::Megahertz;

use crate::NvmlGpu;
use crate::capabilities::{can_lock_core_clock, is_before_ampere};
use crate::error::{read_error, write_error};

/// The performance state whose offset is set. Programs compute in this state, or, on GeForce boards, in state 2, whose
/// memory clock is a little lower and is assumed to move with it: drivers report both states with the same offset
/// (LACT, pull request 918).
const STATE: PerformanceState = PerformanceState::Zero;

/// NVML counts a memory offset in transfers, of which double data rate memory makes two in a clock cycle: an offset of
/// 2 MHz changes the clock that NVML reports by 1 MHz. NVIDIA does not document it; users of GeForce boards have measured
/// it on Turing and Ada (LACT, issue 418).
const TRANSFERS_PER_CYCLE: f64 = 2.0;

/// The way in which the memory clock of a GPU is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryClockControl {
    /// The clock is locked to one of the supported clocks. The lock cannot be read back.
    Lock,
    /// The clock is shifted from its default by an offset, which can be read back.
    Offset(OffsetRange),
    /// Application clocks set the clocks of memory and core together; they can be read back.
    ApplicationClocks,
}

/// The offsets that a GPU supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetRange {
    /// The memory clock in MHz without an offset.
    default_clock: u32,
    /// The smallest offset, in MHz as NVML counts it.
    min: i32,
    /// The largest offset, in MHz as NVML counts it.
    max: i32,
}

impl OffsetRange {
    /// Asks the driver for the offsets of the memory clock; `None` if it has none. `fastest` is the highest memory clock
    /// that the driver lists.
    fn detect(device: &Device<'_>, fastest: Megahertz) -> Option<Self> {
        let offsets = device.clock_offset(Clock::Memory, STATE).ok()?;
        // The clocks of a state are assumed not to include the offset, which may be set already.
        let default_clock = match device.min_max_clock_of_pstate(Clock::Memory, STATE) {
            Ok((_, highest)) => highest,
            Err(_) => fastest.get() as u32,
        };
        let range = Self {
            default_clock,
            min: offsets.min_clock_offset_mhz,
            max: offsets.max_clock_offset_mhz,
        };
        let is_usable = range.min < range.max && range.clock(range.min) > Megahertz::ZERO;
        is_usable.then_some(range)
    }

    /// The memory clock that results from an offset.
    fn clock(&self, offset: i32) -> Megahertz {
        Megahertz::new(f64::from(self.default_clock) + f64::from(offset) / TRANSFERS_PER_CYCLE)
    }

    /// The offset that results in the memory clock nearest to this one.
    fn offset(&self, clock: Megahertz) -> i32 {
        let shift = clock.get() - f64::from(self.default_clock);
        (shift * TRANSFERS_PER_CYCLE).round() as i32
    }

    /// The memory clocks that an offset can reach, and the one without an offset.
    fn knob_range(&self) -> KnobRange<Megahertz> {
        KnobRange {
            domain: Domain::Range {
                min: self.clock(self.min),
                max: self.clock(self.max),
            },
            default: self.clock(0),
            readable: true,
        }
    }
}

impl MemoryClockControl {
    /// Finds out how the memory clock of a device is set; `None` if it cannot be set. `listed` are the memory clocks that
    /// the driver lists, in ascending order.
    pub(crate) fn detect(
        device: &Device<'_>,
        architecture: &DeviceArchitecture,
        listed: &[Megahertz],
    ) -> Option<Self> {
        let fastest = *listed.last()?;
        // Memory clocks can be locked from Ampere on.
        if !is_before_ampere(architecture) {
            return Some(Self::Lock);
        }
        if let Some(range) = OffsetRange::detect(device, fastest) {
            return Some(Self::Offset(range));
        }
        // Volta and Turing have application clocks too, but these would also set the core clock, which is locked there.
        let has_application_clocks =
            !can_lock_core_clock(architecture) && device.applications_clock(Clock::Memory).is_ok();
        has_application_clocks.then_some(Self::ApplicationClocks)
    }

    /// The memory clocks that can be set; `listed` are those that the driver lists, in ascending order.
    pub(crate) fn knob_range(&self, listed: Vec<Megahertz>) -> Option<KnobRange<Megahertz>> {
        match self {
            Self::Offset(range) => Some(range.knob_range()),
            Self::Lock | Self::ApplicationClocks => Some(KnobRange {
                default: *listed.last()?,
                domain: Domain::Levels(listed),
                readable: *self == Self::ApplicationClocks,
            }),
        }
    }
}

impl NvmlGpu {
    /// Reads the offset of the memory clock, as NVML counts it.
    fn memory_offset(&self) -> Result<i32, NvmlError> {
        let offset = self.device.clock_offset(Clock::Memory, STATE)?;
        Ok(offset.clock_offset_mhz)
    }

    /// Reads the memory clock to which an offset shifts it; `None` without an offset. An offset that cannot be read is an
    /// error, because it could not be restored later.
    pub(crate) fn memory_clock_by_offset(
        &self,
        range: &OffsetRange,
    ) -> Result<Option<Megahertz>, ReadError> {
        let offset = self.memory_offset();
        let offset = offset.map_err(|error| read_error(SensorKind::MemoryClock, error))?;
        Ok((offset != 0).then(|| range.clock(offset)))
    }

    /// Sets the memory clock by an offset and reads the offset back.
    pub(crate) fn set_memory_clock_by_offset(
        &mut self,
        range: &OffsetRange,
        clock: Megahertz,
    ) -> Result<AppliedKnob<Megahertz>, WriteError> {
        const KNOB: Knob = Knob::MemoryClock;
        let offset = range.offset(clock);
        let written = self.write_memory_offset(offset);
        written.map_err(|error| write_error(KNOB, error))?;
        // The offset is written: whatever the read fails with, the clock counts as changed and is restored.
        let read = self.memory_offset().map_err(|error| WriteError::Failed {
            knob: KNOB,
            reason: format!("the offset cannot be read back: {error}"),
        })?;
        let device = &self.descriptor.id;
        tracing::info!(%device, %clock, written = offset, read_back = read, "memory clock offset written");
        // Some drivers accept an offset and report none.
        if read != offset {
            return Err(WriteError::ReadBackDiffers {
                knob: KNOB,
                written: format!("{clock} (an offset of {offset} MHz)"),
                read: format!("{} (an offset of {read} MHz)", range.clock(read)),
            });
        }
        let clock = range.clock(read);
        Ok(AppliedKnob {
            requested: clock,
            enforced: clock,
            shortfall: None,
        })
    }

    /// Writes the offset of the memory clock, as NVML counts it; 0 restores the default clock.
    pub(crate) fn write_memory_offset(&mut self, offset: i32) -> Result<(), NvmlError> {
        self.device.set_clock_offset(Clock::Memory, STATE, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURING: OffsetRange = OffsetRange {
        default_clock: 6800,
        min: -2000,
        max: 1000,
    };

    #[test]
    fn an_offset_changes_the_clock_by_half() {
        for (clock, offset) in [(5800.0, -2000), (6800.0, 0), (7300.0, 1000), (6300.5, -999)] {
            assert_eq!(TURING.offset(Megahertz::new(clock)), offset);
            assert_eq!(TURING.clock(offset), Megahertz::new(clock));
        }
        // A clock between two offsets gets the nearest one.
        assert_eq!(TURING.offset(Megahertz::new(5800.2)), -2000);
    }

    #[test]
    fn every_offset_of_the_range_is_offered() {
        let range = TURING.knob_range();
        assert_eq!(range.default, Megahertz::new(6800.0));
        assert!(range.readable);
        for (clock, is_offered) in [
            (5799.5, false),
            (5800.0, true),
            (6123.0, true),
            (7300.0, true),
            (7300.5, false),
        ] {
            assert_eq!(range.domain.contains(Megahertz::new(clock)), is_offered);
        }
    }
}
