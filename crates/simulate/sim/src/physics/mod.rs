//! The physics of one GPU: voltage, power, the cap's governor, heat.
//!
//! Clocks are relative to the GPU's default clock in here, and plain numbers are watts, seconds,
//! joules and degrees: this is the inner loop. Quantities come in through [`Chip::new`] and
//! [`Limits`], and go out through [`State`] and [`Step`].

mod chip;
mod cycle;
mod rate;
mod voltage;

pub use chip::{Chip, Limits, Load, State, Step};
pub use cycle::Cycle;
