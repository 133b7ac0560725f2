//! Finds the GPUs of a job by the numbers that Slurm gives them.

use sweetspot_device::{Amount, SensorKind};

use super::JobGpu;
use crate::SessionError;
use crate::host::{all_gpus, open_host};

/// The GPUs of a job on this node.
#[derive(Debug, Default)]
pub struct FoundGpus {
    /// The GPUs, and what their energy counters show now.
    pub gpus: Vec<JobGpu>,
    /// Why these are not all GPUs of the job, or why that is unknown.
    pub problem: Option<String>,
}

/// Finds the GPUs with these numbers, and reads their energy counters.
pub fn find_gpus(indices: &[u32]) -> FoundGpus {
    if indices.is_empty() {
        return FoundGpus::default();
    }
    read_gpus(indices).unwrap_or_else(|problem| FoundGpus {
        gpus: Vec::new(),
        problem: Some(problem.to_string()),
    })
}

/// Does the same; an error is that of the driver.
fn read_gpus(indices: &[u32]) -> Result<FoundGpus, SessionError> {
    let mut found = FoundGpus::default();
    let mut has_slices = false;
    for mut gpu in all_gpus(open_host()?.as_ref())? {
        let descriptor = gpu.descriptor().clone();
        let index = device_number(gpu.pci_address().as_deref()).unwrap_or_else(|| gpu.index());
        has_slices |= descriptor.parent.is_some();
        if descriptor.parent.is_some() || gpu.is_lost() || !indices.contains(&index) {
            continue;
        }
        let counter = gpu.read(SensorKind::EnergyCounter).ok();
        found.gpus.push(JobGpu {
            index,
            uuid: descriptor.id,
            name: descriptor.name,
            counter_at_start_j: counter.and_then(|reading| match reading.amount {
                Amount::Energy(energy) => Some(energy.get()),
                _ => None,
            }),
            energy_j: None,
        });
    }
    if has_slices {
        // Slurm then counts slices, and its numbers name other GPUs than those of the job.
        return Ok(FoundGpus {
            gpus: Vec::new(),
            problem: Some(
                "GPUs of this node are divided by MIG, and a slice has no settings of its own"
                    .to_owned(),
            ),
        });
    }
    let is_found = |index: &&u32| found.gpus.iter().any(|gpu| gpu.index == **index);
    let missing = indices.iter().filter(|index| !is_found(index));
    let missing: Vec<String> = missing.map(u32::to_string).collect();
    found.problem = (!missing.is_empty()).then(|| {
        format!(
            "GPU {} of the job was not found on this node, or no longer responds",
            missing.join(", ")
        )
    });
    Ok(found)
}

/// The number N of a GPU's device file `/dev/nvidiaN`, by which Slurm names it; NVML may count in another order. `None` if
/// the driver does not tell, as on a simulated host.
fn device_number(pci_address: Option<&str>) -> Option<u32> {
    let address = pci_address?.to_lowercase();
    let file = format!("/proc/driver/nvidia/gpus/{address}/information");
    let text = std::fs::read_to_string(file).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Device Minor:"));
    line?.trim().parse().ok()
}
