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
    let text = String::from_utf8_lossy(answer);
    let invalid = || ApiError::System(io::Error::other("the answer is not HTTP"));
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(invalid)?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse::<u16>().ok());
    match status.ok_or_else(invalid)? {
        200 => Ok(body.to_owned()),
        status => {
            let value: Option<serde_json::Value> = serde_json::from_str(body).ok();
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
