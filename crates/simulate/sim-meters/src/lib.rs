//! Stand-ins for the power meters and the processors' sensors of a simulated node.
//!
//! The meters follow the documents of the real devices and share no code with the readers of this project, so that a
//! misunderstanding shows. Their logic is pure: it takes a message, a moment and the node's energy ([`NodeEnergy`]), and
//! returns the answer and the moment at which it comes. It therefore runs on a simulated clock in tests, and in real time
//! behind sockets and files in [`OfferedMeters`].

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]

mod energy;
mod fault;
mod http;
mod kind;
mod node;
mod offered;
mod recorder;
mod serve;
mod sysfs;
mod wt310;

pub use energy::{NodeEnergy, PowerSteps};
pub use fault::{FaultError, MeterFault, MeterProblem, NamedFault};
pub use http::{HttpMeter, Request, Response};
pub use kind::MeterKind;
pub use offered::{MeterList, MeterListError, OfferError, OfferedMeter, OfferedMeters};
pub use wt310::{Answer, Wt310};
