//! A meter that answers one HTTP request in each connection.

use std::io;
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use sweetspot_device::{Clock, MonotonicClock};
use sweetspot_http::{Received, ServerRequest, read_request, send_response};

use super::Shared;
use crate::{HttpMeter, Request, Response};

/// The time for which a silent meter keeps a connection.
const SILENCE: f64 = 120.0;

/// Answers one request.
pub(super) fn serve(
    stream: &mut TcpStream,
    meter: &Mutex<HttpMeter>,
    shared: &Shared,
) -> io::Result<()> {
    let request = match read_request(stream, 0, &|| shared.has_ended())? {
        Received::Request(request) => request,
        Received::Nothing => return Ok(()),
        Received::Refused(400) => {
            return send(stream, 400, None, "{\"error\":\"bad request\"}");
        }
        // Meters answer to GET alone, which has no body.
        Received::Refused(_) => ServerRequest::default(),
    };
    if request.method != "GET" {
        return send(stream, 405, None, "{\"error\":\"method not allowed\"}");
    }
    let request = Request {
        target: &request.target,
        authorization: request.header("authorization"),
    };
    let response = {
        let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
        let node = shared.node.advance();
        meter.handle(&request, MonotonicClock.now(), &*node)
    };
    deliver(stream, response, shared)
}

/// Sends a response when it is ready.
fn deliver(stream: &mut TcpStream, response: Response, shared: &Shared) -> io::Result<()> {
    shared.sleep_until(response.ready_at);
    match response.body {
        Some(body) => send(
            stream,
            response.status,
            response.authenticate.as_deref(),
            &body,
        ),
        None if response.ends_connection => Ok(()),
        None => {
            let until = MonotonicClock.now() + sweetspot_quantity::Seconds::new(SILENCE);
            shared.sleep_until(until);
            Ok(())
        }
    }
}

/// Sends a response with a JSON body, and ends the connection.
fn send(
    stream: &mut TcpStream,
    status: u16,
    authenticate: Option<&str>,
    body: &str,
) -> io::Result<()> {
    let authenticate = authenticate.map_or(String::new(), |value| {
        format!("WWW-Authenticate: {value}\r\n")
    });
    send_response(stream, status, "application/json", &authenticate, body)
}
