//! Applies a point of the search space to the GPUs of a job, or to the processor packages beside them.

use sweetspot_control::tune::TuneSpace;
use sweetspot_device::{AppliedKnob, Settings};
use sweetspot_guard::GuardError;
use sweetspot_quantity::Watts;
use sweetspot_workload::Lease;

use crate::host::Gpu;

/// A cap that a GPU replaced by a lower one, with the index of the GPU.
type ReducedCap = (usize, AppliedKnob<Watts>);

/// Applies points of the search space to all GPUs. A point is one combination of settings.
pub struct PointSetter<'a> {
    pub space: &'a TuneSpace,
    pub gpus: &'a [Gpu],
    /// The settings that the GPUs have now; `None` before the first.
    pub present: Option<Vec<Settings>>,
    /// The GPUs that no longer respond, by index.
    pub lost: Vec<usize>,
}

impl<'a> PointSetter<'a> {
    /// Creates the setter; nothing is set yet.
    pub fn new(space: &'a TuneSpace, gpus: &'a [Gpu]) -> Self {
        Self {
            space,
            gpus,
            present: None,
            lost: Vec::new(),
        }
    }

    /// Creates the setter for GPUs that have the reference.
    pub fn at_reference(space: &'a TuneSpace, gpus: &'a [Gpu]) -> Self {
        Self {
            present: space.of_gpus.get(space.space.reference()).cloned(),
            ..Self::new(space, gpus)
        }
    }

    /// Applies a point to every GPU, or to none if one fails, whose index is in the error. `each` contains the settings of a
    /// point that gives GPUs settings of their own. Returns the first cap that a GPU replaced by a lower one, with the index
    /// of the GPU.
    pub fn set(
        &mut self,
        lease: &mut Lease<'_>,
        point: usize,
        each: Option<Vec<Settings>>,
    ) -> Result<Option<ReducedCap>, (usize, GuardError)> {
        let mut reduced = None;
        let wanted = each.unwrap_or_else(|| self.space.of_gpus[point].clone());
        for (index, settings) in wanted.iter().enumerate() {
            let error = match self.set_one(lease, index, settings) {
                Ok(cap) => {
                    reduced = reduced.or(cap.map(|cap| (index, cap)));
                    continue;
                }
                Err(error) => error,
            };
            let before = self.present.iter().flatten().enumerate();
            for (earlier, settings) in before.take(index + 1) {
                let _ = self.set_one(lease, earlier, settings);
            }
            return Err((index, error));
        }
        self.present = Some(wanted);
        Ok(reduced)
    }

    /// Applies settings to the GPU with this index, unless it no longer responds.
    fn set_one(
        &self,
        lease: &mut Lease<'_>,
        index: usize,
        settings: &Settings,
    ) -> Result<Option<AppliedKnob<Watts>>, GuardError> {
        if self.lost.contains(&index) {
            return Ok(None);
        }
        let device = &self.gpus[index].descriptor().id;
        lease.set(device, settings)
    }
}
