//! Damaged and hostile inputs: no panic, no wait, no memory without bound.
//!
//! `FUZZ` sets the number of cases of each kind; inputs that need a process for each case get fewer.

mod command_line;
mod files;
#[path = "../../../../hardware/service/tests/fuzz/random.rs"]
#[allow(dead_code, reason = "the fuzzing of the service uses more of it")]
mod random;
mod rings;
mod studies;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

pub use random::Random;

/// A case may take this long, on a machine that is busy with other tests.
const MAX_TIME: Duration = Duration::from_secs(2);

/// The most memory that a test may use, in kilobytes.
const MAX_MEMORY_KB: u64 = 200_000;

/// Damages some bytes: changed, deleted, repeated or inserted ones, or the end cut off.
pub fn damage(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(damaged.len());
        let length = random.below(24).min(damaged.len() - at);
        match random.below(6) {
            0 if at < damaged.len() => damaged[at] ^= 1 << random.below(8),
            1 if at < damaged.len() => {
                damaged[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)];
            }
            2 => drop(damaged.drain(at..at + length)),
            3 => {
                let repeated = damaged[at..at + length].to_vec();
                damaged.splice(at..at, repeated);
            }
            4 => {
                let inserted: &[u8] = random.pick(&[
                    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                    b"-1",
                    b"1e999",
                    b"nan",
                    b"99999999999999999999",
                    b"\x1b[2J\0",
                ]);
                damaged.splice(at..at, inserted.iter().copied());
            }
            5 if random.below(10) == 0 => damaged.truncate(at),
            _ => {}
        }
    }
    damaged
}

/// The number of cases: `FUZZ`, or the default; where a case is slow, one in `share` of `FUZZ`.
pub fn cases(default: u64, share: u64) -> u64 {
    let given = std::env::var("FUZZ").ok();
    let given = given.and_then(|text| text.parse::<u64>().ok());
    given.map_or(default, |given| (given / share).max(default))
}

/// Runs cases with seeds from 0 on. The first one that panics or takes too long is named.
pub fn run_cases(count: u64, mut case: impl FnMut(&mut Random)) {
    for seed in 0..count {
        let begun = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| case(&mut Random::new(seed))));
        assert!(outcome.is_ok(), "seed {seed} panicked");
        assert!(
            begun.elapsed() < MAX_TIME,
            "seed {seed}: {:?}",
            begun.elapsed()
        );
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    assert!(peak < MAX_MEMORY_KB, "{peak} kB");
    eprintln!("{count} cases, {} MB", peak / 1000);
}
