//! The queue of requests that wait for a server, in real or in virtual time.

use std::collections::VecDeque;
use std::iter::Peekable;

use sweetspot_quantity::Seconds;
use sweetspot_stats::Seed;

use super::arrivals::{ArrivalError, ArrivalTimes, Arrivals};

/// The time between two reports about the queue, in seconds.
const REPORT_PERIOD: f64 = 0.05;
/// The arrival rate is the mean over this time, in seconds.
const RATE_WINDOW: f64 = 1.0;

/// A queue of requests that have arrived and are not served yet; times count from the start of serving.
pub struct RequestQueue {
    arrivals: Peekable<ArrivalTimes>,
    waiting: VecDeque<f64>,
    recent: VecDeque<f64>,
    last_report: f64,
}

/// The state of the queue, as a server reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueStatus {
    /// The number of requests that wait.
    pub length: u64,
    /// The recent arrival rate, in requests per second.
    pub arrivals_per_s: f64,
}

impl RequestQueue {
    /// Creates the queue for these arrivals; `None` for a closed loop.
    pub fn new(arrivals: &Arrivals, seed: u64) -> Result<Option<Self>, ArrivalError> {
        let times = ArrivalTimes::new(arrivals, Seed::new(seed).label("arrivals"))?;
        Ok(times.map(|times| Self {
            arrivals: times.peekable(),
            waiting: VecDeque::new(),
            recent: VecDeque::new(),
            last_report: 0.0,
        }))
    }

    /// Adds the requests that have arrived by the time `now`.
    pub fn admit(&mut self, now: Seconds) {
        while let Some(at) = self.arrivals.next_if(|at| *at <= now) {
            self.waiting.push_back(at.get());
            self.recent.push_back(at.get());
        }
    }

    /// The number of requests that wait.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// The time of the next arrival; `None` if no more requests arrive.
    pub fn next_arrival(&mut self) -> Option<Seconds> {
        self.arrivals.peek().copied()
    }

    /// Removes at most `at_most` requests from the queue, the oldest first, and returns when each arrived.
    pub fn take(&mut self, at_most: u64) -> Vec<Seconds> {
        let count = (at_most as usize).min(self.waiting.len());
        self.waiting.drain(..count).map(Seconds::new).collect()
    }

    /// The state of the queue, if the next report is due; otherwise `None`.
    pub fn report(&mut self, now: Seconds) -> Option<QueueStatus> {
        let now = now.get();
        if now - self.last_report < REPORT_PERIOD {
            return None;
        }
        self.last_report = now;
        let over = now.clamp(REPORT_PERIOD, RATE_WINDOW);
        while self.recent.front().is_some_and(|at| now - at > over) {
            self.recent.pop_front();
        }
        Some(QueueStatus {
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
        let mut requests = RequestQueue::new(&arrivals, 5).unwrap().unwrap();
        requests.admit(Seconds::new(1.0));
        let waiting = requests.waiting();
        assert!((70..130).contains(&waiting), "{waiting}");
        let taken = requests.take(8);
        assert!(taken.len() == 8 && taken.is_sorted());
        assert_eq!(requests.waiting(), waiting - 8);
        assert!(requests.next_arrival().unwrap() > Seconds::new(1.0));
        let status = requests.report(Seconds::new(1.0)).unwrap();
        assert_eq!(status.length, waiting - 8);
        assert_eq!(status.arrivals_per_s, waiting as f64);
        assert_eq!(requests.report(Seconds::new(1.04)), None);
        assert!(RequestQueue::new(&Arrivals::Closed, 5).unwrap().is_none());
    }
}
