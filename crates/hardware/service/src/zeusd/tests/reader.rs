//! Tests of requests that arrive in pieces, one after another, and in large amounts.

use super::super::{BadRequest, MAX_BODY, MAX_BUFFERED, MAX_HEAD};
use super::*;

/// Requests of every kind that the reader supports.
const PIPELINE: &str = concat!(
    "GET /discover HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "\r\nPOST /gpu/set_power_limit?gpu_ids=0%2C1&power_limit_mw=300000&block=true HTTP/1.1\r\n",
    "hOST: localhost\r\nContent-Length:  4 \r\nX-Name: gr\u{fc}n\r\n\r\n\r\n\r\n",
    "GET /time HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "POST /gpu/reset_locked_clocks?gpu_ids=0&block=true HTTP/1.1\r\nHost:\r\ncontent-length: 0\r\n\r\n",
    "PUT /x?%C3%BC HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nGET",
    "GET /time HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
);

/// All requests that come out when these pieces are pushed one after another, and the error that ends them.
pub(super) fn read_all<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Request>, Option<BadRequest>) {
    let mut reader = RequestReader::new();
    let mut requests = Vec::new();
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.next_request() {
                Ok(Some(request)) => requests.push(request),
                Ok(None) => break,
                Err(error) => return (requests, Some(error)),
            }
        }
    }
    (requests, None)
}

fn paths(requests: &[Request]) -> Vec<&str> {
    requests
        .iter()
        .map(|request| request.path.as_str())
        .collect()
}

#[test]
fn pipelined_requests_come_out_one_by_one() {
    let (requests, error) = read_all([PIPELINE.as_bytes()]);
    assert_eq!(error, None);
    assert_eq!(
        paths(&requests),
        [
            "/discover",
            "/gpu/set_power_limit",
            "/time",
            "/gpu/reset_locked_clocks",
            "/x",
            "/time"
        ]
    );
    let set = &requests[1];
    assert_eq!(set.method, "POST");
    assert!(set.is_http_1_1 && !set.close);
    assert_eq!(set.query[0], ("gpu_ids".to_owned(), "0,1".to_owned()));
    assert!(!requests[2].is_http_1_1 && !requests[2].close);
    assert!(requests[5].close);
}

#[test]
fn pieces_do_not_matter() {
    let whole = read_all([PIPELINE.as_bytes()]);
    let bytes = PIPELINE.as_bytes();
    for position in 0..=bytes.len() {
        let (start, end) = bytes.split_at(position);
        assert_eq!(read_all([start, end]), whole, "{position}");
    }
    assert_eq!(read_all(bytes.chunks(1)), whole);
}

#[test]
fn a_request_comes_out_with_its_last_byte() {
    let request = "POST /gpu/reset_locked_clocks?gpu_ids=0&block=true HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let (last, start) = request.as_bytes().split_last().unwrap();
    let mut reader = RequestReader::new();
    assert!(!reader.is_partial());
    for byte in start {
        reader.push(&[*byte]);
        assert_eq!(reader.next_request(), Ok(None));
        assert!(reader.is_partial());
    }
    reader.push(&[*last]);
    assert!(reader.next_request().unwrap().is_some());
    assert!(!reader.is_partial());
}

#[test]
fn nothing_comes_after_the_last_request() {
    let close = "GET /time HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let twice = close.repeat(2);
    let mut reader = RequestReader::new();
    reader.push(twice.as_bytes());
    assert!(reader.next_request().unwrap().is_some());
    reader.push(b"GET / garbage");
    assert_eq!(reader.next_request(), Ok(None));
    assert!(!reader.is_partial());
    assert_eq!(reader.buffer_capacity(), 0);
}

#[test]
fn an_error_is_final() {
    let mut reader = RequestReader::new();
    reader.push(b"GET /time HTTP/1.1\r\n\r\n");
    let error = reader.next_request().unwrap_err();
    reader.push(b"GET /time HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(reader.next_request(), Err(error.clone()));
    assert_eq!(reader.buffer_capacity(), 0);
    let response = error.to_response();
    assert!(response.close);
    assert_eq!(response.body, r#"{"error":"the Host header is missing"}"#);
}

#[test]
fn a_request_in_a_body_is_ignored() {
    let hidden = "POST /gpu/reset_locked_clocks?gpu_ids=0&block=true HTTP/1.1\r\nHost: a\r\n\r\n";
    let bytes = format!(
        "GET /time HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{hidden}GET /discover HTTP/1.1\r\nHost: a\r\n\r\n",
        hidden.len()
    );
    for size in [1, 7, bytes.len()] {
        let (requests, error) = read_all(bytes.as_bytes().chunks(size));
        assert_eq!(error, None);
        assert_eq!(paths(&requests), ["/time", "/discover"], "{size}");
    }
}

/// A request whose head has exactly this many bytes.
fn request_with_head(length: usize) -> String {
    let start = "GET /time HTTP/1.1\r\nHost: ";
    let end = "\r\n\r\n";
    format!(
        "{start}{}{end}",
        "a".repeat(length - start.len() - end.len())
    )
}

#[test]
fn the_largest_permitted_request_is_read() {
    let head = request_with_head(MAX_HEAD);
    assert_eq!(paths(&read_all([head.as_bytes()]).0), ["/time"]);
    let longer = request_with_head(MAX_HEAD + 1);
    for size in [1000, MAX_HEAD, longer.len()] {
        let (requests, error) = read_all(longer.as_bytes().chunks(size));
        assert_eq!((requests.len(), error.unwrap().status), (0, 431));
    }

    let length = format!("\r\nContent-Length: {MAX_BODY}\r\n\r\n");
    let head = request_with_head(MAX_HEAD - length.len() + 4);
    let largest = head.replace("\r\n\r\n", &length) + &"x".repeat(MAX_BODY);
    assert_eq!(largest.len(), MAX_BUFFERED);
    for size in [100, MAX_HEAD + 1, MAX_BUFFERED] {
        let (requests, error) = read_all(largest.as_bytes().chunks(size));
        assert_eq!((paths(&requests), error), (vec!["/time"], None), "{size}");
    }
}

#[test]
fn any_number_of_requests_is_read_in_pieces_that_fit() {
    let many = PIPELINE.replace("Connection: close\r\n", "").repeat(800);
    assert!(many.len() > 4 * MAX_BUFFERED);
    let mut reader = RequestReader::new();
    let mut count = 0;
    let mut rest = many.as_bytes();
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(reader.room().min(rest.len()));
        rest = later;
        reader.push(piece);
        while reader.next_request().unwrap().is_some() {
            count += 1;
        }
    }
    assert_eq!(count, 6 * 800);
}

#[test]
fn what_does_not_fit_ends_the_connection() {
    let request = "GET /time HTTP/1.1\r\nHost: a\r\n\r\n";
    let many = request.repeat(10_000);
    let mut reader = RequestReader::new();
    reader.push(many.as_bytes());
    assert_eq!(reader.room(), 0);
    reader.push(many.as_bytes());
    assert!(reader.buffer_capacity() <= 2 * MAX_BUFFERED);
    for _ in 0..MAX_BUFFERED / request.len() {
        assert_eq!(reader.next_request().unwrap().unwrap().path, "/time");
    }
    // The end of the last stored request was dropped; bytes that arrive later must not replace it.
    reader.push(&many.as_bytes()[MAX_BUFFERED % request.len()..]);
    assert_eq!(reader.next_request().unwrap_err().status, 400);
}
