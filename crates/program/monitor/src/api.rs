//! A client of the measuring process: one HTTP request over the Unix socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The most bytes of an answer.
const MAX_ANSWER: u64 = 64 << 20;

/// Why the service gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The service does not run.
    #[error(
        "the service does not run: nothing answers at {0}; install it with `sudo sweetspot serve --install`"
    )]
    NotRunning(String),
    /// The service has no such path or counter.
    #[error("{0}")]
    NotFound(String),
    /// The service refused the request.
    #[error("{0}")]
    Refused(String),
    /// The connection failed.
    #[error("the service does not answer: {0}")]
    System(#[from] io::Error),
}

/// Sends a request and returns the body of the answer.
pub fn request(socket: &Path, method: &str, target: &str, body: &[u8]) -> Result<String, ApiError> {
    let mut stream = UnixStream::connect(socket).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ApiError::NotRunning(socket.display().to_string())
        }
        _ => ApiError::System(error),
    })?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
    parse_answer(&answer)
}

/// The body of an answer, or the error that it states.
fn parse_answer(answer: &[u8]) -> Result<String, ApiError> {
    let invalid = || ApiError::System(io::Error::other("the answer is not HTTP"));
    let incomplete = || ApiError::System(io::Error::other("the answer is incomplete"));
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let (head, body) = answer.split_at(end.ok_or_else(invalid)? + 4);
    let head = String::from_utf8_lossy(head);
    let status = head.split(' ').nth(1);
    let status = status.and_then(|status| status.parse::<u16>().ok());
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    };
    let body = match (header("transfer-encoding"), header("content-length")) {
        (Some(_), _) => join_chunks(body).ok_or_else(incomplete)?,
        (None, Some(length)) => {
            let length = length.parse().map_err(|_| invalid())?;
            body.get(..length).ok_or_else(incomplete)?.to_vec()
        }
        (None, None) => body.to_vec(),
    };
    let body = String::from_utf8_lossy(&body);
    match status.ok_or_else(invalid)? {
        200 => Ok(body.into_owned()),
        status => {
            let value: Option<serde_json::Value> = serde_json::from_str(&body).ok();
            let message = value.as_ref().and_then(|value| value["error"].as_str());
            let message = message.map_or_else(
                || format!("the service answered with status {status}"),
                str::to_owned,
            );
            match status {
                404 => Err(ApiError::NotFound(message)),
                _ => Err(ApiError::Refused(message)),
            }
        }
    }
}

/// The body of an answer that was sent in chunks; `None` if the last one, which is empty, is missing.
fn join_chunks(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(bytes.len());
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n")?;
        let length = std::str::from_utf8(&bytes[..end]).ok()?;
        let length = usize::from_str_radix(length.trim(), 16).ok()?;
        if length == 0 {
            return Some(body);
        }
        let rest = &bytes[end + 2..];
        body.extend(rest.get(..length)?);
        bytes = rest.get(length + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_cut_off_is_an_error() {
        let whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na,b\n\r\n3\r\n1,2\r\n0\r\n\r\n";
        assert_eq!(parse_answer(whole.as_bytes()).unwrap(), "a,b\n1,2");
        let plain = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(parse_answer(plain.as_bytes()).unwrap(), "abc");
        for cut in 1..whole.len() - 4 {
            assert!(parse_answer(&whole.as_bytes()[..cut]).is_err(), "{cut}");
        }
        assert!(parse_answer(&plain.as_bytes()[..plain.len() - 1]).is_err());
        let refused = b"HTTP/1.1 404 Not Found\r\nContent-Length: 16\r\n\r\n{\"error\":\"gone\"}";
        assert_eq!(parse_answer(refused).unwrap_err().to_string(), "gone");
    }
}
