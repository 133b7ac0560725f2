//! Statistics without I/O: summaries with confidence intervals, least squares, seeded noise.
//!
//! Everything here is a pure function of its arguments. Transcendental functions come from `libm`,
//! so that the same input gives the same bits on every machine.

mod least_squares;
mod linear;
pub mod noise;
mod summary;

pub use least_squares::{Bounds, Fit, fit};
pub use linear::solve_symmetric;
pub use noise::Seed;
pub use summary::{Interval, Summary, geometric_mean, median};
