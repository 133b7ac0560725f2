//! Calibrations against simulated meters: the interval holds the gain, and what cannot be known is refused.

use sweetspot_device::{MeterGap, MeterTrace};

use super::super::simulated::{Model, Node, Random, at, plug, read, wt310};
use super::*;

/// The watts at the meter for a watt of the sensor, and at none.
const TRUTH: (f64, f64) = (1.031, 7.5);

/// A meter that measures the GPUs alone, and their sensor.
fn device_alone(
    seed: u64,
    length: f64,
    model: fn(&mut Random) -> Model,
) -> (MeterTrace, FastPower, Span) {
    let mut random = Random(seed * 977 + 13);
    let mut node = Node::new(&mut random, length);
    node.total = node
        .gpus
        .iter()
        .map(|power| TRUTH.0 * power + TRUTH.1)
        .collect();
    let model = model(&mut random);
    let trace = read(&node, &model, &mut random);
    let fast = node.fast(&mut random);
    let span = Span::new(at(node.begin - 4.0), at(node.end + 4.0));
    (trace, fast, span)
}

fn fit(
    trace: &MeterTrace,
    device: &FastPower,
    others: Option<&FastPower>,
    span: &Span,
) -> Result<CalibrationFit, CalibrationError> {
    let power = CalibrationPower {
        name: "GPU",
        device,
        others,
    };
    calibrate(trace, &power, span)
}

/// What 100 calibrations came to.
struct Errors {
    /// The median and the largest relative error of the gain.
    median: f64,
    worst: f64,
    /// The shares of the intervals of gain and offset that hold the truth.
    gain_held: f64,
    offset_held: f64,
}

fn errors(length: f64, model: fn(&mut Random) -> Model) -> Errors {
    let holds =
        |(low, high): (f64, f64), truth: f64| f64::from(u8::from(low <= truth && truth <= high));
    let (mut all, mut gain_held, mut offset_held) = (Vec::new(), 0.0, 0.0);
    for seed in 0..100 {
        let (trace, fast, span) = device_alone(seed, length, model);
        let line = fit(&trace, &fast, None, &span).unwrap().line;
        let (low, high) = line.gain_interval95();
        all.push((line.gain.get() / TRUTH.0 - 1.0).abs());
        gain_held += 0.01 * holds((low.get(), high.get()), TRUTH.0);
        let (low, high) = line.offset_interval95();
        offset_held += 0.01 * holds((low.get(), high.get()), TRUTH.1);
    }
    all.sort_by(f64::total_cmp);
    let found = Errors {
        median: all[50],
        worst: all[99],
        gain_held,
        offset_held,
    };
    println!(
        "{length} s: gain off by {:.3} % (median), {:.3} % (worst); intervals hold: gain {gain_held:.2}, offset {offset_held:.2}",
        100.0 * found.median,
        100.0 * found.worst
    );
    found
}

#[test]
fn a_fast_meter_finds_the_gain_within_its_interval() {
    for length in [20.0, 60.0] {
        let found = errors(length, wt310);
        assert!(found.worst < 0.004, "{}", found.worst);
        assert!(found.gain_held >= 0.9 && found.offset_held >= 0.9);
    }
}

/// A load that repeats within seconds leaves the delay of a plug open, so that single gains are off by several per cent: the
/// interval has to say so.
#[test]
fn a_plug_finds_the_gain_within_its_interval() {
    let whole = |random: &mut Random| Model {
        window: 1.0,
        ..plug(random)
    };
    for length in [60.0, 120.0] {
        let found = errors(length, whole);
        assert!(found.median < 0.01, "{}", found.median);
        assert!(found.gain_held >= 0.9 && found.offset_held >= 0.9);
    }
}

/// A second GPU that works at other times adds its power to what the meter shows.
#[test]
fn the_power_of_other_devices_is_taken_off() {
    let mut random = Random(7);
    let mut node = Node::new(&mut random, 60.0);
    let count = node.gpus.len();
    let other: Vec<f64> = (0..count)
        .map(|index| {
            if index as f64 * 0.001 % 17.0 < 6.0 {
                180.0
            } else {
                40.0
            }
        })
        .collect();
    node.total = (0..count)
        .map(|index| TRUTH.0 * node.gpus[index] + 1.1 * other[index] + 90.0)
        .collect();
    let trace = read(&node, &wt310(&mut random), &mut random);
    let fast = node.fast(&mut random);
    node.gpus = other;
    let others = node.fast(&mut random);
    let span = Span::new(at(node.begin - 4.0), at(node.end + 4.0));
    let with = fit(&trace, &fast, Some(&others), &span).unwrap();
    assert!(with.others_changed);
    let (low, high) = with.line.gain_interval95();
    assert!(
        low.get() <= TRUTH.0 && TRUTH.0 <= high.get(),
        "{:?}",
        with.line
    );
    assert!(
        (with.line.gain.get() / TRUTH.0 - 1.0).abs() < 0.01,
        "{:?}",
        with.line
    );
    let without = fit(&trace, &fast, None, &span).unwrap();
    assert!(without.residual.get() > 10.0 * with.residual.get());
}

#[test]
fn a_line_says_how_certain_it_is_inside_and_outside_its_range() {
    let (trace, fast, span) = device_alone(3, 60.0, wt310);
    let line = fit(&trace, &fast, None, &span).unwrap().line;
    let middle = line.at(line.mean).1;
    let far = line.at(line.range.1 * 3.0).1;
    assert!(far > middle * 2.0, "{middle} {far}");
    assert!(!line.is_outside(line.mean));
    assert!(line.is_outside(line.range.1 * 1.1) && line.is_outside(line.range.0 * 0.5));
}

#[test]
fn what_cannot_be_told_is_refused() {
    let (trace, fast, span) = device_alone(3, 60.0, wt310);
    let error =
        |trace: &MeterTrace, span: &Span| fit(trace, &fast, None, span).unwrap_err().to_string();
    let short = Span::new(
        span.begin + Seconds::new(2.0),
        span.begin + Seconds::new(9.0),
    );
    assert!(
        error(&trace, &short).contains("at least 10 s are needed"),
        "{}",
        error(&trace, &short)
    );
    let mut stopped = trace.clone();
    stopped.readings.truncate(stopped.readings.len() / 2);
    stopped.gaps.push(MeterGap {
        from: stopped.readings.last().unwrap().at,
        to: span.end,
        reason: "it refuses the connection".to_owned(),
    });
    assert!(
        error(&stopped, &span).ends_with("it refuses the connection"),
        "{}",
        error(&stopped, &span)
    );
    // The same without a gap: the meter hangs.
    stopped.gaps.clear();
    assert!(
        error(&stopped, &span).contains("gave no readings for"),
        "{}",
        error(&stopped, &span)
    );
    let mut other = trace.clone();
    for (index, reading) in other.readings.iter_mut().enumerate() {
        reading.power = Some(Watts::new(100.0 + (index * 7919 % 200) as f64));
    }
    assert!(
        error(&other, &span).contains("does not follow"),
        "{}",
        error(&other, &span)
    );
    let idle = FastPower::from_curves(&[(0..7000)
        .map(|step| (at(step as f64 * 0.02), 50.0 + (step % 3) as f64))
        .collect()]);
    let idle = fit(&trace, &idle.unwrap(), None, &span)
        .unwrap_err()
        .to_string();
    assert!(idle.contains("only where the power changes"), "{idle}");
}
