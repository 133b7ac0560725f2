//! The rates of a GPU for a number format.

use sweetspot_network::Precision;
use sweetspot_sim::{GpuProfile, Kernels};

use crate::PredictionError;

/// The arithmetic units of a multiprocessor; a product is split into tiles, one for each multiprocessor at a time.
const UNITS_PER_PROCESSOR: f64 = 128.0;

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
}

impl GpuRates {
    /// The rates of a GPU; an error if its profile has no constants of kernels or no peak for the number format.
    pub fn new(
        name: &str,
        profile: &GpuProfile,
        precision: Precision,
    ) -> Result<Self, PredictionError> {
        let kernels = profile
            .kernels
            .ok_or_else(|| PredictionError::NoConstants(name.to_owned()))?;
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
            processors: (profile.core.units as f64 / UNITS_PER_PROCESSOR).max(1.0),
            element: precision.bytes() as f64,
            kernels,
        })
    }
}
