//! The energy of the whole machine, from external power meters.

mod meters;
mod report;
#[cfg(test)]
mod tests;

pub use meters::NodeEnergy;
pub(crate) use meters::{NodeMeters, node_energy, uncovered};
pub use report::{MeterReport, MeterState, meter_reports};
