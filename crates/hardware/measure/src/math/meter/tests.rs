//! Meters of many kinds on loads of many kinds: the energy is near the truth, and its interval holds.

use proptest::prelude::*;
use sweetspot_device::{MeterGap, MeterProperties, MeterReading, MeterTrace, Moment};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use super::*;
use crate::math::Span;

/// Random numbers from a seed.
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }
    pub fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// A node: the power of its GPUs and of the whole at each millisecond.
pub(super) struct Node {
    pub gpus: Vec<f64>,
    pub total: Vec<f64>,
    pub begin: f64,
    pub end: f64,
}

const MILLI: f64 = 0.001;
const LEAD: f64 = 6.0;

impl Node {
    /// A job of `length` seconds that iterates on GPUs, with idle time before and after it, behind a supply with losses.
    pub fn new(random: &mut Random, length: f64) -> Self {
        let (begin, end) = (LEAD + random.next(), LEAD + 1.0 + length);
        let idle = random.within(40.0, 80.0);
        let busy = random.within(200.0, 700.0);
        let iteration = random.within(0.2, 8.0);
        let duty = random.within(0.5, 0.95);
        let rest = random.within(80.0, 250.0);
        let efficiency = random.within(0.88, 0.95);
        let count = ((end + LEAD + 4.0) / MILLI) as usize;
        let mut wander = 0.0;
        let mut gpus = Vec::with_capacity(count);
        let mut total = Vec::with_capacity(count);
        for index in 0..count {
            let time = index as f64 * MILLI;
            let is_busy = time >= begin && time < end;
            let phase = ((time - begin) / iteration).rem_euclid(1.0);
            let gpu = match is_busy {
                true if phase < duty => busy,
                true => idle + 0.3 * (busy - idle),
                false => idle,
            };
            wander = 0.999 * wander + 0.05 * random.normal();
            let others = rest + if is_busy { 25.0 } else { 0.0 } + 3.0 * wander;
            gpus.push(gpu);
            total.push((gpu + others) / efficiency);
        }
        Self {
            gpus,
            total,
            begin,
            end,
        }
    }

    fn truth(&self) -> f64 {
        let index = |time: f64| (time / MILLI).round() as usize;
        self.total[index(self.begin)..index(self.end)]
            .iter()
            .sum::<f64>()
            * MILLI
    }

    /// The GPUs' power every 20 ms, with noise.
    pub fn fast(&self, random: &mut Random) -> FastPower {
        let curve = self.gpus.iter().enumerate().step_by(20);
        let curve = curve.map(|(index, power)| {
            (
                at(index as f64 * MILLI),
                power * (1.0 + 0.005 * random.normal()),
            )
        });
        FastPower::from_curves(&[curve.collect()]).unwrap()
    }
}

pub(super) fn at(seconds: f64) -> Moment {
    Moment::from_nanos((seconds * 1e9) as u64 + 1_000_000_000_000)
}

/// How a simulated meter behaves; `known` is what the reader may know.
pub(super) struct Model {
    pub period: f64,
    pub window: f64,
    pub delay: f64,
    pub gain: f64,
    pub poll: f64,
    pub counter: Option<f64>,
    pub known: MeterProperties,
}

pub(super) fn wt310(random: &mut Random) -> Model {
    Model {
        period: 0.1,
        window: 0.1,
        delay: random.within(0.0, 0.02),
        gain: 1.0 + 0.001 * random.within(-1.0, 1.0),
        poll: 0.0,
        counter: Some(0.036),
        known: properties(0.1, Some(0.1), 0.05, 0.01, 0.002),
    }
}

pub(super) fn plug(random: &mut Random) -> Model {
    Model {
        period: 1.0,
        window: random.within(0.3, 1.0),
        delay: random.within(0.05, 1.5),
        gain: 1.0 + 0.005 * random.within(-1.0, 1.0),
        poll: 0.25,
        counter: None,
        known: properties(1.0, None, 2.0, 0.1, 0.01),
    }
}

fn properties(
    period: f64,
    window: Option<f64>,
    max_delay: f64,
    resolution: f64,
    accuracy: f64,
) -> MeterProperties {
    MeterProperties {
        period: Seconds::new(period),
        window: window.map(Seconds::new),
        max_delay: Seconds::new(max_delay),
        resolution: Watts::new(resolution),
        energy_resolution: None,
        accuracy: Ratio::new(accuracy),
        accuracy_offset: Watts::ZERO,
    }
}

/// Reads a simulated meter on a node.
pub(super) fn read(node: &Node, model: &Model, random: &mut Random) -> MeterTrace {
    let mut sums = vec![0.0; node.total.len() + 1];
    for (index, power) in node.total.iter().enumerate() {
        sums[index + 1] = sums[index] + power * MILLI;
    }
    let until = |time: f64| sums[((time / MILLI).round().max(0.0) as usize).min(sums.len() - 1)];
    let phase = random.next() * model.period;
    let step = model.known.resolution.get();
    let end = node.total.len() as f64 * MILLI;
    // What the meter shows from each update on.
    let mut updates: Vec<(f64, f64, Option<f64>)> = Vec::new();
    let mut time = phase + model.period;
    while time + model.delay < end {
        let power = model.gain * (until(time) - until(time - model.window)) / model.window;
        let energy = model
            .counter
            .map(|step| (model.gain * until(time) / step).floor() * step);
        updates.push((time + model.delay, (power / step).round() * step, energy));
        time += model.period;
    }
    let reading = |after: f64, now: f64, shown: &(f64, f64, Option<f64>)| MeterReading {
        after: at(after),
        at: at(now),
        power: Some(Watts::new(shown.1)),
        energy: shown.2.map(Joules::new),
    };
    let mut readings = Vec::new();
    if model.poll == 0.0 {
        readings.extend(
            updates
                .iter()
                .map(|shown| reading(shown.0, shown.0 + 0.003, shown)),
        );
    } else {
        let (mut now, mut before) = (updates[0].0 + 0.01, updates[0].0);
        while now < end {
            let shown = updates.partition_point(|update| update.0 <= now) - 1;
            readings.push(reading(before, now, &updates[shown]));
            before = now;
            now += model.poll * random.within(1.0, 1.1);
        }
    }
    MeterTrace {
        name: "meter".to_owned(),
        properties: model.known,
        readings,
        gaps: Vec::new(),
    }
}

/// The relative errors of the energies of many jobs, and the share of intervals that hold the truth.
fn errors(
    seeds: u64,
    length: f64,
    model: fn(&mut Random) -> Model,
    with_gpus: bool,
) -> (Vec<f64>, f64) {
    let mut held = 0;
    let errors: Vec<f64> = (0..seeds)
        .map(|seed| {
            let mut random = Random(seed * 977 + 13);
            let node = Node::new(&mut random, length);
            let model = model(&mut random);
            let trace = read(&node, &model, &mut random);
            let fast = with_gpus.then(|| node.fast(&mut random));
            let span = Span::new(at(node.begin), at(node.end));
            let energy = meter_energy(&trace, fast.as_ref(), &span).unwrap();
            let truth = node.truth();
            held +=
                u64::from(energy.interval95.0.get() <= truth && truth <= energy.interval95.1.get());
            energy.value.get() / truth - 1.0
        })
        .collect();
    (errors, held as f64 / seeds as f64)
}

fn worst(errors: &[f64]) -> f64 {
    errors
        .iter()
        .fold(0.0, |worst: f64, error| worst.max(error.abs()))
}

#[test]
fn a_wall_meter_is_within_two_per_mille() {
    // In five seconds, the 20 ms between two readings of a GPU count more than that.
    for (length, limit) in [(5.0, 0.003), (20.0, 0.002), (60.0, 0.002)] {
        let (errors, held) = errors(60, length, wt310, true);
        let worst = worst(&errors);
        println!(
            "wt310, {length} s: worst {:.3} %, held {held:.2}",
            100.0 * worst
        );
        assert!(worst < limit, "{length} s: {worst}");
        assert!(held >= 0.9, "{length} s: {held}");
    }
}

#[test]
fn a_plug_is_within_one_percent_from_a_minute() {
    let whole = |random: &mut Random| Model {
        window: 1.0,
        ..plug(random)
    };
    for length in [60.0, 120.0] {
        let (errors, held) = errors(100, length, whole, true);
        let worst = worst(&errors);
        println!(
            "plug, {length} s: worst {:.3} %, held {held:.2}",
            100.0 * worst
        );
        assert!(worst < 0.01, "{worst}");
        assert!(held >= 0.9, "{held}");
    }
}

/// A plug that measures only a part of each second cannot tell a load that repeats in the rhythm of its updates.
#[test]
fn a_plug_that_skips_a_part_of_each_second_has_an_interval_that_holds() {
    for length in [15.0, 60.0] {
        let (errors, held) = errors(100, length, plug, true);
        let near = errors.iter().filter(|error| error.abs() < 0.01).count();
        println!(
            "plug with gaps, {length} s: worst {:.3} %, {near} % within 1 %, held {held:.2}",
            100.0 * worst(&errors)
        );
        assert!(length < 60.0 || near >= 97, "{near}");
        assert!(held >= 0.9, "{held}");
    }
}

#[test]
fn without_fast_sensors_the_interval_is_wide_and_holds() {
    let (errors, held) = errors(100, 30.0, plug, false);
    println!(
        "plug without GPUs, 30 s: worst {:.3} %, held {held:.2}",
        100.0 * worst(&errors)
    );
    assert!(held >= 0.9, "{held}");
}

#[test]
fn the_delay_is_found() {
    for seed in 0..20 {
        let mut random = Random(seed + 5);
        let node = Node::new(&mut random, 40.0);
        let model = Model {
            window: 1.0,
            ..plug(&mut random)
        };
        let trace = read(&node, &model, &mut random);
        let fast = node.fast(&mut random);
        let energy = meter_energy(
            &trace,
            Some(&fast),
            &Span::new(at(node.begin), at(node.end)),
        )
        .unwrap();
        let found = energy.alignment.unwrap();
        // The middle of the averaging time is what a step of the load shows; delay and window may replace each other.
        let middle = found.delay.get() + 0.5 * found.window.get();
        let truth = model.delay + 0.5 * model.window;
        assert!((middle - truth).abs() < 0.15, "{middle} for {truth}");
        assert!(found.correlation > 0.9);
    }
}

#[test]
fn counters_that_jump_are_not_used_and_gaps_are_named() {
    let mut random = Random(3);
    let node = Node::new(&mut random, 20.0);
    let model = wt310(&mut random);
    let mut trace = read(&node, &model, &mut random);
    let span = Span::new(at(node.begin), at(node.end));
    let fast = node.fast(&mut random);
    let good = meter_energy(&trace, Some(&fast), &span).unwrap();
    assert!(good.check.is_some());
    for reading in trace.readings.iter_mut().skip(150) {
        reading.energy = reading.energy.map(|energy| energy + Joules::new(1e6));
    }
    let jumped = meter_energy(&trace, Some(&fast), &span).unwrap();
    assert_eq!(jumped.method, MeterMethod::Samples);
    assert!(jumped.notes[0].contains("jumped"), "{:?}", jumped.notes);
    assert!(((jumped.value / good.value).get() - 1.0).abs() < 0.002);
    let (from, to) = (trace.readings[120].at, trace.readings[140].at);
    trace.readings.drain(121..140);
    trace.gaps.push(MeterGap {
        from,
        to,
        reason: "it did not answer in time".to_owned(),
    });
    let gap = meter_energy(&trace, Some(&fast), &span).unwrap();
    assert_eq!(gap.gaps.len(), 1);
    assert!(((gap.value / good.value).get() - 1.0).abs() < 0.02);
    assert!(gap.interval95.1 - gap.interval95.0 > jumped.interval95.1 - jumped.interval95.0);
    trace.readings.clear();
    let none = meter_energy(&trace, None, &span).unwrap_err().to_string();
    assert!(
        none.ends_with("were to be measured: it did not answer in time"),
        "{none}"
    );
}

#[test]
fn resolutions_are_seen() {
    let step = |values: &[f64]| samples::decimal_step(values.iter().copied());
    assert_eq!(step(&[12.3, 4.0]), Some(0.1));
    assert_eq!(step(&[120.0, 340.0]), Some(10.0));
    assert_eq!(step(&[]), None);
    assert_eq!(step(&[6.0, 0.5]), Some(0.1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The energies of parts add up to the energy of the whole, and grow with the power.
    #[test]
    fn energy_is_additive_and_scales(watts in proptest::collection::vec(1.0..900.0f64, 20..60), cut in 5.0..12.0f64, scale in 0.5..3.0f64) {
        let trace = |scale: f64| MeterTrace {
            name: "m".to_owned(),
            properties: properties(1.0, Some(1.0), 0.0, 0.1, 0.0),
            readings: watts.iter().enumerate().map(|(second, watts)| MeterReading {
                after: at(second as f64), at: at(second as f64), power: Some(Watts::new(scale * watts)), energy: None,
            }).collect(),
            gaps: Vec::new(),
        };
        let energy = |trace: &MeterTrace, from: f64, to: f64| meter_energy(trace, None, &Span::new(at(from), at(to))).unwrap().value.get();
        let one = trace(1.0);
        let whole = energy(&one, 2.0, 15.0);
        prop_assert!((energy(&one, 2.0, cut) + energy(&one, cut, 15.0) - whole).abs() < 1e-6 * whole);
        prop_assert!((energy(&trace(scale), 2.0, 15.0) - scale * whole).abs() < 1e-6 * whole);
    }

    /// No readings are a fault, whatever they are.
    #[test]
    fn any_readings_give_an_answer(values in proptest::collection::vec((0.0..30.0f64, proptest::option::of(-10.0..1e4f64), proptest::option::of(0.0..1e6f64)), 0..40)) {
        let mut readings: Vec<MeterReading> = values.iter().map(|(time, power, energy)| MeterReading {
            after: at(*time), at: at(*time), power: power.map(Watts::new), energy: energy.map(Joules::new),
        }).collect();
        readings.sort_by_key(|reading| reading.at);
        let trace = MeterTrace { name: "m".to_owned(), properties: properties(1.0, None, 2.0, 0.1, 0.01), readings, gaps: Vec::new() };
        if let Ok(energy) = meter_energy(&trace, None, &Span::new(at(5.0), at(20.0))) {
            prop_assert!(energy.value.get().is_finite() && energy.interval95.0 <= energy.interval95.1);
        }
    }
}
