//! Simulated GPUs: the profiles that exist, and how far they are from what was measured.

mod deviations;
mod profiles;

pub(crate) use deviations::{
    describe_changed_profiles, describe_few_values, describe_not_held_out,
};
pub use deviations::{deviations_summary, deviations_text};
pub use profiles::profiles_text;
