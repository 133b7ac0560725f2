//! The settings that single GPUs of a job can have, and what a setting for all GPUs means on each of them.

use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, Settings};
use sweetspot_quantity::{Megahertz, Quantity, Watts};

use super::{TuneKnob, TuneSpace};

/// The distance between two power caps of one GPU, in watts.
const CAP_STEP: f64 = 1.0;
/// The distance between two core clocks of one GPU that takes any clock, in megahertz.
const CLOCK_STEP: f64 = 15.0;

/// The values that a knob of one GPU can have, from the default down to the lowest.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuLadder {
    /// The product name of the GPU: GPUs of one model are expected to behave alike.
    pub model: String,
    /// The values of the knob, in descending order; the first one is the default.
    pub values: Vec<f64>,
    /// The device settings of each value.
    pub settings: Vec<Settings>,
}

impl GpuLadder {
    /// The index of the lowest value that is at least `value`; the highest one if there is none.
    pub(super) fn at_least(&self, value: f64) -> usize {
        let above = self.values.iter().take_while(|own| **own >= value - 1e-9);
        above.count().saturating_sub(1)
    }
}

/// The settings that each GPU of a job can have by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuLadders {
    /// The ladder of each GPU for the knob of [`super::TuneConfig::space`].
    pub main: Vec<GpuLadder>,
    /// The ladder of each GPU for [`super::TuneConfig::clocks`]; absent if the tuner does not choose the knob.
    pub clocks: Option<Vec<GpuLadder>>,
    /// The settings of each point of the search space on each GPU.
    pub of_points: Vec<Vec<Settings>>,
}

impl GpuLadders {
    /// Creates the ladders for the knob of a search space; `None` if there is only one GPU or if the space has two knobs
    /// that are tuned together.
    pub fn new(devices: &[Descriptor], space: &TuneSpace, knob: TuneKnob) -> Option<Self> {
        let ladders = |knob: Knob| {
            let ladders = devices.iter().map(|device| {
                let cap = cap_default(device).filter(|_| space.unavailable != Some(Knob::PowerCap));
                ladder(device, knob, cap)
            });
            ladders.collect::<Option<Vec<GpuLadder>>>()
        };
        let main = match (knob, space.unavailable) {
            (TuneKnob::Both | TuneKnob::CpuPowerCap, _) => return None,
            (TuneKnob::CoreClock, _) | (TuneKnob::Auto, Some(Knob::PowerCap)) => Knob::CoreClock,
            _ => Knob::PowerCap,
        };
        (devices.len() > 1).then_some(())?;
        Some(Self {
            main: ladders(main)?,
            clocks: match space.clocks {
                Some(_) => Some(ladders(Knob::CoreClock)?),
                None => None,
            },
            of_points: space.of_gpus.clone(),
        })
    }
}

/// The values of a knob of one GPU; `None` if it cannot be set. Clocks are set together with the power cap `cap`.
fn ladder(device: &Descriptor, knob: Knob, cap: Option<Watts>) -> Option<GpuLadder> {
    let (values, settings): (Vec<f64>, Vec<Settings>) = match device.knob(knob)? {
        KnobDescriptor::PowerCap(range) => descending(&range.domain, range.default, CAP_STEP)
            .into_iter()
            .map(|watts: Watts| {
                (
                    watts.get(),
                    Settings {
                        power_cap: Some(watts),
                        ..Settings::default()
                    },
                )
            })
            .unzip(),
        KnobDescriptor::CoreClock(range) => descending(&range.domain, range.default, CLOCK_STEP)
            .into_iter()
            .enumerate()
            .map(|(index, clock): (usize, Megahertz)| {
                let settings = Settings {
                    power_cap: cap,
                    // The highest clock is the default and needs no clock lock.
                    core_clock: (index > 0).then_some(clock),
                    memory_clock: None,
                };
                (clock.get(), settings)
            })
            .unzip(),
        KnobDescriptor::MemoryClock(_) => return None,
    };
    Some(GpuLadder {
        model: device.name.clone(),
        values,
        settings,
    })
}

/// The default power cap of a GPU; `None` if its cap cannot be set.
fn cap_default(device: &Descriptor) -> Option<Watts> {
    match device.knob(Knob::PowerCap) {
        Some(KnobDescriptor::PowerCap(range)) => Some(range.default),
        _ => None,
    }
}

/// The values from the default down to the lowest one, at distances of about `step`.
fn descending<Q: Quantity>(domain: &Domain<Q>, default: Q, step: f64) -> Vec<Q> {
    let mut values = vec![default];
    match domain {
        Domain::Levels(levels) => {
            values.extend(
                levels
                    .iter()
                    .rev()
                    .copied()
                    .filter(|level| *level < default),
            );
        }
        Domain::Range { min, .. } => {
            let mut next = default.base() - step;
            while next > min.base() {
                values.push(Q::from_base(next));
                next -= step;
            }
            values.extend((*min < default).then_some(*min));
        }
    }
    values
}

/// The settings that a GPU gets when all GPUs of a job get these settings: values outside its range are replaced by its
/// nearest ones, and its default cap and clock are never exceeded.
pub fn fit_to(device: &Descriptor, settings: &Settings) -> Settings {
    let cap = match (settings.power_cap, device.knob(Knob::PowerCap)) {
        (Some(cap), Some(KnobDescriptor::PowerCap(range))) => {
            Some(nearest_not_above(&range.domain, range.default, cap))
        }
        _ => None,
    };
    let clock = match (settings.core_clock, device.knob(Knob::CoreClock)) {
        (Some(clock), Some(KnobDescriptor::CoreClock(range))) => {
            let clock = nearest_not_above(&range.domain, range.default, clock);
            (clock < range.default).then_some(clock)
        }
        _ => None,
    };
    Settings {
        power_cap: cap,
        core_clock: clock,
        memory_clock: settings.memory_clock,
    }
}

/// The highest supported value that is neither above `value` nor above the default; the lowest one if all are above.
fn nearest_not_above<Q: Quantity>(domain: &Domain<Q>, default: Q, value: Q) -> Q {
    if value >= default {
        return default;
    }
    match domain {
        Domain::Range { min, .. } if value < *min => *min,
        Domain::Range { .. } => value,
        Domain::Levels(levels) => {
            let below = levels.iter().rev().find(|level| **level <= value);
            below.or(levels.first()).copied().unwrap_or(default)
        }
    }
}

/// A name for settings that differ between GPUs: `215/215/180 W`.
pub(super) fn label(settings: &[Settings]) -> String {
    let of = |values: Option<Vec<f64>>, unit: &str| {
        let texts = values?.into_iter().map(|value| format!("{value:.0}"));
        Some(format!("{} {unit}", texts.collect::<Vec<_>>().join("/")))
    };
    let caps = settings.iter().map(|own| own.power_cap.map(Watts::get));
    let is_clocked = settings.iter().any(|own| own.core_clock.is_some());
    let clocks = settings.iter().map(|own| match own.core_clock {
        Some(clock) => format!("{:.0}", clock.get()),
        None => "default".to_owned(),
    });
    match is_clocked {
        true => format!("{} MHz", clocks.collect::<Vec<_>>().join("/")),
        false => of(caps.collect(), "W").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_for_all_gpus_stays_within_the_range_of_each() {
        let range = Domain::Range {
            min: Watts::new(100.0),
            max: Watts::new(300.0),
        };
        let fit =
            |value: f64| nearest_not_above(&range, Watts::new(250.0), Watts::new(value)).get();
        assert_eq!((fit(280.0), fit(180.0), fit(50.0)), (250.0, 180.0, 100.0));
        let levels = Domain::Levels([600.0, 900.0, 1200.0].map(Megahertz::new).to_vec());
        let fit = |value: f64| {
            nearest_not_above(&levels, Megahertz::new(1200.0), Megahertz::new(value)).get()
        };
        assert_eq!(
            (fit(1500.0), fit(1000.0), fit(300.0)),
            (1200.0, 900.0, 600.0)
        );
    }

    #[test]
    fn a_ladder_gives_the_lowest_value_that_is_enough() {
        let ladder = GpuLadder {
            model: "GPU".to_owned(),
            values: vec![250.0, 240.0, 230.0],
            settings: vec![Settings::default(); 3],
        };
        let found = [260.0, 250.0, 241.0, 240.0, 100.0].map(|value| ladder.at_least(value));
        assert_eq!(found, [0, 0, 0, 1, 2]);
    }

    #[test]
    fn settings_of_unlike_gpus_have_one_name() {
        let cap = |watts| Settings {
            power_cap: Some(Watts::new(watts)),
            ..Settings::default()
        };
        assert_eq!(label(&[cap(215.0), cap(180.0)]), "215/180 W");
        let clocks = [
            cap(250.0),
            Settings {
                core_clock: Some(Megahertz::new(900.0)),
                ..cap(250.0)
            },
        ];
        assert_eq!(label(&clocks), "default/900 MHz");
    }
}
