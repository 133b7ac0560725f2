//! One request and its answer.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::body::{Chunk, Length};
use crate::url::Url;

/// Why a page could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Nothing answers at the address.
    #[error("cannot connect to {url}: {problem}")]
    Connect {
        /// The address of the page.
        url: String,
        /// The operating system's error message.
        problem: String,
    },
    /// The answer took too long.
    #[error("{url} did not answer within {:.1} s", timeout.as_secs_f64())]
    Timeout {
        /// The address of the page.
        url: String,
        /// The longest time that the answer may take.
        timeout: Duration,
    },
    /// The connection was lost before the end of the answer.
    #[error("the connection to {url} was lost: {problem}")]
    Lost {
        /// The address of the page.
        url: String,
        /// What happened.
        problem: String,
    },
    /// The server answered with another status than 200.
    #[error("{url} answered with status {status}")]
    Status {
        /// The address of the page.
        url: String,
        /// The status of the answer.
        status: u16,
    },
    /// The answer is not HTTP.
    #[error("{url} did not answer in HTTP/1.1")]
    NotHttp {
        /// The address of the page.
        url: String,
    },
    /// The page is larger than allowed.
    #[error("{url} is larger than {} KiB", max_bytes / 1024)]
    TooLarge {
        /// The address of the page.
        url: String,
        /// The allowed size.
        max_bytes: usize,
    },
}

impl HttpError {
    /// Whether the server may answer later: it is not there yet, slow, or gone.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Timeout { .. } | Self::Lost { .. } => true,
            Self::Status { status, .. } => *status >= 500,
            Self::NotHttp { .. } | Self::TooLarge { .. } => false,
        }
    }
}

/// The largest size of the headers of an answer, in bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// The largest number of headers of an answer.
const MAX_HEADERS: usize = 100;

/// Reads a page of at most `max_bytes`, in at most `timeout`.
pub fn get(url: &Url, timeout: Duration, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nAccept: text/plain\r\nUser-Agent: sweetspot\r\nConnection: close\r\n\r\n",
        url.path,
        url.authority()
    );
    let mut page = Vec::new();
    exchange(url, head.as_bytes(), timeout, max_bytes, &mut |content| {
        page.extend_from_slice(content);
    })?;
    Ok(page)
}

/// Sends a JSON document and passes the answer to `on_content` as it arrives; it has at most `max_bytes`.
pub fn post(
    url: &Url,
    json: &str,
    timeout: Duration,
    max_bytes: usize,
    on_content: &mut dyn FnMut(&[u8]),
) -> Result<(), HttpError> {
    let request = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n\
         User-Agent: sweetspot\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{json}",
        url.path,
        url.authority(),
        json.len()
    );
    exchange(url, request.as_bytes(), timeout, max_bytes, on_content)
}

/// Sends a request and passes the content of its answer to `on_content`.
fn exchange(
    url: &Url,
    request: &[u8],
    timeout: Duration,
    max_bytes: usize,
    on_content: &mut dyn FnMut(&[u8]),
) -> Result<(), HttpError> {
    let connection = Connection {
        url,
        timeout,
        deadline: Instant::now() + timeout,
    };
    let mut stream = connection.open()?;
    stream
        .write_all(request)
        .map_err(|problem| connection.failed(&problem))?;
    let (mut length, rest) = connection.read_head(&mut stream)?;
    let mut content = Vec::new();
    let mut total = 0;
    let mut pass = |length: &mut Length, bytes: &[u8]| {
        content.clear();
        length
            .take(bytes, &mut content)
            .map_err(|_| HttpError::NotHttp {
                url: url.to_string(),
            })?;
        total += content.len();
        if total > max_bytes {
            return Err(HttpError::TooLarge {
                url: url.to_string(),
                max_bytes,
            });
        }
        on_content(&content);
        Ok(())
    };
    pass(&mut length, &rest)?;
    let mut buffer = vec![0; 16 << 10];
    while !length.is_done() {
        match connection.read(&mut stream, &mut buffer)? {
            0 if length.may_close() => break,
            0 => return Err(connection.lost("it was closed early")),
            count => pass(&mut length, &buffer[..count])?,
        }
    }
    Ok(())
}

/// A connection with its time limit.
struct Connection<'a> {
    url: &'a Url,
    timeout: Duration,
    deadline: Instant,
}

impl Connection<'_> {
    /// Connects to the first address of the host that answers.
    fn open(&self) -> Result<TcpStream, HttpError> {
        let refused = |problem: String| HttpError::Connect {
            url: self.url.to_string(),
            problem,
        };
        let found = (self.url.host.as_str(), self.url.port).to_socket_addrs();
        let found = found.map_err(|problem| refused(problem.to_string()))?;
        let mut last = refused("the host has no address".to_owned());
        for address in found.take(8) {
            match TcpStream::connect_timeout(&address, self.left()?) {
                Ok(stream) => {
                    // A small request must not wait for more to send.
                    let _ = stream.set_nodelay(true);
                    let _ = stream.set_write_timeout(Some(self.left()?));
                    return Ok(stream);
                }
                Err(problem) if problem.kind() == ErrorKind::TimedOut => last = self.late(),
                Err(problem) => last = refused(problem.to_string()),
            }
        }
        Err(last)
    }

    /// The time that is left; an error if there is none.
    fn left(&self) -> Result<Duration, HttpError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(self.late()),
            false => Ok(left),
        }
    }

    /// Reads some bytes; 0 if the connection was closed.
    fn read(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> Result<usize, HttpError> {
        loop {
            let set = stream.set_read_timeout(Some(self.left()?));
            set.map_err(|problem| self.failed(&problem))?;
            match stream.read(buffer) {
                Err(problem) if problem.kind() == ErrorKind::Interrupted => {}
                read => return read.map_err(|problem| self.failed(&problem)),
            }
        }
    }

    /// Reads the status and the headers. Returns how the length of the body is known, and the bytes after the headers.
    fn read_head(&self, stream: &mut TcpStream) -> Result<(Length, Vec<u8>), HttpError> {
        let not_http = || HttpError::NotHttp {
            url: self.url.to_string(),
        };
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        loop {
            let count = self.read(stream, &mut buffer)?;
            if count == 0 {
                return Err(match bytes.is_empty() {
                    true => self.lost("it was closed without an answer"),
                    false => not_http(),
                });
            }
            bytes.extend_from_slice(&buffer[..count]);
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut response = httparse::Response::new(&mut headers);
            match response.parse(&bytes).map_err(|_| not_http())? {
                httparse::Status::Complete(end) => {
                    let status = response.code.ok_or_else(not_http)?;
                    if status != 200 {
                        let url = self.url.to_string();
                        return Err(HttpError::Status { url, status });
                    }
                    let length = body_length(response.headers).ok_or_else(not_http)?;
                    return Ok((length, bytes.split_off(end)));
                }
                httparse::Status::Partial if bytes.len() > MAX_HEADER_BYTES => {
                    return Err(not_http());
                }
                httparse::Status::Partial => {}
            }
        }
    }

    /// The error of a request that took too long.
    fn late(&self) -> HttpError {
        HttpError::Timeout {
            url: self.url.to_string(),
            timeout: self.timeout,
        }
    }

    /// The error of a connection that was lost.
    fn lost(&self, problem: &str) -> HttpError {
        HttpError::Lost {
            url: self.url.to_string(),
            problem: problem.to_owned(),
        }
    }

    /// The error of a read or write that failed.
    fn failed(&self, problem: &std::io::Error) -> HttpError {
        match problem.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => self.late(),
            _ => self.lost(&problem.to_string()),
        }
    }
}

/// How the length of a body is known from the headers; `None` if they contradict HTTP.
fn body_length(headers: &[httparse::Header<'_>]) -> Option<Length> {
    let value = |name: &str| {
        let mut found = headers
            .iter()
            .filter(|one| one.name.eq_ignore_ascii_case(name));
        found.next_back().map(|one| {
            String::from_utf8_lossy(one.value)
                .trim()
                .to_ascii_lowercase()
        })
    };
    match (value("transfer-encoding"), value("content-length")) {
        (Some(encoding), _) if encoding == "identity" => Some(Length::UntilClosed),
        (Some(encoding), _) => encoding
            .ends_with("chunked")
            .then_some(Length::Chunked(Chunk::START)),
        (None, Some(length)) => length.parse().ok().map(Length::Known),
        (None, None) => Some(Length::UntilClosed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that answers one request with these parts, with a pause before each, and closes.
    fn answer(parts: Vec<(u64, &'static str)>) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            for (pause, part) in parts {
                std::thread::sleep(Duration::from_millis(pause));
                let _ = stream.write_all(part.as_bytes());
            }
        });
        format!("http://127.0.0.1:{port}/metrics").parse().unwrap()
    }

    fn read(parts: Vec<(u64, &'static str)>) -> Result<String, HttpError> {
        let page = get(&answer(parts), Duration::from_millis(300), 1000)?;
        Ok(String::from_utf8(page).unwrap())
    }

    #[test]
    fn pages_of_every_form_are_read() {
        let known = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, ignored";
        assert_eq!(read(vec![(0, known)]).as_deref(), Ok("hello"));
        let chunks = vec![
            (
                0,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r",
            ),
            (20, "\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
        ];
        assert_eq!(read(chunks).as_deref(), Ok("abcde"));
        let closed = "HTTP/1.0 200 OK\r\nServer: x\r\n\r\nuntil the end";
        assert_eq!(read(vec![(0, closed)]).as_deref(), Ok("until the end"));
    }

    #[test]
    fn every_wrong_answer_is_an_error_of_its_kind() {
        let error = |text: &'static str| read(vec![(0, text)]).unwrap_err();
        assert!(matches!(
            error("HTTP/1.1 404 Not Found\r\n\r\n"),
            HttpError::Status { status: 404, .. }
        ));
        assert!(matches!(
            error("SSH-2.0-OpenSSH\r\n\r\n"),
            HttpError::NotHttp { .. }
        ));
        assert!(matches!(error(""), HttpError::Lost { .. }));
        assert!(matches!(
            error("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
            HttpError::Lost { .. }
        ));
        let large: &'static str =
            Box::leak(format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(2000)).into_boxed_str());
        assert!(matches!(error(large), HttpError::TooLarge { .. }));
        let slow = read(vec![(500, "HTTP/1.1 200 OK\r\n\r\n")]).unwrap_err();
        assert!(matches!(slow, HttpError::Timeout { .. }) && slow.may_pass());
        // A server that sends a byte now and then is slow too.
        let drip = std::iter::repeat_n((30, "H"), 30).collect();
        assert!(read(drip).is_err());
    }

    #[test]
    fn a_closed_port_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url: Url = format!("http://{}/", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        drop(listener);
        let error = get(&url, Duration::from_secs(1), 10).unwrap_err();
        assert!(matches!(error, HttpError::Connect { .. }), "{error}");
    }

    #[test]
    fn a_streamed_answer_arrives_in_parts() {
        let url = answer(vec![
            (0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            (0, "2\r\nab\r\n"),
            (40, "2\r\ncd\r\n0\r\n\r\n"),
        ]);
        let mut parts = Vec::new();
        post(&url, "{}", Duration::from_secs(2), 100, &mut |part| {
            if !part.is_empty() {
                parts.push(String::from_utf8_lossy(part).into_owned());
            }
        })
        .unwrap();
        assert_eq!(parts, ["ab", "cd"]);
    }
}
