//! Decides which configuration is best: objectives, limits, the choice among measured configurations, and search
//! strategies.
//!
//! The crate does no I/O: callers pass outcomes and get a choice. The caller provides the reference of a comparison,
//! which stays the same for the whole study. A missing value is reported with its reason and never treated as zero.
//!
//! ```
//! use sweetspot_decide::{Candidate, Comparison, Objective, Outcome, Tariff};
//! use sweetspot_quantity::{Joules, Seconds};
//!
//! let run = |time, energy| Outcome::new(Seconds::new(time), Joules::new(energy));
//! let default = Candidate::of([run(10.0, 2500.0), run(10.1, 2490.0)]);
//! let capped = Candidate::of([run(11.0, 1900.0), run(11.1, 1910.0)]);
//! let slow = Candidate::of([run(14.0, 1700.0), run(14.1, 1710.0)]);
//! let study = Comparison::new(&[capped, slow], Some(&default), Tariff::NONE);
//! let choice = study.choose(Objective::Energy, &["time<=+15%".parse()?])?;
//! assert_eq!(choice.candidate, 0);
//! assert_eq!(choice.reference_is_as_good(), Some(false));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod assessment;
mod best;
mod choice;
mod comparison;
mod criteria;
mod group;
mod limit;
mod limit_text;
mod margin;
mod no_choice;
mod no_value;
mod objective;
mod objective_text;
mod outcome;
mod pareto_front;
mod preference;
mod range;
pub mod search;
mod tariff;
mod value;

pub use assessment::{Assessment, Change, LinePosition};
pub use best::best;
pub use choice::{Choice, Excluded, Exclusion, MAX_TIE_LOSS, NEGLIGIBLE_GAIN};
pub use comparison::{Candidate, Comparison};
pub use criteria::Criteria;
pub use group::{Cell, Group, GroupError, Groups, Mean, group};
pub use limit::{BrokenLimit, Excess, Limit, Side};
pub use limit_text::LimitError;
pub use margin::{Estimate, Margin, Standing};
pub use no_choice::NoChoice;
pub use no_value::NoValue;
pub use objective::{Basis, Objective};
pub use objective_text::ObjectiveError;
pub use outcome::Outcome;
pub use pareto_front::pareto;
pub use preference::{Preference, PreferenceError};
pub use range::{Evidence, Range};
pub use tariff::{CarbonIntensity, Hour, Price, Tariff, TariffError};
pub use value::{Aim, AimError, Direction, Value};
