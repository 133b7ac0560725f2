//! Tests of requests that must be rejected.

use super::super::MAX_HEAD;
use super::reader::read_all;

/// The status of the error that these bytes cause, pushed whole and byte by byte.
fn status(bytes: &[u8]) -> Option<u16> {
    let (requests, error) = read_all([bytes]);
    let in_pieces = read_all(bytes.chunks(1));
    assert_eq!((requests, error.clone()), in_pieces);
    Some(error?.status)
}

#[test]
fn malformed_requests_have_their_status() {
    let cases: &[(&[u8], u16)] = &[
        // First lines.
        (b"GET\r\n\r\n", 400),
        (b"GET /time\r\n\r\n", 400),
        (b"GET  /time HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /time  HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /time HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
        (b"GET /time http/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /time HTTP/2.0\r\nHost: a\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b" GET /time HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"G\x00T /time HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"\x00", 400),
        // Targets.
        (b"GET time HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET http://a/time HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /time#now HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /ti\x00me HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /ti\x7fme HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /\xc3\xbc HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /time?x=%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /time?x=%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /time?x=%ff HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /time?x=%0d%0a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        // Lines and headers.
        (b"GET /time HTTP/1.1\nHost: a\n\n", 400),
        (b"GET /time HTTP/1.1\r\nHost: a\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\nHost: a\r\n\n", 400),
        (b"\nGET /time HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\nHost: a\r\nX: \xff\r\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\nHost: a\r\nX\x00: b\r\n\r\n", 400),
        // The host.
        (b"GET /time HTTP/1.1\r\n\r\n", 400),
        (b"GET /time HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        (b"GET /time HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", 400),
        // Expectations.
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
            417,
        ),
    ];
    for (bytes, expected) in cases {
        let shown = bytes.escape_ascii();
        assert_eq!(status(bytes), Some(*expected), "{shown}");
    }
}

#[test]
fn unclear_body_lengths_have_their_status() {
    let cases = [
        ("Content-Length: ", 400),
        ("Content-Length: a", 400),
        ("Content-Length: -1", 400),
        ("Content-Length: +1", 400),
        ("Content-Length: 1 1", 400),
        ("Content-Length: 1, 1", 400),
        ("Content-Length: 0x1", 400),
        ("Content-Length: 1.0", 400),
        ("Content-Length: \u{b2}", 400),
        ("Content-Length: 1\r\nContent-Length: 1", 400),
        ("Content-Length: 0\r\nCONTENT-LENGTH: 0", 400),
        ("Content-Length: 65537", 413),
        ("Content-Length: 18446744073709551616", 413),
        (
            "Content-Length: 99999999999999999999999999999999999999",
            413,
        ),
        ("Transfer-Encoding: chunked", 501),
        ("Transfer-Encoding: identity", 501),
        ("transfer-encoding:", 501),
        ("Transfer-Encoding: xchunked", 501),
        ("Transfer-Encoding: chunked\r\nContent-Length: 4", 400),
        ("Content-Length: 4\r\nTransfer-Encoding: chunked", 400),
        (
            "Content-Length: 4\r\nContent-Length: 4\r\nTransfer-Encoding: chunked",
            400,
        ),
    ];
    let path = "/gpu/reset_locked_clocks?gpu_ids=0&block=true";
    for version in ["1.0", "1.1"] {
        for (headers, expected) in cases {
            let bytes = format!("POST {path} HTTP/{version}\r\nHost: a\r\n{headers}\r\n\r\n");
            assert_eq!(
                status(bytes.as_bytes()),
                Some(expected),
                "{version} {headers}"
            );
        }
    }
}

#[test]
fn too_many_headers_are_rejected() {
    let request = |count: usize| {
        format!(
            "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
            "X: y\r\n".repeat(count)
        )
    };
    assert_eq!(status(request(63).as_bytes()), None);
    assert_eq!(status(request(64).as_bytes()), Some(431));
}

#[test]
fn an_endless_head_is_rejected() {
    for filler in ["\r\n", "a", "GET /", "X: y", "\u{fc}"] {
        let endless = filler.repeat(MAX_HEAD);
        let rejected = status(endless.as_bytes());
        assert!(
            matches!(rejected, Some(400 | 431)),
            "{filler}: {rejected:?}"
        );
    }
    let long_target = format!("GET /{}", "a".repeat(MAX_HEAD));
    assert_eq!(status(long_target.as_bytes()), Some(431));
}

#[test]
fn requests_before_a_malformed_one_come_out() {
    let bytes = b"GET /time HTTP/1.1\r\nHost: a\r\n\r\n\x00";
    let (requests, error) = read_all([&bytes[..]]);
    assert_eq!((requests.len(), error.unwrap().status), (1, 400));
}

#[test]
fn an_incomplete_request_is_no_error() {
    let request = b"POST /gpu/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";
    for length in 0..request.len() {
        let (requests, error) = read_all([&request[..length]]);
        assert_eq!((requests.len(), error), (0, None), "{length}");
    }
}
