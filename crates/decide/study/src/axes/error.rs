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
        /// The knob.
        axis: Axis,
        /// What is wrong with its values.
        problem: AxisError,
    },
    /// A number of GPUs is not available.
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
    /// There are caps for another number of GPUs than the job has.
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
        /// The knob.
        axis: Axis,
        /// The names of the GPUs.
        gpus: String,
    },
    /// The device has no such knob.
    #[error("{device}: it has no {knob} that can be set")]
    NotSettable {
        /// The name of the device.
        device: String,
        /// The knob.
        knob: Knob,
    },
    /// An axis needs a device setting where none may be changed.
    #[error("read-only: this study would change device settings, which read-only mode forbids")]
    ReadOnly,
    /// There is nothing to vary that needs no device setting.
    #[error(
        "read-only: vary what needs no device setting: a parameter of the workload, or the number of GPUs"
    )]
    NothingToVary,
    /// The study has too many runs.
    #[error("the study has {count} runs, more than {limit}: use a larger step or fewer repeats")]
    TooManyRuns {
        /// The number of runs.
        count: usize,
        /// The largest number that is allowed.
        limit: usize,
    },
}
