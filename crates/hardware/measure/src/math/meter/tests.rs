//! Meters of many kinds on loads of many kinds: the energy is near the truth, and its interval holds.

use proptest::prelude::*;
use sweetspot_device::{MeterGap, MeterReading, MeterTrace};
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::simulated::{Model, Node, Random, at, plug, properties, read, wt310};
use super::*;
use crate::math::Span;

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
        none.contains("no readings for the 2")
            && none.contains("s that were to be measured: it did not answer in time"),
        "{none}"
    );
}

/// The program that reads a meter may have to wait for a processor.
#[test]
fn a_late_reading_is_not_a_jump_of_the_counter() {
    let mut random = Random(11);
    let node = Node::new(&mut random, 20.0);
    let model = wt310(&mut random);
    let mut trace = read(&node, &model, &mut random);
    for late in [120, 150, 190] {
        trace.readings[late].at = trace.readings[late].at + Seconds::new(0.085);
    }
    let fast = node.fast(&mut random);
    let span = Span::new(at(node.begin), at(node.end));
    let energy = meter_energy(&trace, Some(&fast), &span).unwrap();
    assert_eq!(energy.notes, Vec::<String>::new());
    assert!((energy.value.get() / node.truth() - 1.0).abs() < 0.002);
    assert!(energy.check.is_some());
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
            model: String::new(),
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
        let trace = MeterTrace { name: "m".to_owned(), model: String::new(), properties: properties(1.0, None, 2.0, 0.1, 0.01), readings, gaps: Vec::new() };
        if let Ok(energy) = meter_energy(&trace, None, &Span::new(at(5.0), at(20.0))) {
            prop_assert!(energy.value.get().is_finite() && energy.interval95.0 <= energy.interval95.1);
        }
    }
}
