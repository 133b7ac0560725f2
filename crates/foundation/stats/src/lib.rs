//! Statistics without I/O: summaries with confidence intervals, least squares, seeded noise.
//!
//! Everything here is a pure function of its arguments. Noise and sums use `libm` for transcendental functions,
//! so that they give the same bits on every machine. Student's quantiles, which only affect the width of
//! intervals, come from `statrs` and are reproducible on one machine.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod correlation;
mod least_squares;
mod linear;
mod noise;
mod percentile;
mod summary;

pub use correlation::matern;
pub use least_squares::{Bounds, Fit, fit};
pub use linear::{Cholesky, solve_symmetric};
pub use noise::Seed;
pub use percentile::weighted_p99;
pub use summary::{Difference, Interval, Summary, any_differs, differ, geometric_mean};
