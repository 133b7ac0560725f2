//! Requests from the bytes of a connection.

use super::head::{MAX_BODY, MAX_HEAD, parse_head};
use super::response::Response;

/// The most bytes that a [`RequestReader`] stores: those of one request of the largest permitted size.
pub const MAX_BUFFERED: usize = MAX_HEAD + MAX_BODY;

/// A request. The paths of zeusd ignore its body, because all their parameters are in the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The method as the client wrote it, such as `GET`.
    pub method: String,
    /// The path as the client wrote it, without the query.
    pub path: String,
    /// The decoded parameters of the query, in the client's order.
    pub query: Vec<(String, String)>,
    /// Whether the client speaks HTTP/1.1; otherwise it speaks HTTP/1.0.
    pub is_http_1_1: bool,
    /// Whether the connection closes after the answer.
    pub close: bool,
    /// The value of the `Host` header; `None` if there is none, which HTTP/1.0 allows.
    pub host: Option<String>,
    /// The token of an `Authorization: Bearer TOKEN` header.
    pub token: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// A request that cannot be answered. The connection is closed after [`BadRequest::to_response`], because it is
/// unknown where the next request would start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadRequest {
    /// The HTTP status of the answer.
    pub status: u16,
    /// What is wrong with the request.
    pub message: String,
}

impl BadRequest {
    /// An error with this status and message.
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// The answer to the request.
    pub fn to_response(&self) -> Response {
        Response {
            close: true,
            ..Response::error(self.status, &self.message)
        }
    }
}

/// Reads the requests of one connection.
///
/// Call [`RequestReader::push`] with the bytes that arrived, then [`RequestReader::next_request`] until it returns
/// `None`. At most [`MAX_BUFFERED`] bytes are stored. A client that sends more without waiting for answers gets an
/// error after the requests that were stored whole; this cannot happen if the service reads at most
/// [`RequestReader::room`] bytes at once.
#[derive(Debug, Default)]
pub struct RequestReader {
    /// The bytes that arrived.
    buffer: Vec<u8>,
    /// The number of bytes at the start of the buffer that are no longer needed.
    consumed: usize,
    /// The request whose body has not arrived yet, and the number of bytes that are missing.
    incomplete: Option<(Request, usize)>,
    /// Whether bytes were dropped because the buffer was full.
    is_overfull: bool,
    /// Whether the last request has come out, or an error.
    end: Option<End>,
}

/// Why a reader returns no further requests.
#[derive(Clone, Debug)]
enum End {
    /// The client said that its last request was the last.
    LastRequest,
    /// The client sent a malformed request.
    Error(BadRequest),
}

impl RequestReader {
    /// A reader for a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes that arrived. After the last request and after an error they are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.end.is_some() || self.is_overfull {
            return;
        }
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        let taken = bytes.get(..self.room()).unwrap_or(bytes);
        self.buffer.extend_from_slice(taken);
        self.is_overfull = taken.len() < bytes.len();
    }

    /// The number of bytes that the next [`RequestReader::push`] can store.
    pub fn room(&self) -> usize {
        let body = self
            .incomplete
            .as_ref()
            .map_or(0, |(one, _)| one.body.len());
        MAX_BUFFERED.saturating_sub(self.unread().len() + body)
    }

    /// The path of the request at the start of the buffer, without its query; `None` if its first line has not arrived
    /// or is malformed.
    pub fn next_path(&self) -> Option<&str> {
        let line = self.unread().split(|byte| *byte == b'\r').next()?;
        let is_whole = line.len() < self.unread().len() && self.incomplete.is_none();
        let target = line.split(|byte| *byte == b' ').nth(1)?;
        let path = target.split(|byte| *byte == b'?').next()?;
        std::str::from_utf8(path).ok().filter(|_| is_whole)
    }

    /// The bytes that belong to no request yet, for another reader.
    pub fn into_unread(mut self) -> Vec<u8> {
        self.buffer.split_off(self.consumed.min(self.buffer.len()))
    }

    /// Whether a request has begun to arrive and is not complete. The service uses it to time out slow clients.
    pub fn is_partial(&self) -> bool {
        self.incomplete.is_some() || !self.unread().is_empty()
    }

    /// The next request; `None` if none is complete. An error is final: every further call returns it again.
    pub fn next_request(&mut self) -> Result<Option<Request>, BadRequest> {
        match &self.end {
            Some(End::LastRequest) => return Ok(None),
            Some(End::Error(error)) => return Err(error.clone()),
            None => {}
        }
        let outcome = self.read_request();
        match &outcome {
            Ok(Some(request)) if request.close => self.stop(End::LastRequest),
            Ok(_) => {}
            Err(error) => self.stop(End::Error(error.clone())),
        }
        outcome
    }

    /// Reads the next request from the buffer.
    fn read_request(&mut self) -> Result<Option<Request>, BadRequest> {
        if self.incomplete.is_none()
            && let Some(head) = parse_head(self.unread())?
        {
            self.consumed += head.length;
            self.incomplete = Some((head.request, head.body_length));
        }
        if let Some((mut request, missing)) = self.incomplete.take() {
            let skipped = missing.min(self.unread().len());
            let part = self.unread().get(..skipped).unwrap_or_default();
            request.body.extend_from_slice(part);
            self.consumed += skipped;
            if skipped == missing {
                return Ok(Some(request));
            }
            self.incomplete = Some((request, missing - skipped));
        }
        if self.is_overfull {
            return Err(BadRequest::new(
                400,
                format!("more than {MAX_BUFFERED} bytes were sent without waiting for answers"),
            ));
        }
        Ok(None)
    }

    /// The bytes that belong to no request yet.
    fn unread(&self) -> &[u8] {
        self.buffer.get(self.consumed..).unwrap_or_default()
    }

    /// Ends the reading and frees the buffer.
    fn stop(&mut self, end: End) {
        *self = Self {
            end: Some(end),
            ..Self::default()
        };
    }

    /// The number of bytes of memory that the buffer occupies.
    #[cfg(test)]
    pub(super) fn buffer_capacity(&self) -> usize {
        self.buffer.capacity()
    }
}
