//! The physics of one GPU: voltage, power, the governor that enforces the power cap, and heat.
//!
//! In this module, clocks are relative to the GPU's default clock, and plain numbers are watts, seconds, joules and
//! degrees, because it is the inner loop. Quantities come in through [`Chip::new`] and [`Limits`], and go out
//! through [`State`] and [`Step`].

mod chip;
mod cycle;
mod decay;
mod state;
mod steady;
mod voltage;

pub use chip::Chip;
pub use cycle::Cycle;
pub use state::{Bounds, Limits, Load, State, Step};
pub use steady::Steady;
