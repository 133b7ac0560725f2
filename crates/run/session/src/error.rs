//! Why a request could not be met.

use sweetspot_sim::{CatalogueError, JobError};
use sweetspot_study::AxisError;
use sweetspot_workload::WorkloadError;

use crate::published::PublishedError;

/// Why a request could not be met: always something the user can change.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A profile that is not there or cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The configuration of a hold is invalid.
    #[error(transparent)]
    HoldConfig(#[from] sweetspot_control::hold::HoldConfigError),
    /// An axis that cannot be explored.
    #[error("{flag}: {problem}")]
    Axis {
        /// As it is given.
        flag: &'static str,
        /// What is wrong.
        problem: AxisError,
    },
    /// A number of GPUs that cannot be had.
    #[error("--gpus {axis}: {problem}")]
    Count {
        /// As written.
        axis: String,
        /// What is wrong.
        problem: String,
    },
    /// A parameter that cannot be varied.
    #[error("--axis {name}: {problem}")]
    Parameter {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A reference that cannot be had.
    #[error("--reference {text}: {problem}")]
    Reference {
        /// As written.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// Caps for another number of GPUs.
    #[error("--power-cap {value}: {caps} caps, one for each GPU, and the job has {} GPUs", gpus.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))]
    CapList {
        /// As written.
        value: String,
        /// How many.
        caps: usize,
        /// On the axis.
        gpus: Vec<u64>,
    },
    /// Something that cannot be judged.
    #[error("{flag}: {problem}")]
    Question {
        /// As it is given.
        flag: String,
        /// Why.
        problem: String,
    },
    /// A real command on a simulated GPU.
    #[error(
        "--simulate runs in virtual time and cannot run a command: give --network NAME in place of `-- CMD`"
    )]
    CommandInVirtualTime,
    /// Neither a command nor a simulated GPU.
    #[error(
        "nothing to run: give your command after `--`, or a simulated GPU with --simulate (`sweetspot simulate --list` shows them)"
    )]
    NothingToRun,
    /// The node's energy without a meter.
    #[error("--energy-of node needs a meter at the wall, and there is none here: use all-gpus")]
    NoMeter,
    /// Something was not put back.
    #[error("not every setting could be put back: try `sweetspot restore`; the study is kept")]
    NotRestored,
    /// A simulated GPU without work.
    #[error(
        "--simulate needs a workload: add --network NAME (`sweetspot simulate --list` shows them)"
    )]
    NoNetwork,
    /// A description of a network.
    #[error(transparent)]
    Network(#[from] sweetspot_network::NetworkError),
    /// The study.
    #[error(transparent)]
    Store(#[from] sweetspot_study::StoreError),
    /// A study that cannot go on as it was.
    #[error("the study cannot go on: {0}; begin a new one")]
    Changed(&'static str),
    /// A command's placeholders.
    #[error(transparent)]
    Template(#[from] sweetspot_study::TemplateError),
    /// A file of the study.
    #[error("cannot write {}: {problem}; what was run before is kept", file.display())]
    Keep {
        /// Which.
        file: std::path::PathBuf,
        /// What the system says.
        problem: std::io::Error,
    },
    /// The system gives no thread.
    #[error("no thread to compute with: end other programs and try again")]
    NoThread,
    /// No GPU and no node was named.
    #[error("no simulated GPU: name one, or a node that has some")]
    NoSimulatedGpu,
    /// The node's energy without a node.
    #[error(
        "--energy-of node needs to know what stands around the GPUs: name a node with --node (`sweetspot simulate --list` shows them)"
    )]
    NodeEnergy,
    /// GPUs of several kinds share no axis.
    #[error("{flag} needs GPUs of one kind, and these are of several: {gpus}")]
    Mixed {
        /// As it is given.
        flag: &'static str,
        /// Which.
        gpus: String,
    },
    /// A workload that does not fit its GPU.
    #[error("{workload}: {problem}")]
    Job {
        /// Which workload.
        workload: String,
        /// What is wrong.
        problem: JobError,
    },
    /// More runs than anybody means.
    #[error("the study has {count} runs, more than {limit}: take a larger step or fewer repeats")]
    TooManyRuns {
        /// How many.
        count: usize,
        /// The most.
        limit: usize,
    },
    /// The reference failed, so that there is nothing to compare with.
    #[error("the reference of {study} failed: {reason}")]
    NothingRan {
        /// Which study.
        study: String,
        /// What the first failure was.
        reason: String,
    },
    /// The host's GPUs cannot be reached.
    #[error(transparent)]
    Gpus(#[from] sweetspot_device::HostError),
    /// A GPU that was found cannot be opened again.
    #[error(transparent)]
    Open(#[from] sweetspot_device::OpenError),
    /// No GPU at all.
    #[error("there is no NVIDIA GPU on this machine")]
    NoGpu,
    /// `--device` that names nothing.
    #[error("{selector}: {problem}")]
    Device {
        /// As written.
        selector: String,
        /// What is wrong.
        problem: sweetspot_device::SelectError,
    },
    /// A setting that a device does not offer.
    #[error("{device}: {problem}")]
    Setting {
        /// Which device.
        device: String,
        /// What is wrong.
        problem: String,
    },
    /// A device that is there but does not answer.
    #[error(
        "{0}: the device is lost: it no longer answers; a reboot or `nvidia-smi --gpu-reset` may bring it back"
    )]
    Lost(String),
    /// A write was asked for where none is allowed.
    #[error(
        "read-only: no device setting is changed while --read-only or SWEETSPOT_READ_ONLY is set"
    )]
    ReadOnly,
    /// Nothing to vary where nothing may be set.
    #[error("read-only: vary what needs no device setting, with --axis NAME=VALUES or --gpus")]
    NoAxis,
    /// Nothing to set.
    #[error("nothing to set: give --power-cap, --core-clock or --memory-clock")]
    NothingToSet,
    /// The command, or the lease of the devices that it runs on.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The link of a stand-in workload.
    #[error(transparent)]
    Link(#[from] sweetspot_link::LinkError),
    /// The threads that read the devices.
    #[error(transparent)]
    Sampler(#[from] sweetspot_measure::SamplerError),
    /// The command that comes before each run.
    #[error("the command of --prepare failed ({0})")]
    Prepare(String),
    /// A GPU that does not get cool.
    #[error(
        "{device} is still at {temperature} after {minutes} min, and no run is to begin above {wanted}: improve its cooling or choose a higher --cool-to"
    )]
    TooHot {
        /// Which.
        device: String,
        /// How hot.
        temperature: sweetspot_quantity::Celsius,
        /// How hot it may be.
        wanted: sweetspot_quantity::Celsius,
        /// How long was waited.
        minutes: u64,
    },
    /// A signal ended a sweep.
    #[error("ended by signal {signal}: {done} of {planned} runs are kept")]
    Stopped {
        /// Which.
        signal: i32,
        /// Runs that are kept.
        done: usize,
        /// Runs in all.
        planned: usize,
        /// Whether every device is as before.
        restored: bool,
    },
    /// Something in the definition of a study.
    #[error("{0}")]
    Definition(String),
    /// The same.
    #[error(transparent)]
    Defined(#[from] sweetspot_study::DefinitionError),
    /// A study that was put together from others.
    #[error("a merged study has no sweep of its own to go on with: sweep anew, and merge")]
    Merged,
    /// The system.
    #[error("{what}: {problem}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What it says.
        problem: std::io::Error,
    },
    /// A list of simulated GPUs that cannot be made.
    #[error("--gpu {selector}: {problem}")]
    SimulatedGpus {
        /// As written.
        selector: String,
        /// What is wrong.
        problem: String,
    },
    /// The folder of a simulated host.
    #[error("cannot make a simulated host in {}: {problem}", folder.display())]
    HostFolder {
        /// Where.
        folder: std::path::PathBuf,
        /// What the system says.
        problem: String,
    },
    /// A simulated host that cannot be used.
    #[error(transparent)]
    Host(#[from] sweetspot_sim_host::HostError),
    /// A stand-in workload without a host to run on.
    #[error(
        "sim-workload runs on a simulated host: sweetspot simulate --gpu NAME -- sweetspot sim-workload ..."
    )]
    NoHost,
    /// More ranks than GPUs that the program may use.
    #[error("{ranks} ranks need as many GPUs, and {visible} {} visible", if *visible == 1 { "is" } else { "are" })]
    Ranks {
        /// Asked for.
        ranks: usize,
        /// There.
        visible: usize,
    },
    /// `CUDA_VISIBLE_DEVICES` that names nothing.
    #[error("CUDA_VISIBLE_DEVICES={0} names no GPU of this host: use indices or UUIDs")]
    Visible(String),
    /// Where progress is told.
    #[error("cannot print progress: {0}")]
    Print(std::io::Error),
    /// The published figures to compare with.
    #[error(transparent)]
    Published(#[from] PublishedError),
}

impl SessionError {
    /// The signal, where a signal ended the work before anything was measured.
    pub fn interrupted(&self) -> Option<i32> {
        match self {
            Self::Workload(WorkloadError::Interrupted(signal)) => Some(*signal),
            _ => None,
        }
    }

    /// What to say of a guard that is gone, once it is known what became of the devices.
    pub(crate) fn after_release(self, restored: &Result<bool, WorkloadError>) -> Self {
        match self {
            Self::Workload(problem) => Self::Workload(problem.after_release(restored)),
            other => other,
        }
    }

    pub(crate) fn system(what: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |problem| Self::System { what, problem }
    }
}

impl From<sweetspot_guard::GuardError> for SessionError {
    fn from(error: sweetspot_guard::GuardError) -> Self {
        WorkloadError::from(error).into()
    }
}

impl From<sweetspot_guard::JournalError> for SessionError {
    fn from(error: sweetspot_guard::JournalError) -> Self {
        WorkloadError::from(error).into()
    }
}
