//! Sensors that are lost, stuck, wrapped around or reset: the result reports it.

mod simulated_gpu;

use simulated_gpu::{COUNTER_AND_BUFFER, GpuRecording, LoadShape, LoadStep, Sensors, SimulatedGpu};
use sweetspot_device::SensorKind;
use sweetspot_measure::MethodChoice;
use sweetspot_measure::math::{
    AttributionError, Energy, EnergyEstimator, GapReason, Note, PhaseRecord, PhaseSpan, Span,
};
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_sim::{Fault, Generation};
use sweetspot_stats::Seed;

fn record(
    generation: Generation,
    sensors: Sensors,
    faults: Vec<Fault>,
    marks: &[f64],
) -> GpuRecording {
    let seed = Seed::new(11);
    let load = LoadShape::Training(0.06).load_steps(seed);
    let mut gpu = SimulatedGpu::new(generation, sensors, load, faults, seed);
    gpu.record(MethodChoice::Auto, marks[marks.len() - 1] + 1.0, marks)
}

fn window(recording: &GpuRecording) -> (Span, f64) {
    let last = recording.marks.len() - 1;
    (
        Span::new(recording.marks[0], recording.marks[last]),
        recording.true_energies[last] - recording.true_energies[0],
    )
}

fn auto_energy(recording: &GpuRecording, window: &Span) -> Energy {
    let estimator = EnergyEstimator::new(&recording.trace);
    estimator.energy(window, MethodChoice::Auto).unwrap()
}

fn assert_near(energy: &Energy, truth: f64, within: f64) {
    let off = energy.value.get() / truth - 1.0;
    assert!(off.abs() < within, "{} of {truth}", energy.value);
}

#[test]
fn a_lost_device_is_measured_until_its_loss() {
    let faults = vec![Fault::lost(Seconds::new(6.0))];
    let recording = record(Generation::Hopper, COUNTER_AND_BUFFER, faults, &[2.0, 10.0]);
    let window = Span::new(recording.marks[0], recording.marks[1]);
    let energy = auto_energy(&recording, &window);
    let covered = energy.covered.length().get();
    assert!((2.0..4.2).contains(&covered), "{covered}");
    assert!(
        energy
            .notes
            .iter()
            .any(|note| matches!(note, Note::Trimmed { .. })),
        "{energy:?}"
    );
    let lost = recording
        .trace
        .gaps
        .iter()
        .any(|gap| gap.reason == GapReason::Lost);
    assert!(lost, "{:?}", recording.trace.gaps);
    assert!(
        energy.value > Joules::new(300.0),
        "never a silent zero: {energy:?}"
    );
}

#[test]
fn a_stuck_counter_is_reported_and_the_buffer_is_used() {
    let faults = vec![Fault::stuck_sensor(
        SensorKind::EnergyCounter,
        Seconds::new(4.0),
    )];
    let recording = record(
        Generation::Hopper,
        COUNTER_AND_BUFFER,
        faults,
        &[2.0, 5.0, 8.0],
    );
    let (window, truth) = window(&recording);
    let energy = auto_energy(&recording, &window);
    assert_near(&energy, truth, 0.02);
    let (low, high) = energy.interval95;
    assert!(
        low.get() <= truth && truth <= high.get(),
        "{energy:?} {truth}"
    );
    let stuck = energy
        .missing
        .iter()
        .find(|gap| gap.reason == GapReason::Stuck);
    assert!(
        stuck.is_some_and(|gap| gap.sensor == SensorKind::EnergyCounter),
        "{energy:?}"
    );
}

#[test]
fn a_stuck_buffer_is_reported_and_the_counter_is_used() {
    let faults = vec![Fault::stuck_sensor(
        SensorKind::BufferedPower,
        Seconds::new(4.0),
    )];
    let recording = record(Generation::Volta, COUNTER_AND_BUFFER, faults, &[2.0, 8.0]);
    let (window, truth) = window(&recording);
    let energy = auto_energy(&recording, &window);
    assert_near(&energy, truth, 0.01);
    let silent = energy
        .missing
        .iter()
        .find(|gap| gap.sensor == SensorKind::BufferedPower);
    assert!(
        silent.is_some_and(|gap| gap.span.length().get() > 3.0),
        "{energy:?}"
    );
}

#[test]
fn a_stuck_buffer_without_a_counter_ends_the_covered_part() {
    let faults = vec![Fault::stuck_sensor(
        SensorKind::BufferedPower,
        Seconds::new(4.0),
    )];
    let recording = record(Generation::Pascal, COUNTER_AND_BUFFER, faults, &[2.0, 8.0]);
    let (window, _) = window(&recording);
    let energy = EnergyEstimator::new(&recording.trace)
        .energy(&window, MethodChoice::Buffer)
        .unwrap();
    assert!(energy.covered.length().get() < 2.3, "{energy:?}");
    assert!(
        energy
            .notes
            .iter()
            .any(|note| matches!(note, Note::Trimmed { .. }))
    );
}

#[test]
fn counter_wraps_are_undone() {
    let wraps = Joules::new(500.0);
    let mut recording = record(
        Generation::Volta,
        COUNTER_AND_BUFFER,
        vec![Fault::counter_wraps(wraps)],
        &[2.0, 7.0],
    );
    recording.trace.model.counter_modulus = Some(wraps);
    let (window, truth) = window(&recording);
    let energy = auto_energy(&recording, &window);
    assert_near(&energy, truth, 0.01);
    // Without the modulus it is a reset: the buffer bridges it, and the gap is reported.
    recording.trace.model.counter_modulus = None;
    let energy = auto_energy(&recording, &window);
    assert_near(&energy, truth, 0.05);
    assert!(
        energy
            .missing
            .iter()
            .any(|gap| gap.reason == GapReason::Reset),
        "{energy:?}"
    );
}

#[test]
fn one_wrong_counter_reading_does_not_change_the_energy() {
    let recording = record(
        Generation::Hopper,
        COUNTER_AND_BUFFER,
        Vec::new(),
        &[2.0, 9.0],
    );
    let (window, truth) = window(&recording);
    for index in 0..recording.trace.counter.len() {
        for wrong_by in [1e6, 2e4] {
            let mut trace = recording.trace.clone();
            trace.counter[index].value += Joules::new(wrong_by);
            let energy = EnergyEstimator::new(&trace)
                .energy(&window, MethodChoice::Auto)
                .unwrap();
            assert_near(&energy, truth, 0.01);
        }
    }
}

#[test]
fn disagreeing_methods_give_a_warning() {
    let recording = record(
        Generation::Hopper,
        COUNTER_AND_BUFFER,
        Vec::new(),
        &[2.0, 12.0],
    );
    let (window, _) = window(&recording);
    let honest = EnergyEstimator::new(&recording.trace)
        .measure(&window, MethodChoice::Auto)
        .unwrap();
    assert!(honest.checks.len() >= 2);
    assert_eq!(honest.warnings().count(), 0, "{:?}", honest.checks);
    let mut wrong = recording.trace.clone();
    for sample in &mut wrong.buffer {
        sample.power = sample.power * 1.3;
    }
    let suspicious = EnergyEstimator::new(&wrong)
        .measure(&window, MethodChoice::Auto)
        .unwrap();
    assert!(
        suspicious.warnings().count() >= 1,
        "{:?}",
        suspicious.checks
    );
}

#[test]
fn phases_that_never_vary_are_rejected_by_name() {
    // Two phases of always 25 ms each, seen through a counter that steps every 100 ms.
    let sensors = Sensors {
        buffer: false,
        counter: true,
    };
    let mut step = 0;
    let load = Box::new(move || -> LoadStep {
        step += 1;
        match step % 2 {
            0 => ("forward", 0.025, Some(0.5)),
            _ => ("backward", 0.025, Some(0.9)),
        }
    });
    let mut gpu = SimulatedGpu::new(Generation::Turing, sensors, load, Vec::new(), Seed::new(3));
    let recording = gpu.record(MethodChoice::Auto, 32.0, &[1.0, 31.0]);
    let spans: Vec<PhaseSpan> = gpu
        .spans
        .iter()
        .map(|(name, span)| PhaseSpan {
            name: (*name).to_owned(),
            span: *span,
        })
        .collect();
    let window = Span::new(recording.marks[0], recording.marks[1]);
    let refused =
        EnergyEstimator::new(&recording.trace).phases(&spans.into_iter().collect(), &window);
    let Err(AttributionError::Inseparable { first, second, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_ne!(first, second);
    let none = EnergyEstimator::new(&recording.trace).phases(&PhaseRecord::default(), &window);
    assert_eq!(none, Err(AttributionError::NoPhases));
}
