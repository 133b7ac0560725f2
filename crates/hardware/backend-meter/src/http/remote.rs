//! The measuring service of Sweetspot on another machine: the energy of its GPUs at moments of its clock.
//!
//! Its page says when the request was received, when it was answered, and the moment that the energies belong to, all on
//! its monotonic clock. The four times of an exchange bound how far the two clocks are apart (as in NTP, RFC 5905); the
//! width of these bounds becomes part of the interval of an energy.

use std::collections::VecDeque;

use serde_json::Value;
use sweetspot_device::{Clock, MeterReading, Moment};
use sweetspot_quantity::{Joules, Seconds};

use super::{Client, missing, number};
use crate::error::Problem;

/// The most by which two monotonic clocks run apart, as a share of the time: NTP changes the rate of a clock by up to
/// 500 millionths.
const MAX_DRIFT: f64 = 1e-3;
/// The number of exchanges that bound the offset.
const EXCHANGES: usize = 64;

/// What the clock of the other machine shows more than that of this one, in seconds, as bounds.
#[derive(Clone, Debug, Default)]
pub(super) struct ClockOffset {
    /// Of each exchange, when it ended on this machine, and the least and the largest offset that agree with it.
    exchanges: VecDeque<(f64, f64, f64)>,
}

impl ClockOffset {
    /// Adds an exchange: when it was sent and its answer had arrived, by this machine's clock, and when it was received and
    /// answered, by that of the other.
    pub fn add(&mut self, sent: f64, received: f64, answered: f64, arrived: f64) {
        // A request cannot be received before it was sent, nor its answer arrive before it was answered.
        let bounds = (arrived, answered - arrived, received - sent);
        self.exchanges.push_back(bounds);
        if self.exchanges.len() > EXCHANGES {
            self.exchanges.pop_front();
        }
        if self.bounds(arrived).is_none() {
            // The other machine was restarted: its clock began anew.
            self.exchanges.drain(..self.exchanges.len() - 1);
        }
    }

    /// The least and the largest offset at a moment; `None` if no offset agrees with all exchanges.
    pub fn bounds(&self, now: f64) -> Option<(f64, f64)> {
        let unknown = (f64::NEG_INFINITY, f64::INFINITY);
        let bounds = self.exchanges.iter().fold(unknown, |all, (at, low, high)| {
            let drift = MAX_DRIFT * (now - at).abs();
            (all.0.max(low - drift), all.1.min(high + drift))
        });
        (bounds.0 <= bounds.1 && bounds.0.is_finite()).then_some(bounds)
    }
}

/// The page of a measuring service.
pub(super) struct Remote {
    url: String,
    /// The GPU by its index or UUID; the sum of all GPUs if `None`.
    gpu: Option<String>,
    offset: ClockOffset,
    /// The time without readings that the service has reported so far, in seconds.
    missing: Option<f64>,
}

/// Finds the page of a measuring service. Returns its GPUs too.
pub(super) fn find(client: &Client, address: &str) -> Result<(Remote, String), Problem> {
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    let (host, gpu) = match rest.split_once('/') {
        Some((host, gpu)) => (host, Some(gpu.trim_matches('/').to_owned())),
        None => (rest, None),
    };
    let remote = Remote {
        url: format!("{scheme}://{host}/energy"),
        gpu: gpu.filter(|gpu| !gpu.is_empty()),
        offset: ClockOffset::default(),
        missing: None,
    };
    let document = remote.page(client)?;
    let gpus = remote.gpus(&document)?;
    let names: Vec<&str> = gpus.iter().filter_map(|gpu| gpu["name"].as_str()).collect();
    let mut different = names.clone();
    different.dedup();
    let model = match names.len() {
        1 => names.concat(),
        count => format!("{count} GPUs ({})", different.join(", ")),
    };
    Ok((remote, format!("Sweetspot service with {model}")))
}

impl Remote {
    fn page(&self, client: &Client) -> Result<Value, Problem> {
        let document = client.get_json(&self.url)?.ok_or_else(|| {
            Problem::Refused(
                "it has no page /energy: check the address, and that its Sweetspot is not older"
                    .to_owned(),
            )
        })?;
        match document["received_s"].is_number() {
            true => Ok(document),
            false => Err(missing("Sweetspot's service", &document)),
        }
    }

    /// The GPUs that are meant.
    fn gpus<'a>(&self, document: &'a Value) -> Result<Vec<&'a Value>, Problem> {
        let all = document["gpus"].as_array().map_or(&[][..], Vec::as_slice);
        let is_meant = |gpu: &&Value| match self.gpu.as_deref() {
            None => true,
            Some(meant) => {
                gpu["uuid"] == meant
                    || gpu["index"]
                        .as_u64()
                        .is_some_and(|index| meant.parse() == Ok(index))
            }
        };
        let meant: Vec<&Value> = all.iter().filter(is_meant).collect();
        match (meant.is_empty(), &self.gpu) {
            (false, _) => Ok(meant),
            (true, None) => Err(Problem::Refused("it measures no GPU".to_owned())),
            (true, Some(gpu)) => Err(Problem::Refused(format!(
                "it has no GPU {gpu}: its GPUs have the indices 0 to {}",
                all.len().saturating_sub(1)
            ))),
        }
    }

    /// Reads the energies once.
    pub fn read(&mut self, client: &Client, clock: &dyn Clock) -> Result<MeterReading, Problem> {
        let sent = seconds(clock.now());
        let document = self.page(client)?;
        let arrived = seconds(clock.now());
        let time = |key: &str| {
            number(&document, key).ok_or_else(|| missing("Sweetspot's service", &document))
        };
        let (received, answered, at) = (time("/received_s")?, time("/answered_s")?, time("/at_s")?);
        self.offset.add(sent, received, answered, arrived);
        let (low, high) = self.offset.bounds(arrived).ok_or_else(|| {
            Problem::Failed("the times that it states contradict each other".to_owned())
        })?;
        let gpus = self.gpus(&document)?;
        if let Some(lost) = gpus.iter().find(|gpu| gpu["lost"] == true) {
            return Err(Problem::Failed(format!(
                "its GPU {} no longer answers",
                lost["index"]
            )));
        }
        // A sum without one of its parts is unknown, not smaller.
        let sum = |key: &str| gpus.iter().map(|gpu| number(gpu, key)).sum::<Option<f64>>();
        let missing = sum("/missing_s").unwrap_or(0.0);
        let is_complete = self
            .missing
            .replace(missing)
            .is_none_or(|before| missing <= before);
        Ok(MeterReading {
            after: moment(at - high),
            at: moment(at - low),
            power: None,
            energy: sum("/energy_j").filter(|_| is_complete).map(Joules::new),
        })
    }
}

/// A moment in seconds on this machine's monotonic clock.
fn seconds(moment: Moment) -> f64 {
    (moment - Moment::default()).get()
}

/// The moment at this many seconds on this machine's monotonic clock.
fn moment(seconds: f64) -> Moment {
    Moment::default() + Seconds::new(seconds.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_lies_within_its_bounds_and_they_narrow() {
        let mut offset = ClockOffset::default();
        let truth = 5000.25;
        let mut widths = Vec::new();
        // The way there and back takes different times; the fastest exchange decides.
        for (number, (there, back)) in [(0.4, 0.1), (0.02, 0.3), (0.2, 0.004), (0.5, 0.5)]
            .into_iter()
            .enumerate()
        {
            let sent = number as f64;
            let received = sent + there + truth;
            let answered = received + 0.2;
            let arrived = answered + back - truth;
            offset.add(sent, received, answered, arrived);
            let (low, high) = offset.bounds(arrived).unwrap();
            assert!(low <= truth && truth <= high, "{low} {high}");
            widths.push(high - low);
        }
        assert!(widths[2] < 0.03 && widths[3] < 0.03, "{widths:?}");
        // With time the clocks may drift apart.
        let (low, high) = offset.bounds(100.0).unwrap();
        assert!(high - low > 0.15, "{low} {high}");
    }

    #[test]
    fn a_clock_that_began_anew_is_taken_over() {
        let mut offset = ClockOffset::default();
        offset.add(10.0, 1010.001, 1010.2, 10.202);
        offset.add(11.0, 1.501, 1.7, 11.202);
        let (low, high) = offset.bounds(11.202).unwrap();
        assert!(low < -9.5 && high > -9.503 && high < -9.4, "{low} {high}");
    }
}
