//! power_capping_2022: Power capping with E, EDP and EDS (StEP).

mod deviations;
mod figures;
mod reproduction;
mod structure;
mod table_checks;
pub mod tables;
mod text_claims;

pub(crate) use deviations::{STUDY, compare, compare_from_layers};
pub(crate) use reproduction::{PAPER, SOURCE, objective, reproduce};
pub use structure::{BoardConstants, FROM_LAYERS, Framework, LayerConstants};
