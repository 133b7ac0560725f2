//! Requests to a simulated server: when they arrive, and the queue in which they wait.

mod arrivals;
mod queue;

pub(crate) use arrivals::ArrivalTimes;
pub use arrivals::{ArrivalError, Arrivals};
pub use queue::{QueueStatus, RequestQueue};
