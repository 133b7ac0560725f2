//! The energy of the whole machine, from external power meters.

mod meters;
mod report;

pub use meters::NodeEnergy;
pub(crate) use meters::{NodeMeters, node_energy};
pub use report::{MeterReport, MeterState, meter_reports};
