//! What a GPU has learned when a probe of its program ends.

use super::{DEMAND_TIME, GpuState, SETTLE_TIME};

/// How far below the cap of a probe a cap may be and still count, in watts.
const CAP_DIFFERENCE: f64 = 2.0;
/// How often a probe is repeated that did not get its cap.
const MAX_FAILED_PROBES: u32 = 3;

impl GpuState {
    /// A probe ends that asked for a cap. It has shown nothing if the GPU did not get this cap in time, because another one
    /// did not give up its power: then the program is probed again.
    pub fn end_probe(&mut self, now: f64, cap: f64) {
        let had_time = now - self.changed_at > SETTLE_TIME + DEMAND_TIME;
        let is_done = self.cap > cap - CAP_DIFFERENCE && had_time;
        self.failed_probes += u32::from(!is_done);
        self.was_probed |= is_done || self.failed_probes > MAX_FAILED_PROBES;
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_quantity::Watts;

    use super::*;
    use crate::budget::config::BudgetedDevice;

    fn gpu() -> GpuState {
        let mut gpu = GpuState::new(BudgetedDevice::new(Watts::new(200.0), Watts::new(700.0)));
        gpu.applied(0.0, 220.0);
        gpu
    }

    #[test]
    fn a_probe_without_its_cap_is_repeated() {
        let mut gpu = gpu();
        gpu.end_probe(10.0, 350.0);
        assert!(!gpu.was_probed, "the cap was 220 W all the time");
        gpu.applied(14.0, 350.0);
        gpu.end_probe(14.5, 350.0);
        assert!(!gpu.was_probed, "the cap was there for half a second");
        gpu.end_probe(19.0, 350.0);
        assert!(gpu.was_probed);
    }

    #[test]
    fn probes_that_never_get_their_cap_end() {
        let mut gpu = gpu();
        let ends = (0..10).map(|probe| 10.0 + 5.0 * f64::from(probe));
        let tried = ends.take_while(|end| {
            gpu.end_probe(*end, 350.0);
            !gpu.was_probed
        });
        assert_eq!(tried.count(), 3);
    }
}
