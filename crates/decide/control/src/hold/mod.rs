//! Keeps the power of inference below a cap with the most throughput, by changing the batch size, the core clock or
//! the device's power cap.
//!
//! [`Holder::step`] takes an event with its time and returns the settings to change. It reads no clock and no
//! device, so the same code runs in real time and in virtual time. [`HoldStatistics`] summarises a run: how often
//! power exceeded the cap, when the setting settled, and the energy for each item.
//!
//! ```
//! use sweetspot_control::hold::{CompletedBatch, HoldConfig, HoldEvent, Holder};
//! use sweetspot_quantity::{Seconds, Watts};
//!
//! let mut holder = Holder::new(HoldConfig::robust(Watts::new(150.0), vec![1, 2, 4, 8]))?;
//! assert_eq!(holder.setting().batch, 1);
//! let now = Seconds::new(0.1);
//! let batch = CompletedBatch { size: 1, items: 1, duration: Seconds::new(0.01), latency: None };
//! let actions = holder.step(now, HoldEvent::BatchCompleted(batch));
//! assert_eq!(actions.batch, None, "one batch is not enough to decide");
//! # Ok::<(), sweetspot_control::hold::HoldConfigError>(())
//! ```

mod action;
mod batch_search;
mod candidate;
mod cap_on;
mod config;
mod event;
mod group;
mod holder;
mod joint_search;
mod learning;
mod measurement;
mod paper_search;
pub(crate) mod power_mean;
mod power_profile;
mod running_search;
mod statistics;
mod summary;
mod window;

pub use action::{HoldActions, HoldNotice, HoldSetting};
pub use cap_on::{CapOn, CapOnError};
pub use config::{
    DeviceKnob, HoldConfig, HoldConfigError, HoldGoal, HoldMode, PowerSensor, fine_batches,
};
pub use event::{CompletedBatch, HoldEvent, PowerReading};
pub use group::{CapDivision, CapRange, PowerSum};
pub use holder::{Holder, UnusedPower, UnusedRemedy};
pub use statistics::HoldStatistics;
pub use summary::HoldSummary;
