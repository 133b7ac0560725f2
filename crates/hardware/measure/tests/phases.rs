//! Energy per phase on a simulated Hopper GPU, against the simulated energy of each phase.

mod simulated_gpu;

use simulated_gpu::{COUNTER_AND_BUFFER, LoadStep, Sensors, SimulatedGpu};
use sweetspot_measure::MethodChoice;
use sweetspot_measure::math::{Attribution, AttributionError, EnergyEstimator, PhaseSpan, Span};
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
    (estimator.phases(&spans, &window), gpu)
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
