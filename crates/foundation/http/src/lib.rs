//! Reads pages over HTTP/1.1, as the metrics of a server or the readings of a network meter are, and serves the requests of
//! simulated meters and servers, one for each connection.
//!
//! Promises: a request ends within its timeout, whatever the other side does, and stores at most the given number of
//! bytes. Every failure says whether the other side did not answer, or answered something else.
//! Left to others: encryption (a page behind `https` is read through a local proxy), redirections, and what pages mean.

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

mod body;
mod client;
mod server;
mod url;

pub use client::{HttpError, get, post};
pub use server::{Received, ServerRequest, StreamedResponse, read_request, send_response};
pub use url::{InvalidUrl, Url};
