//! Parses lists of simulated GPUs, and computes the work of one item on a GPU.

use sweetspot_quantity::{BytesPerSecond, Ratio, Seconds};

use crate::{AllReduce, GpuProfile, JobError, NodeProfile, ScaledWork, Workload, find_gpu};

/// The maximum number of GPUs of a simulated host.
pub(crate) const MAX_GPUS: u64 = 64;

/// The error when a list of simulated GPUs cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("simulated GPUs `{list}`: {problem}")]
pub struct GpuListError {
    /// The list as the user wrote it.
    pub list: String,
    /// What is wrong with the list.
    pub problem: String,
}

/// Reads a list such as `v100:2,quadro_rtx_6000` and returns one name for each GPU.
pub fn parse_gpu_list(list: &str) -> Result<Vec<String>, GpuListError> {
    let error = |problem: String| GpuListError {
        list: list.to_owned(),
        problem,
    };
    let mut names = Vec::new();
    for part in list.split(',') {
        let (name, count) = match part.rsplit_once(':') {
            Some((name, count)) => {
                let count = count.parse::<u64>().map_err(|_| {
                    error(format!(
                        "`{count}` is not a valid number of GPUs: write NAME or NAME:N"
                    ))
                })?;
                (name, count)
            }
            None => (part, 1),
        };
        if count == 0 || count > MAX_GPUS || count + names.len() as u64 > MAX_GPUS {
            return Err(error(format!(
                "a simulated host can have 1 to {MAX_GPUS} GPUs"
            )));
        }
        names.extend((0..count).map(|_| name.to_owned()));
    }
    Ok(names)
}

/// The error when a workload cannot run on a GPU.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{workload}: {problem}")]
pub struct PlacementError {
    /// The name of the workload.
    pub workload: String,
    /// Why the workload cannot run on the GPU.
    pub problem: JobError,
}

impl Workload {
    /// The work of one item of this workload on a GPU.
    pub fn work_on(&self, gpu_name: &str, gpu: &GpuProfile) -> Result<ScaledWork, PlacementError> {
        let find = |name: &str| find_gpu(name).ok();
        ScaledWork::on(&self.profile, gpu_name, gpu, find)
            .map_err(|problem| self.cannot_run(problem))
    }

    /// Adds this workload's name to the error of a job.
    pub fn cannot_run(&self, problem: JobError) -> PlacementError {
        PlacementError {
            workload: self.name.clone(),
            problem,
        }
    }
}

impl AllReduce {
    /// The parameters with which the GPUs of a node exchange gradients. Without a node: a link of PCI Express 3.0 for
    /// each GPU, and no overlap with the backward pass.
    pub fn of_node(node: Option<&NodeProfile>) -> Self {
        match node {
            Some(node) => node.all_reduce.clone(),
            None => Self {
                bandwidth: BytesPerSecond::new(10e9),
                unlike_bandwidth: None,
                latency: Seconds::new(20e-6),
                overlap: Ratio::ZERO,
                activity: Ratio::ZERO,
                gpus_per_link: 1,
            },
        }
    }
}
