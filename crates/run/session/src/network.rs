//! The cost of a neural network: its operations, the least time and energy on a GPU, and its efficiency in a study.

use sweetspot_network::{
    Bound, Cost, Efficiency, GpuCeilings, Network, NetworkError, Precision, find, roofline,
};
use sweetspot_quantity::{FlopsPerSecond, Joules, Seconds};
use sweetspot_sim::{CatalogueError, GpuProfile, find_gpu, gpus};
use sweetspot_study::{Axis, Configuration, EnergyOf, Study};

/// Why the cost of a network cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum NetworkUseError {
    /// The network cannot be read.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The GPU's profile cannot be read.
    #[error(transparent)]
    Gpu(#[from] CatalogueError),
    /// No peak performance is known for this precision: the GPU does not support it, or not faster than fp32.
    #[error("{gpu} has no peak performance for {precision}: use {}", supported.join(", "))]
    Precision {
        /// The name of the GPU's profile.
        gpu: String,
        /// The number format that was requested.
        precision: Precision,
        /// The precisions whose peak performance is known.
        supported: Vec<String>,
    },
    /// The study measured another network.
    #[error("the study measured the network {ran}, not {requested}")]
    OtherNetwork {
        /// The name of the network that the study measured.
        ran: String,
        /// The name of the network that the user asked for.
        requested: String,
    },
    /// The study has no configuration whose energy per item is known.
    #[error("no configuration of the study has both items and energy")]
    NoItems,
}

/// The least time and energy that a network needs on a GPU, from a roofline model.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuBounds {
    /// The GPU profile's name.
    pub name: String,
    /// The GPU's product name.
    pub product: String,
    /// The GPU's peak performance, bandwidth and power.
    pub ceilings: GpuCeilings,
    /// The least time and energy of each layer.
    pub layers: Vec<Bound>,
    /// The sum of the least times and energies of all layers, which run one after the other.
    pub total: Bound,
}

/// Computes the least time and energy of each layer with the roofline model of a GPU at its default clocks.
pub fn bounds_on_gpu(gpu: &str, cost: &Cost<'_>) -> Result<GpuBounds, NetworkUseError> {
    let (name, profile) = find_gpu(gpu)?;
    let Some(matrix) = peak(&profile, cost.precision) else {
        let named = [
            (Precision::Tf32, profile.peak.tf32),
            (Precision::Fp16, profile.peak.fp16),
            (Precision::Bf16, profile.peak.bf16),
            (Precision::Int8, profile.peak.int8),
        ];
        let others = named.into_iter().filter(|(_, peak)| peak.is_some());
        let others = others.map(|(precision, _)| precision.to_string());
        return Err(NetworkUseError::Precision {
            gpu: name,
            precision: cost.precision,
            supported: ["fp32".to_owned()].into_iter().chain(others).collect(),
        });
    };
    let ceilings = GpuCeilings {
        matrix,
        vector: profile.peak_fp32(),
        bandwidth: profile.memory.bandwidth,
        base: profile.power.idle + profile.power.context,
        core: profile.power.core,
        memory: profile.power.memory,
    };
    let (layers, total) = roofline(cost, &ceilings);
    Ok(GpuBounds {
        name,
        product: profile.name,
        ceilings,
        layers,
        total,
    })
}

/// The GPU's peak performance with this precision; `None` if it is unknown.
fn peak(profile: &GpuProfile, precision: Precision) -> Option<FlopsPerSecond> {
    match precision {
        Precision::Fp32 => Some(profile.peak_fp32()),
        Precision::Tf32 => profile.peak.tf32,
        Precision::Fp16 => profile.peak.fp16,
        Precision::Bf16 => profile.peak.bf16,
        Precision::Int8 => profile.peak.int8,
    }
}

/// The energy efficiency of a study's configurations.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyEfficiency {
    /// The study's title.
    pub study: String,
    /// Whose energy is used: that of the job's GPUs, of all GPUs or of the whole node.
    pub energy_of: EnergyOf,
    /// The number of floating-point operations for one item.
    pub flops_per_item: f64,
    /// The name of the GPU profile with the peak performance; `None` if the study's GPU has no profile.
    pub gpu: Option<String>,
    /// The axes on which the configurations differ.
    pub axes: Vec<Axis>,
    /// A row for each configuration with known items and energy.
    pub rows: Vec<StudyRow>,
}

/// The energy efficiency of one configuration of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyRow {
    /// The configuration: settings and parameters of the runs.
    pub configuration: Configuration,
    /// The mean energy per item of the configuration's runs.
    pub energy_per_item: Joules,
    /// The mean time per item of the configuration's runs.
    pub time_per_item: Seconds,
    /// The efficiency computed from the energy and time per item.
    pub efficiency: Efficiency,
}

/// Computes the GFLOPS per watt of each configuration from its measured energy, and compares them with the GPU's peak
/// and with SGEMM.
///
/// As in table 11 of the paper multi_gpu_2018, only the operations of the forward pass count, even for the energy of
/// training.
pub fn efficiency_in_study(
    study: &Study,
    network: &Network,
    cost: &Cost<'_>,
) -> Result<StudyEfficiency, NetworkUseError> {
    let ran = study.subject.workload.network.as_deref();
    if let Some(ran) = ran.filter(|ran| *ran != network.name && find(&network.name).is_ok()) {
        return Err(NetworkUseError::OtherNetwork {
            ran: ran.to_owned(),
            requested: network.name.clone(),
        });
    }
    let total = match cost.convention.follows_paper() {
        true => cost.forward(),
        false => cost.total(),
    };
    let flops = cost.flops(&total.operations) as f64 / cost.batch.max(1) as f64;
    let found = gpu_profile(study)?;
    let peak = found
        .as_ref()
        .and_then(|(_, gpu)| peak(gpu, cost.precision));
    let sgemm = found
        .as_ref()
        .and_then(|(_, gpu)| gpu.peak.sgemm_gflops_per_watt);
    let row = |point: &sweetspot_study::Point| {
        let outcome = point.outcome()?;
        let (items, energy) = (outcome.items?, outcome.energy?);
        let (energy, time) = (energy / items, outcome.time / items);
        let gpus = point.configuration.gpus;
        let efficiency = Efficiency::of(flops, energy, time, gpus, peak, sgemm);
        Some(StudyRow {
            configuration: point.configuration.clone(),
            energy_per_item: energy,
            time_per_item: time,
            efficiency,
        })
    };
    let rows: Vec<StudyRow> = study.points.iter().filter_map(row).collect();
    if rows.is_empty() {
        return Err(NetworkUseError::NoItems);
    }
    Ok(StudyEfficiency {
        study: study.name(),
        energy_of: study.energy_of(),
        flops_per_item: flops,
        gpu: found.map(|(name, _)| name),
        axes: study.varied_axes(),
        rows,
    })
}

/// The name and profile of the study's GPU: the profile it was simulated with, or the one of the same product. `None`
/// if there is no such profile, or if the study's GPUs differ from each other.
fn gpu_profile(study: &Study) -> Result<Option<(String, GpuProfile)>, NetworkUseError> {
    let devices = &study.subject.devices;
    let Some(product) = devices.first().map(|device| &device.name) else {
        return Ok(None);
    };
    if devices.iter().any(|device| device.name != *product) {
        return Ok(None);
    }
    let named = study
        .subject
        .device_name
        .split(':')
        .next()
        .unwrap_or_default();
    if let Ok(found) = find_gpu(named) {
        return Ok(Some(found));
    }
    Ok(gpus()?.into_iter().find(|(_, gpu)| gpu.name == *product))
}
