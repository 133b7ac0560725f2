//! Floating-point operations for each joule.

use sweetspot_quantity::{FlopsPerSecond, Joules, Ratio, Seconds};

/// GFLOPS per watt as table 11 of multi_gpu_2018 has it: twice the operations of a batch over the energy of
/// all GPUs, which is that of the measured one times their number.
///
/// ```
/// # use sweetspot_network::gflops_per_watt;
/// # use sweetspot_quantity::Joules;
/// let resnet = gflops_per_watt(425.13e6, 64, 1, Joules::new(4.255 + 15.990));
/// assert_eq!(format!("{resnet:.1}"), "2.7");
/// ```
pub fn gflops_per_watt(operations: f64, batch: u64, gpus: u64, energy_of_one: Joules) -> f64 {
    2.0 * batch as f64 * operations / (gpus as f64 * energy_of_one.get()) / 1e9
}

/// How well a measured run used its energy and its GPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// Floating-point operations in each joule, in thousand millions.
    pub gflops_per_watt: f64,
    /// Floating-point operations in each second.
    pub speed: FlopsPerSecond,
    /// Of what the GPUs could do at most.
    pub share_of_peak: Option<Ratio>,
    /// Of what SGEMM gets from a joule on such a GPU.
    pub share_of_sgemm: Option<Ratio>,
}

impl Efficiency {
    /// Of items that take `flops` each; peak is that of one GPU, SGEMM's figure in GFLOPS per watt.
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
