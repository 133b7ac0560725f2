//! The profile of a study's GPU before the fit: from the driver's report, a data sheet and assumptions.

use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, KnobRange, SensorKind};
use sweetspot_quantity::{
    Bytes, BytesPerSecond, Celsius, Megahertz, Quantity, Ratio, Seconds, Watts,
};
use sweetspot_sim::{Cap, Core, Generation, GpuProfile, Memory, Peak, PowerDraw, Thermal, gpus};

use super::MeasuredStudy;

/// The profile of a GPU before its power and voltage are fitted.
pub struct BaseGpu {
    pub profile: GpuProfile,
    /// The name of the built-in profile of the same product, whose data sheet values are used; `None` if there is none.
    pub built_in: Option<String>,
    /// The keys or descriptions of the values that are only assumed.
    pub assumed: Vec<&'static str>,
}

// Assumed values of a GPU for which there is neither a driver's report nor a data sheet.
/// The assumed default core clock.
const ASSUMED_CLOCK: Megahertz = Megahertz::new(1500.0);
/// The assumed distance between two core clocks.
const ASSUMED_CLOCK_STEP: Megahertz = Megahertz::new(15.0);
/// The assumed number of arithmetic units.
const ASSUMED_UNITS: u64 = 5120;
/// The assumed memory size.
const ASSUMED_MEMORY: Bytes = Bytes::new(16e9);
/// The assumed memory clock.
const ASSUMED_MEMORY_CLOCK: Megahertz = Megahertz::new(1000.0);
/// The assumed memory bandwidth.
const ASSUMED_BANDWIDTH: BytesPerSecond = BytesPerSecond::new(900e9);
/// The assumed relative standard deviation from run to run.
const ASSUMED_NOISE: Ratio = Ratio::new(0.003);

impl BaseGpu {
    /// Makes the profile of a study's GPU. `highest_power` is the highest measured mean power.
    pub fn new(study: &MeasuredStudy, highest_power: Watts) -> Self {
        let device = &study.device;
        let built_in = gpus().unwrap_or_default();
        let known = built_in
            .into_iter()
            .find(|(_, profile)| profile.name == device.name);
        let mut assumed = Vec::new();
        let sheet = known.as_ref().map(|(_, profile)| profile);
        let core = core(device, sheet, &mut assumed);
        let cap = cap(device, sheet, highest_power, &mut assumed);
        let memory = memory(device, sheet, &mut assumed);
        if sheet.is_none() {
            assumed.push("core.units");
            assumed.push("memory.bandwidth");
        }
        assumed.extend(["power.idle", "cap.settling", "cap.recovery", "thermal"]);
        let profile = GpuProfile {
            name: device.name.clone(),
            aliases: Vec::new(),
            study: sheet.and_then(|sheet| sheet.study.clone()),
            sensors: sheet.map_or_else(|| generation(device), |sheet| sheet.sensors),
            noise: study.noise.unwrap_or(ASSUMED_NOISE),
            fitted: FITTED_KEYS.iter().map(|key| (*key).to_owned()).collect(),
            core,
            memory,
            peak: sheet.map_or_else(Peak::default, |sheet| sheet.peak.clone()),
            power: PowerDraw {
                idle: sheet.map_or(cap.default * 0.12, |sheet| sheet.power.idle),
                context: Watts::ZERO,
                memory: Watts::ZERO,
                core: Watts::ZERO,
            },
            thermal: sheet.map_or_else(usual_thermal, |sheet| sheet.thermal.clone()),
            cap,
            kernels: None,
            kernels_of: None,
            faults: Vec::new(),
        };
        Self {
            profile,
            built_in: known.map(|(name, _)| name),
            assumed,
        }
    }
}

/// The keys of the GPU's profile that the fit determines.
const FITTED_KEYS: [&str; 5] = [
    "core.voltage_knee",
    "core.voltage_floor",
    "power.context",
    "power.memory",
    "power.core",
];

/// The assumed thermal properties of a GPU.
fn usual_thermal() -> Thermal {
    Thermal {
        ambient: Celsius::new(30.0),
        at_default_cap: Celsius::new(70.0),
        time_constant: Seconds::new(40.0),
        leakage_per_degree: Ratio::new(0.004),
    }
}

/// The core clocks of the GPU; records in `assumed` which values are assumed.
fn core(device: &Descriptor, sheet: Option<&GpuProfile>, assumed: &mut Vec<&'static str>) -> Core {
    let units = sheet.map_or(ASSUMED_UNITS, |sheet| sheet.core.units);
    let new_core = |min: Megahertz, default, max, step| Core {
        units,
        multiprocessors: sheet.and_then(|sheet| sheet.core.multiprocessors),
        min,
        default,
        max,
        step,
        voltage_knee: Megahertz::ZERO,
        voltage_floor: Ratio::new(1.0),
    };
    let range = match device.knob(Knob::CoreClock) {
        Some(KnobDescriptor::CoreClock(range)) => range,
        _ => {
            assumed.push("the core clocks");
            let like = sheet.map(|sheet| sheet.core.clone());
            return like.unwrap_or_else(|| {
                new_core(
                    ASSUMED_CLOCK_STEP * 10.0,
                    ASSUMED_CLOCK,
                    ASSUMED_CLOCK,
                    ASSUMED_CLOCK_STEP,
                )
            });
        }
    };
    let levels = levels(range);
    // The profile of the same product has the same clocks, without the driver's rounding.
    if let Some(sheet) = sheet
        && sheet.core.levels() == levels
    {
        return new_core(
            sheet.core.min,
            range.default,
            sheet.core.max,
            sheet.core.step,
        );
    }
    match grid(&levels) {
        Some((min, max, step)) => new_core(min, range.default, max, step),
        None => {
            assumed.push("every whole megahertz as a core clock");
            let (min, max) = ends(&levels, range.default);
            new_core(
                min,
                range.default.max(min).min(max),
                max,
                Megahertz::new(1.0),
            )
        }
    }
}

/// The first clock, last clock and step of an even grid that gives these levels if its values are rounded down, as
/// drivers do; `None` if there is no such grid.
fn grid(levels: &[Megahertz]) -> Option<(Megahertz, Megahertz, Megahertz)> {
    let (first, last) = (levels.first()?.get(), levels.last()?.get());
    if levels.len() == 1 {
        return Some((levels[0], levels[0], Megahertz::new(1.0)));
    }
    let steps = (levels.len() - 1) as f64;
    let tenths = || (0..10).map(|tenth| f64::from(tenth) / 10.0);
    let tries = tenths().flat_map(|low| tenths().map(move |high| (first + low, last + high)));
    tries
        .map(|(min, max)| (min, max, (max - min) / steps))
        .find(|(min, _, step)| {
            let fits = |(index, level): (usize, &Megahertz)| {
                (min + step * index as f64 + 1e-9).floor() == level.get()
            };
            *step >= 0.5 && levels.iter().enumerate().all(fits)
        })
        .map(|(min, max, step)| {
            (
                Megahertz::new(min),
                Megahertz::new(max),
                Megahertz::new(step),
            )
        })
}

/// The values that a knob can have, or the two ends of its range, in ascending order.
fn levels<Q: Quantity>(range: &KnobRange<Q>) -> Vec<Q> {
    match &range.domain {
        Domain::Levels(levels) => levels.clone(),
        Domain::Range { min, max } => vec![*min, *max],
    }
}

/// The lowest and the highest level; both are `default` if there are none.
fn ends<Q: Quantity>(levels: &[Q], default: Q) -> (Q, Q) {
    match levels {
        [] => (default, default),
        [first, .., last] => (*first, *last),
        [only] => (*only, *only),
    }
}

/// The power caps of the GPU; records in `assumed` which values are assumed.
fn cap(
    device: &Descriptor,
    sheet: Option<&GpuProfile>,
    highest_power: Watts,
    assumed: &mut Vec<&'static str>,
) -> Cap {
    let (settling, recovery) = match sheet {
        Some(sheet) => (sheet.cap.settling, sheet.cap.recovery),
        None => (Seconds::new(0.03), Seconds::new(0.5)),
    };
    let (min, max, default) = match device.knob(Knob::PowerCap) {
        Some(KnobDescriptor::PowerCap(range)) => {
            let (min, max) = ends(&levels(range), range.default);
            (min, max, range.default)
        }
        _ => {
            // No cap can be set, so no cap limits the power.
            assumed.push("a cap above the measured power");
            let cap = Watts::new((1.5 * highest_power.get()).ceil());
            (cap, cap, cap)
        }
    };
    Cap {
        min,
        max,
        default,
        settling,
        recovery,
    }
}

/// The memory of the GPU; records in `assumed` which values are assumed.
fn memory(
    device: &Descriptor,
    sheet: Option<&GpuProfile>,
    assumed: &mut Vec<&'static str>,
) -> Memory {
    let (clocks, default, clock_offsets) = match device.knob(Knob::MemoryClock) {
        Some(KnobDescriptor::MemoryClock(range)) => match &range.domain {
            Domain::Levels(levels) => (levels.clone(), range.default, false),
            // A driver offers a range, and not levels, if it sets the clock by an offset.
            Domain::Range { min, max } => {
                let known = sheet.map_or(&[][..], |sheet| &sheet.memory.clocks);
                let known = known.iter().filter(|clock| range.domain.contains(**clock));
                let mut clocks = vec![*min, range.default, *max];
                clocks.extend(known);
                clocks.sort_by(|a, b| a.get().total_cmp(&b.get()));
                clocks.dedup();
                (clocks, range.default, true)
            }
        },
        _ => {
            let clock = sheet.map_or(ASSUMED_MEMORY_CLOCK, |sheet| sheet.memory.default);
            (vec![clock], clock, false)
        }
    };
    let capacity = device.memory.or(sheet.map(|sheet| sheet.memory.capacity));
    if capacity.is_none() {
        assumed.push("memory.capacity");
    }
    Memory {
        capacity: capacity.unwrap_or(ASSUMED_MEMORY),
        bandwidth: sheet.map_or(ASSUMED_BANDWIDTH, |sheet| sheet.memory.bandwidth),
        clocks,
        default,
        clock_offsets,
    }
}

/// The generation of a GPU, guessed from its name. It determines the GPU's sensors: energy counters exist since Volta.
fn generation(device: &Descriptor) -> Generation {
    let named = [
        (
            &["H100", "H200", "H800", "H20", "GH200"][..],
            Generation::Hopper,
        ),
        (&["A100", "A800", "A30"], Generation::AmpereGa100),
        (&["V100", "TITAN V"], Generation::Volta),
        (
            &["RTX 20", "T4", "Quadro RTX", "TITAN RTX"],
            Generation::Turing,
        ),
        (&["RTX 40", "L4", "Ada"], Generation::Ada),
        (
            &["RTX 30", "A40", "A10", "A2000", "A4000", "A5000", "A6000"],
            Generation::Ampere,
        ),
        (
            &["P100", "P40", "P4", "GTX 10", "TITAN X"],
            Generation::Pascal,
        ),
    ];
    let is = |words: &[&str]| words.iter().any(|word| device.name.contains(word));
    let found = named.iter().find(|(words, _)| is(words));
    match (found, device.sensor(SensorKind::EnergyCounter)) {
        (Some((_, generation)), _) => *generation,
        (None, Some(_)) => Generation::Ampere,
        (None, None) => Generation::Pascal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(mhz: &[u32]) -> Vec<Megahertz> {
        mhz.iter()
            .map(|mhz| Megahertz::new(f64::from(*mhz)))
            .collect()
    }

    /// The profile gives the levels that a driver lists, whatever fraction the driver rounds down.
    #[test]
    fn clocks_are_those_that_the_driver_listed() {
        let p100 = listed(&[544, 556, 569, 582, 594, 607, 620, 632, 645, 658, 670, 683]);
        let v100 = listed(&[135, 142, 150, 157, 165, 172, 180]);
        let a100 = listed(&[210, 225, 240, 255]);
        for levels in [p100, v100, a100, listed(&[1380])] {
            let (min, max, step) = grid(&levels).unwrap();
            let core = Core {
                units: 1,
                multiprocessors: None,
                min,
                default: levels[0],
                max,
                step,
                voltage_knee: Megahertz::ZERO,
                voltage_floor: Ratio::new(1.0),
            };
            assert_eq!(core.levels(), levels);
        }
        assert_eq!(grid(&listed(&[100, 150, 400])), None);
    }

    /// A memory clock that is set by an offset has a range, whose profile still contains the default.
    #[test]
    fn a_range_of_memory_clocks_gives_its_ends_and_known_clocks() {
        let (_, sheet) = gpus()
            .unwrap()
            .into_iter()
            .find(|(name, _)| name == "gtx_2080ti")
            .unwrap();
        let device = Descriptor {
            id: sweetspot_device::DeviceId::new("GPU-0"),
            name: sheet.name.clone(),
            kind: sweetspot_device::DeviceKind::Gpu,
            backend: "nvml".to_owned(),
            parent: None,
            memory: Some(sheet.memory.capacity),
            sensors: Vec::new(),
            knobs: vec![KnobDescriptor::MemoryClock(KnobRange {
                domain: Domain::Range {
                    min: Megahertz::new(6000.0),
                    max: Megahertz::new(8300.0),
                },
                default: Megahertz::new(7000.0),
                readable: true,
            })],
        };
        let memory_of = |sheet| memory(&device, sheet, &mut Vec::new());
        let unknown = memory_of(None);
        assert_eq!(unknown.clocks, listed(&[6000, 7000, 8300]));
        let known = memory_of(Some(&sheet));
        assert_eq!(known.clocks, listed(&[6000, 6300, 6800, 7000, 7300, 8300]));
        assert!(known.clock_offsets);
    }
}
