//! A meter that answers one HTTP request in each connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_device::{Clock, MonotonicClock};

use super::Shared;
use crate::{HttpMeter, Request, Response};

/// The largest head of a request.
const MAX_HEAD: usize = 8192;
/// The time in which the whole head must have come.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// The time for which a silent meter keeps a connection.
const SILENCE: f64 = 120.0;

/// Answers one request.
pub(super) fn serve(
    stream: &mut TcpStream,
    meter: &Mutex<HttpMeter>,
    shared: &Shared,
) -> io::Result<()> {
    let Some(head) = read_head(stream, shared)? else {
        return Ok(());
    };
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    let is_whole = matches!(parsed.parse(&head), Ok(httparse::Status::Complete(_)));
    let (Some(method), Some(target), true) = (parsed.method, parsed.path, is_whole) else {
        return send(stream, 400, None, "{\"error\":\"bad request\"}");
    };
    if method != "GET" {
        return send(stream, 405, None, "{\"error\":\"method not allowed\"}");
    }
    let authorization = parsed
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("authorization"))
        .and_then(|header| std::str::from_utf8(header.value).ok());
    let request = Request {
        target,
        authorization,
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

/// Reads the head of a request; `None` if the client ends the connection or takes too long.
fn read_head(stream: &mut TcpStream, shared: &Shared) -> io::Result<Option<Vec<u8>>> {
    let started = Instant::now();
    let mut head = Vec::new();
    let mut bytes = [0; 1024];
    while !shared.has_ended() && started.elapsed() < HEAD_TIME && head.len() < MAX_HEAD {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(None),
            Ok(count) => head.extend_from_slice(&bytes[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
        if head.windows(4).any(|window| window == b"\r\n\r\n") {
            return Ok(Some(head));
        }
    }
    Ok(None)
}

/// Sends a response with a JSON body, and ends the connection.
fn send(
    stream: &mut TcpStream,
    status: u16,
    authenticate: Option<&str>,
    body: &str,
) -> io::Result<()> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "Internal Server Error",
    };
    let authenticate = authenticate.map_or(String::new(), |value| {
        format!("WWW-Authenticate: {value}\r\n")
    });
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{authenticate}Connection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes())?;
    stream.flush()
}
