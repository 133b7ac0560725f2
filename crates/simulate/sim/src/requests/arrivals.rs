//! When requests arrive at a simulated server.

use std::path::{Path, PathBuf};

use sweetspot_quantity::{Seconds, parse_bare};
use sweetspot_stats::Seed;

use crate::TraceShape;
use crate::llm::ShapedArrivals;

/// When requests arrive at a simulated server.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Arrivals {
    /// A closed loop: the next request arrives as soon as the last one is answered.
    #[default]
    Closed,
    /// Independent requests at this mean rate, in requests per second.
    Poisson(f64),
    /// Independent requests at a mean rate that alternates between two values.
    Bursts {
        /// The mean rate in the first half of each period, in requests per second.
        low: f64,
        /// The mean rate in the second half of each period, in requests per second.
        high: f64,
        /// The time after which the rates repeat.
        period: Seconds,
    },
    /// Independent requests with the rates of a day, which repeats.
    Day {
        /// The mean rate at noon without bursts, in requests per second; at midnight it is a quarter.
        highest: f64,
        /// The length of the day.
        length: Seconds,
    },
    /// Requests at the times that a file lists.
    Trace(PathBuf),
}

/// Why the arrivals of requests cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArrivalError {
    /// The text does not name a way in which requests arrive.
    #[error(
        "unknown arrivals `{0}`: use closed, poisson:RATE, bursts:LOW,HIGH,PERIOD, day:RATE,LENGTH or trace:FILE"
    )]
    Unknown(String),
    /// The text is not a number above zero, or the rate is too high.
    #[error(
        "`{0}` is not a rate of arrivals: give requests per second, above 0 and at most {MAX_RATE}"
    )]
    Rate(String),
    /// The text is not a time, as the period of bursts must be.
    #[error("`{0}` is not the period of bursts: give a time such as 10s")]
    Period(String),
    /// The text is not a time, as the length of a day must be.
    #[error("`{0}` is not the length of a day: give a time such as 24h or 10min")]
    Day(String),
    /// The trace file, which lists arrival times, cannot be read.
    #[error("cannot read the arrivals in {}: {problem}", file.display())]
    File {
        /// The path of the trace file.
        file: PathBuf,
        /// The operating system's error message.
        problem: String,
    },
    /// The trace file lists no arrival time.
    #[error("{} lists no arrival times: give seconds from the start, one on each line", .0.display())]
    Empty(PathBuf),
    /// A line of the trace file is not a time.
    #[error(
        "{} line {line}: `{text}` is not a time: give seconds from the start, one on each line, in order",
        file.display()
    )]
    Line {
        /// The path of the trace file.
        file: PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// The text of the line that is not a time.
        text: String,
    },
}

/// The maximum size of a trace file, in bytes: enough for some million arrivals.
const MAX_TRACE_BYTES: u64 = 64 << 20;
/// The latest time that a trace may list, in seconds.
const LATEST_ARRIVAL: f64 = 1e8;
/// The highest rate that can be simulated, in requests per second.
const MAX_RATE: f64 = 1e6;

impl std::str::FromStr for Arrivals {
    type Err = ArrivalError;

    fn from_str(text: &str) -> Result<Self, ArrivalError> {
        let rate = |text: &str| {
            let rate = text.trim().parse::<f64>().ok();
            rate.filter(|rate| *rate > 0.0 && *rate <= MAX_RATE)
                .ok_or_else(|| ArrivalError::Rate(text.to_owned()))
        };
        let time = |text: &str| {
            let time = parse_bare::<Seconds>(text).ok();
            time.filter(|time| *time > Seconds::ZERO)
        };
        match text.split_once(':') {
            None if text == "closed" => Ok(Self::Closed),
            Some(("poisson", of)) => Ok(Self::Poisson(rate(of)?)),
            Some(("trace", file)) if !file.is_empty() => Ok(Self::Trace(PathBuf::from(file))),
            Some(("bursts", of)) => match of.split(',').collect::<Vec<_>>()[..] {
                [low, high, period] => Ok(Self::Bursts {
                    low: rate(low)?,
                    high: rate(high)?,
                    period: time(period).ok_or_else(|| ArrivalError::Period(period.to_owned()))?,
                }),
                _ => Err(ArrivalError::Unknown(text.to_owned())),
            },
            Some(("day", of)) => match of.split_once(',') {
                Some((highest, length)) => Ok(Self::Day {
                    highest: rate(highest)?,
                    length: time(length).ok_or_else(|| ArrivalError::Day(length.to_owned()))?,
                }),
                None => Err(ArrivalError::Unknown(text.to_owned())),
            },
            _ => Err(ArrivalError::Unknown(text.to_owned())),
        }
    }
}

/// An iterator over the times at which requests arrive, counted from the start of serving.
pub enum ArrivalTimes {
    /// Random arrivals, whose mean rate alternates between two values.
    Random {
        seed: Seed,
        count: u64,
        now: f64,
        low: f64,
        high: f64,
        /// How long each of the two rates lasts, in seconds.
        half: f64,
    },
    /// Random arrivals whose mean rate follows a day.
    Shaped(ShapedArrivals),
    /// The remaining arrival times of a trace, in seconds.
    Known(std::vec::IntoIter<f64>),
}

impl ArrivalTimes {
    /// Creates the iterator; `None` for a closed loop. `seed` determines random arrivals.
    pub fn new(arrivals: &Arrivals, seed: Seed) -> Result<Option<Self>, ArrivalError> {
        let random = |low, high, half| Self::Random {
            seed,
            count: 0,
            now: 0.0,
            low,
            high,
            half,
        };
        Ok(match arrivals {
            Arrivals::Closed => None,
            Arrivals::Poisson(rate) => Some(random(*rate, *rate, f64::INFINITY)),
            Arrivals::Bursts { low, high, period } => Some(random(*low, *high, 0.5 * period.get())),
            Arrivals::Day { highest, length } => {
                let shape = TraceShape::Day { length: *length };
                Some(Self::Shaped(ShapedArrivals::new(
                    *highest, shape, seed, seed,
                )))
            }
            Arrivals::Trace(file) => Some(Self::Known(read(file)?.into_iter())),
        })
    }
}

impl Iterator for ArrivalTimes {
    type Item = Seconds;

    fn next(&mut self) -> Option<Seconds> {
        match self {
            Self::Known(times) => times.next().map(Seconds::new),
            Self::Shaped(times) => times.next(),
            Self::Random {
                seed,
                count,
                now,
                low,
                high,
                half,
            } => {
                // An exponential gap at rate 1 is divided by the rate of each half of the period that it passes
                // through.
                let mut left = -seed.number(*count).uniform().ln();
                *count += 1;
                loop {
                    let part = (*now / *half).floor();
                    let rate = if part % 2.0 == 0.0 { *low } else { *high };
                    let end = (part + 1.0) * *half;
                    if !end.is_finite() || *now + left / rate < end {
                        *now += left / rate;
                        return Some(Seconds::new(*now));
                    }
                    left -= (end - *now) * rate;
                    *now = end;
                }
            }
        }
    }
}

/// Reads the arrival times of a trace file, in seconds.
fn read(file: &Path) -> Result<Vec<f64>, ArrivalError> {
    let failed = |problem: String| ArrivalError::File {
        file: file.to_owned(),
        problem,
    };
    let text = sweetspot_input::read_text(file, MAX_TRACE_BYTES);
    let text = text.map_err(|problem| failed(problem.to_string()))?;
    let mut times: Vec<f64> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let last = times.last().copied().unwrap_or(0.0);
        let time = line.parse::<f64>().ok();
        match time.filter(|time| (last..=LATEST_ARRIVAL).contains(time)) {
            Some(time) => times.push(time),
            None => {
                return Err(ArrivalError::Line {
                    file: file.to_owned(),
                    line: index + 1,
                    text: line.chars().take(40).collect(),
                });
            }
        }
    }
    if times.is_empty() {
        return Err(ArrivalError::Empty(file.to_owned()));
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Arrivals, String> {
        text.parse::<Arrivals>().map_err(|error| error.to_string())
    }

    #[test]
    fn arrivals_are_parsed_or_refused() {
        assert_eq!(parse("closed"), Ok(Arrivals::Closed));
        assert_eq!(parse("poisson:50"), Ok(Arrivals::Poisson(50.0)));
        let bursts = Arrivals::Bursts {
            low: 50.0,
            high: 400.0,
            period: Seconds::new(10.0),
        };
        assert_eq!(parse("bursts:50,400,10s"), Ok(bursts));
        for (bad, why) in [
            ("poisson:0", "`0` is not a rate"),
            ("poisson:inf", "`inf` is not a rate"),
            ("bursts:1,2", "unknown arrivals"),
            ("bursts:1,2,0s", "`0s` is not the period"),
            ("day:5", "unknown arrivals"),
            ("day:5,night", "`night` is not the length of a day"),
            ("trace:", "unknown arrivals"),
            ("open", "unknown arrivals"),
        ] {
            let problem = parse(bad).unwrap_err();
            assert!(problem.contains(why), "{bad}: {problem}");
        }
    }

    #[test]
    fn requests_arrive_at_the_requested_rate() {
        let count = |arrivals: &str, from: f64, to: f64| {
            let arrivals = arrivals.parse().unwrap();
            let stream = ArrivalTimes::new(&arrivals, Seed::new(3)).unwrap().unwrap();
            let times = stream.map(Seconds::get).take_while(|at| *at < to);
            times.filter(|at| *at >= from).count() as f64
        };
        assert!((count("poisson:100", 0.0, 100.0) / 10_000.0 - 1.0).abs() < 0.03);
        let bursts = "bursts:10,400,20s";
        assert!((count(bursts, 0.0, 10.0) / 100.0 - 1.0).abs() < 0.3);
        assert!((count(bursts, 10.0, 20.0) / 4_000.0 - 1.0).abs() < 0.06);
        assert!((count(bursts, 20.0, 30.0) / 100.0 - 1.0).abs() < 0.3);
        // A day has a quarter of the rate at midnight, the full one at noon, and short bursts.
        let (night, noon) = (
            count("day:100,24min", 0.0, 60.0),
            count("day:100,24min", 720.0, 780.0),
        );
        assert!((1500.0..3500.0).contains(&night), "{night}");
        assert!((6000.0..9000.0).contains(&noon), "{noon}");
    }

    #[test]
    fn a_trace_is_a_list_of_times_in_order() {
        let folder = std::env::temp_dir().join(format!("arrivals-{}", std::process::id()));
        std::fs::write(&folder, "# seconds\n0.5\n\n0.5\n2\n").unwrap();
        let arrivals = Arrivals::Trace(folder.clone());
        let stream = ArrivalTimes::new(&arrivals, Seed::new(1)).unwrap().unwrap();
        let times: Vec<f64> = stream.map(Seconds::get).collect();
        assert_eq!(times, [0.5, 0.5, 2.0]);
        std::fs::write(&folder, "1\n0.5\n").unwrap();
        let problem = ArrivalTimes::new(&arrivals, Seed::new(1)).err().unwrap();
        let problem = problem.to_string();
        assert!(problem.contains("line 2: `0.5` is not a time"), "{problem}");
        for (text, why) in [
            ("1\n1e300\n", "line 2: `1e300` is not a time"),
            ("# no time\n", "lists no arrival times"),
        ] {
            std::fs::write(&folder, text).unwrap();
            let problem = ArrivalTimes::new(&arrivals, Seed::new(1)).err().unwrap();
            assert!(problem.to_string().contains(why), "{problem}");
        }
        std::fs::remove_file(folder).unwrap();
        let endless = Arrivals::Trace(PathBuf::from("/dev/zero"));
        let problem = ArrivalTimes::new(&endless, Seed::new(1)).err().unwrap();
        assert!(problem.to_string().contains("not a file"), "{problem}");
    }
}
