//! What can be set on the GPUs of a job, as places of a search.

use sweetspot_decide::search::{KnobKind as Coordinate, SearchSpace};
use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, Settings};
use sweetspot_quantity::{Megahertz, Quantity, Watts};

use super::TuneKnob;
use crate::SessionError;

/// Places with the settings they stand for.
pub struct Places {
    pub space: SearchSpace,
    pub settings: Vec<Settings>,
    /// `180 W`, `180 W, 1200 MHz`.
    pub labels: Vec<String>,
    /// The lowest cap of one GPU, where a cap is all that is set.
    pub lowest_cap: Option<Watts>,
}

/// Caps are so far apart, or farther where there would be too many.
const CAP_STEP: f64 = 5.0;
/// Values of a single knob.
const MOST: usize = 41;
/// Values of each of two.
const MOST_OF_TWO: usize = 13;

impl Places {
    /// Of GPUs of one kind.
    pub fn of(devices: &[Descriptor], knob: TuneKnob) -> Result<Self, SessionError> {
        let device = &devices[0];
        if devices.iter().any(|other| other.name != device.name) {
            let mut names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
            names.dedup();
            return Err(SessionError::Mixed {
                flag: "tune",
                gpus: names.join(", "),
            });
        }
        let (most_caps, most_clocks) = match knob {
            TuneKnob::PowerCap => (MOST, 1),
            TuneKnob::CoreClock => (1, MOST),
            TuneKnob::Both => (MOST_OF_TWO, MOST_OF_TWO),
        };
        let caps = caps(device, most_caps, knob)?;
        let clocks = clocks(device, most_clocks, knob)?;
        let mut places = Vec::new();
        let mut settings = Vec::new();
        let mut labels = Vec::new();
        for (cap_index, cap) in caps.iter().enumerate() {
            for (clock_index, clock) in clocks.iter().enumerate() {
                // The highest clock is the default one: it needs no lock.
                let locked = clock.filter(|_| clock_index > 0);
                settings.push(Settings {
                    power_cap: *cap,
                    core_clock: locked,
                    memory_clock: None,
                });
                let parts = [
                    cap.filter(|_| knob != TuneKnob::CoreClock)
                        .map(|cap| cap.to_string()),
                    clock.map(|clock| clock.to_string()),
                ];
                labels.push(parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
                let mut place = Vec::new();
                if knob != TuneKnob::CoreClock {
                    place.extend(cap.map(Watts::get));
                }
                place.extend(clock.map(Megahertz::get));
                debug_assert!(cap_index + clock_index > 0 || settings.len() == 1);
                places.push(place);
            }
        }
        let knobs = match knob {
            TuneKnob::PowerCap => vec![Coordinate::PowerCap],
            TuneKnob::CoreClock => vec![Coordinate::CoreClock],
            TuneKnob::Both => vec![Coordinate::PowerCap, Coordinate::CoreClock],
        };
        let space =
            SearchSpace::new(knobs, places, 0).map_err(|problem| SessionError::Setting {
                device: device.name.clone(),
                problem: problem.to_string(),
            })?;
        let lowest = caps.last().copied().flatten();
        Ok(Self {
            space,
            settings,
            labels,
            lowest_cap: lowest.filter(|_| knob == TuneKnob::PowerCap),
        })
    }

    /// The place with these settings.
    pub fn find(&self, settings: &Settings) -> Option<usize> {
        self.settings.iter().position(|other| other == settings)
    }
}

/// The caps to try, the default one first, downwards.
fn caps(
    device: &Descriptor,
    most: usize,
    knob: TuneKnob,
) -> Result<Vec<Option<Watts>>, SessionError> {
    let Some(KnobDescriptor::PowerCap(range)) = device.knob(Knob::PowerCap) else {
        return match knob {
            TuneKnob::CoreClock => Ok(vec![None]),
            _ => Err(missing(device, Knob::PowerCap)),
        };
    };
    let default = range.default;
    let mut values = vec![default];
    if most > 1 {
        match &range.domain {
            Domain::Levels(levels) => {
                let below: Vec<Watts> = levels.iter().rev().copied().collect();
                values = thinned(&below, default, most);
            }
            Domain::Range { min, .. } => {
                let room = (default - *min).get();
                let step = CAP_STEP * (room / CAP_STEP / (most - 1) as f64).ceil().max(1.0);
                let mut next = default.get() - step;
                while next > min.get() {
                    values.push(Watts::new(next));
                    next -= step;
                }
                if *min < default {
                    values.push(*min);
                }
            }
        }
    }
    Ok(values.into_iter().map(Some).collect())
}

/// The clocks to try, the default one first, downwards.
fn clocks(
    device: &Descriptor,
    most: usize,
    knob: TuneKnob,
) -> Result<Vec<Option<Megahertz>>, SessionError> {
    if knob == TuneKnob::PowerCap {
        return Ok(vec![None]);
    }
    let Some(KnobDescriptor::CoreClock(range)) = device.knob(Knob::CoreClock) else {
        return Err(missing(device, Knob::CoreClock));
    };
    let values = match &range.domain {
        Domain::Levels(levels) => {
            let below: Vec<Megahertz> = levels.iter().rev().copied().collect();
            thinned(&below, range.default, most)
        }
        Domain::Range { min, .. } => {
            let step = (range.default - *min).get() / (most - 1).max(1) as f64;
            let values = (0..most).map(|index| range.default.get() - index as f64 * step);
            values.map(Megahertz::new).collect()
        }
    };
    Ok(values.into_iter().map(Some).collect())
}

/// The default and what lies below it, at most so many, evenly; from the highest down.
fn thinned<Q: Quantity>(descending: &[Q], default: Q, most: usize) -> Vec<Q> {
    let below: Vec<Q> = descending
        .iter()
        .copied()
        .filter(|level| *level < default)
        .collect();
    let count = below.len().min(most.saturating_sub(1));
    let picked = (1..=count).map(|index| below[(index * below.len()).div_ceil(count) - 1]);
    std::iter::once(default).chain(picked).collect()
}

fn missing(device: &Descriptor, knob: Knob) -> SessionError {
    SessionError::Setting {
        device: device.name.clone(),
        problem: format!("it has no {knob} that can be set"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_thinned_evenly_down_to_the_lowest() {
        let levels: Vec<Megahertz> = (1..=100)
            .rev()
            .map(|level| Megahertz::new(f64::from(level) * 10.0))
            .collect();
        let thin = thinned(&levels, Megahertz::new(1000.0), 12);
        assert_eq!(thin.len(), 12);
        assert_eq!(
            (thin[0].get(), thin[1].get(), thin[11].get()),
            (1000.0, 910.0, 10.0)
        );
        let one = thinned(&levels[..1], Megahertz::new(1000.0), 12);
        assert_eq!(one, [Megahertz::new(1000.0)]);
    }
}
