//! The HTTP endpoints of a simulated server: metrics, models and completions.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use sweetspot_http::{Received, ServerRequest, StreamedResponse, read_request, send_response};

use super::completion::{CompletionRequest, Refusal, models};
use super::shared::Shared;
use crate::stand_in::StandInError;

/// The most connections at a time; more are closed.
const MAX_CONNECTIONS: usize = 512;
/// The largest body of a request, in bytes: more than the longest prompt.
const MAX_BODY: usize = 1 << 20;
/// The longest time until the end of the server is noticed.
const CHECK_PERIOD: Duration = Duration::from_millis(50);

const JSON: &str = "application/json";

/// Opens a port of this computer; 0 chooses a free one.
pub fn listen(port: u16) -> Result<(TcpListener, SocketAddr), StandInError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let opened = listener.and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    opened.map_err(|problem| StandInError::Port { port, problem })
}

/// Accepts connections in a thread until the server ends; each is served by a thread of its own.
pub fn accept_connections(
    listener: TcpListener,
    shared: Arc<Shared>,
) -> io::Result<JoinHandle<()>> {
    let accept = move || {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: CHECK_PERIOD.subsec_nanos().into(),
        };
        while !shared.has_ended() {
            let _ = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&timeout));
            while let Ok((stream, _)) = listener.accept() {
                start_connection(stream, Arc::clone(&shared));
            }
        }
    };
    std::thread::Builder::new()
        .name("accept".to_owned())
        .spawn(accept)
}

/// Serves a connection in a thread of its own.
fn start_connection(mut stream: TcpStream, shared: Arc<Shared>) {
    let Some(connection) = shared.connect(MAX_CONNECTIONS) else {
        return;
    };
    let serve = move || {
        // The client may end the connection at any time, which is no error of the server.
        let _ = serve_connection(&mut stream, &connection);
    };
    let _ = std::thread::Builder::new()
        .name("client".to_owned())
        .spawn(serve);
}

/// Answers one request.
fn serve_connection(stream: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    let request = match read_request(stream, MAX_BODY, &|| shared.has_ended())? {
        Received::Request(request) => request,
        Received::Nothing => return Ok(()),
        Received::Refused(status) => {
            let message = match status {
                411 => "the length of the body is unknown: send Content-Length".to_owned(),
                413 => format!("the body is larger than {} KiB", MAX_BODY / 1024),
                _ => "this is not a request of HTTP/1.1".to_owned(),
            };
            return refuse(stream, &Refusal::new(status, message));
        }
    };
    let path = request.target.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("GET", "/metrics") => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            send_response(stream, 200, kind, "", &shared.metrics_page())
        }
        ("GET", "/v1/models") => send_response(stream, 200, JSON, "", &models(shared.created())),
        ("GET", "/health") => send_response(stream, 200, "text/plain", "", ""),
        ("POST", "/v1/completions") => complete(stream, &request, shared),
        (method, "/metrics" | "/v1/models" | "/health" | "/v1/completions") => {
            let message = format!("{method} is not possible for {path}");
            refuse(stream, &Refusal::new(405, message))
        }
        _ => {
            let message = format!(
                "no page {path}: there are POST /v1/completions, GET /v1/models, GET /metrics and GET /health"
            );
            refuse(stream, &Refusal::new(404, message))
        }
    }
}

fn refuse(stream: &mut TcpStream, refusal: &Refusal) -> io::Result<()> {
    send_response(stream, refusal.status, JSON, "", &refusal.body())
}

/// Answers a request for a completion, when its tokens are generated.
fn complete(stream: &mut TcpStream, request: &ServerRequest, shared: &Shared) -> io::Result<()> {
    let completion = match CompletionRequest::parse(&request.body) {
        Ok(completion) => completion,
        Err(refusal) => return refuse(stream, &refusal),
    };
    let created = shared.unix_time();
    let (id, tokens) = shared.add(completion.prompt, completion.output);
    if !completion.is_streamed {
        // The sender is gone before the last token if the server ends.
        return match tokens.into_iter().last() {
            Some(true) => send_response(stream, 200, JSON, "", &completion.answer(id, created)),
            _ => refuse(stream, &Refusal::new(503, "the server ended")),
        };
    }
    let mut response = StreamedResponse::begin(stream, "text/event-stream; charset=utf-8")?;
    for is_last in tokens {
        response.send(&completion.token(id, created, is_last))?;
        if is_last {
            response.send(&completion.stream_end(id, created))?;
            return response.end();
        }
    }
    Ok(())
}
