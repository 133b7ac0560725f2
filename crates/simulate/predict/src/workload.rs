//! Networks as workloads of the simulator.

use std::path::Path;

use sweetspot_network::{Network, NetworkError, Precision, Shape, find, load};
use sweetspot_quantity::{Bytes, Ratio, Seconds};
use sweetspot_sim::{
    CatalogueError, GpuProfile, ItemWork, IterationWork, MemoryNeed, Mode, PhaseShare, Variant,
    Workload, WorkloadProfile, find_gpu,
};

use crate::prediction::{PredictionError, Predictor};
use crate::rates::has_predictions;

/// The study in the name of a predicted workload: `resnet50@predicted`.
const STUDY: &str = "predicted";
/// The batch size if the user gives none, if that many items fit into the memory.
const DEFAULT_BATCH: u64 = 64;
/// The largest batch whose work is predicted; that of larger ones is proportional to it.
const LARGEST_BATCH: u64 = 4096;
/// The time of a run at the default settings if the user gives no number of items.
const RUN_TIME: Seconds = Seconds::new(60.0);
/// A gradient is exchanged with this many bytes.
const BYTES_PER_GRADIENT: f64 = 4.0;

/// Why a workload cannot be found or predicted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// There is no such profile.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The network cannot be read.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The cost of the network cannot be predicted.
    #[error(transparent)]
    Prediction(#[from] PredictionError),
}

/// Finds a workload for these GPUs: a profile, as [`sweetspot_sim::find_workload`] does, or else a network whose cost is
/// predicted. That is an ONNX file, a description (`.net`), a built-in network that has no profile for the GPU, or any
/// built-in network as `NETWORK@predicted`. Sizes of inputs may follow, as in `model.onnx:x=1x3x224x224`.
pub fn find_workload(
    name: &str,
    study: Option<&str>,
    variant: &Variant,
    gpus: &[(String, GpuProfile)],
) -> Result<Workload, WorkloadError> {
    let (network_name, inputs) = split_inputs(name);
    let built_in = network_name.strip_suffix(&format!("@{STUDY}"));
    let extension = Path::new(network_name).extension();
    let is_file = extension.is_some_and(|extension| {
        ["onnx", "net"]
            .iter()
            .any(|own| extension.eq_ignore_ascii_case(own))
    });
    if is_file || built_in.is_some() || !inputs.is_empty() {
        let network = load(built_in.unwrap_or(network_name), inputs)?;
        return predicted(name.to_owned(), &network, variant, gpus);
    }
    let found = sweetspot_sim::find_workload(name, study, variant);
    let can_predict = gpus.iter().all(|(_, profile)| has_predictions(profile));
    let is_predicted = match &found {
        // A prediction for the GPU is better than the work on another one.
        Ok(workload) => can_predict && !is_on_all(workload, gpus) && find(name).is_ok(),
        Err(
            CatalogueError::Unknown { .. }
            | CatalogueError::Ambiguous { .. }
            | CatalogueError::Mode { .. },
        ) => can_predict || find(name).is_ok() && !has_profile(name),
        Err(_) => false,
    };
    match is_predicted && !name.contains('@') {
        true => predicted(
            format!("{name}@{STUDY}"),
            &load(name, Vec::new())?,
            variant,
            gpus,
        ),
        false => Ok(found?),
    }
}

/// Whether a profile gives the work on each of the GPUs, or on another GPU of the same product.
fn is_on_all(workload: &Workload, gpus: &[(String, GpuProfile)]) -> bool {
    gpus.iter().all(|(name, profile)| {
        let Ok(work) = workload.work_on(name, profile) else {
            return false;
        };
        let is_same = |from: &String| find_gpu(from).is_ok_and(|(_, own)| own.name == profile.name);
        work.scaled_from.as_ref().is_none_or(is_same)
    })
}

/// Whether any study has a profile of a network.
fn has_profile(network: &str) -> bool {
    let all = sweetspot_sim::workloads().unwrap_or_default();
    all.iter()
        .any(|workload| workload.profile.network == network)
}

/// The name of a network without the sizes of inputs that may follow it, and these sizes: `model.onnx:x=1x3x224x224` or
/// `bert_base:input=512`.
fn split_inputs(name: &str) -> (&str, Vec<(String, Shape)>) {
    let (mut rest, mut inputs) = (name, Vec::new());
    while let Some((before, last)) = rest.rsplit_once(':') {
        let input = last
            .split_once('=')
            .and_then(|(input, shape)| Some((input.to_owned(), shape.parse().ok()?)));
        let Some(input) = input else { break };
        inputs.insert(0, input);
        rest = before;
    }
    (rest, inputs)
}

/// The workload of a network, with its predicted work on each of the GPUs.
fn predicted(
    name: String,
    network: &Network,
    variant: &Variant,
    gpus: &[(String, GpuProfile)],
) -> Result<Workload, WorkloadError> {
    let mode = variant.mode.unwrap_or(Mode::Train);
    let (mut batch, mut memory) = (DEFAULT_BATCH, None);
    let mut predictors: Vec<(&String, Predictor, u64)> = Vec::new();
    for (gpu, profile) in gpus {
        if predictors.iter().any(|(other, ..)| *other == gpu) {
            continue;
        }
        let precision = predicted_precision(profile);
        let predictor = Predictor::new(network, (gpu, profile), precision, mode)?;
        let need = predictor.memory_need();
        let largest = largest_batch(&need, profile.memory.capacity);
        if largest == 0 {
            return Err(PredictionError::OutOfMemory {
                network: network.name.clone(),
                gpu: gpu.clone(),
                need: need.fixed + need.per_item,
                capacity: profile.memory.capacity,
            }
            .into());
        }
        while batch > largest {
            batch /= 2;
        }
        predictors.push((gpu, predictor, largest));
        memory = Some(need);
    }
    let on = predictors.iter();
    let on = on.map(|(gpu, predictor, largest)| item_work(gpu, predictor, batch, *largest));
    let phase = |name: &str, share: f64| PhaseShare {
        name: name.to_owned(),
        core: Ratio::new(share),
        memory: Ratio::new(share),
        switching: Ratio::new(1.0),
    };
    let profile = WorkloadProfile {
        network: network_name(network),
        mode,
        batch,
        half_speed_batch: 0.0,
        split_batch: false,
        gradients: match mode {
            Mode::Train => Bytes::new(BYTES_PER_GRADIENT * network.parameters() as f64),
            Mode::Infer => Bytes::ZERO,
        },
        fitted: Vec::new(),
        memory: memory.unwrap_or(MemoryNeed {
            fixed: Bytes::ZERO,
            per_item: Bytes::ZERO,
        }),
        phases: match mode {
            Mode::Infer => vec![phase("forward", 1.0)],
            // The work of each phase is in the iterations; these shares are not used.
            Mode::Train => vec![phase("forward", 0.5), phase("backward", 0.5)],
        },
        conv_algorithms: Vec::new(),
        datasets: Vec::new(),
        on: on.collect(),
    };
    // A prediction has no variants, so that a request for one is an error.
    let profile = profile.with_variant(variant);
    let profile = profile.map_err(|problem| CatalogueError::Variant {
        workload: name.clone(),
        problem,
    })?;
    Ok(Workload { name, profile })
}

/// The number format of a prediction if the user gives none.
pub fn predicted_precision(profile: &GpuProfile) -> Precision {
    match profile.peak.bf16 {
        Some(_) => Precision::Bf16,
        None => Precision::Fp16,
    }
}

/// The largest batch that fits into the memory.
pub fn largest_batch(need: &MemoryNeed, capacity: Bytes) -> u64 {
    let room = ((capacity - need.fixed) / need.per_item).get();
    if room >= 1.0 { room as u64 } else { 0 }
}

/// The name of a network: that of a built-in one, or of its file without folder and ending.
fn network_name(network: &Network) -> String {
    let stem = Path::new(&network.name).file_stem();
    stem.map_or_else(
        || network.name.clone(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

/// The work on one GPU at batch sizes that double.
fn item_work(gpu: &str, predictor: &Predictor, batch: u64, largest: u64) -> ItemWork {
    let sizes = std::iter::successors(Some(1), |size| Some(size * 2));
    let sizes = sizes.take_while(|size| *size <= largest.min(LARGEST_BATCH));
    let iterations: Vec<IterationWork> = sizes.map(|size| predictor.work_at(size)).collect();
    let work = predictor.work_at(batch);
    let sum = |time: fn(&sweetspot_sim::PartWork) -> Seconds| -> Seconds {
        work.parts.iter().map(time).sum()
    };
    let (core, memory) = (sum(|part| part.core), sum(|part| part.memory));
    let mean = |ratio: fn(&sweetspot_sim::PartWork) -> Ratio| {
        let parts = work.parts.iter();
        let weighed = parts.map(|part| (part.kernel_time() / (core + memory)) * ratio(part).get());
        weighed.sum::<Ratio>()
    };
    let iteration_time = predictor.steady(&work, None, None).time;
    let runs = (RUN_TIME / iteration_time).get().ceil().max(1.0);
    ItemWork {
        steps: Default::default(),
        gpu: gpu.to_owned(),
        fitted: Vec::new(),
        items: batch * runs as u64,
        startup: Seconds::ZERO,
        host_per_batch: Seconds::ZERO,
        host: Seconds::ZERO,
        launch: sum(|part| part.launch),
        core: core / batch as f64,
        memory: memory / batch as f64,
        memory_per_batch: Seconds::ZERO,
        switching: mean(|part| part.switching),
        memory_activity: mean(|part| part.memory_activity),
        iterations,
    }
}
