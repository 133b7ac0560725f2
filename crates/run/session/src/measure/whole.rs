//! The energy of the host and of the whole machine, beside that of the GPUs.

use sweetspot_device::{Descriptor, MeterTrace};
use sweetspot_measure::DeviceRecording;
use sweetspot_measure::math::{EnergyEstimator, Span};

use super::MeasureRequest;
use super::evaluate::{device_warnings, total_energy, window_energy};
use super::limits::load_limit;
use super::result::{DeviceRun, RunMeasurement, TotalEnergy};
use crate::calibrate::range_warnings;
use crate::node::node_energy;

/// The energy of the processors and their memory in the measurement window of a run.
#[derive(Clone, Debug)]
pub struct HostRun {
    /// The energy of each package and of the memory beside it.
    pub parts: Vec<DeviceRun>,
    /// The energy of all parts; `None` if that of a part is unknown.
    pub energy: Option<TotalEnergy>,
}

/// The devices that are measured beside the GPUs, and their readings.
pub(super) struct Surroundings<'a> {
    /// The parts of the host; empty if they were not asked for.
    pub host: &'a [Descriptor],
    /// The readings of the parts, in their order.
    pub host_recorded: &'a [DeviceRecording],
    /// The readings of the meters; `None` if there are none.
    pub meters: Option<Vec<MeterTrace>>,
}

impl Surroundings<'_> {
    /// Adds the energies of host and machine to a run, with their warnings.
    pub fn add_to(
        &self,
        run: &mut RunMeasurement,
        request: &MeasureRequest,
        gpus: &[DeviceRecording],
    ) {
        if !self.host.is_empty() {
            let parts: Vec<DeviceRun> = self
                .host
                .iter()
                .zip(self.host_recorded)
                .map(|(device, recorded)| {
                    let estimator = EnergyEstimator::new(&recorded.trace);
                    let energy = window_energy(request, &estimator, &run.window);
                    let limit = load_limit(recorded, &energy, &run.window);
                    let part = DeviceRun::new(device.clone(), energy, limit);
                    part.calibrated(&request.calibrations)
                })
                .collect();
            run.warnings.extend(
                parts
                    .iter()
                    .flat_map(|part| device_warnings(part, &run.window)),
            );
            run.warnings.extend(range_warnings(&parts));
            let energy = total_energy(&parts, &run.window);
            run.host = Some(HostRun { parts, energy });
        }
        if let Some(traces) = &self.meters {
            let fast = [gpus, self.host_recorded].concat();
            let node = node_energy(traces, &fast, run.energy.as_ref(), &run.window);
            run.warnings.extend(node_warnings(&node, &run.window));
            run.node = Some(node);
        }
    }
}

/// Warnings about the energy of the whole machine.
fn node_warnings(node: &Result<crate::NodeEnergy, String>, window: &Span) -> Vec<String> {
    match node {
        Ok(node) => node.warnings(window),
        Err(problem) => vec![format!(
            "the energy of the whole machine is unknown: {problem}"
        )],
    }
}
