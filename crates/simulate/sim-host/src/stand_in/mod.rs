//! `sim-workload`: a program that behaves like a training or serving program, in real time, on the GPUs of a simulated
//! host.

mod error;
mod gpu_job;
mod llm;
mod marks;
mod progress;
mod rank;
mod serve;
mod training;

pub use error::StandInError;
pub use llm::{ServeLlmRequest, ServedLlm};
pub use serve::Serving;

use std::io::Write;

use sweetspot_quantity::{Joules, Seconds};
use sweetspot_sim::{AllReduce, GpuProfile, Variant, Workload, has_workloads};

use crate::{Host, SharedGpu};
use marks::PhaseMarks;
use progress::ProgressPrinter;
use rank::Rank;
use training::{run_alone, run_together};

/// When `sim-workload` has done enough work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// After as many items as in the study that the profile was fitted to.
    Study,
    /// After this many items, all ranks together.
    Items(u64),
    /// After this time.
    For(Seconds),
}

/// A request to run `sim-workload`.
#[derive(Clone, Debug, PartialEq)]
pub struct StandInRequest {
    /// The network's name, or the path of a workload profile.
    pub network: String,
    /// The variant of the workload (training or inference, convolution algorithm, data set), if the user names one.
    pub variant: Variant,
    /// The batch size; that of the profile if `None`. It is the batch of each rank, or of all ranks together
    /// if the workload splits a batch.
    pub batch: Option<u64>,
    /// The number of processes of a data-parallel job, or of GPUs that divide each batch of a serving program.
    pub ranks: usize,
    /// When the program has done enough work and exits.
    pub amount: Amount,
    /// How requests arrive and are served; `None` for a training program. Sweetspot sets the batch size
    /// of a serving program, unless `batch` is given.
    pub serving: Option<Serving>,
}

/// The work that `sim-workload` has done.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The number of items that all ranks completed together.
    pub items: u64,
    /// The time from the start of the first iteration to the end of the last.
    pub time: Seconds,
    /// The exact energy of the job's GPUs in that time, without sensor errors.
    pub energy: Joules,
    /// The 99th percentile of the requests' latency; `None` if there were no requests.
    pub p99: Option<Seconds>,
}

/// Finds a workload by its name, the study that is preferred, its variant, and the name and profile of each GPU.
pub type FindWorkload = dyn Fn(
    &str,
    Option<&str>,
    &Variant,
    &[(String, GpuProfile)],
) -> Result<Workload, Box<dyn std::error::Error + Send + Sync>>;

/// Runs `sim-workload`, which prints its progress to `out` as a training script does.
pub fn run_stand_in(
    request: &StandInRequest,
    find: &FindWorkload,
    out: &mut impl Write,
) -> Result<Finished, StandInError> {
    let host = Host::from_environment().ok_or(StandInError::NoHost)??;
    let visible = visible_gpus(&host, std::env::var("CUDA_VISIBLE_DEVICES").ok())?;
    if visible.len() < request.ranks {
        return Err(StandInError::TooFewGpus {
            ranks: request.ranks,
            visible: visible.len(),
        });
    }
    let gpus = &visible[..request.ranks];
    let workload = find_on_host(&host, gpus, request, find)?;
    if let Some(serving) = &request.serving {
        return serve::serve(request, serving, &workload, gpus, out);
    }
    let mut ranks = Vec::new();
    for (index, gpu) in gpus.iter().enumerate() {
        let marks = PhaseMarks::new((request.ranks > 1).then_some(index as u32))?;
        ranks.push(Rank::new(gpu, &workload, request, marks)?);
    }
    let node = host.node().map(|(_, node)| node);
    let all_reduce = AllReduce::of_node(node);
    let models: Vec<&str> = gpus.iter().map(|gpu| gpu.profile().name.as_str()).collect();
    let exchange = all_reduce.exchange_between(&models, workload.profile.gradients);
    match ranks.as_slice() {
        [rank] => {
            let mut printer = ProgressPrinter::new(out, Some(&rank.marks));
            let finished = run_alone(rank, request.amount, &mut printer)?;
            printer.report(finished.items);
            Ok(finished)
        }
        // Each rank reports its own items.
        ranks => {
            let mut printer = ProgressPrinter::new(out, None);
            run_together(ranks, request.amount, exchange, &mut printer)
        }
    }
}

/// Serves a simulated language model on the first GPU that the program may use, and prints its progress to `out`.
pub fn run_llm_stand_in(
    request: &ServeLlmRequest,
    out: &mut impl Write,
) -> Result<ServedLlm, StandInError> {
    let host = Host::from_environment().ok_or(StandInError::NoHost)??;
    let visible = visible_gpus(&host, std::env::var("CUDA_VISIBLE_DEVICES").ok())?;
    let gpu = visible.first().ok_or(StandInError::TooFewGpus {
        ranks: 1,
        visible: 0,
    })?;
    llm::serve(request, gpu, out)
}

/// Finds the workload: that of the node's study if it has workloads, otherwise that of the first GPU's study.
fn find_on_host(
    host: &Host,
    gpus: &[&SharedGpu],
    request: &StandInRequest,
    find: &FindWorkload,
) -> Result<Workload, StandInError> {
    let of_node = host.node().map(|(name, _)| name.as_str());
    let study = of_node.filter(|study| has_workloads(study));
    let study = study.or(gpus.first().and_then(|gpu| gpu.profile().study.as_deref()));
    let named = gpus
        .iter()
        .map(|gpu| (gpu.name().to_owned(), gpu.profile().clone()));
    let named: Vec<_> = named.collect();
    find(&request.network, study, &request.variant, &named).map_err(StandInError::Workload)
}

/// The GPUs that a CUDA program would see if `CUDA_VISIBLE_DEVICES` had this value, in CUDA's order. As in
/// CUDA, an unknown name ends the list.
fn visible_gpus(host: &Host, variable: Option<String>) -> Result<Vec<&SharedGpu>, StandInError> {
    let Some(variable) = variable else {
        return Ok(host.gpus().iter().collect());
    };
    let named = |text: &str| {
        let text = text.trim();
        host.gpus().iter().find(|gpu| match text.parse::<usize>() {
            Ok(index) => gpu.index() == index,
            Err(_) => text.starts_with("GPU-") && gpu.uuid().starts_with(text),
        })
    };
    let visible: Vec<_> = variable.split(',').map_while(named).collect();
    if visible.is_empty() {
        return Err(StandInError::VisibleDevices(variable));
    }
    Ok(visible)
}

/// Converts nanoseconds to a time.
fn seconds(nanoseconds: u64) -> Seconds {
    Seconds::new(nanoseconds as f64 * 1e-9)
}
