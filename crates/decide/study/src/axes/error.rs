//! Why the axes of a study cannot be explored.

use sweetspot_device::Knob;

use super::AxisError;
use crate::Axis;

/// Why the axes of a study cannot be explored.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AxesError {
    /// The values of a knob cannot be used.
    #[error("{axis}: {problem}")]
    Axis {
        /// The knob concerned.
        axis: Axis,
        /// What is wrong with the values of the knob.
        problem: AxisError,
    },
    /// The job cannot use one of these numbers of GPUs.
    #[error("gpus {text}: {problem}")]
    GpuCount {
        /// The numbers as the user wrote them.
        text: String,
        /// What is wrong with them.
        problem: String,
    },
    /// A parameter of the workload cannot be varied.
    #[error("axis {name}: {problem}")]
    Parameter {
        /// The parameter's name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The reference is not a configuration of these devices.
    #[error("reference {text}: {problem}")]
    Reference {
        /// The reference as the user wrote it.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The number of power caps in a list is not the number of GPUs of the job.
    #[error("power-cap {value}: {caps} caps, one for each GPU, but the job has {} GPUs", gpus.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))]
    CapList {
        /// The caps as the user wrote them.
        value: String,
        /// The number of caps.
        caps: usize,
        /// The numbers of GPUs on the axis.
        gpus: Vec<u64>,
    },
    /// GPUs of several kinds have no values in common.
    #[error("{axis} needs GPUs of one kind, but these differ: {gpus}")]
    MixedGpus {
        /// The knob concerned.
        axis: Axis,
        /// The names of the GPUs.
        gpus: String,
    },
    /// The device has no such knob.
    #[error("{device}: it has no {knob} that can be set")]
    NotSettable {
        /// The name of the device.
        device: String,
        /// The knob concerned.
        knob: Knob,
    },
    /// An axis needs a change of device settings, which read-only mode forbids.
    #[error("read-only: this study would change device settings, which read-only mode forbids")]
    ReadOnly,
    /// In read-only mode, no axis is given that needs no change of device settings.
    #[error(
        "read-only: vary what needs no device setting: a parameter of the workload, or the number of GPUs"
    )]
    NothingToVary,
    /// The study has too many runs.
    #[error("the study has {count} runs, more than {limit}: use a larger step or fewer repeats")]
    TooManyRuns {
        /// The number of runs.
        count: usize,
        /// The maximum number of runs.
        limit: usize,
    },
}
