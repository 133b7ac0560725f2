//! The energy efficiency of a measured run.

use sweetspot_quantity::{FlopsPerSecond, Joules, Ratio, Seconds};

/// The efficiency of a measured run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// The floating-point operations per joule, in billions.
    pub gflops_per_watt: f64,
    /// The floating-point operations per second.
    pub speed: FlopsPerSecond,
    /// The share of the GPUs' peak rate.
    pub share_of_peak: Option<Ratio>,
    /// The share of the efficiency that SGEMM reaches on such a GPU.
    pub share_of_sgemm: Option<Ratio>,
}

impl Efficiency {
    /// The efficiency for items of `flops` operations each. `peak` is the rate of one GPU, `sgemm` its
    /// efficiency in SGEMM, in GFLOPS per watt.
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
