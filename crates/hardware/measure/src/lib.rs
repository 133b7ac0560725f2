//! Energy per window and per phase from imperfect sensors.
//!
//! [`Sampler`] reads devices while a workload runs, in threads of its own: the driver's buffer about once a
//! second, the energy counter only where a window begins or ends, power sensors in step with their updates. The
//! readings form a [`math::Trace`]; a [`math::EnergyEstimator`] computes from it the energy of any window
//! ([`math::Energy`]: value, 95 % interval, method, missing readings) and of the phases in it
//! ([`math::Attribution`]).
//!
//! All mathematics is in [`math`] and pure: one Kalman filter takes all kinds of readings (counter steps,
//! buffered samples with their response, means over windows) and yields the energy between two moments with its
//! variance. `docs/reference/measure.md` explains how, and how accurate each method is.
//!
//! Promises: a value carries its method and a 95 % interval; missing readings are named, never counted as zero;
//! the counter, which blocks for milliseconds, is never read in the workload's thread. Left to others: which
//! devices, which windows, where phases come from, what is printed. An interval covers the board's own sensors
//! only: their gain error against a wall meter is not part of it.
//!
//! ```
//! use sweetspot_device::Moment;
//! use sweetspot_measure::MethodChoice;
//! use sweetspot_measure::math::{EnergyEstimator, PowerSample, Span, Trace};
//! use sweetspot_quantity::Watts;
//!
//! let at = |ms: u64| Moment::from_nanos(ms * 1_000_000);
//! let buffer = (0..200).map(|n| PowerSample { at: at(20 * n), power: Watts::new(150.0) });
//! let trace = Trace { buffer: buffer.collect(), ..Trace::default() };
//! let energy = EnergyEstimator::new(&trace).energy(&Span::new(at(1000), at(3000)), MethodChoice::Auto)?;
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
pub use sampler::{
    AuxiliaryReadings, DeviceRecording, LimitReadings, Recorder, Sampler, SamplerError, Task,
    WindowLimits, perform_task,
};
pub use window::{ReportTimes, RunWindow, UnknownWindow};
