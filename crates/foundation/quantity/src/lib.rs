//! Physical quantities as types.
//!
//! A quantity is a number and its unit; only physical arithmetic compiles:
//!
//! ```
//! use sweetspot_quantity::{Joules, Seconds, Watts};
//! let energy: Joules = Watts::new(150.0) * Seconds::new(2.0);
//! assert_eq!(energy, "0.3 kJ".parse()?);
//! assert_eq!(energy / Seconds::new(3.0), Watts::new(100.0));
//! # Ok::<(), sweetspot_quantity::ParseQuantityError>(())
//! ```
//! ```compile_fail
//! # use sweetspot_quantity::{Joules, Watts};
//! let nonsense = Watts::new(1.0) + Joules::new(1.0);
//! ```
//! ```compile_fail
//! # use sweetspot_quantity::{Joules, Watts};
//! let nonsense = Watts::new(1.0) * Joules::new(1.0);
//! ```
//!
//! Promises: a printed quantity parses back to the same bits; only finite numbers parse.
//! Left to others: what values make sense for a device.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod arithmetic;
mod kinds;
mod parse;
mod print;
mod text;

pub use kinds::{
    Bytes, BytesPerSecond, Celsius, FlopsPerSecond, Joules, Megahertz, Quantity, Ratio, Scale,
    Seconds, Unit, Watts,
};
pub use parse::{ParseQuantityError, parse_bare};
