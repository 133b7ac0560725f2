//! Energy per phase on a simulated Hopper GPU, against the simulated energy of each phase.

mod simulated_gpu;

use simulated_gpu::{COUNTER_AND_BUFFER, LoadStep, Sensors, SimulatedGpu};
use sweetspot_device::Moment;
use sweetspot_measure::MethodChoice;
use sweetspot_measure::math::{
    Attribution, AttributionError, EnergyEstimator, PhaseRecord, PhaseSpan, Span, Timeline,
};
use sweetspot_sim::Generation;
use sweetspot_stats::Seed;

/// Phases in turn: name, seconds, switching; each varies by `jitter` (standard deviation).
fn iterations(
    phases: &'static [LoadStep],
    jitter: f64,
    seed: Seed,
) -> Box<dyn FnMut() -> LoadStep> {
    let mut step = 0;
    Box::new(move || {
        let (name, length, switching) = phases[step as usize % phases.len()];
        step += 1;
        let factor = (1.0 + jitter * seed.number(step).normal()).clamp(0.4, 1.8);
        (name, length * factor, switching)
    })
}

fn attribute(
    phases: &'static [LoadStep],
    jitter: f64,
    seconds: f64,
    sensors: Sensors,
    number: u64,
) -> (Result<Attribution, AttributionError>, SimulatedGpu) {
    let seed = Seed::new(number).label("phases");
    let load = iterations(phases, jitter, seed.label("load"));
    let mut gpu = SimulatedGpu::new(Generation::Hopper, sensors, load, Vec::new(), seed);
    let recording = gpu.record(MethodChoice::Auto, seconds + 2.5, &[1.0, 1.0 + seconds]);
    let spans: Vec<PhaseSpan> = gpu
        .spans
        .iter()
        .filter(|(name, _)| *name != "unmarked")
        .map(|(name, span)| PhaseSpan {
            name: (*name).to_owned(),
            span: *span,
        })
        .collect();
    let window = Span::new(recording.marks[0], recording.marks[1]);
    let estimator = EnergyEstimator::new(&recording.trace);
    (estimator.phases(&spans.into_iter().collect(), &window), gpu)
}

/// The simulated mean power of a phase.
fn truth(gpu: &SimulatedGpu, name: &str) -> f64 {
    let name = if name == "other" { "unmarked" } else { name };
    let row = gpu.energy_by_phase.iter().find(|row| row.0 == name);
    row.map_or(f64::NAN, |row| row.2 / row.1)
}

const TRAINING_60: &[LoadStep] = &[
    ("forward", 0.017, Some(0.7)),
    ("backward", 0.030, Some(0.9)),
    ("update", 0.006, Some(0.25)),
    ("unmarked", 0.007, None),
];
const TRAINING_20: &[LoadStep] = &[
    ("forward", 0.010, Some(0.6)),
    ("backward", 0.010, Some(0.95)),
];
const TRAINING_80: &[LoadStep] = &[
    ("forward", 0.025, Some(0.5)),
    ("backward", 0.045, Some(0.85)),
    ("update", 0.010, Some(0.3)),
];
const TRAINING_35: &[LoadStep] = &[
    ("load", 0.010, None),
    ("forward", 0.010, Some(0.6)),
    ("backward", 0.015, Some(0.9)),
];

#[test]
fn phases_of_ten_milliseconds_are_known_within_three_percent_after_a_minute() {
    let (mut within, mut count) = (0, 0);
    for (phases, jitters) in [
        (TRAINING_20, [0.05, 0.3]),
        (TRAINING_35, [0.02, 0.15]),
        (TRAINING_60, [0.03, 0.15]),
        (TRAINING_80, [0.05, 0.1]),
    ] {
        for jitter in jitters {
            for number in 0..3 {
                let (found, gpu) = attribute(phases, jitter, 60.0, COUNTER_AND_BUFFER, number);
                let found = match found {
                    Ok(found) => found,
                    Err(AttributionError::Inseparable { .. }) => {
                        println!("{phases:?} {jitter}: refused");
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                let sum: f64 = found
                    .phases
                    .iter()
                    .chain([&found.other])
                    .map(|phase| phase.energy.get())
                    .sum();
                assert!((sum / found.total.value.get() - 1.0).abs() < 1e-9);
                for phase in found.phases.iter().chain([&found.other]) {
                    if phase.time.get() < 0.1 {
                        continue;
                    }
                    let truth = truth(&gpu, &phase.name);
                    let off = phase.power.get() / truth - 1.0;
                    let (low, high) = phase.power_interval95;
                    let half = 0.5 * (high - low).get() / truth;
                    println!(
                        "{jitter} {:>9} {:.1} W of {truth:.1}: {:+.2} % +-{:.2} % {:?}",
                        phase.name,
                        phase.power.get(),
                        100.0 * off,
                        100.0 * half,
                        found.response,
                    );
                    count += 1;
                    within += usize::from(low.get() <= truth && truth <= high.get());
                    let is_long = phases.iter().any(|(name, length, _)| {
                        let name = if *name == "unmarked" { "other" } else { name };
                        name == phase.name && *length >= 0.010
                    });
                    assert!(!is_long || off.abs() < 0.03, "{} is {off} off", phase.name);
                }
            }
        }
    }
    println!("{within} of {count} within their interval");
    // Some phases are rejected as inseparable, but most must have a value.
    assert!(count >= 60, "{count} phases");
    assert!(
        within as f64 >= 0.9 * f64::from(count),
        "{within} of {count}"
    );
}

/// Phases of about a millisecond, for so long that most of them are stored as sums.
#[test]
fn the_energy_of_very_many_phases_is_known_in_bounded_memory() {
    const LOAD: &[LoadStep] = &[
        ("forward", 0.0008, Some(0.5)),
        ("backward", 0.0014, Some(0.95)),
        ("unmarked", 0.0003, None),
    ];
    let mut block = 0;
    let mut step = 0;
    let seed = Seed::new(7);
    // The mixture changes from second to second, so that the power of each phase can be found.
    let load = Box::new(move || -> LoadStep {
        let (name, length, switching) = LOAD[step % LOAD.len()];
        step += 1;
        if step % 900 == 0 {
            block += 1;
        }
        let factor = 0.5 + seed.number(block).label(name).uniform();
        (name, length * factor, switching)
    });
    let mut gpu = SimulatedGpu::new(
        Generation::Hopper,
        COUNTER_AND_BUFFER,
        load,
        Vec::new(),
        seed,
    );
    let recording = gpu.record(MethodChoice::Auto, 402.5, &[1.0, 401.0]);
    let window = Span::new(recording.marks[0], recording.marks[1]);
    let marked = || gpu.spans.iter().filter(|(name, _)| *name != "unmarked");
    let record: PhaseRecord = marked()
        .map(|(name, span)| PhaseSpan {
            name: (*name).to_owned(),
            span: *span,
        })
        .collect();
    let timeline = Timeline::new(&record, &window);
    assert!(timeline.pieces.len() < 300_000, "{}", timeline.pieces.len());
    for (name, (count, time)) in timeline
        .names
        .iter()
        .zip(timeline.counts.iter().zip(&timeline.times))
    {
        let of_phase = || marked().filter(|(other, _)| other == name);
        let parts = of_phase().filter_map(|(_, span)| span.overlap(&window));
        let exact: f64 = parts.clone().map(|part| part.length().get()).sum();
        assert!(
            (time / exact - 1.0).abs() < 1e-3,
            "{name}: {time} of {exact}"
        );
        let exact = parts.count();
        assert!(exact > 150_000, "{exact}");
        assert!(count.abs_diff(exact) < exact / 100, "{count} of {exact}");
    }
    let found = EnergyEstimator::new(&recording.trace).phases(&record, &window);
    let found = found.unwrap();
    for phase in &found.phases {
        let truth = truth(&gpu, &phase.name);
        let off = phase.power.get() / truth - 1.0;
        println!(
            "{} {:.1} W of {truth:.1}: {:+.2} %",
            phase.name,
            phase.power.get(),
            100.0 * off
        );
        assert!(off.abs() < 0.05, "{} is {off} off", phase.name);
    }
}

/// A phase that contains all others ends last, when most of those in it are stored as sums.
#[test]
fn a_phase_around_very_many_others_gets_the_rest_of_their_time() {
    let at = |micros: u64| Moment::from_nanos(1_000_000_000 + micros * 1_000);
    let mut record = PhaseRecord::default();
    let count = 400_000;
    for number in 0..count {
        let begin = 100 + number * 50;
        record.add("step", Span::new(at(begin), at(begin + 30)));
    }
    let end = 100 + count * 50;
    record.add("epoch", Span::new(at(50), at(end)));
    record.add("job", Span::new(at(0), at(end + 100)));
    let window = Span::new(at(0), at(end + 100));
    let timeline = Timeline::new(&record, &window);
    assert_eq!(timeline.names, ["job", "epoch", "step"]);
    assert_eq!(timeline.counts, [1, 1, count as usize]);
    let expected = [150e-6, 8.00005, 12.0, 0.0];
    for (time, expected) in timeline.times.iter().zip(expected) {
        assert!((time - expected).abs() < 1e-3, "{:?}", timeline.times);
    }
}
