//! The cost of a network: its operations, its lower bounds on a GPU, and its efficiency in a study.

use std::path::Path;

use sweetspot_network::{
    Bound, Cost, Efficiency, GpuCeilings, Network, NetworkError, OnnxOptions, Precision, Shape,
    find, read_onnx, roofline,
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
    /// The GPU does not support this precision, or not faster than fp32.
    #[error("{gpu} has no peak for {precision}; it has {}", supported.join(", "))]
    Precision {
        /// The GPU's name.
        gpu: String,
        /// The requested precision.
        precision: Precision,
        /// The precisions with a peak.
        supported: Vec<String>,
    },
    /// Input sizes were given for a built-in network, whose sizes are fixed.
    #[error("input sizes are for ONNX files: the sizes of `{0}` are in its description")]
    InputOfBuiltIn(String),
    /// The study ran another network.
    #[error("the study ran {ran}, not {requested}")]
    OtherNetwork {
        /// The study's network.
        ran: String,
        /// The requested network.
        requested: String,
    },
    /// The energy per item is unknown.
    #[error("no configuration of the study has items and energy")]
    NoItems,
}

/// Loads a built-in network by name, or a description or an ONNX file by path.
pub fn load_network(name: &str, inputs: Vec<(String, Shape)>) -> Result<Network, NetworkUseError> {
    let extension = Path::new(name).extension();
    if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("onnx")) {
        return Ok(read_onnx(name, &OnnxOptions { inputs })?);
    }
    if !inputs.is_empty() {
        return Err(NetworkUseError::InputOfBuiltIn(name.to_owned()));
    }
    Ok(find(name)?)
}

/// The lower bounds of a network's time and energy on a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuBounds {
    /// The GPU profile's name.
    pub name: String,
    /// The product's name.
    pub product: String,
    /// The GPU's peak performance, bandwidth and power.
    pub ceilings: GpuCeilings,
    /// The lower bound of each layer.
    pub layers: Vec<Bound>,
    /// The lower bound of all layers, one after the other.
    pub total: Bound,
}

/// Computes the lower bounds from the roofline of a GPU at its default clocks.
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
    /// The devices whose energy counts.
    pub energy_of: EnergyOf,
    /// The floating-point operations of an item.
    pub flops_per_item: f64,
    /// The GPU profile that provides the peaks, if the study's GPU has one.
    pub gpu: Option<String>,
    /// The axes whose values differ between configurations.
    pub axes: Vec<Axis>,
    /// A row for each configuration with known items and energy.
    pub rows: Vec<StudyRow>,
}

/// The efficiency of one configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyRow {
    /// The configuration.
    pub configuration: Configuration,
    /// The mean energy of an item.
    pub energy_per_item: Joules,
    /// The mean time of an item.
    pub time_per_item: Seconds,
    /// The efficiency that follows from them.
    pub efficiency: Efficiency,
}

/// Computes GFLOPS per watt at the measured energy, and compares them with the GPU's peak and with SGEMM.
///
/// Under the paper's conventions only forward operations count, even for the energy of training, as in table 11
/// of multi_gpu_2018.
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

/// The profile of the study's GPU: the one it was simulated with, or that of the product; `None` if the GPUs differ.
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
