//! A GPU in virtual time, without files.

use sweetspot_device::Moment;
use sweetspot_sim::{Chip, GpuProfile};
use sweetspot_stats::Seed;

use crate::host::initial_record;
use crate::live::{LiveGpu, Record};

/// A GPU with the physics, sensors and jobs of a [`SharedGpu`](crate::SharedGpu), but in virtual time and without
/// files, for tests of sensors.
pub struct VirtualGpu {
    profile: GpuProfile,
    chip: Chip,
    record: Box<Record>,
}

impl VirtualGpu {
    /// Creates an idle, cool GPU. The seed determines the random times between samples in the driver's
    /// buffer.
    pub fn new(profile: GpuProfile, now: Moment, seed: Seed) -> Self {
        let chip = Chip::new(&profile);
        let record = Box::new(initial_record(&profile, &chip, now.nanos(), seed));
        Self {
            profile,
            chip,
            record,
        }
    }

    /// Advances the GPU to the moment `to`; does nothing if that is in its past.
    pub fn advance(&mut self, to: Moment) -> LiveGpu<'_> {
        let mut live = LiveGpu {
            profile: &self.profile,
            chip: &self.chip,
            record: &mut self.record,
        };
        live.advance(to.nanos().max(live.now()));
        live
    }
}
