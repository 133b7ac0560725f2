//! Readings of a real H200 (`data/measured_h200/README.md`) through the same code.

use std::path::Path;

use serde_json::Value;
use sweetspot_device::Moment;
use sweetspot_measure::MethodChoice;
use sweetspot_measure::math::{
    CounterReading, EnergyEstimator, PhaseSpan, PowerSample, Response, Span, Trace,
};
use sweetspot_quantity::{Joules, Seconds, Watts};

fn read_json(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/measured_h200");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn rows(value: &Value, key: &str) -> Vec<Vec<Value>> {
    let rows = value[key].as_array().unwrap();
    rows.iter()
        .map(|row| row.as_array().unwrap().clone())
        .collect()
}

fn micros(value: &Value) -> Moment {
    Moment::from_nanos(value.as_u64().unwrap() * 1000)
}

fn samples(value: &Value) -> Vec<PowerSample> {
    rows(value, "samples")
        .iter()
        .map(|row| PowerSample {
            at: micros(&row[0]),
            power: Watts::new(row[1].as_f64().unwrap() / 1e3),
        })
        .collect()
}

/// A trace with the H200's response, whose samples are some milliseconds late.
fn trace(buffer: Vec<PowerSample>, counter: Vec<CounterReading>) -> Trace {
    let mut trace = Trace {
        buffer,
        counter,
        ..Trace::default()
    };
    trace.model.response = Response {
        time_constant: Seconds::new(0.015),
        delay: Seconds::new(0.004),
    };
    trace
}

/// The file has the moment at which a read returned a new value; a read takes about 3 ms.
fn read_square_wave(name: &str) -> Trace {
    let value = read_json(name);
    let edges = rows(&value, "edges");
    let counter = edges
        .iter()
        .map(|row| {
            let end = Moment::from_nanos(row[0].as_u64().unwrap());
            CounterReading {
                call: Span::new(end + Seconds::new(-0.006), end),
                value: Joules::new(row[1].as_f64().unwrap() / 1e3),
            }
        })
        .collect();
    trace(samples(&value), counter)
}

/// The file has the reads that showed a new value; the read before each, which the file leaves out, showed
/// the old one.
fn read_phases_mixed(part: &Value) -> Trace {
    let mut counter: Vec<CounterReading> = Vec::new();
    for row in rows(part, "edges") {
        let (begin, end) = (micros(&row[0]), micros(&row[1]));
        if let Some(last) = counter.last().copied() {
            counter.push(CounterReading {
                call: Span::new(begin + Seconds::new(-0.006), begin),
                ..last
            });
        }
        counter.push(CounterReading {
            call: Span::new(begin, end),
            value: Joules::new(row[2].as_f64().unwrap() / 1e3),
        });
    }
    trace(samples(part), counter)
}

#[test]
fn the_buffer_agrees_with_the_counter_on_square_waves() {
    for name in [
        "square_wave_100ms.json",
        "square_wave_200ms.json",
        "square_wave_2000ms.json",
    ] {
        let trace = read_square_wave(name);
        let estimator = EnergyEstimator::new(&trace);
        let steps = &estimator.steps().steps;
        let (first, last) = (&steps[1], &steps[steps.len() - 2]);
        let window = Span::new(first.at(), last.at());
        let counted = last.energy - first.energy;
        let mut without_counter = trace.clone();
        without_counter.counter.clear();
        let without_counter = EnergyEstimator::new(&without_counter);
        let by_buffer = without_counter
            .energy(&window, MethodChoice::Buffer)
            .unwrap();
        let off = by_buffer.value / counted;
        println!(
            "{name}: counter {} in {}, buffer {:.1} J ({:.1?}), {:+.2} %",
            counted,
            window.length(),
            by_buffer.value.get(),
            by_buffer.interval95,
            100.0 * (off.get() - 1.0)
        );
        assert!((off.get() - 1.0).abs() < 0.015, "{name}: {off}");
        let (low, high) = by_buffer.interval95;
        assert!(low <= counted && counted <= high, "{name}");
        let auto = estimator.measure(&window, MethodChoice::Auto).unwrap();
        let off = auto.energy.value / counted;
        assert!((off.get() - 1.0).abs() < 0.003, "{name}: {off}");
        assert_eq!(auto.warnings().count(), 0, "{name}: {:?}", auto.checks);
    }
}

#[test]
fn intervals_of_short_windows_cover_the_counter() {
    let value = read_json("phases_mixed.json");
    let trace = read_phases_mixed(&value["jitter"]);
    let estimator = EnergyEstimator::new(&trace);
    let steps = estimator.steps().steps.clone();
    let mut without_counter = trace.clone();
    without_counter.counter.clear();
    let without_counter = EnergyEstimator::new(&without_counter);
    for (step_count, most) in [(5, 0.03), (10, 0.022), (50, 0.012), (100, 0.01)] {
        let (mut within, mut count, mut squares) = (0.0, 0.0, 0.0);
        for begin in (5..steps.len() - step_count - 5).step_by(step_count.min(10)) {
            let (first, last) = (&steps[begin], &steps[begin + step_count]);
            let truth = (last.energy - first.energy).get();
            let window = Span::new(first.at(), last.at());
            let energy = without_counter.energy(&window, MethodChoice::Auto).unwrap();
            let (low, high) = energy.interval95;
            within += f64::from(low.get() <= truth && truth <= high.get());
            squares += (energy.value.get() / truth - 1.0).powi(2);
            count += 1.0;
        }
        let rms = (squares / count).sqrt();
        println!(
            "{step_count} steps: rms {:.2} %, {} of {count} within",
            100.0 * rms,
            within
        );
        assert!(rms < most, "{step_count} steps: {rms}");
        assert!(
            within >= 0.9 * count,
            "{step_count} steps: {within} of {count}"
        );
    }
}

#[test]
fn phases_of_milliseconds_are_separated() {
    let value = read_json("phases_mixed.json");
    let alone = |kind: &str| {
        let part = &value[format!("alone_{kind}")];
        let trace = read_phases_mixed(part);
        let marks = rows(part, "marks");
        // In the first second the clock settles.
        let begin = micros(&marks[0][1]) + Seconds::new(1.0);
        let window = Span::new(begin, micros(&marks[marks.len() - 1][2]));
        let energy = EnergyEstimator::new(&trace).energy(&window, MethodChoice::Auto);
        energy.unwrap().power().get()
    };
    let part = &value["jitter"];
    let trace = read_phases_mixed(part);
    let spans: Vec<PhaseSpan> = rows(part, "marks")
        .iter()
        .map(|row| PhaseSpan {
            name: row[0].as_str().unwrap().to_owned(),
            span: Span::new(micros(&row[1]), micros(&row[2])),
        })
        .collect();
    let window = Span::new(spans[0].span.begin, spans[spans.len() - 1].span.end);
    let found = EnergyEstimator::new(&trace)
        .phases(&spans.into_iter().collect(), &window)
        .unwrap();
    println!("{:?}, residual {}", found.response, found.residual);
    for phase in found.phases.iter().chain([&found.other]) {
        let (low, high) = phase.power_interval95;
        println!(
            "{:>8} {} times, {:.3} s: {:.0} W ({:.0} to {:.0})",
            phase.name,
            phase.count,
            phase.time.get(),
            phase.power.get(),
            low.get(),
            high.get(),
        );
    }
    let phase = |name: &str| {
        found
            .phases
            .iter()
            .find(|phase| phase.name == name)
            .unwrap()
    };
    // The cap does not limit the copy, so it draws the same power as alone.
    let copy = alone("copy");
    assert!((copy - 577.0).abs() < 2.0, "{copy}");
    assert!((phase("copy").power.get() / copy - 1.0).abs() < 0.05);
    let (low, high) = phase("copy").power_interval95;
    assert!(low.get() < copy && copy < high.get());
    // The shortest phase has a wide interval.
    let wait = phase("wait");
    let half = 0.5 * (wait.power_interval95.1 - wait.power_interval95.0).get();
    assert!(half > 0.5 * wait.power.get(), "{wait:?}");
    let sum: f64 = found
        .phases
        .iter()
        .chain([&found.other])
        .map(|phase| phase.energy.get())
        .sum();
    assert!((sum / found.total.value.get() - 1.0).abs() < 1e-9);
    let response = found.response.unwrap();
    assert!(
        (0.010..0.022).contains(&response.time_constant.get()),
        "{response:?}"
    );
    assert!(
        (0.002..0.007).contains(&response.delay.get()),
        "{response:?}"
    );
}
