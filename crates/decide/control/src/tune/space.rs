//! The settings that tuning can choose from, as points of a search space.

use sweetspot_decide::search::{KnobKind as Coordinate, SearchSpace, SearchSpaceError};
use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, KnobRange, Settings};
use sweetspot_quantity::{Megahertz, Quantity, Watts};

use super::TuneKnob;
use super::ladder::fit_to;

/// Why no search space for tuning these GPUs can be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TuneSpaceError {
    /// The GPU has no such knob, or it cannot be set.
    #[error("{device} has no {knob} that can be set; tune another knob")]
    NotSettable {
        /// The name of the GPU.
        device: String,
        /// The knob that cannot be set.
        knob: Knob,
    },
    /// The values of the knobs do not form a search space.
    #[error("{device}: {problem}")]
    SearchSpace {
        /// The name of the GPU.
        device: String,
        /// What is wrong with the values of the knobs.
        problem: SearchSpaceError,
    },
}

/// The points of a search space and the settings that they stand for.
#[derive(Clone, Debug)]
pub struct TuneSpace {
    /// The points that the search may evaluate.
    pub space: SearchSpace,
    /// The device settings of each point, for all GPUs.
    pub settings: Vec<Settings>,
    /// The device settings of each point on each GPU. They differ from [`Self::settings`] if a GPU of another model does
    /// not support them.
    pub of_gpus: Vec<Vec<Settings>>,
    /// The name of each point for display: `180 W`, or `180 W, 1200 MHz`.
    pub labels: Vec<String>,
    /// The lowest power cap of one GPU; absent if power caps are tuned together with another knob or not at all.
    pub lowest_cap: Option<Watts>,
    /// The core clocks that the search may evaluate in place of the power caps, if the tuner chooses the knob. They
    /// share the reference of [`Self::space`], and their other points follow those of that space.
    pub clocks: Option<SearchSpace>,
    /// The knob that the GPU cannot set, if the tuner was to choose the knob; the other one is tuned.
    pub unavailable: Option<Knob>,
}

/// The smallest distance between power caps, in watts; larger if there would be too many caps.
const CAP_STEP: f64 = 5.0;
/// The largest number of values of a knob if it is tuned alone.
const MAX_VALUES: usize = 41;
/// The largest number of values of each knob if two knobs are tuned together.
const MAX_VALUES_OF_TWO: usize = 13;

impl TuneSpace {
    /// Creates the search space for a knob of these GPUs. A point gives all GPUs the same setting. GPUs of another model
    /// get the nearest setting that they support, and never more than their own default.
    pub fn new(devices: &[Descriptor], knob: TuneKnob) -> Result<Self, TuneSpaceError> {
        let device = &common_range(devices);
        let (most_caps, most_clocks, knobs) = match knob {
            TuneKnob::PowerCap => (MAX_VALUES, 1, vec![Coordinate::PowerCap]),
            TuneKnob::CoreClock => (1, MAX_VALUES, vec![Coordinate::CoreClock]),
            TuneKnob::Both => (
                MAX_VALUES_OF_TWO,
                MAX_VALUES_OF_TWO,
                vec![Coordinate::PowerCap, Coordinate::CoreClock],
            ),
            TuneKnob::Auto => return Self::of_either_knob(devices),
            // The model of a search by caps is that of a GPU.
            TuneKnob::CpuPowerCap => (MAX_VALUES, 1, vec![Coordinate::Level]),
        };
        let caps = caps(device, most_caps, knob)?;
        let clocks = clocks(device, most_clocks, knob)?;
        let mut points = Vec::new();
        let mut settings = Vec::new();
        let mut labels = Vec::new();
        for (cap_index, cap) in caps.iter().enumerate() {
            for (clock_index, clock) in clocks.iter().enumerate() {
                // The highest clock is the default and needs no clock lock.
                let locked = clock.filter(|_| clock_index > 0);
                settings.push(Settings {
                    power_cap: *cap,
                    core_clock: locked,
                    memory_clock: None,
                });
                let parts = [
                    cap.filter(|_| knob != TuneKnob::CoreClock)
                        .map(|cap| match knob {
                            TuneKnob::CpuPowerCap => format!("CPU {cap}"),
                            _ => cap.to_string(),
                        }),
                    clock.map(|clock| clock.to_string()),
                ];
                labels.push(parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
                let mut point = Vec::new();
                if knob != TuneKnob::CoreClock {
                    point.extend(cap.map(Watts::get));
                }
                point.extend(clock.map(Megahertz::get));
                debug_assert!(cap_index + clock_index > 0 || settings.len() == 1);
                points.push(point);
            }
        }
        let space =
            SearchSpace::new(knobs, points, 0).map_err(|problem| TuneSpaceError::SearchSpace {
                device: device.name.clone(),
                problem,
            })?;
        let lowest = caps.last().copied().flatten();
        for needed in space_knobs(knob) {
            let lacks = |device: &&Descriptor| device.knob(*needed).is_none();
            if let Some(device) = devices.iter().find(lacks) {
                return Err(not_settable(device, *needed));
            }
        }
        Ok(Self {
            space,
            of_gpus: of_gpus(devices, &settings),
            settings,
            labels,
            lowest_cap: lowest.filter(|_| knob == TuneKnob::PowerCap),
            clocks: None,
            unavailable: None,
        })
    }

    /// Creates the search spaces of the power cap and of the core clock, between which the tuner chooses; if the GPUs
    /// can set only one of them, the space of that one.
    fn of_either_knob(devices: &[Descriptor]) -> Result<Self, TuneSpaceError> {
        let caps = Self::new(devices, TuneKnob::PowerCap);
        let clocks = Self::new(devices, TuneKnob::CoreClock);
        let (mut caps, clocks) = match (caps, clocks) {
            (Ok(caps), Ok(clocks)) => (caps, clocks),
            (Ok(one), Err(TuneSpaceError::NotSettable { knob, .. }))
            | (Err(TuneSpaceError::NotSettable { knob, .. }), Ok(one)) => {
                return Ok(Self {
                    unavailable: Some(knob),
                    ..one
                });
            }
            (Err(problem), _) | (_, Err(problem)) => return Err(problem),
        };
        let reference = caps.space.reference();
        // The clock of the reference tells what the clocks are compared with.
        caps.labels[reference] = format!("{}, {}", caps.labels[reference], clocks.labels[0]);
        caps.settings.extend(clocks.settings.into_iter().skip(1));
        caps.of_gpus.extend(clocks.of_gpus.into_iter().skip(1));
        caps.labels.extend(clocks.labels.into_iter().skip(1));
        caps.clocks = Some(clocks.space);
        Ok(caps)
    }

    /// Creates the search space of the core clock for GPUs whose power cap may not be changed: the cap is left as it is.
    pub fn without_caps(devices: &[Descriptor]) -> Result<Self, TuneSpaceError> {
        let mut devices = devices.to_vec();
        for device in &mut devices {
            let is_cap = |knob: &KnobDescriptor| matches!(knob, KnobDescriptor::PowerCap(_));
            device.knobs.retain(|knob| !is_cap(knob));
        }
        Self::new(&devices, TuneKnob::Auto)
    }

    /// The sum of the lowest power caps of all GPUs; `None` if power caps are tuned together with another knob or not at
    /// all.
    pub fn lowest_caps(&self) -> Option<Watts> {
        let lowest = self.lowest_cap?;
        let at_lowest = self
            .settings
            .iter()
            .rposition(|own| own.power_cap == Some(lowest))?;
        let caps = self.of_gpus[at_lowest].iter().map(|own| own.power_cap);
        caps.sum()
    }

    /// The index of the point with these settings; `None` if there is none.
    pub fn find(&self, settings: &Settings) -> Option<usize> {
        self.settings.iter().position(|other| other == settings)
    }
}

/// A GPU whose knobs have the ranges of all these GPUs together; the GPU itself if all are of one model.
fn common_range(devices: &[Descriptor]) -> Descriptor {
    let mut common = devices[0].clone();
    if devices.iter().all(|device| device.name == common.name) {
        return common;
    }
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    common.name = names.join(", ");
    for knob in &mut common.knobs {
        match knob {
            KnobDescriptor::PowerCap(range) => {
                let ranges =
                    devices
                        .iter()
                        .filter_map(|device| match device.knob(Knob::PowerCap) {
                            Some(KnobDescriptor::PowerCap(range)) => Some(range),
                            _ => None,
                        });
                *range = widest(ranges, range);
            }
            KnobDescriptor::CoreClock(range) => {
                let ranges =
                    devices
                        .iter()
                        .filter_map(|device| match device.knob(Knob::CoreClock) {
                            Some(KnobDescriptor::CoreClock(range)) => Some(range),
                            _ => None,
                        });
                *range = widest(ranges, range);
            }
            KnobDescriptor::MemoryClock(_) => {}
        }
    }
    common
}

/// The range from the lowest value of all ranges up to their highest default.
fn widest<'a, Q: Quantity + 'a>(
    ranges: impl Iterator<Item = &'a KnobRange<Q>> + Clone,
    first: &KnobRange<Q>,
) -> KnobRange<Q> {
    let lowest = |range: &KnobRange<Q>| match &range.domain {
        Domain::Range { min, .. } => *min,
        Domain::Levels(levels) => levels.first().copied().unwrap_or(range.default),
    };
    let least = |a: Q, b: Q| if b < a { b } else { a };
    let most = |a: Q, b: Q| if b > a { b } else { a };
    let min = ranges.clone().map(lowest).fold(lowest(first), least);
    let default = ranges.map(|range| range.default).fold(first.default, most);
    KnobRange {
        domain: Domain::Range { min, max: default },
        default,
        readable: first.readable,
    }
}

/// The knobs that a space needs on every GPU.
const fn space_knobs(knob: TuneKnob) -> &'static [Knob] {
    match knob {
        TuneKnob::PowerCap | TuneKnob::CpuPowerCap => &[Knob::PowerCap],
        TuneKnob::CoreClock => &[Knob::CoreClock],
        TuneKnob::Both => &[Knob::PowerCap, Knob::CoreClock],
        TuneKnob::Auto => &[],
    }
}

/// The settings of each point on each GPU.
fn of_gpus(devices: &[Descriptor], settings: &[Settings]) -> Vec<Vec<Settings>> {
    let is_one_model = devices.iter().all(|device| device.name == devices[0].name);
    let on_all = |settings: &Settings| {
        let on = |device: &Descriptor| match is_one_model {
            true => *settings,
            false => fit_to(device, settings),
        };
        devices.iter().map(on).collect()
    };
    settings.iter().map(on_all).collect()
}

/// The power caps to try, in descending order from the default.
fn caps(
    device: &Descriptor,
    most: usize,
    knob: TuneKnob,
) -> Result<Vec<Option<Watts>>, TuneSpaceError> {
    let Some(KnobDescriptor::PowerCap(range)) = device.knob(Knob::PowerCap) else {
        return match knob {
            TuneKnob::CoreClock => Ok(vec![None]),
            _ => Err(not_settable(device, Knob::PowerCap)),
        };
    };
    let default = range.default;
    let mut values = vec![default];
    if most > 1 {
        match &range.domain {
            Domain::Levels(levels) => {
                let below: Vec<Watts> = levels.iter().rev().copied().collect();
                values = evenly_spaced(&below, default, most);
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

/// The core clocks to try, in descending order from the default.
fn clocks(
    device: &Descriptor,
    most: usize,
    knob: TuneKnob,
) -> Result<Vec<Option<Megahertz>>, TuneSpaceError> {
    if matches!(knob, TuneKnob::PowerCap | TuneKnob::CpuPowerCap) {
        return Ok(vec![None]);
    }
    let Some(KnobDescriptor::CoreClock(range)) = device.knob(Knob::CoreClock) else {
        return Err(not_settable(device, Knob::CoreClock));
    };
    let values = match &range.domain {
        Domain::Levels(levels) => {
            let below: Vec<Megahertz> = levels.iter().rev().copied().collect();
            evenly_spaced(&below, range.default, most)
        }
        Domain::Range { min, .. } => {
            let step = (range.default - *min).get() / (most - 1).max(1) as f64;
            let values = (0..most).map(|index| range.default.get() - index as f64 * step);
            values.map(Megahertz::new).collect()
        }
    };
    Ok(values.into_iter().map(Some).collect())
}

/// At most `most` of the values up to the default: the default, the lowest value and evenly spaced ones between them.
fn evenly_spaced<Q: Quantity>(descending: &[Q], default: Q, most: usize) -> Vec<Q> {
    let below: Vec<Q> = descending
        .iter()
        .copied()
        .filter(|level| *level < default)
        .collect();
    let count = below.len().min(most.saturating_sub(1));
    let picked = (1..=count).map(|index| below[(index * below.len()).div_ceil(count) - 1]);
    std::iter::once(default).chain(picked).collect()
}

/// The error that a device's knob cannot be set.
fn not_settable(device: &Descriptor, knob: Knob) -> TuneSpaceError {
    TuneSpaceError::NotSettable {
        device: device.name.clone(),
        knob,
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
        let thin = evenly_spaced(&levels, Megahertz::new(1000.0), 12);
        assert_eq!(thin.len(), 12);
        assert_eq!(
            (thin[0].get(), thin[1].get(), thin[11].get()),
            (1000.0, 910.0, 10.0)
        );
        let one = evenly_spaced(&levels[..1], Megahertz::new(1000.0), 12);
        assert_eq!(one, [Megahertz::new(1000.0)]);
    }
}
