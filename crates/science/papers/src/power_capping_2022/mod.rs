//! power_capping_2022: Power capping with E, EDP and EDS (StEP).

mod deviations;
mod figures;
mod reproduction;
mod table_checks;
pub mod tables;
mod text_claims;

pub(crate) use deviations::compare;
pub(crate) use reproduction::{PAPER, SOURCE, objective, reproduce};
