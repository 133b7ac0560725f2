//! Damaged and hostile inputs: no panic, no wait, no memory without bound.
//!
//! `FUZZ` sets the number of cases of each kind; inputs that need a process for each case get fewer.

mod command_line;
mod files;
mod rings;
mod studies;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// A case may take this long, on a machine that is busy with other tests.
const MAX_TIME: Duration = Duration::from_secs(2);

/// The most memory that a test may use, in kilobytes.
const MAX_MEMORY_KB: u64 = 200_000;

/// Random numbers from a seed (splitmix64), so that a case can be repeated.
pub struct Random(u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub fn choose<'a, T: ?Sized>(&mut self, among: &[&'a T]) -> &'a T {
        among[self.below(among.len())]
    }

    /// Damages some bytes: changed, deleted, repeated or inserted ones, or the end cut off.
    pub fn damage(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        for _ in 0..=self.below(6) {
            let at = self.below(damaged.len());
            let length = self.below(24).min(damaged.len() - at);
            match self.below(6) {
                0 if at < damaged.len() => damaged[at] ^= 1 << self.below(8),
                1 if at < damaged.len() => {
                    damaged[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)];
                }
                2 => drop(damaged.drain(at..at + length)),
                3 => {
                    let repeated = damaged[at..at + length].to_vec();
                    damaged.splice(at..at, repeated);
                }
                4 => {
                    let inserted: &[u8] = self.choose(&[
                        b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                        b"-1",
                        b"1e999",
                        b"nan",
                        b"99999999999999999999",
                        b"\x1b[2J\0",
                    ]);
                    damaged.splice(at..at, inserted.iter().copied());
                }
                5 if self.below(10) == 0 => damaged.truncate(at),
                _ => {}
            }
        }
        damaged
    }
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
        let outcome = catch_unwind(AssertUnwindSafe(|| case(&mut Random(seed))));
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
