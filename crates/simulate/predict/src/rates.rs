//! The rates of a GPU for a number format.

use sweetspot_network::Precision;
use sweetspot_quantity::Ratio;
use sweetspot_sim::{GpuProfile, KernelErrors, Kernels, find_gpu, gpus};

use crate::PredictionError;

/// By how much the errors of a prediction grow on a GPU on which nothing was measured. This is assumed.
const TRANSFER_WIDENING: f64 = 2.0;

/// The peak rates of a GPU for a number format, and the constants of its kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuRates {
    /// The peak of the matrix units, in floating-point operations per second.
    pub matrix: f64,
    /// The peak of the arithmetic units, in floating-point operations per second.
    pub vector: f64,
    /// The memory bandwidth, in bytes per second.
    pub bandwidth: f64,
    /// The number of multiprocessors.
    pub processors: f64,
    /// The size of an element, in bytes.
    pub element: f64,
    /// The constants of the kernels.
    pub kernels: Kernels,
    /// Whether the constants are those of another GPU, fitted to this one's data sheet.
    pub is_transferred: bool,
}

impl GpuRates {
    /// The rates of a GPU; an error if its profile has no constants of kernels or no peak for the number format.
    pub fn new(
        name: &str,
        profile: &GpuProfile,
        precision: Precision,
    ) -> Result<Self, PredictionError> {
        let is_transferred = profile.kernels.is_none();
        let kernels = match (profile.kernels, &profile.kernels_of) {
            (Some(kernels), _) => kernels,
            (None, Some(from)) => transferred(name, profile, from)?,
            (None, None) => {
                return Err(PredictionError::NoConstants {
                    gpu: name.to_owned(),
                    others: gpus_with_constants(),
                });
            }
        };
        let peak = match precision {
            Precision::Bf16 => profile.peak.bf16,
            Precision::Fp16 => profile.peak.fp16,
            _ => None,
        };
        let peak = peak.ok_or_else(|| PredictionError::Precision {
            gpu: name.to_owned(),
            precision,
        })?;
        Ok(Self {
            matrix: peak.get(),
            vector: profile.peak_fp32().get(),
            bandwidth: profile.memory.bandwidth.get(),
            processors: profile.core.multiprocessor_count() as f64,
            element: precision.bytes() as f64,
            kernels,
            is_transferred,
        })
    }
}

/// Whether networks can be predicted on a GPU.
pub fn has_predictions(profile: &GpuProfile) -> bool {
    profile.kernels.is_some() || profile.kernels_of.is_some()
}

/// The names of built-in GPUs on which networks can be predicted.
fn gpus_with_constants() -> Vec<String> {
    let gpus = gpus().unwrap_or_default().into_iter();
    let known = gpus.filter(|(_, profile)| has_predictions(profile));
    known.map(|(name, _)| name).collect()
}

/// The constants of another GPU for this one. Efficiencies and the times to start a kernel are the same; an operation
/// needs the same share of the default power cap at the peak rate, and a byte the same energy. The power of a busy GPU
/// without work is the same share of the cap too.
fn transferred(name: &str, profile: &GpuProfile, from: &str) -> Result<Kernels, PredictionError> {
    let no_source = || PredictionError::NoSource {
        gpu: name.to_owned(),
        from: from.to_owned(),
    };
    let (_, source) = find_gpu(from).map_err(|_| no_source())?;
    let kernels = source.kernels.ok_or_else(no_source)?;
    let cap = (profile.cap.default / source.cap.default).get();
    let peak = match (profile.peak.fp16, source.peak.fp16) {
        (Some(own), Some(other)) => (own / other).get(),
        _ => return Err(no_source()),
    };
    let wider = |error: Ratio| error * TRANSFER_WIDENING;
    let errors = kernels.errors;
    Ok(Kernels {
        operation_energy: kernels.operation_energy * cap / peak,
        base_power: kernels.base_power * cap,
        vector_power: kernels.vector_power * cap,
        errors: KernelErrors {
            time: wider(errors.time),
            power: wider(errors.power),
            energy: wider(errors.energy),
            training_time: wider(errors.training_time),
            training_power: wider(errors.training_power),
            training_energy: wider(errors.training_energy),
        },
        ..kernels
    })
}
