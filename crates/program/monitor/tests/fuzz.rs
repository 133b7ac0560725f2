//! Requests that are random, or valid ones that were damaged, never make the measuring process panic, and never change
//! counters of another user. `SWEETSPOT_FUZZ_REQUESTS` is their number: `scripts/torture` tries a million.

use serde_json::{Value, json};
use sweetspot_monitor::access::{Asker, TcpRules};
use sweetspot_monitor::meter::Meter;
use sweetspot_monitor::routes::{Answer, answer};
use sweetspot_monitor::state::State;
use sweetspot_monitor::top::{Look, screen};
use sweetspot_service::zeusd::RequestReader;

/// Random numbers that are the same in every run (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

const TARGETS: [&str; 20] = [
    "/",
    "/live",
    "/metrics",
    "/clock",
    "/energy",
    "/job",
    "/job",
    "/job",
    "/job",
    "/counters",
    "/counters/",
    "/counters/a",
    "/counters/a/start",
    "/counters/a/start?gpus=0",
    "/counters/a/start?gpus=",
    "/counters/b/stop",
    "/counters/a/samples",
    "/counters/a/b/c",
    "/gpu/get_power",
    "/%2e%2e/etc/passwd",
];
const METHODS: [&str; 6] = ["GET", "POST", "DELETE", "HEAD", "PUT", "OPTIONS"];
/// A text of any letters: one to four bytes each, control characters and quotation marks too.
fn text(random: &mut Random) -> String {
    let letters = random.below(80);
    let letter = |random: &mut Random| {
        let limit = [0x80, 0x800, 0x1_0000, 0x11_0000][random.below(4)];
        char::from_u32(random.below(limit) as u32).unwrap_or('\u{fffd}')
    };
    (0..letters).map(|_| letter(random)).collect()
}

/// A number as JSON may have it, often an extreme one.
fn number(random: &mut Random) -> Value {
    let float = f64::from_bits(random.next());
    let known = [0.0, -0.0, 1e300, -1e300, 5e-324, f64::MAX, 0.3, 1e6];
    match random.below(4) {
        0 if float.is_finite() => json!(float),
        1 => json!(random.next()),
        2 => json!(random.next() as i64),
        _ => json!(known[random.below(known.len())]),
    }
}

/// Any value.
fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 4 } else { 6 }) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => number(random),
        3 => json!(text(random)),
        4 => (0..random.below(4))
            .map(|_| value(random, depth - 1))
            .collect(),
        _ => {
            let pair = |random: &mut Random| (text(random), value(random, depth - 1));
            Value::Object((0..random.below(4)).map(|_| pair(random)).collect())
        }
    }
}

/// The body of a report of a job: each key has a value of its kind, or none, seldom one of another kind.
fn job(random: &mut Random) -> String {
    let texts = ["verb", "phase", "currency", "user"];
    let numbers = [
        "elapsed_s",
        "items_per_s",
        "energy_per_item_j",
        "saved_energy_j",
        "saved_money",
        "cap_w",
    ];
    let mut job = serde_json::Map::new();
    for key in texts {
        if key == "verb" || random.below(2) == 0 {
            job.insert(key.to_owned(), json!(text(random)));
        }
    }
    for key in numbers {
        if random.below(2) == 0 {
            job.insert(key.to_owned(), number(random));
        }
    }
    if random.below(3) == 0 {
        let gpus: Vec<String> = (0..random.below(100)).map(|_| text(random)).collect();
        job.insert("gpus".to_owned(), json!(gpus));
    }
    if random.below(3) == 0 {
        let count = random.below(700);
        let points: Vec<[Value; 2]> = (0..count)
            .map(|_| [number(random), number(random)])
            .collect();
        let figure = json!({"x": text(random), "y": text(random), "points": points});
        job.insert("figure".to_owned(), figure);
    }
    if random.below(8) == 0 {
        let keys: Vec<String> = job.keys().cloned().collect();
        job[&keys[random.below(keys.len())]] = value(random, 3);
    }
    Value::Object(job).to_string()
}

/// The body of a request.
fn body(random: &mut Random) -> String {
    match random.below(6) {
        0 => String::new(),
        1 => value(random, 4).to_string(),
        2 => r#"{"verb":"x","elapsed_s":1e999}"#.to_owned(),
        3 => "[".repeat(random.below(10_000)),
        _ => job(random),
    }
}

fn request(random: &mut Random) -> Vec<u8> {
    let method = METHODS[random.below(METHODS.len())];
    let target = TARGETS[random.below(TARGETS.len())];
    // Other paths ignore the body, so most have a short one.
    let body = match target {
        "/job" => body(random),
        _ => ["", "{}"][random.below(2)].to_owned(),
    };
    let host = [
        "127.0.0.1:9440",
        "localhost:9440",
        "evil.example",
        "[::1",
        "",
    ][random.below(5)];
    let token = [
        "",
        "Authorization: Bearer 0123456789abcdef\r\n",
        "Authorization: Bearer\r\n",
    ][random.below(3)];
    let text = format!(
        "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{token}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut bytes = text.into_bytes();
    // Half of the requests stay as they are.
    let damages = [0, 0, 0, 1, 2, 3][random.below(6)];
    for _ in 0..damages {
        let place = random.below(bytes.len().max(1));
        match random.below(5) {
            0 => bytes.truncate(place),
            1 => bytes.insert(place.min(bytes.len()), random.next() as u8),
            2 if !bytes.is_empty() => drop(bytes.remove(place)),
            3 if !bytes.is_empty() => bytes[place] = random.next() as u8,
            _ => {}
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

#[test]
fn no_request_makes_it_panic() {
    let count =
        std::env::var("SWEETSPOT_FUZZ_REQUESTS").map_or(20_000, |count| count.parse().unwrap());
    let mut state = State::new(Vec::new(), Meter::start(Vec::new()).unwrap(), true);
    let kept = state.mark(&[], false);
    state
        .counters
        .start(7, "kept", Vec::new(), kept, 0.0)
        .unwrap();
    let rules = TcpRules {
        token: Some("0123456789abcdef".to_owned()),
        hosts: Vec::new(),
    };
    let addresses = [
        "127.0.0.1:9440".parse().unwrap(),
        "192.0.2.1:9440".parse().unwrap(),
    ];
    let mut random = Random(1);
    let (mut answered, mut reported) = (0_u64, 0_u64);
    for number in 0..count {
        let mut reader = RequestReader::new();
        for _ in 0..=random.below(2) {
            reader.push(&request(&mut random));
        }
        while let Ok(Some(request)) = reader.next_request() {
            let asker = match number % 3 {
                0 => Asker::Remote,
                _ => Asker::Local {
                    uid: 1000,
                    pid: 1 + random.below(40) as u32,
                },
            };
            if asker == Asker::Remote && rules.check(&request, &addresses[random.below(2)]).is_err()
            {
                continue;
            }
            match answer(&mut state, asker, &request) {
                Answer::Now(response) => {
                    reported += u64::from(request.path == "/job" && response.status == 200);
                    assert!(!response.to_bytes().is_empty());
                }
                Answer::Counter { uid, .. } => assert_eq!(uid, 1000),
                Answer::Samples(mut stream) => {
                    let mut sent = stream.head();
                    while let Some(page) = stream.next_page(&state) {
                        sent.extend(page);
                    }
                    assert!(sent.starts_with(b"HTTP/1.1 200 OK"));
                }
                Answer::Energies { .. } => assert_eq!(request.path, "/energy"),
            }
            answered += 1;
        }
        if number % 64 == 0 {
            state.end_turn();
            // What was reported is shown on the page, in the metrics and in a terminal.
            let look = Look {
                width: random.below(200),
                colors: true,
            };
            let live = state.live();
            assert!(live.jobs.iter().all(|job| job.verb.chars().count() <= 32));
            assert!(!screen(&live, "", look).is_empty());
            for (at, totals) in state.meter.take_measured() {
                state.counters.resolve(at, &totals);
            }
        }
    }
    assert!(answered > count as u64 / 10, "{answered}");
    assert!(reported > count as u64 / 500, "{reported}");
    assert_eq!(
        state.counters.names(7).collect::<Vec<_>>(),
        [("kept", true)]
    );
}
