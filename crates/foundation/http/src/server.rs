//! The server's side of a connection: one request, read within limits, and its response.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 8192;
/// The most headers of a request.
const MAX_HEADERS: usize = 64;
/// The time in which the whole request must have come.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// The longest time until a reader notices that the server ends.
const READ_TIME: Duration = Duration::from_millis(100);
/// The longest time for which a client may not take what is sent to it.
const WRITE_TIME: Duration = Duration::from_secs(5);

/// A request of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerRequest {
    /// The method, such as `GET`.
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// Names and values of the headers that are text.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl ServerRequest {
    /// The value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

/// What came over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A whole request.
    Request(ServerRequest),
    /// The client closed the connection, was too slow, or the server ends.
    Nothing,
    /// Something that is refused with this status: 400, 411 or 413.
    Refused(u16),
}

/// Reads a request whose body has at most `max_body` bytes. `has_ended` says whether the server ends.
pub fn read_request(
    stream: &mut TcpStream,
    max_body: usize,
    has_ended: &dyn Fn() -> bool,
) -> io::Result<Received> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_TIME))?;
    stream.set_write_timeout(Some(WRITE_TIME))?;
    let started = Instant::now();
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let mut head: Option<(ServerRequest, usize)> = None;
    while !has_ended() && started.elapsed() < REQUEST_TIME {
        if head.is_none() && bytes.windows(4).any(|window| window == b"\r\n\r\n") {
            let Some(parsed) = parse_head(&bytes) else {
                return Ok(Received::Refused(400));
            };
            head = Some(parsed);
        }
        if let Some((request, length)) = &mut head {
            let body_length = match body_length(request) {
                Ok(known) if known > max_body => return Ok(Received::Refused(413)),
                Ok(known) => known,
                Err(status) => return Ok(Received::Refused(status)),
            };
            if let Some(body) = bytes.get(*length..*length + body_length) {
                request.body = body.to_vec();
                return Ok(Received::Request(std::mem::take(request)));
            }
        } else if bytes.len() > MAX_HEAD {
            return Ok(Received::Refused(400));
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(Received::Nothing),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Received::Nothing)
}

/// The request without its body, and the length of its head; `None` if it is not HTTP.
fn parse_head(bytes: &[u8]) -> Option<(ServerRequest, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let Ok(httparse::Status::Complete(length)) = parsed.parse(bytes) else {
        return None;
    };
    let text = |header: &httparse::Header<'_>| {
        let value = std::str::from_utf8(header.value).ok()?;
        Some((header.name.to_owned(), value.to_owned()))
    };
    let request = ServerRequest {
        method: parsed.method?.to_owned(),
        target: parsed.path?.to_owned(),
        headers: parsed.headers.iter().filter_map(text).collect(),
        body: Vec::new(),
    };
    Some((request, length))
}

/// The number of bytes of the body; otherwise the status of the refusal.
fn body_length(request: &ServerRequest) -> Result<usize, u16> {
    if request.header("transfer-encoding").is_some() {
        return Err(411);
    }
    match request.header("content-length") {
        None => Ok(0),
        Some(text) => text.trim().parse().map_err(|_| 400),
    }
}

/// Sends a response with further header lines, each with its line end, and a body.
pub fn send_response(
    stream: &mut TcpStream,
    status: u16,
    content_type: &str,
    more_headers: &str,
    body: &str,
) -> io::Result<()> {
    let length = body.len();
    let head = head(status, content_type);
    stream.write_all(
        format!("{head}Content-Length: {length}\r\n{more_headers}\r\n{body}").as_bytes(),
    )?;
    stream.flush()
}

/// The first lines of every response. A connection serves one request.
fn head(status: u16, content_type: &str) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Content Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    format!("HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nConnection: close\r\n")
}

/// A response that is sent in parts.
#[derive(Debug)]
pub struct StreamedResponse<'a> {
    stream: &'a mut TcpStream,
}

impl<'a> StreamedResponse<'a> {
    /// Sends the head of the response.
    pub fn begin(stream: &'a mut TcpStream, content_type: &str) -> io::Result<Self> {
        let head = head(200, content_type);
        stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes())?;
        Ok(Self { stream })
    }

    /// Sends the next part at once; an empty one is left out, because it would end the response.
    pub fn send(&mut self, part: &str) -> io::Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let chunk = format!("{:x}\r\n{part}\r\n", part.len());
        self.stream.write_all(chunk.as_bytes())?;
        self.stream.flush()
    }

    /// Ends the response; a response that is dropped before was cut off.
    pub fn end(self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")?;
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::*;
    use crate::{get, post};

    /// Answers one request in a thread of its own.
    fn serve_once(
        answer: impl FnOnce(Received, &mut TcpStream) + Send + 'static,
    ) -> (SocketAddr, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = move || {
            let mut stream = listener.accept().unwrap().0;
            let received = read_request(&mut stream, 100, &|| false).unwrap();
            answer(received, &mut stream);
        };
        (address, std::thread::spawn(serve))
    }

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn a_page_and_parts_reach_the_client() {
        let (address, server) = serve_once(|received, stream| {
            let Received::Request(request) = received else {
                panic!("{received:?}");
            };
            assert_eq!((&*request.method, &*request.target), ("GET", "/a?b=1"));
            assert_eq!(request.header("USER-agent"), Some("sweetspot"));
            send_response(stream, 200, "text/plain", "", "page").unwrap();
        });
        let url = format!("http://{address}/a?b=1").parse().unwrap();
        assert_eq!(get(&url, TIMEOUT, 100).unwrap(), b"page");
        server.join().unwrap();
        let (address, server) = serve_once(|received, stream| {
            let Received::Request(request) = received else {
                panic!("{received:?}");
            };
            assert_eq!(request.body, b"{\"a\":1}");
            let mut parts = StreamedResponse::begin(stream, "text/event-stream").unwrap();
            for part in ["one ", "", "two"] {
                parts.send(part).unwrap();
            }
            parts.end().unwrap();
        });
        let url = format!("http://{address}/").parse().unwrap();
        let mut all = Vec::new();
        let mut take = |part: &[u8]| all.extend_from_slice(part);
        post(&url, "{\"a\":1}", TIMEOUT, 100, &mut take).unwrap();
        assert_eq!(all, b"one two");
        server.join().unwrap();
    }

    #[test]
    fn requests_that_are_not_understood_are_refused() {
        for (text, expected) in [
            ("nonsense\r\n\r\n", Received::Refused(400)),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                Received::Refused(411),
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n",
                Received::Refused(413),
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
                Received::Refused(400),
            ),
            ("GET / HTTP/1.1\r\n", Received::Nothing),
        ] {
            let (address, server) =
                serve_once(move |received, _| assert_eq!(received, expected, "{text}"));
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            server.join().unwrap();
        }
    }
}
