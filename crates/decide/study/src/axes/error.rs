//! Why the axes of a study cannot be explored.

use sweetspot_device::Knob;

use super::AxisError;
use crate::Axis;

/// Why the axes that the user gave do not define a study.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AxesError {
    /// The values of a knob cannot be used.
    #[error("{axis}: {problem}")]
    Axis {
        /// The knob whose values cannot be used.
        axis: Axis,
        /// What is wrong with the values of the knob.
        problem: AxisError,
    },
    /// The job cannot use one of these numbers of GPUs.
    #[error("gpus {text}: {problem}")]
    GpuCount {
        /// The numbers as the user wrote them.
        text: String,
        /// What is wrong with the numbers.
        problem: String,
    },
    /// A parameter of the workload cannot be varied.
    #[error("axis {name}: {problem}")]
    Parameter {
        /// The name of the parameter.
        name: String,
        /// What is wrong with the parameter.
        problem: String,
    },
    /// The reference is not a configuration of these devices.
    #[error("reference {text}: {problem}")]
    Reference {
        /// The reference as the user wrote it.
        text: String,
        /// What is wrong with the reference.
        problem: String,
    },
    /// The number of power caps in a list is not the number of GPUs of the job.
    #[error("power-cap {value}: {caps} caps, one for each GPU, but the job has {} GPUs", gpus.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))]
    CapList {
        /// The list of power caps as the user wrote it.
        value: String,
        /// The number of power caps in the list.
        caps: usize,
        /// The numbers of GPUs that the study tries.
        gpus: Vec<u64>,
    },
    /// The axis needs GPUs of one kind, because different GPUs support different values.
    #[error("{axis} needs GPUs of one kind, but these differ: {gpus}")]
    MixedGpus {
        /// The axis that needs GPUs of one kind.
        axis: Axis,
        /// The names of the GPUs.
        gpus: String,
    },
    /// The device has no such knob, or it cannot be set.
    #[error("{device} has no {knob} that can be set")]
    NotSettable {
        /// The name of the device.
        device: String,
        /// The knob that cannot be set.
        knob: Knob,
    },
    /// There is no processor package whose power cap can be set.
    #[error(
        "cpu-power-cap: no processor package of this machine has a power cap that can be set; `sweetspot devices` lists them"
    )]
    NoPackageCap,
    /// An axis needs a change of device settings, which read-only mode forbids.
    #[error(
        "this study changes device settings, which read-only mode forbids: remove those axes, or read-only mode"
    )]
    ReadOnly,
    /// In read-only mode, a study needs an axis that changes no device setting, and none is given.
    #[error(
        "in read-only mode, device settings cannot be varied: vary a parameter of the workload, or the number of GPUs"
    )]
    NothingToVary,
    /// The study has too many runs.
    #[error("the study has {count} runs, more than {limit}: use a larger step or fewer repeats")]
    TooManyRuns {
        /// The number of runs that the study would have.
        count: usize,
        /// The maximum number of runs that a study may have.
        limit: usize,
    },
}
