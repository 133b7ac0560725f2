//! What a network costs: on paper, at best on a GPU, and in a study that ran it.

use std::path::Path;

use sweetspot_network::{
    Bound, Cost, Efficiency, GpuCeilings, Network, NetworkError, OnnxOptions, Precision, Shape,
    find, read_onnx, roofline,
};
use sweetspot_quantity::{FlopsPerSecond, Joules, Seconds};
use sweetspot_sim::{CatalogueError, GpuProfile, find_gpu, gpus};
use sweetspot_study::{Axis, Configuration, EnergyOf, Study};

/// What was asked for cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum NetworkUseError {
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The GPU.
    #[error(transparent)]
    Gpu(#[from] CatalogueError),
    /// The GPU does not compute in this precision, or not faster than in fp32.
    #[error("{gpu} has no peak for {precision}; it has {}", offered.join(", "))]
    Precision {
        /// Its name.
        gpu: String,
        /// What was asked for.
        precision: Precision,
        /// What it has.
        offered: Vec<String>,
    },
    /// A built-in network has one input, and its size is fixed.
    #[error("--input is for ONNX files: the sizes of `{0}` are in its description")]
    InputOfBuiltIn(String),
    /// The study is of another network.
    #[error("the study ran {ran}, not {asked}")]
    OtherNetwork {
        /// In the study.
        ran: String,
        /// What was asked for.
        asked: String,
    },
    /// Nothing can be said per item.
    #[error("no configuration of the study has items and energy: give the sweep --items")]
    NoItems,
}

/// A built-in network by name, a description or an ONNX file by path.
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

/// A network at best on a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct OnGpu {
    /// The profile's name.
    pub name: String,
    /// The product's name.
    pub product: String,
    /// What it can do.
    pub ceilings: GpuCeilings,
    /// The least that each layer takes.
    pub layers: Vec<Bound>,
    /// The least that all take, one after the other.
    pub total: Bound,
}

/// The least time and energy by the roofline of a GPU at its default clocks.
pub fn on_gpu(gpu: &str, cost: &Cost<'_>) -> Result<OnGpu, NetworkUseError> {
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
            offered: ["fp32".to_owned()].into_iter().chain(others).collect(),
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
    Ok(OnGpu {
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

/// How well a study's configurations used their energy.
#[derive(Clone, Debug, PartialEq)]
pub struct InStudy {
    /// The study's title.
    pub study: String,
    /// Whose energy counts.
    pub energy_of: EnergyOf,
    /// Floating-point operations of an item.
    pub flops_per_item: f64,
    /// The profile that peaks are from, where the study's GPU has one.
    pub gpu: Option<String>,
    /// What differs between configurations.
    pub axes: Vec<Axis>,
    /// A row for each configuration that is known to have done so many items.
    pub rows: Vec<StudyRow>,
}

/// One configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyRow {
    /// What was set.
    pub configuration: Configuration,
    /// Mean energy of an item.
    pub energy_per_item: Joules,
    /// Mean time of an item.
    pub time_per_item: Seconds,
    /// What follows.
    pub efficiency: Efficiency,
}

/// GFLOPS per watt at the measured energy, against the peak of the GPU and against SGEMM.
///
/// Under the paper's conventions only forward operations count, also where the energy is that of training:
/// that is how table 11 of multi_gpu_2018 is made.
pub fn in_study(
    study: &Study,
    network: &Network,
    cost: &Cost<'_>,
) -> Result<InStudy, NetworkUseError> {
    let ran = study.subject.workload.network.as_deref();
    if let Some(ran) = ran.filter(|ran| *ran != network.name && find(&network.name).is_ok()) {
        return Err(NetworkUseError::OtherNetwork {
            ran: ran.to_owned(),
            asked: network.name.clone(),
        });
    }
    let total = match cost.convention.follows_paper() {
        true => cost.forward(),
        false => cost.total(),
    };
    let flops = cost.flops(&total.operations) as f64 / cost.batch.max(1) as f64;
    let found = profile_of(study)?;
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
    Ok(InStudy {
        study: study.name(),
        energy_of: study.energy_of(),
        flops_per_item: flops,
        gpu: found.map(|(name, _)| name),
        axes: study.varied_axes(),
        rows,
    })
}

/// The profile of the study's GPU: the one it was simulated with, or that of the product; none where several
/// kinds worked together.
fn profile_of(study: &Study) -> Result<Option<(String, GpuProfile)>, NetworkUseError> {
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
