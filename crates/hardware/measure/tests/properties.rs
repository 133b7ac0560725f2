//! Properties that hold for any readings.

use proptest::prelude::*;
use sweetspot_device::Moment;
use sweetspot_measure::MethodChoice;
use sweetspot_measure::math::{
    CounterChange, CounterReading, CounterSteps, EnergyEstimator, GapReason, Integral, PhaseSpan,
    PolledPower, PowerSample, Response, Span, Timeline, Trace, find_holes, update_period,
};
use sweetspot_quantity::{Joules, Seconds, Watts};

const MS: u64 = 1_000_000;

fn at(milliseconds: f64) -> Moment {
    Moment::from_nanos(((1_000.0 + milliseconds) * MS as f64) as u64)
}

fn span(begin: f64, end: f64) -> Span {
    Span::new(at(begin), at(end))
}

const NO_LAG: Response = Response {
    time_constant: Seconds::ZERO,
    delay: Seconds::ZERO,
};
const NO_HOLE: Seconds = Seconds::new(10.0);

/// Samples at irregular times, in milliseconds.
fn samples() -> impl Strategy<Value = Vec<PowerSample>> {
    proptest::collection::vec((1.0..60.0f64, 20.0..700.0f64), 2..80).prop_map(|steps| {
        let mut now = 0.0;
        let sample = |(step, watts): (f64, f64)| {
            now += step;
            PowerSample {
                at: at(now),
                power: Watts::new(watts),
            }
        };
        steps.into_iter().map(sample).collect()
    })
}

proptest! {
    #[test]
    fn an_integral_is_the_sum_of_its_parts(samples in samples(), cut in 0.0..1.0f64, constant in 0.0..0.03f64) {
        let whole = Span::new(samples[0].at, samples[samples.len() - 1].at);
        let middle = whole.begin + whole.length() * cut;
        let response = Response { time_constant: Seconds::new(constant), ..NO_LAG };
        let of = |span: &Span| Integral::of(&samples, &response, span, NO_HOLE);
        let (all, left, right) = (
            of(&whole),
            of(&Span::new(whole.begin, middle)),
            of(&Span::new(middle, whole.end)),
        );
        // Moments are rounded to nanoseconds.
        prop_assert!((all.energy - left.energy - right.energy).abs().get() < 1e-5);
        prop_assert!((all.covered - whole.length()).abs().get() < 1e-9);
    }

    #[test]
    fn an_integral_lies_between_the_extremes(samples in samples()) {
        let whole = Span::new(samples[0].at, samples[samples.len() - 1].at);
        let energy = Integral::of(&samples, &NO_LAG, &whole, NO_HOLE).energy;
        let powers = samples.iter().map(|sample| sample.power);
        let low = powers.clone().fold(Watts::new(1e9), Watts::min) * whole.length();
        let high = powers.fold(Watts::ZERO, Watts::max) * whole.length();
        prop_assert!(low.get() <= energy.get() + 1e-9 && energy.get() <= high.get() + 1e-9);
    }

    #[test]
    fn holes_and_covered_parts_make_the_whole(samples in samples(), hole in 5.0..50.0f64) {
        let whole = Span::new(samples[0].at, samples[samples.len() - 1].at);
        let hole = Seconds::new(hole * 1e-3);
        let covered = Integral::of(&samples, &NO_LAG, &whole, hole).covered;
        let silent: Seconds = find_holes(&samples, &whole, hole).iter().map(Span::length).sum();
        prop_assert!((covered + silent - whole.length()).abs().get() < 1e-9);
    }

    #[test]
    fn counter_wraps_are_undone(steps in proptest::collection::vec(1u32..40_000, 4..60), modulus in 50_000u32..200_000) {
        // Millijoules, every 100 ms.
        let modulus_joules = Joules::new(f64::from(modulus) / 1e3);
        let mut shown = 0u64;
        let mut truth = 0.0;
        let mut readings = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            if index > 0 {
                shown = (shown + u64::from(*step)) % u64::from(modulus);
                truth += f64::from(*step) / 1e3;
            }
            let begin = 100.0 * index as f64 + 3.0;
            readings.push(CounterReading {
                call: span(begin, begin + 3.0),
                value: Joules::new(shown as f64 / 1e3),
            });
        }
        let steps = CounterSteps::from_readings(&readings, Seconds::new(0.1), Some(modulus_joules));
        let last = steps.steps.last().unwrap();
        prop_assert_eq!(last.run, 0);
        prop_assert!((last.energy.get() - truth).abs() < 1e-6, "{} {truth}", last.energy);
        prop_assert!(steps.steps.windows(2).all(|pair| pair[1].energy >= pair[0].energy));
        prop_assert!(steps.steps.windows(2).all(|pair| pair[1].at() > pair[0].at()));
    }

    #[test]
    fn one_wrong_reading_of_a_counter_changes_no_energy(
        steps in proptest::collection::vec(1u32..70_000, 6..60),
        place in 0.0..1.0f64,
        wrong_by in prop_oneof![-3e4..-2e3f64, 2e3..2e6f64],
    ) {
        // Millijoules, every 100 ms, on a counter that has been counting for long.
        let mut shown = 40_000_000u64;
        let mut readings = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            shown += u64::from(*step);
            let begin = 100.0 * index as f64 + 3.0;
            readings.push(CounterReading {
                call: span(begin, begin + 3.0),
                value: Joules::new(shown as f64 / 1e3),
            });
        }
        let find = |readings: &[CounterReading]| CounterSteps::from_readings(readings, Seconds::new(0.1), None);
        let right = find(&readings);
        // The first and the last reading have no neighbours that could contradict them.
        let index = 1 + (place * (readings.len() - 2) as f64) as usize;
        readings[index].value += Joules::new(wrong_by);
        let wrong = find(&readings);
        let total = |found: &CounterSteps| (found.steps.last().unwrap().energy - found.steps[0].energy).get();
        prop_assert!((total(&wrong) - total(&right)).abs() < 1e-6);
        prop_assert_eq!(wrong.steps.last().unwrap().run, 0);
        prop_assert_eq!(wrong.gaps.len(), 1);
        prop_assert_eq!(wrong.gaps[0].reason, GapReason::Implausible);
    }

    #[test]
    fn a_counter_change_is_never_negative(before in 0.0..1e6f64, after in 0.0..1e6f64, modulus in proptest::option::of(1e3..2e6f64), most in 0.0..1e6f64) {
        let (before, after) = (Joules::new(before), Joules::new(after));
        match CounterChange::between(before, after, modulus.map(Joules::new), Joules::new(most)) {
            CounterChange::Same => prop_assert_eq!(before, after),
            CounterChange::Grew(by) => prop_assert!(by > Joules::ZERO && after > before),
            CounterChange::Wrapped(by) => prop_assert!(by >= Joules::ZERO && by.get() <= most && modulus.is_some()),
            CounterChange::Reset => prop_assert!(after < before || (after - before).get() > most),
        }
    }

    #[test]
    fn a_timeline_covers_its_window_once(spans in proptest::collection::vec((0usize..4, -50.0..900.0f64, -20.0..400.0f64), 0..40)) {
        let spans: Vec<PhaseSpan> = spans
            .into_iter()
            .map(|(name, begin, length)| PhaseSpan {
                name: format!("phase {name}"),
                span: span(begin, begin + length),
            })
            .collect();
        let window = span(0.0, 700.0);
        let timeline = Timeline::new(&spans.iter().cloned().collect(), &window);
        let mut now = window.begin;
        for (piece, phase) in &timeline.pieces {
            prop_assert_eq!(piece.begin, now);
            prop_assert!(piece.end > piece.begin);
            now = piece.end;
            let is_under_way = |other: &&PhaseSpan| {
                other.span.begin <= piece.begin && piece.begin < other.span.end
            };
            match timeline.names.get(*phase) {
                Some(name) => prop_assert!(spans.iter().filter(is_under_way).any(|other| other.name == *name)),
                None => prop_assert_eq!(spans.iter().filter(is_under_way).count(), 0),
            }
        }
        prop_assert_eq!(now, window.end);
    }

    #[test]
    fn a_period_is_learnt_from_late_reads(period in 15.0..250.0f64, late in proptest::collection::vec(0.0..0.2f64, 12..60), skipped in proptest::collection::vec(0.0..1.0f64, 60)) {
        let changes: Vec<Span> = late
            .iter()
            .enumerate()
            .filter(|(index, _)| skipped[*index] < 0.8)
            .map(|(index, late)| {
                let seen = period * (index as f64 + late);
                span(seen - 2.0, seen)
            })
            .collect();
        prop_assume!(changes.len() > 6);
        if let Some(found) = update_period(&changes) {
            let ratio = found.get() * 1e3 / period;
            // If every other value was skipped by chance, a multiple may be found, but never a fraction.
            prop_assert!((ratio / ratio.round() - 1.0).abs() < 0.15 && ratio > 0.85, "{ratio}");
        }
    }

    #[test]
    fn any_trace_gives_a_finite_interval(samples in samples(), begin in -200.0..2_000.0f64, length in 1.0..3_000.0f64) {
        let trace = Trace { buffer: samples, ..Trace::default() };
        let window = span(begin, begin + length);
        if let Ok(energy) = EnergyEstimator::new(&trace).energy(&window, MethodChoice::Auto) {
            let (low, high) = energy.interval95;
            prop_assert!(energy.value.is_finite() && low.is_finite() && high.is_finite());
            prop_assert!(Joules::ZERO <= low && low <= energy.value && energy.value <= high);
            prop_assert!(energy.covered.begin >= window.begin && energy.covered.end <= window.end);
        }
    }
}

#[test]
fn a_counter_reset_leaves_a_gap() {
    let reading = |index: u32, joules: f64| CounterReading {
        call: span(
            100.0 * f64::from(index) + 3.0,
            100.0 * f64::from(index) + 6.0,
        ),
        value: Joules::new(joules),
    };
    let readings: Vec<CounterReading> = (0..10)
        .map(|index| reading(index, 900.0 + 20.0 * f64::from(index)))
        .chain((10..20).map(|index| reading(index, 20.0 * f64::from(index - 10))))
        .collect();
    let steps = CounterSteps::from_readings(&readings, Seconds::new(0.1), None);
    assert_eq!(steps.gaps.len(), 1);
    assert_eq!(steps.gaps[0].reason, GapReason::Reset);
    assert_eq!(steps.steps.last().unwrap().run, 1);
    let trace = Trace {
        counter: readings,
        ..Trace::default()
    };
    let window = span(150.0, 1_750.0);
    let energy = EnergyEstimator::new(&trace)
        .energy(&window, MethodChoice::Counter)
        .unwrap();
    assert_eq!(energy.missing.len(), 1, "{energy:?}");
    assert!((energy.value.get() / 320.0 - 1.0).abs() < 0.1, "{energy:?}");
    assert!(energy.interval95.0.get() < 320.0 && energy.interval95.1.get() > 320.0);
}

/// The sensors stood still before the window: the last step of the counter and the last samples are long ago.
#[test]
fn a_window_long_after_the_last_samples_has_no_energy_of_the_buffer() {
    let sample = |number: u32| PowerSample {
        at: at(100.0 + 20.0 * f64::from(number)),
        power: Watts::new(100.0),
    };
    let value = |number: u32| PolledPower {
        appeared: span(
            9_000.0 + 40.0 * f64::from(number),
            9_020.0 + 40.0 * f64::from(number),
        ),
        power: Watts::new(100.0 + f64::from(number)),
    };
    let mut trace = Trace {
        counter: vec![CounterReading {
            call: span(50.0, 53.0),
            value: Joules::new(5.0),
        }],
        buffer: (0..40).map(sample).collect(),
        instant: (0..60).map(value).collect(),
        ..Trace::default()
    };
    trace.model.instant.window = Seconds::new(0.02);
    trace.model.instant.period = Seconds::new(0.04);
    let estimator = EnergyEstimator::new(&trace);
    for choice in [
        MethodChoice::Auto,
        MethodChoice::Buffer,
        MethodChoice::Counter,
    ] {
        if let Ok(energy) = estimator.energy(&span(9_000.0, 11_000.0), choice) {
            assert!((energy.power().get() - 130.0).abs() < 40.0, "{energy:?}");
        }
    }
}

#[test]
fn empty_windows_and_empty_traces_are_errors() {
    let trace = Trace::default();
    let estimator = EnergyEstimator::new(&trace);
    let error = estimator
        .energy(&span(5.0, 5.0), MethodChoice::Auto)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the measurement window has a length of 0.000 s: it must end after it begins"
    );
    for choice in ["auto", "counter", "buffer", "poll:2ms"] {
        assert!(
            estimator
                .energy(&span(0.0, 500.0), choice.parse().unwrap())
                .is_err()
        );
    }
}

#[test]
fn methods_are_parsed_and_printed() {
    for text in ["auto", "counter", "buffer", "poll:2ms", "poll:500ms"] {
        assert_eq!(text.parse::<MethodChoice>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "poll",
        "poll:",
        "poll:0s",
        "poll:10min",
        "Auto",
        "poll:5W",
    ] {
        let error = text.parse::<MethodChoice>().unwrap_err().to_string();
        assert!(error.contains("poll:500ms"), "{error}");
    }
}
