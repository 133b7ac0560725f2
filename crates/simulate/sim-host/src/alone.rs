//! A GPU that only its owner sees, in time that the owner makes up.

use sweetspot_device::Moment;
use sweetspot_sim::{Chip, GpuProfile};
use sweetspot_stats::Seed;

use crate::host::at_rest;
use crate::state::{Live, Record};

/// The same physics, sensors and programs as a [`SharedGpu`](crate::SharedGpu), without files and without
/// a clock: tests and studies of sensors run it as fast as it can be computed.
pub struct LoneGpu {
    profile: GpuProfile,
    chip: Chip,
    record: Box<Record>,
}

impl LoneGpu {
    /// At rest at this moment; the seed spaces the samples of the driver's buffer.
    pub fn new(profile: GpuProfile, now: Moment, seed: Seed) -> Self {
        let chip = Chip::new(&profile);
        let record = Box::new(at_rest(&profile, &chip, now.nanos(), seed));
        Self {
            profile,
            chip,
            record,
        }
    }

    /// Brings the GPU to a moment; one that has passed is the present one.
    pub fn advance(&mut self, to: Moment) -> Live<'_> {
        let mut live = Live {
            profile: &self.profile,
            chip: &self.chip,
            record: &mut self.record,
        };
        live.advance(to.nanos().max(live.now()));
        live
    }
}
