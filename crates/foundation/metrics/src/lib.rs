//! Understands the metrics page of a server of language models: tokens, requests, queue and latencies.
//!
//! [`ServerMetrics::read`] parses a page in Prometheus's text format and finds in it what vLLM, SGLang, TGI, llama.cpp or
//! Triton call their tokens and latencies, by old names and new ones; [`Mapping`] describes any other server.
//! [`MetricsTracker`] turns the pages of a running server into what happened between them, also when the server restarts.
//!
//! Promises: no page, however broken, causes a panic, and the work grows with its size only. A counter that falls is never
//! counted as progress. A quantile comes with the range that the histogram's buckets leave.
//! Left to others: fetching the page, and deciding what to do.

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

mod exposition;
mod highest;
mod histogram;
mod mapping;
#[cfg(test)]
mod recordings;
mod server;
mod servers;
mod tracker;

pub use exposition::{Labels, Sample, samples};
pub use histogram::{Histogram, QuantileRange};
pub use mapping::{InvalidMapping, Mapping};
pub use server::{MetricsError, ModelMetrics, ServerMetrics};
pub use tracker::{MetricsChange, MetricsTracker};
