//! Measurements of batch sizes on a real H200.

mod deviations;
pub mod tables;

pub(crate) use deviations::compare;
