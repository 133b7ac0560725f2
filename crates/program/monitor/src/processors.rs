//! The energy of the processors, which the privileged process reads once a second.
//!
//! A moment between two readings is known by bounds: the energy there lies between those of the readings. The value is the
//! one at a constant power between them, so it tells nothing that two readings a second apart do not.

use std::collections::VecDeque;

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_service::monitor_link::ProcessorReading;

/// The most readings that are stored: some seconds.
const MAX_READINGS: usize = 16;
/// The longest time between two readings of one series. A later reading begins another one, to which no difference is known:
/// a counter may have wrapped around, or the service may have been started again.
const LONGEST_GAP: Seconds = Seconds::new(5.0);
/// The longest wait for a reading after a moment.
const LONGEST_WAIT: Seconds = Seconds::new(3.0);

/// A part of the processors as documents name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorName {
    /// The name of the part, such as `package-0`.
    pub name: String,
    /// The name of its zone in the kernel, such as `intel-rapl:0`.
    pub zone: String,
}

/// The energies of all parts at a reading.
#[derive(Clone, Debug)]
struct Reading {
    at: Moment,
    /// The number of the series that the reading belongs to.
    series: u64,
    energies: Vec<Joules>,
}

/// What is known about the energy of a part at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    low: Joules,
    value: Joules,
    high: Joules,
}

/// The energies of all parts at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorMark {
    series: u64,
    parts: Vec<Bounds>,
}

impl ProcessorMark {
    /// The energy of each part from an earlier moment to this one, and bounds of it; `None` if readings were missing
    /// meanwhile.
    pub fn since(&self, earlier: &Self) -> Option<Vec<(Joules, [Joules; 2])>> {
        if self.series != earlier.series || self.parts.len() != earlier.parts.len() {
            return None;
        }
        let difference = |(end, start): (&Bounds, &Bounds)| {
            let low = (end.low - start.high).max(Joules::ZERO);
            let value = (end.value - start.value).max(Joules::ZERO);
            (value, [low, end.high - start.low])
        };
        Some(
            self.parts
                .iter()
                .zip(&earlier.parts)
                .map(difference)
                .collect(),
        )
    }
}

/// The last readings of the processors' energy.
#[derive(Debug, Default)]
pub struct Processors {
    names: Vec<ProcessorName>,
    readings: VecDeque<Reading>,
}

impl Processors {
    /// Takes over a reading of the privileged process.
    pub fn add(&mut self, reading: ProcessorReading) {
        let names = reading.parts.iter().map(|part| ProcessorName {
            name: part.name.clone(),
            zone: part.zone.clone(),
        });
        let names: Vec<ProcessorName> = names.collect();
        let energies: Vec<Joules> = reading.parts.iter().map(|part| part.energy).collect();
        let series = match self.readings.back() {
            Some(last) if reading.at <= last.at => return,
            Some(last) => {
                let mut pairs = energies.iter().zip(&last.energies);
                let is_next = names == self.names
                    && reading.at - last.at <= LONGEST_GAP
                    && pairs.all(|(new, old)| new >= old);
                last.series + u64::from(!is_next)
            }
            None => 0,
        };
        self.names = names;
        if self.readings.len() == MAX_READINGS {
            self.readings.pop_front();
        }
        self.readings.push_back(Reading {
            at: reading.at,
            series,
            energies,
        });
    }

    /// The parts, in the order of their energies; none on a machine whose processors cannot be read.
    pub fn names(&self) -> &[ProcessorName] {
        &self.names
    }

    /// Whether a reading after a moment is still to come.
    pub fn is_awaited(&self, moment: Moment, now: Moment) -> bool {
        let newest = self.readings.back().map(|newest| newest.at);
        newest.is_some_and(|newest| newest < moment && now - newest < LONGEST_GAP)
            && now - moment < LONGEST_WAIT
    }

    /// The energies at a moment; `None` if there is no reading shortly before or after it.
    pub fn at(&self, moment: Moment) -> Option<ProcessorMark> {
        let after = self.readings.partition_point(|reading| reading.at < moment);
        let next = self.readings.get(after)?;
        let before = match after.checked_sub(1) {
            // At a reading itself nothing is uncertain.
            _ if next.at == moment => next,
            Some(before) => self.readings.get(before)?,
            None => return None,
        };
        if before.series != next.series {
            return None;
        }
        let length = (next.at - before.at).get();
        let share = match length > 0.0 {
            true => (moment - before.at).get() / length,
            false => 0.0,
        };
        let bounds = |(low, high): (&Joules, &Joules)| Bounds {
            low: *low,
            value: *low + (*high - *low) * share,
            high: *high,
        };
        Some(ProcessorMark {
            series: next.series,
            parts: before
                .energies
                .iter()
                .zip(&next.energies)
                .map(bounds)
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_service::monitor_link::ProcessorPart;

    use super::*;

    fn at(seconds: f64) -> Moment {
        Moment::from_nanos((seconds * 1e9) as u64)
    }

    fn reading(seconds: f64, joules: f64) -> ProcessorReading {
        ProcessorReading {
            at: at(seconds),
            parts: vec![ProcessorPart {
                name: "package-0".to_owned(),
                zone: "intel-rapl:0".to_owned(),
                energy: Joules::new(joules),
            }],
        }
    }

    /// The energy between two moments with its bounds.
    fn energy(processors: &Processors, from: f64, to: f64) -> Option<[f64; 3]> {
        let (start, end) = (processors.at(at(from))?, processors.at(at(to))?);
        let parts = end.since(&start)?;
        let (value, [low, high]) = parts[0];
        Some([low.get(), value.get(), high.get()])
    }

    #[test]
    fn the_energy_between_readings_is_known_by_bounds() {
        let mut processors = Processors::default();
        for (seconds, joules) in [(10.0, 500.0), (11.0, 600.0), (12.0, 800.0), (13.0, 900.0)] {
            processors.add(reading(seconds, joules));
        }
        assert_eq!(
            energy(&processors, 11.0, 12.0).map(|known| known[1]),
            Some(200.0)
        );
        assert_eq!(energy(&processors, 10.5, 12.5), Some([200.0, 300.0, 400.0]));
        // A short time within a second: the load there is unknown.
        assert_eq!(
            energy(&processors, 11.2, 11.4).map(|known| (known[0], known[2])),
            Some((0.0, 200.0))
        );
        assert_eq!(energy(&processors, 9.0, 12.0), None);
        assert_eq!(energy(&processors, 12.0, 13.5), None);
        assert!(processors.is_awaited(at(13.5), at(13.6)));
        assert!(!processors.is_awaited(at(12.5), at(13.6)));
        assert!(!processors.is_awaited(at(13.5), at(17.0)));
        assert!(!Processors::default().is_awaited(at(1.0), at(1.0)));
    }

    #[test]
    fn nothing_is_known_over_a_break() {
        for second in [reading(17.0, 700.0), reading(11.0, 400.0)] {
            let mut processors = Processors::default();
            processors.add(reading(10.0, 500.0));
            let from = second.at;
            processors.add(second);
            processors.add(ProcessorReading {
                at: from + Seconds::new(1.0),
                ..reading(0.0, 900.0)
            });
            let from = (from - Moment::default()).get();
            assert_eq!(energy(&processors, 10.0, from + 0.5), None);
            assert!(energy(&processors, from + 0.2, from + 0.8).is_some());
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut processors = Processors::default();
        for second in 0..1000 {
            processors.add(reading(f64::from(second), f64::from(second)));
            // The same reading again changes nothing.
            processors.add(reading(f64::from(second), 0.0));
        }
        assert_eq!(processors.readings.len(), MAX_READINGS);
        assert_eq!(
            energy(&processors, 990.0, 995.0).map(|known| known[1]),
            Some(5.0)
        );
    }
}
