//! Properties of the interface for arbitrary bytes in arbitrary pieces.

use proptest::prelude::*;

use super::super::MAX_BUFFERED;
use super::reader::read_all;
use super::*;

/// The paths that change settings.
const SETTERS: [&str; 7] = [
    "/gpu/set_power_limit",
    "/gpu/set_persistence_mode",
    "/gpu/set_gpu_locked_clocks",
    "/gpu/set_mem_locked_clocks",
    "/gpu/reset_gpu_locked_clocks",
    "/gpu/reset_mem_locked_clocks",
    "/gpu/reset_locked_clocks",
];

/// Valid requests, most of which change settings.
const VALID: [&str; 6] = [
    "POST /gpu/set_power_limit?gpu_ids=0,1&power_limit_mw=300000&block=true HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "POST /gpu/set_persistence_mode?gpu_ids=3&enabled=true&block=false HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "POST /gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=1200&max_clock_mhz=1200&block=true HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /gpu/reset_locked_clocks?gpu_ids=0%2C1&block=true HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    "GET /gpu/get_power?gpu_ids=0 HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
    "GET /discover HTTP/1.1\r\nHost: a\r\n\r\n",
];

/// Pieces of requests, from which bytes that are nearly valid are put together.
const FRAGMENTS: [&[u8]; 32] = [
    b"GET",
    b"POST",
    b"HEAD",
    b"post",
    b" ",
    b" ",
    b"\t",
    b"\r\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b"\x00",
    b"\xff",
    b" HTTP/1.1\r\n",
    b" HTTP/1.0\r\n",
    b"Host: a\r\n",
    b"Host: a\r\n\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 99999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"/gpu/reset_locked_clocks",
    b"POST /gpu/reset_locked_clocks",
    b"?gpu_ids=0&block=true",
    b"?gpu_ids=%30&block=false",
    b"%",
    b"#",
    b"POST /gpu/reset_locked_clocks?gpu_ids=0&block=true HTTP/1.1\r\nHost: a\r\n",
    b"GET /time HTTP/1.1\r\nHost: a\r\n\r\n",
    b"hello",
];

/// Arbitrary bytes, and bytes that look like requests.
fn request_like_bytes() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop_oneof![
        8 => prop::sample::select(&FRAGMENTS[..]).prop_map(<[u8]>::to_vec),
        2 => prop::sample::select(&VALID[..]).prop_map(|request| request.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..2000),
        4 => prop::collection::vec(fragment, 0..30).prop_map(|fragments| fragments.concat()),
    ]
}

/// One change of bytes.
#[derive(Clone, Debug)]
enum Mutation {
    Replace(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let range = |index: &prop::sample::Index, length: usize| {
            let start = index.index(bytes.len());
            start..bytes.len().min(start + length)
        };
        match self {
            Self::Replace(index, byte) => {
                let place = index.index(bytes.len());
                bytes[place] = *byte;
            }
            Self::Insert(index, inserted) => {
                let place = index.index(bytes.len());
                bytes.splice(place..place, inserted.iter().copied());
            }
            Self::Remove(index, length) => {
                let range = range(index, *length);
                bytes.drain(range);
            }
            Self::Repeat(index, length) => {
                let range = range(index, *length);
                let repeated = bytes[range.clone()].to_vec();
                bytes.splice(range.start..range.start, repeated);
            }
        }
    }
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let place = any::<prop::sample::Index>;
    let inserted = prop::sample::select(&FRAGMENTS[..]).prop_map(<[u8]>::to_vec);
    let mutation = prop_oneof![
        (place(), any::<u8>()).prop_map(|(index, byte)| Mutation::Replace(index, byte)),
        (place(), inserted).prop_map(|(index, bytes)| Mutation::Insert(index, bytes)),
        (place(), 1..20usize).prop_map(|(index, length)| Mutation::Remove(index, length)),
        (place(), 1..80usize).prop_map(|(index, length)| Mutation::Repeat(index, length)),
    ];
    prop::collection::vec(mutation, 0..4)
}

/// One to three valid requests with a few changes.
fn mutated_requests() -> impl Strategy<Value = Vec<u8>> {
    let requests = prop::collection::vec(prop::sample::select(&VALID[..]), 1..4);
    (requests, mutations()).prop_map(|(requests, mutations)| {
        let mut bytes = requests.concat().into_bytes();
        for mutation in mutations {
            mutation.apply(&mut bytes);
        }
        bytes
    })
}

/// The bytes cut at arbitrary places.
fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places
        .iter()
        .map(|place| place.index(bytes.len() + 1))
        .collect();
    places.sort_unstable();
    let starts = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain([bytes.len()]);
    starts
        .zip(ends)
        .map(|(start, end)| &bytes[start..end])
        .collect()
}

fn places() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..12)
}

/// Whether a line is the first line of a request that may change settings. It is written without the parser.
fn is_setter_line(line: &[u8]) -> bool {
    let Some(target) = line.strip_prefix(b"POST ") else {
        return false;
    };
    let target = target
        .strip_suffix(b" HTTP/1.1")
        .or(target.strip_suffix(b" HTTP/1.0"))
        .unwrap_or_default();
    let path = target
        .split(|byte| *byte == b'?')
        .next()
        .unwrap_or_default();
    SETTERS.iter().any(|setter| setter.as_bytes() == path)
}

/// The most requests in these bytes that may change settings. A request begins a line, unless there is a body before
/// it.
fn setter_lines(bytes: &[u8]) -> usize {
    let name: &[u8] = b"content-length";
    let has_body = bytes
        .windows(name.len())
        .any(|window| window.eq_ignore_ascii_case(name));
    (0..bytes.len())
        .filter(|start| has_body || *start == 0 || bytes[*start - 1] == b'\n')
        .filter(|start| {
            let rest = &bytes[*start..];
            let end = rest.windows(2).position(|pair| pair == b"\r\n");
            end.is_some_and(|end| is_setter_line(&rest[..end]))
        })
        .count()
}

/// Answers all requests in these pieces and returns the number of requests that changed something.
fn answer_all(pieces: &[&[u8]]) -> usize {
    let mut changing = 0;
    for request in read_all(pieces.iter().copied()).0 {
        let mut backend = FakeBackend::default();
        match answer(&request, &mut backend) {
            Answer::Once(response) => {
                assert!(response.to_bytes().starts_with(b"HTTP/1.1 "));
                let may_change = request.method == "POST" && response.status == 200;
                assert_eq!(!backend.writes.is_empty(), may_change);
            }
            Answer::Stream { .. } => assert_eq!(backend.writes, []),
        }
        changing += usize::from(!backend.writes.is_empty());
    }
    changing
}

#[test]
fn valid_requests_change_settings() {
    let count = |request: &str| answer_all(&[request.as_bytes()]);
    assert_eq!(VALID.map(count), [1, 1, 1, 1, 0, 0]);
    assert_eq!(
        VALID.map(|request| setter_lines(request.as_bytes())),
        [1, 1, 1, 1, 0, 0]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn only_a_post_of_a_setter_changes_settings(bytes in request_like_bytes(), places in places()) {
        let changing = answer_all(&cut(&bytes, &places));
        prop_assert!(changing <= setter_lines(&bytes));
    }

    #[test]
    fn only_a_post_of_a_setter_changes_settings_after_mutations(
        bytes in mutated_requests(),
        places in places(),
    ) {
        let changing = answer_all(&cut(&bytes, &places));
        prop_assert!(changing <= setter_lines(&bytes));
    }

    #[test]
    fn pieces_do_not_matter_for_any_bytes(bytes in request_like_bytes(), places in places()) {
        prop_assert_eq!(read_all(cut(&bytes, &places)), read_all([&bytes[..]]));
    }

    #[test]
    fn pieces_do_not_matter_after_mutations(bytes in mutated_requests(), places in places()) {
        prop_assert_eq!(read_all(cut(&bytes, &places)), read_all([&bytes[..]]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn memory_is_bounded(
        start in request_like_bytes(),
        pieces in prop::collection::vec((mutated_requests(), 1..2000usize, any::<bool>()), 1..6),
    ) {
        let mut reader = RequestReader::new();
        reader.push(&start);
        for (bytes, count, is_read) in pieces {
            reader.push(&bytes.repeat(count));
            prop_assert!(reader.buffer_capacity() <= 2 * MAX_BUFFERED);
            prop_assert!(reader.room() <= MAX_BUFFERED);
            while is_read && matches!(reader.next_request(), Ok(Some(_))) {}
        }
        // A reader always comes to an end: each request consumes bytes.
        let mut remaining = MAX_BUFFERED;
        while matches!(reader.next_request(), Ok(Some(_))) {
            prop_assert!(remaining > 0);
            remaining -= 1;
        }
    }
}
