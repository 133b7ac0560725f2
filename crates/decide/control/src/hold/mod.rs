//! The most inference throughput under a power cap: batch size, core clock or cap as the knob.
//!
//! [`Holder::step`] takes what happened, with its time, and says what to set. It reads no clock and no
//! device: a pump in real time and one in virtual time drive the same code. An [`Account`] beside it says
//! what came of it: how often the cap was broken, when it had settled, what an item cost.
//!
//! ```
//! use sweetspot_control::hold::{BatchDone, Event, Holder, Terms};
//! use sweetspot_quantity::{Seconds, Watts};
//!
//! let mut holder = Holder::new(Terms::robust(Watts::new(150.0), vec![1, 2, 4, 8]))?;
//! assert_eq!(holder.setting().batch, 1);
//! let now = Seconds::new(0.1);
//! let done = BatchDone { size: 1, items: 1, duration: Seconds::new(0.01), latency: None };
//! let actions = holder.step(now, Event::Batch(done));
//! assert_eq!(actions.batch, None, "one batch says nothing yet");
//! # Ok::<(), sweetspot_control::hold::TermsError>(())
//! ```

mod account;
mod action;
mod event;
mod holder;
mod joint;
mod ladder;
mod meter;
mod robust;
mod search;
mod terms;
mod window;

pub use account::{Account, Summary};
pub use action::{Actions, Notice, Setting};
pub use event::{BatchDone, Event, PowerReading};
pub use holder::Holder;
pub use terms::{DeviceKnob, Goal, Mode, PowerSensor, Terms, TermsError};
