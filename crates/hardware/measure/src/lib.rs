//! Joules that can be trusted, per window and per phase, from imperfect sensors.
//!
//! [`Sampler`] reads devices beside a workload, in threads of its own: the driver's buffer once a second, the
//! energy counter only where a window begins or ends, power sensors in step with their updates. What it read
//! is a [`math::Trace`]; a [`math::Ledger`] of it gives the energy of any window ([`math::Energy`]: value,
//! 95 % interval, method, what is missing) and of the phases in it ([`math::Attribution`]).
//!
//! All mathematics is in [`math`], pure: one Kalman filter takes whatever the sensors show (counter moves,
//! buffered samples with their response, means over windows) and yields the energy between two moments with
//! its variance. `docs/measure.md` says how, and how far off each method is.
//!
//! Promises: a value carries its method and an interval that holds the truth; what is missing is named, never
//! a silent zero; the counter, which blocks for milliseconds, is never read in the workload's thread.
//! Left to others: which devices, which windows, where phases come from, what is printed. An interval is about
//! the board's own sensors: their gain against a wall meter is not in it.
//!
//! ```
//! use sweetspot_device::Moment;
//! use sweetspot_measure::MethodChoice;
//! use sweetspot_measure::math::{Ledger, PowerSample, Span, Trace};
//! use sweetspot_quantity::Watts;
//!
//! let at = |ms: u64| Moment::from_nanos(ms * 1_000_000);
//! let buffer = (0..200).map(|n| PowerSample { at: at(20 * n), power: Watts::new(150.0) });
//! let trace = Trace { buffer: buffer.collect(), ..Trace::default() };
//! let energy = Ledger::new(&trace).energy(&Span::new(at(1000), at(3000)), MethodChoice::Auto)?;
//! assert!((energy.value.get() - 300.0).abs() < 0.1);
//! # Ok::<(), sweetspot_measure::math::EnergyError>(())
//! ```

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod math;
mod method;
mod sampler;
mod window;

pub use method::{Method, MethodChoice, UnknownMethod};
pub use sampler::{Beside, Recorded, Recorder, Sampler, SamplerError, Task, perform};
pub use window::{RunWindow, UnknownWindow};
