//! Requests that come by themselves and wait, for a server in real time or in virtual time.

use std::collections::VecDeque;
use std::iter::Peekable;

use sweetspot_quantity::Seconds;
use sweetspot_stats::Seed;

use super::arrivals::{Arrivals, BadArrivals, Stream};

/// What waits and comes is told so often.
const TELL_QUEUE: f64 = 0.05;
/// Arrivals of this time give their rate.
const RATE_OVER: f64 = 1.0;

/// Requests and their queue; times are from the start of serving.
pub struct Requests {
    stream: Peekable<Stream>,
    waiting: VecDeque<f64>,
    recent: VecDeque<f64>,
    told: f64,
}

/// What waits and comes, as a server tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Requests that wait.
    pub length: u64,
    /// That came of late, in a second.
    pub arrivals_per_s: f64,
}

impl Requests {
    /// Nothing where they come whenever the last is answered.
    pub fn of(arrivals: &Arrivals, seed: u64) -> Result<Option<Self>, BadArrivals> {
        let stream = Stream::of(arrivals, Seed::new(seed).label("arrivals"))?;
        Ok(stream.map(|stream| Self {
            stream: stream.peekable(),
            waiting: VecDeque::new(),
            recent: VecDeque::new(),
            told: 0.0,
        }))
    }

    /// Those that have come by now wait.
    pub fn come(&mut self, now: Seconds) {
        while let Some(at) = self.stream.next_if(|at| *at <= now) {
            self.waiting.push_back(at.get());
            self.recent.push_back(at.get());
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// When the next one comes; nothing where none does.
    pub fn next(&mut self) -> Option<Seconds> {
        self.stream.peek().copied()
    }

    /// The oldest that wait go into a batch: when each came.
    pub fn take(&mut self, at_most: u64) -> Vec<Seconds> {
        let count = (at_most as usize).min(self.waiting.len());
        self.waiting.drain(..count).map(Seconds::new).collect()
    }

    /// What waits and comes, where it is time to tell it.
    pub fn queue(&mut self, now: Seconds) -> Option<Queue> {
        let now = now.get();
        if now - self.told < TELL_QUEUE {
            return None;
        }
        self.told = now;
        let over = now.clamp(TELL_QUEUE, RATE_OVER);
        while self.recent.front().is_some_and(|at| now - at > over) {
            self.recent.pop_front();
        }
        Some(Queue {
            length: self.waiting(),
            arrivals_per_s: self.recent.len() as f64 / over,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_and_the_oldest_goes_first() {
        let arrivals = "bursts:100,400,2s".parse().unwrap();
        let mut requests = Requests::of(&arrivals, 5).unwrap().unwrap();
        requests.come(Seconds::new(1.0));
        let waiting = requests.waiting();
        assert!((70..130).contains(&waiting), "{waiting}");
        let taken = requests.take(8);
        assert!(taken.len() == 8 && taken.is_sorted());
        assert_eq!(requests.waiting(), waiting - 8);
        assert!(requests.next().unwrap() > Seconds::new(1.0));
        let queue = requests.queue(Seconds::new(1.0)).unwrap();
        assert_eq!(queue.length, waiting - 8);
        assert_eq!(queue.arrivals_per_s, waiting as f64);
        assert_eq!(requests.queue(Seconds::new(1.04)), None);
        assert!(Requests::of(&Arrivals::Closed, 5).unwrap().is_none());
    }
}
