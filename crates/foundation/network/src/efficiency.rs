//! The energy efficiency of a measured run.

use sweetspot_quantity::{FlopsPerSecond, Joules, Ratio, Seconds};

/// The energy efficiency and speed of a measured run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// Billions of floating-point operations per joule, which is GFLOPS per watt.
    pub gflops_per_watt: f64,
    /// The floating-point operations per second.
    pub speed: FlopsPerSecond,
    /// The speed relative to the peak rate of all GPUs used; `None` if the peak is unknown.
    pub share_of_peak: Option<Ratio>,
    /// The efficiency relative to that of SGEMM (single-precision matrix multiplication) on such a GPU; `None`
    /// if that is unknown.
    pub share_of_sgemm: Option<Ratio>,
}

impl Efficiency {
    /// Computes the efficiency of a run whose items need `flops` floating-point operations each. `peak` is the
    /// peak rate of one GPU; `sgemm` is its efficiency in SGEMM, in GFLOPS per watt.
    pub fn of(
        flops: f64,
        energy_per_item: Joules,
        time_per_item: Seconds,
        gpus: u64,
        peak: Option<FlopsPerSecond>,
        sgemm: Option<f64>,
    ) -> Self {
        let per_joule = flops / energy_per_item.get() / 1e9;
        let speed = FlopsPerSecond::new(flops / time_per_item.get());
        Self {
            gflops_per_watt: per_joule,
            speed,
            share_of_peak: peak.map(|peak| speed / (peak * gpus.max(1) as f64)),
            share_of_sgemm: sgemm.map(|sgemm| Ratio::new(per_joule / sgemm)),
        }
    }
}
