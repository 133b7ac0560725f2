//! The accuracy of each method on simulated GPUs of every sensor generation, against the simulated energy.
//! Limits apply to the 95th percentile of seeded windows; the example `accuracy` prints the whole table.

mod simulated_gpu;

use simulated_gpu::{
    COUNTER_AND_BUFFER, GENERATIONS, LOAD_SHAPES, LoadShape, Sensors, SimulatedGpu, marks,
    score_single_windows, score_windows,
};
use sweetspot_device::Moment;
use sweetspot_measure::MethodChoice;
use sweetspot_measure::math::{CounterStep, EnergyEstimator, Span};
use sweetspot_sim::Generation;
use sweetspot_stats::Seed;

const COUNTER: Sensors = Sensors {
    buffer: false,
    counter: true,
};
const NEITHER: Sensors = Sensors {
    buffer: false,
    counter: false,
};

/// The fewest windows of one length from which coverage is judged.
const MIN_WINDOWS: usize = 90;

fn check_accuracy(
    generations: &[Generation],
    sensors: Sensors,
    choice: MethodChoice,
    shapes: &[LoadShape],
    limits: &[(f64, f64)],
) {
    for generation in generations {
        for shape in shapes {
            for (window, score) in score_windows(*generation, sensors, *shape, choice, 1, 60.0) {
                let what = format!("{generation:?}, {shape}, {choice}, {window} s");
                println!(
                    "{what}: rms {:.3} %, 95 % within {:.3} %, median half width {:.3} %, {:.0} % of {} within the interval",
                    100.0 * score.rms(),
                    100.0 * score.quantile(0.95),
                    100.0 * score.median_half_width(),
                    100.0 * score.coverage(),
                    score.count(),
                );
                if score.count() >= MIN_WINDOWS {
                    assert!(score.coverage() >= 0.9, "{what}: {}", score.coverage());
                }
                let limit = limits.iter().find(|(from, _)| *from == window);
                if let Some((_, most)) = limit {
                    // The interval must not be needlessly wide.
                    assert!(
                        score.median_half_width() <= 2.0 * most,
                        "{what}: half width {}",
                        score.median_half_width()
                    );
                    assert!(
                        score.quantile(0.95) <= *most,
                        "{what}: {}",
                        score.quantile(0.95)
                    );
                }
            }
        }
    }
}

const WITH_BUFFER: [(f64, f64); 4] = [(0.5, 0.025), (1.0, 0.01), (5.0, 0.01), (20.0, 0.003)];
const COUNTER_ALONE: [(f64, f64); 2] = [(5.0, 0.01), (20.0, 0.003)];

#[test]
fn counter_and_buffer_meet_their_limits_on_volta_turing_and_ga100() {
    let boards = [
        Generation::Volta,
        Generation::Turing,
        Generation::AmpereGa100,
    ];
    check_accuracy(
        &boards,
        COUNTER_AND_BUFFER,
        MethodChoice::Auto,
        &LOAD_SHAPES,
        &WITH_BUFFER,
    );
}

#[test]
fn counter_and_buffer_meet_their_limits_on_ampere_ada_and_hopper() {
    let boards = [Generation::Ampere, Generation::Ada, Generation::Hopper];
    check_accuracy(
        &boards,
        COUNTER_AND_BUFFER,
        MethodChoice::Auto,
        &LOAD_SHAPES,
        &WITH_BUFFER,
    );
}

#[test]
fn intervals_cover_the_truth_without_a_counter() {
    let boards = [Generation::Maxwell, Generation::Pascal];
    check_accuracy(
        &boards,
        COUNTER_AND_BUFFER,
        MethodChoice::Auto,
        &LOAD_SHAPES,
        &[(20.0, 0.008)],
    );
    check_accuracy(&boards[1..], NEITHER, MethodChoice::Auto, &LOAD_SHAPES, &[]);
}

#[test]
fn the_counter_alone_meets_its_limits() {
    let boards = [Generation::Volta, Generation::Hopper];
    check_accuracy(
        &boards,
        COUNTER,
        MethodChoice::Counter,
        &LOAD_SHAPES,
        &COUNTER_ALONE,
    );
}

#[test]
fn the_buffer_alone_meets_its_limits() {
    let choice = MethodChoice::Buffer;
    check_accuracy(
        &[Generation::Hopper],
        COUNTER_AND_BUFFER,
        choice,
        &LOAD_SHAPES,
        &[(20.0, 0.008)],
    );
}

#[test]
fn intervals_of_polling_cover_the_truth() {
    let some = [
        LoadShape::Constant,
        LoadShape::Square(0.1),
        LoadShape::Square(2.0),
        LoadShape::Training(0.06),
    ];
    for text in ["poll:2ms", "poll:500ms"] {
        let choice = text.parse().unwrap();
        for generation in [Generation::Pascal, Generation::Turing, Generation::Hopper] {
            check_accuracy(&[generation], COUNTER_AND_BUFFER, choice, &some, &[]);
        }
    }
}

/// The counter's step that is nearest to a moment.
fn nearest_step<'a>(estimator: &'a EnergyEstimator<'_>, moment: Moment) -> &'a CounterStep {
    let distance = |step: &CounterStep| (step.at() - moment).abs().get();
    let steps = estimator.steps().steps.iter();
    steps
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .unwrap()
}

#[test]
fn energies_between_counter_steps_are_exact() {
    for generation in GENERATIONS.into_iter().filter(|g| g.has_energy_counter()) {
        let seed = Seed::new(7).label(&format!("{generation:?}"));
        let load = LoadShape::Square(0.37).load_steps(seed);
        let mut gpu = SimulatedGpu::new(generation, COUNTER, load, Vec::new(), seed);
        // The simulated counter steps at every tenth of a second, where the true energy is known.
        let at: Vec<f64> = marks(seed, 0.7, 20.0)
            .iter()
            .map(|at| (at * 10.0).round() / 10.0)
            .collect();
        let recording = gpu.record(MethodChoice::Counter, 20.0, &at);
        let estimator = EnergyEstimator::new(&recording.trace);
        let mut exact = 0;
        for pair in 0..recording.marks.len() - 1 {
            let window = Span::new(recording.marks[pair], recording.marks[pair + 1]);
            let (begin, end) = (
                nearest_step(&estimator, window.begin),
                nearest_step(&estimator, window.end),
            );
            let shift = (end.at() - begin.at() - window.length()).abs().get();
            let truth = recording.true_energies[pair + 1] - recording.true_energies[pair];
            if shift < 0.02 {
                let counted = end.energy - begin.energy;
                assert!(
                    (counted.get() - truth).abs() < 0.003,
                    "{generation:?} {pair}: {counted} {truth}"
                );
                exact += 1;
            }
        }
        assert!(2 * exact > recording.marks.len(), "{generation:?}: {exact}");
    }
}

/// Loads that no constant was tuned to, one window in each trace.
#[test]
fn single_windows_of_untuned_loads_meet_their_limits() {
    let shapes = [
        LoadShape::Constant,
        LoadShape::Square(0.07),
        LoadShape::Square(0.33),
        LoadShape::Training(0.025),
        LoadShape::Training(0.11),
        LoadShape::FromIdle(2.2),
    ];
    for (generation, length, most) in [
        (Generation::Hopper, 0.5, 0.025),
        (Generation::Volta, 1.0, 0.01),
        (Generation::Pascal, 1.0, 0.05),
    ] {
        let (mut within, mut count) = (0, 0);
        for shape in shapes {
            let score = score_single_windows(
                generation,
                COUNTER_AND_BUFFER,
                shape,
                MethodChoice::Auto,
                35,
                length,
            );
            println!(
                "{generation:?}, {shape}, {length} s: 95 % within {:.3} %, median half width {:.3} %, {} of {} within the interval",
                100.0 * score.quantile(0.95),
                100.0 * score.median_half_width(),
                score.within,
                score.count(),
            );
            assert!(score.quantile(0.95) < most, "{generation:?} {shape}");
            within += score.within;
            count += score.count();
        }
        assert!(
            count >= 200 && within as f64 >= 0.93 * count as f64,
            "{generation:?}: {within} of {count}"
        );
    }
}
