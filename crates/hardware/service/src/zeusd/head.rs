//! The head of a request: its first line and its headers.

use httparse::{Header, Status};

use super::query::decode_query;
use super::request::{BadRequest, Request};

/// The most bytes of a request's head: its first line and its headers.
pub const MAX_HEAD: usize = 8 * 1024;

/// The most headers of a request.
pub const MAX_HEADERS: usize = 64;

/// The most bytes of a request's body.
pub const MAX_BODY: usize = 64 * 1024;

/// A complete head.
#[derive(Debug)]
pub(super) struct Head {
    /// The request.
    pub(super) request: Request,
    /// The number of bytes of the head.
    pub(super) length: usize,
    /// The number of bytes of the body that follows.
    pub(super) body_length: usize,
}

/// Parses the head at the start of `bytes`; `None` if it is not complete.
pub(super) fn parse_head(bytes: &[u8]) -> Result<Option<Head>, BadRequest> {
    // Only the first bytes are parsed, so that the outcome does not depend on how many more have arrived.
    let start = bytes.get(..MAX_HEAD).unwrap_or(bytes);
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(start) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if start.len() < MAX_HEAD => return Ok(None),
        Ok(Status::Partial) => return Err(too_large(format!("more than {MAX_HEAD} bytes"))),
        Err(error) => return Err(syntax_error(error)),
    };
    check_bytes(start.get(..length).unwrap_or(start))?;
    let is_1_1 = parsed.version == Some(1);
    let (path, query) = parse_target(parsed.path.unwrap_or_default())?;
    check_host(parsed.headers, is_1_1)?;
    let body_length = parse_body_length(parsed.headers)?;
    if has(parsed.headers, "expect") {
        return Err(BadRequest::new(
            417,
            "the Expect header is not supported: send the request without it",
        ));
    }
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path,
        query,
        is_http_1_1: is_1_1,
        close: is_last_request(parsed.headers, is_1_1),
        host: text_of(parsed.headers, "host"),
        token: text_of(parsed.headers, "authorization").and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            let is_bearer = scheme.eq_ignore_ascii_case("bearer");
            is_bearer.then(|| token.trim().to_owned())
        }),
        body: Vec::new(),
    };
    Ok(Some(Head {
        request,
        length,
        body_length,
    }))
}

/// The error of a head that is not HTTP.
fn syntax_error(error: httparse::Error) -> BadRequest {
    match error {
        httparse::Error::TooManyHeaders => too_large(format!("more than {MAX_HEADERS} headers")),
        httparse::Error::Version => {
            BadRequest::new(400, "the first line does not end with HTTP/1.0 or HTTP/1.1")
        }
        other => BadRequest::new(400, format!("malformed HTTP request: {other}")),
    }
}

/// The error of a head that is too large.
fn too_large(what: String) -> BadRequest {
    BadRequest::new(431, format!("the head of the request has {what}"))
}

/// Rejects what the HTTP parser accepts and others read differently: lines that end with a line feed alone, and bytes
/// that are not UTF-8.
fn check_bytes(head: &[u8]) -> Result<(), BadRequest> {
    let mut previous = 0;
    for byte in head {
        if *byte == b'\n' && previous != b'\r' {
            return Err(BadRequest::new(400, "a line does not end with CR LF"));
        }
        previous = *byte;
    }
    match std::str::from_utf8(head) {
        Ok(_) => Ok(()),
        Err(_) => Err(BadRequest::new(400, "the head is not UTF-8")),
    }
}

/// The path and the decoded parameters of a request target such as `/path?name=value`.
fn parse_target(target: &str) -> Result<(String, Vec<(String, String)>), BadRequest> {
    let is_plain = target
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if !target.starts_with('/') || !is_plain {
        return Err(BadRequest::new(
            400,
            "the request target is not a path that starts with `/`",
        ));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = decode_query(query).map_err(|message| BadRequest::new(400, message))?;
    Ok((path.to_owned(), query))
}

/// The values of all headers with this name, which is given in lower case.
fn values<'a>(headers: &'a [Header<'a>], name: &'static str) -> impl Iterator<Item = &'a [u8]> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value)
}

/// The value of the first header with this name, as text.
fn text_of(headers: &[Header<'_>], name: &'static str) -> Option<String> {
    let value = values(headers, name).next()?;
    Some(std::str::from_utf8(value).ok()?.to_owned())
}

/// Whether there is a header with this name.
fn has(headers: &[Header<'_>], name: &'static str) -> bool {
    values(headers, name).next().is_some()
}

/// Checks the number of `Host` headers: exactly one in HTTP/1.1 (RFC 9112, section 3.2), at most one in HTTP/1.0.
fn check_host(headers: &[Header<'_>], is_1_1: bool) -> Result<(), BadRequest> {
    match values(headers, "host").count() {
        0 if is_1_1 => Err(BadRequest::new(400, "the Host header is missing")),
        0 | 1 => Ok(()),
        _ => Err(BadRequest::new(400, "more than one Host header")),
    }
}

/// The length of the body. Anything that two programs could read differently is an error (RFC 9112, section 6.3).
fn parse_body_length(headers: &[Header<'_>]) -> Result<usize, BadRequest> {
    let mut lengths = values(headers, "content-length");
    let length = lengths.next();
    if lengths.next().is_some() {
        return Err(BadRequest::new(400, "more than one Content-Length header"));
    }
    if has(headers, "transfer-encoding") {
        return Err(match length {
            Some(_) => BadRequest::new(400, "both Content-Length and Transfer-Encoding"),
            None => BadRequest::new(
                501,
                "Transfer-Encoding is not supported: send a Content-Length",
            ),
        });
    }
    let Some(length) = length else {
        return Ok(0);
    };
    if length.is_empty() || !length.iter().all(u8::is_ascii_digit) {
        return Err(BadRequest::new(400, "Content-Length is not a number"));
    }
    // A number with too many digits for the type is too large like any other.
    let length = std::str::from_utf8(length)
        .ok()
        .and_then(|digits| digits.parse().ok());
    match length {
        Some(length) if length <= MAX_BODY => Ok(length),
        _ => Err(BadRequest::new(
            413,
            format!("the body has more than {MAX_BODY} bytes"),
        )),
    }
}

/// Whether the client sends no further request on this connection. HTTP/1.1 keeps a connection open unless it says
/// otherwise, HTTP/1.0 closes it.
fn is_last_request(headers: &[Header<'_>], is_1_1: bool) -> bool {
    let has_option = |wanted: &str| {
        values(headers, "connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|option| option.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes()))
    };
    has_option("close") || !(is_1_1 || has_option("keep-alive"))
}
