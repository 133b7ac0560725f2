//! Requests that are random, or valid ones that were damaged, never make the measuring process panic, and never change
//! counters of another user. `SWEETSPOT_FUZZ_REQUESTS` is their number: `scripts/torture` tries a million.

use sweetspot_monitor::access::{Asker, TcpRules};
use sweetspot_monitor::meter::Meter;
use sweetspot_monitor::routes::{Answer, answer};
use sweetspot_monitor::state::State;
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

const TARGETS: [&str; 17] = [
    "/",
    "/live",
    "/metrics",
    "/clock",
    "/energy",
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
const BODIES: [&str; 5] = [
    "",
    "{}",
    r#"{"verb":"tune","elapsed_s":1,"saved_energy_j":5,"figure":{"x":"a","y":"b","points":[[1,2],[3,4]]}}"#,
    r#"{"verb":"x","elapsed_s":1e999}"#,
    "[[[[[[[[[[[[[[[[[[[[",
];

fn request(random: &mut Random) -> Vec<u8> {
    let method = METHODS[random.below(METHODS.len())];
    let target = TARGETS[random.below(TARGETS.len())];
    let body = BODIES[random.below(BODIES.len())];
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
    for _ in 0..random.below(4) {
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
    let mut answered = 0_u64;
    for number in 0..count {
        let mut reader = RequestReader::new();
        for _ in 0..=random.below(2) {
            reader.push(&request(&mut random));
        }
        while let Ok(Some(request)) = reader.next_request() {
            let asker = match number % 3 {
                0 => Asker::Remote,
                _ => Asker::Local { uid: 1000, pid: 1 },
            };
            if asker == Asker::Remote && rules.check(&request, &addresses[random.below(2)]).is_err()
            {
                continue;
            }
            match answer(&mut state, asker, &request) {
                Answer::Now(response) => assert!(!response.to_bytes().is_empty()),
                Answer::Counter { uid, .. } => assert_eq!(uid, 1000),
                Answer::Energies { .. } => assert_eq!(request.path, "/energy"),
            }
            answered += 1;
        }
        if number % 64 == 0 {
            state.end_turn();
            for (at, totals) in state.meter.take_measured() {
                state.counters.resolve(at, &totals);
            }
        }
    }
    assert!(answered > count as u64 / 10, "{answered}");
    assert_eq!(
        state.counters.names(7).collect::<Vec<_>>(),
        [("kept", true)]
    );
}
