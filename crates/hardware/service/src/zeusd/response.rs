//! Answers as bytes: responses, and streams of events.

use serde_json::{Value, json};
use sweetspot_quantity::Watts;

use super::backend::Failure;
use super::quantities::milliwatts;

/// An answer with a known end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The type of the body; `None` if there is no body.
    pub content_type: Option<&'static str>,
    /// The body.
    pub body: String,
    /// Further headers, each a line without its end.
    pub headers: &'static [&'static str],
    /// The method that the path supports, if the request had another one.
    pub allow: Option<&'static str>,
    /// Whether to close the connection after the answer.
    pub close: bool,
}

impl Response {
    /// A response without a body.
    pub const fn empty(status: u16) -> Self {
        Self {
            status,
            content_type: None,
            body: String::new(),
            headers: &[],
            allow: None,
            close: false,
        }
    }

    /// A response with a JSON body.
    pub fn json(status: u16, value: &Value) -> Self {
        Self {
            content_type: Some("application/json"),
            body: value.to_string(),
            ..Self::empty(status)
        }
    }

    /// A response with a message as JSON.
    pub fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({ "error": message }))
    }

    /// A response with a message as plain text.
    pub fn text(status: u16, message: String) -> Self {
        Self {
            content_type: Some("text/plain; charset=utf-8"),
            body: message,
            ..Self::empty(status)
        }
    }

    /// The response for failures of single GPUs. Its status is the highest of all failures.
    pub(super) fn failures(failures: &[(u32, Failure)]) -> Self {
        let status = failures.iter().map(|(_, failure)| failure.status()).max();
        let messages: serde_json::Map<String, Value> = failures
            .iter()
            .map(|(gpu, failure)| (gpu.to_string(), failure.to_string().into()))
            .collect();
        Self::json(status.unwrap_or(500), &json!({ "errors": messages }))
    }

    /// The response as it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = status_line(self.status);
        let length = self.body.len().to_string();
        let connection = if self.close { "close" } else { "keep-alive" };
        let headers = [
            ("Content-Type", self.content_type),
            ("Content-Length", Some(length.as_str())),
            ("Allow", self.allow),
            ("Connection", Some(connection)),
        ];
        for (name, value) in headers {
            if let Some(value) = value {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        for header in self.headers {
            head.push_str(&format!("{header}\r\n"));
        }
        head.push_str("\r\n");
        head.push_str(&self.body);
        head.into_bytes()
    }
}

/// A stream of server-sent events. The connection is closed at its end, and further requests on it are not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStream {
    /// Each event is a chunk of HTTP/1.1, so that the client can tell the end of the stream from a lost connection.
    Chunked,
    /// The events follow each other until the connection is closed, for clients of HTTP/1.0.
    UntilClose,
}

impl EventStream {
    /// The status and the headers, which are sent once, before the first event.
    pub fn head(self) -> Vec<u8> {
        let mut head = status_line(200);
        head.push_str("Content-Type: text/event-stream\r\nCache-Control: no-cache\r\n");
        if self == Self::Chunked {
            head.push_str("Transfer-Encoding: chunked\r\n");
        }
        head.push_str("Connection: close\r\n\r\n");
        head.into_bytes()
    }

    /// The event for a power reading of a GPU at a wall-clock time in milliseconds. It fails if the reading is
    /// impossible, such as a negative power.
    pub fn power_event(self, unix_ms: u64, gpu: u32, power: Watts) -> Result<Vec<u8>, Failure> {
        let power_mw = milliwatts(power)?;
        Ok(self.event(&json!({
            "timestamp_ms": unix_ms,
            "gpu_id": gpu,
            "power_mw": power_mw,
        })))
    }

    /// An event with this value as its data.
    pub fn event(self, data: &Value) -> Vec<u8> {
        let event = format!("data: {data}\n\n");
        match self {
            Self::Chunked => format!("{:X}\r\n{event}\r\n", event.len()).into_bytes(),
            Self::UntilClose => event.into_bytes(),
        }
    }

    /// The end of the stream. Zeus' client then connects again at once; if the connection closes without it, the client
    /// waits for a second first.
    pub const fn end(self) -> &'static [u8] {
        match self {
            Self::Chunked => b"0\r\n\r\n",
            Self::UntilClose => b"",
        }
    }
}

/// The first line of a response with its line end.
fn status_line(status: u16) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        417 => "Expectation Failed",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "",
    };
    format!("HTTP/1.1 {status} {reason}\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_response_has_its_length() {
        let mut response = Response::error(400, "ä");
        response.close = true;
        assert_eq!(
            text(&response.to_bytes()),
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\
             Connection: close\r\n\r\n{\"error\":\"ä\"}"
        );
        assert_eq!(
            text(&Response::empty(200).to_bytes()),
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"
        );
    }

    #[test]
    fn the_status_is_the_highest_of_all_gpus() {
        let failures = [
            (0, Failure::Invalid("too low".to_owned())),
            (10, Failure::Denied("leased".to_owned())),
            (2, Failure::Unsupported("no \"lock\"".to_owned())),
        ];
        let response = Response::failures(&failures);
        assert_eq!(response.status, 403);
        assert_eq!(
            response.body,
            r#"{"errors":{"0":"too low","10":"leased","2":"no \"lock\""}}"#
        );
        let failed = [(0, Failure::Failed(String::new())), failures[1].clone()];
        assert_eq!(Response::failures(&failed).status, 500);
    }

    #[test]
    fn events_are_chunks_in_http_1_1() {
        let event =
            |stream: EventStream| stream.power_event(1_700_000_000_123, 3, Watts::new(75.0));
        let data = "data: {\"timestamp_ms\":1700000000123,\"gpu_id\":3,\"power_mw\":75000}\n\n";
        assert_eq!(data.len(), 0x42);
        assert_eq!(
            text(&event(EventStream::Chunked).unwrap()),
            format!("42\r\n{data}\r\n")
        );
        assert_eq!(text(&event(EventStream::UntilClose).unwrap()), data);
        let impossible = EventStream::Chunked.power_event(0, 0, Watts::new(f64::NAN));
        assert!(impossible.is_err());
    }

    #[test]
    fn only_http_1_1_has_chunks() {
        let chunked = EventStream::Chunked.head();
        assert!(text(&chunked).contains("\r\nTransfer-Encoding: chunked\r\n"));
        let plain = EventStream::UntilClose.head();
        assert_eq!(
            text(&plain),
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\
             Connection: close\r\n\r\n"
        );
    }
}
