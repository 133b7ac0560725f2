//! Requests that arrive at a simulated language model.

use sweetspot_quantity::Seconds;
use sweetspot_stats::Seed;

use super::engine::LlmRequest;
use super::lengths::TokenLengths;

/// How the rate of requests changes over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TraceShape {
    /// The mean rate stays the same.
    Steady,
    /// Now and then a burst of some seconds, in which the rate is several times as high.
    Bursts {
        /// The mean time between two bursts.
        every: Seconds,
        /// The length of a burst.
        length: Seconds,
        /// How many times as high the rate is in a burst.
        factor: f64,
    },
    /// The rate of a day, from a quarter in the night to the full rate, within this time; with bursts as above.
    Day {
        /// The length of the day.
        length: Seconds,
    },
}

/// A description of the requests that arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LlmTrace {
    /// The mean rate without bursts, in requests per second.
    pub rate: f64,
    /// How the rate changes over time.
    pub shape: TraceShape,
    /// The median number of tokens of a prompt.
    pub prompt: f64,
    /// The median number of tokens of an answer.
    pub output: f64,
    /// How much lengths differ: the standard deviation of their logarithm.
    pub spread: f64,
    /// How long requests arrive.
    pub time: Seconds,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl LlmTrace {
    /// The requests in order of arrival.
    pub fn requests(&self) -> Vec<LlmRequest> {
        let seed = Seed::new(self.seed).label("llm trace");
        let lengths = TokenLengths::Random {
            prompt: self.prompt,
            output: self.output,
            spread: self.spread,
        };
        let times = ShapedArrivals::new(self.rate, self.shape, seed, Seed::new(self.seed));
        let times = times.take_while(|time| *time < self.time);
        times
            .zip(0..)
            .map(|(arrival, id)| {
                let (prompt, output) = lengths.of_request(seed, id);
                LlmRequest {
                    id,
                    arrival,
                    prompt,
                    output,
                }
            })
            .collect()
    }
}

/// An iterator over the times of independent arrivals whose mean rate follows a shape, without end.
#[derive(Clone, Debug)]
pub(crate) struct ShapedArrivals {
    rate: f64,
    shape: TraceShape,
    draws: Seed,
    bursts: Seed,
    now: f64,
    draw: u64,
}

impl ShapedArrivals {
    /// Creates the iterator; `draws` determines the arrivals, and `bursts` when bursts begin.
    pub fn new(rate: f64, shape: TraceShape, draws: Seed, bursts: Seed) -> Self {
        Self {
            rate,
            shape,
            draws,
            bursts,
            now: 0.0,
            draw: 0,
        }
    }

    fn uniform(&mut self, label: &str) -> f64 {
        self.draw += 1;
        self.draws.label(label).number(self.draw).uniform()
    }

    /// The highest rate relative to the mean one.
    fn highest_factor(&self) -> f64 {
        match self.shape {
            TraceShape::Steady => 1.0,
            TraceShape::Bursts { factor, .. } => factor.max(1.0),
            TraceShape::Day { .. } => DAY_BURST,
        }
    }

    /// The rate at a moment, in requests per second.
    fn rate_at(&self, now: f64) -> f64 {
        let in_burst = |every: f64, length: f64| {
            let number = (now / every).floor();
            let start = self.bursts.label("burst").number(number as u64).uniform();
            let begin = number * every + start * (every - length).max(0.0);
            now >= begin && now < begin + length
        };
        match self.shape {
            TraceShape::Steady => self.rate,
            TraceShape::Bursts {
                every,
                length,
                factor,
            } => {
                self.rate
                    * if in_burst(every.get(), length.get()) {
                        factor
                    } else {
                        1.0
                    }
            }
            TraceShape::Day { length } => {
                let day = 0.625 - 0.375 * (now / length.get() * std::f64::consts::TAU).cos();
                let burst = in_burst(length.get() / 24.0, length.get() / 240.0);
                self.rate * day * if burst { DAY_BURST } else { 1.0 }
            }
        }
    }
}

impl Iterator for ShapedArrivals {
    type Item = Seconds;

    fn next(&mut self) -> Option<Seconds> {
        let highest = self.rate * self.highest_factor();
        if highest <= 0.0 {
            return None;
        }
        // Arrivals at the highest rate are thinned out to the rate of each moment.
        loop {
            self.now -= (1.0 - self.uniform("gap")).max(1e-12).ln() / highest;
            if self.uniform("thin") * highest <= self.rate_at(self.now) {
                return Some(Seconds::new(self.now));
            }
        }
    }
}

/// How many times as high the rate is in a burst of a day.
const DAY_BURST: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_its_rate_and_its_bursts() {
        let mut trace = LlmTrace {
            rate: 5.0,
            shape: TraceShape::Steady,
            prompt: 400.0,
            output: 200.0,
            spread: 0.5,
            time: Seconds::new(1000.0),
            seed: 3,
        };
        let steady = trace.requests();
        assert!(
            (steady.len() as f64 / 5000.0 - 1.0).abs() < 0.05,
            "{}",
            steady.len()
        );
        assert!(
            steady
                .windows(2)
                .all(|pair| pair[0].arrival <= pair[1].arrival)
        );
        assert_eq!(steady, trace.requests());
        trace.shape = TraceShape::Bursts {
            every: Seconds::new(100.0),
            length: Seconds::new(10.0),
            factor: 6.0,
        };
        let bursts = trace.requests();
        assert!(
            (bursts.len() as f64 / 7500.0 - 1.0).abs() < 0.07,
            "{}",
            bursts.len()
        );
    }
}
