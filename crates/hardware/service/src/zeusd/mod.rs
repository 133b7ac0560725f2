//! The HTTP interface of zeusd 0.5, so that the Python clients of Zeus work unchanged.
//!
//! Nothing here reads, writes or waits. The service pushes the bytes of a connection into a [`RequestReader`], passes
//! each [`Request`] to [`answer`] together with a [`Backend`], and sends the bytes of the [`Response`]. A power stream
//! is the only answer that does not end: [`Answer::Stream`] names its GPUs, and the service sends an event for each
//! new reading.
//!
//! Promises: memory per connection is bounded ([`MAX_BUFFERED`]); a malformed request never reaches the backend; no
//! setting is changed unless the request is a `POST` of a known path, all its parameters are valid and all its GPUs
//! exist. Left to others: who may do what ([`Failure::Denied`]), leases, timeouts, and how many connections there are.
//!
//! It differs from zeusd in these points:
//! - `block=false` is treated as `block=true`: the answer is sent after the setting is applied, so the client learns of
//!   every error.
//! - Locked clocks need equal `min_clock_mhz` and `max_clock_mhz`, because a device is locked to one frequency.
//! - Processor readings are not available; their paths answer as a disabled API group does.
//! - A known path with a wrong method answers 405 with the allowed method, where zeusd answers 404.
//! - Bearer tokens are ignored: the service knows the caller from the kernel.

mod backend;
mod head;
mod quantities;
mod query;
mod request;
mod response;
mod routes;
#[cfg(test)]
mod tests;

pub use backend::{Backend, Failure, GpuSummary};
pub use head::{MAX_BODY, MAX_HEAD, MAX_HEADERS};
pub use request::{BadRequest, MAX_BUFFERED, Request, RequestReader};
pub use response::{EventStream, Response};
pub use routes::{Answer, answer, is_zeusd_path};
