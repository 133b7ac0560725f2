//! Recognises programs whose running requests follow a new limit gradually.

use super::FULL_SHARE;

/// The number of running requests must change in at least this many steps, and each by at most one part in as many of the
/// way: a program that takes a new batch of requests each time has its new size at once.
const MIN_STEPS: u32 = 3;
/// A way of so many steps is recognised before its end.
const CLEAR_STEPS: u32 = 8;

/// Recognises programs whose running requests follow a new limit gradually, from the numbers of requests of the batches
/// after a change of the limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct FollowDetector {
    way: Option<Way>,
}

/// The way from one limit to another.
#[derive(Clone, Copy, Debug)]
struct Way {
    from: u64,
    to: u64,
    last: u64,
    steps: u32,
}

impl FollowDetector {
    /// Notes that the limit was changed.
    pub fn start(&mut self, from: u64, to: u64) {
        self.way = Some(Way {
            from,
            to,
            last: from,
            steps: 0,
        });
    }

    /// Takes the number of requests of a batch; returns whether it is clear that the requests follow the limit
    /// gradually.
    pub fn take(&mut self, items: u64) -> bool {
        let Some(way) = &mut self.way else {
            return false;
        };
        let is_upward = way.to > way.from;
        let has_turned = if is_upward {
            items < way.last || items > way.to
        } else {
            items > way.last
        };
        let step = items.abs_diff(way.last);
        let longest = way.to.abs_diff(way.from).div_ceil(u64::from(MIN_STEPS));
        if has_turned || step > longest {
            self.way = None;
            return false;
        }
        way.steps += u32::from(step > 0);
        way.last = items;
        let has_arrived = match is_upward {
            true => items as f64 >= FULL_SHARE * way.to as f64,
            false => items <= way.to,
        };
        let is_gradual = has_arrived && way.steps >= MIN_STEPS || way.steps >= CLEAR_STEPS;
        if has_arrived || is_gradual {
            self.way = None;
        }
        is_gradual
    }
}

#[cfg(test)]
mod tests {
    use super::FollowDetector;

    fn is_gradual(from: u64, to: u64, batches: &[u64]) -> bool {
        let mut detector = FollowDetector::default();
        detector.start(from, to);
        batches.iter().any(|items| detector.take(*items))
    }

    #[test]
    fn running_requests_that_follow_step_by_step_are_recognised() {
        assert!(is_gradual(4, 8, &[4, 5, 6, 7, 8]));
        assert!(is_gradual(8, 32, &[8, 14, 14, 20, 26, 32]));
        assert!(is_gradual(32, 16, &[32, 30, 27, 22, 20, 16]));
        // Long before a large step ends.
        assert!(is_gradual(4, 64, &[5, 6, 7, 8, 9, 10, 11, 12]));
    }

    #[test]
    fn batches_of_the_new_size_and_batches_of_what_waits_are_not() {
        // The new size at once, also after a batch that was begun before.
        assert!(!is_gradual(8, 16, &[8, 16, 16, 16]));
        assert!(!is_gradual(16, 8, &[16, 8, 8, 8]));
        // As many as happen to wait.
        assert!(!is_gradual(16, 32, &[20, 19, 21, 22, 23, 24, 25, 32]));
        assert!(!is_gradual(16, 32, &[17, 18, 19, 20, 21, 21, 21]));
        // A program that ignores the size.
        assert!(!is_gradual(64, 8, &[64, 64, 64]));
    }
}
