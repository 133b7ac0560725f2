//! Requests that come to a simulated language model of their own accord, as time passes.

use std::iter::Peekable;

use sweetspot_quantity::Seconds;
use sweetspot_stats::Seed;

use super::engine::LlmRequest;
use super::lengths::TokenLengths;
use crate::requests::{ArrivalError, ArrivalTimes, Arrivals};

/// The requests of simulated clients.
pub struct LlmLoad {
    /// The times of arrivals; `None` for a closed loop.
    times: Option<Peekable<ArrivalTimes>>,
    lengths: TokenLengths,
    seed: Seed,
    sent: u64,
}

impl LlmLoad {
    /// Creates the requests; `seed` determines arrivals and random lengths.
    pub fn new(
        arrivals: &Arrivals,
        lengths: TokenLengths,
        seed: u64,
    ) -> Result<Self, ArrivalError> {
        let seed = Seed::new(seed);
        let times = ArrivalTimes::new(arrivals, seed.label("arrivals"))?;
        Ok(Self {
            times: times.map(Iterator::peekable),
            lengths,
            seed: seed.label("lengths"),
            sent: 0,
        })
    }

    /// The requests that have arrived by this time. In a closed loop they are as many as are missing from `together`
    /// requests, of which `active` are not answered yet.
    pub fn take_arrived(
        &mut self,
        now: Seconds,
        active: usize,
        together: usize,
    ) -> Vec<LlmRequest> {
        let mut arrived = Vec::new();
        match &mut self.times {
            None => arrived.resize(together.saturating_sub(active), now),
            Some(times) => {
                while let Some(at) = times.next_if(|at| *at <= now) {
                    arrived.push(at);
                }
            }
        }
        arrived
            .into_iter()
            .map(|at| self.request(at, together))
            .collect()
    }

    /// The time of the next arrival; `None` if no more requests arrive.
    pub fn next_arrival(&mut self) -> Option<Seconds> {
        self.times.as_mut()?.peek().copied()
    }

    /// Whether all requests of a file have arrived.
    pub fn has_ended(&mut self) -> bool {
        self.times
            .as_mut()
            .is_some_and(|times| times.peek().is_none())
    }

    fn request(&mut self, arrival: Seconds, together: usize) -> LlmRequest {
        let id = self.sent;
        self.sent += 1;
        let (prompt, mut output) = self.lengths.of_request(self.seed, id);
        // The first answers of a closed loop are of unlike lengths, so that they do not all end together.
        if self.times.is_none() && id < together as u64 {
            output = (output * (id + 1)).div_ceil(together as u64);
        }
        LlmRequest {
            id,
            arrival,
            prompt,
            output,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_arrive_in_time_or_replace_those_that_are_answered() {
        let lengths: TokenLengths = "100,50".parse().unwrap();
        let arrivals = "poisson:10".parse().unwrap();
        let mut load = LlmLoad::new(&arrivals, lengths.clone(), 1).unwrap();
        let first = load.take_arrived(Seconds::new(5.0), 0, 8);
        assert!((30..75).contains(&first.len()), "{}", first.len());
        assert!(
            first
                .iter()
                .all(|one| (one.prompt, one.output) == (100, 50))
        );
        assert!(load.next_arrival().unwrap() > Seconds::new(5.0) && !load.has_ended());
        let mut closed = LlmLoad::new(&Arrivals::Closed, lengths, 1).unwrap();
        let first = closed.take_arrived(Seconds::ZERO, 0, 4);
        let outputs: Vec<u64> = first.iter().map(|one| one.output).collect();
        assert_eq!(outputs, [13, 25, 38, 50]);
        let next = closed.take_arrived(Seconds::new(1.0), 3, 4);
        assert_eq!((next.len(), next[0].id, next[0].output), (1, 4, 50));
        assert_eq!((closed.next_arrival(), closed.has_ended()), (None, false));
    }
}
