//! node_power_capping_2023: Power capping of several GPUs with a node meter.

mod deviations;
mod figures;
mod reproduction;
pub mod tables;

pub(crate) use deviations::compare;
pub(crate) use reproduction::{PAPER, SOURCE, objective, reproduce};
pub(crate) use tables::read_node_facts;
