//! How far each method is off, on simulated GPUs of every sensor generation, against what the physics drew.
//! "At most" is the 95th percentile of seeded windows; the example `accuracy` prints the whole table.

mod scene;

use scene::{BOTH, GENERATIONS, Has, SHAPES, Scene, Shape, lone_scores, marks, scores};
use sweetspot_measure::MethodChoice;
use sweetspot_measure::math::{EnergyEstimator, Span};
use sweetspot_sim::Generation;
use sweetspot_stats::Seed;

const COUNTER: Has = Has {
    buffer: false,
    counter: true,
};
const NEITHER: Has = Has {
    buffer: false,
    counter: false,
};

/// Windows of one length that are too few say little about coverage.
const ENOUGH: usize = 90;

fn check(
    generations: &[Generation],
    has: Has,
    choice: MethodChoice,
    shapes: &[Shape],
    limits: &[(f64, f64)],
) {
    for generation in generations {
        for shape in shapes {
            for (window, score) in scores(*generation, has, *shape, choice, 1, 60.0) {
                let what = format!("{generation:?}, {shape}, {choice}, {window} s");
                println!(
                    "{what}: rms {:.3} %, 95 % within {:.3} %, median half width {:.3} %, {:.0} % of {} held",
                    100.0 * score.rms(),
                    100.0 * score.quantile(0.95),
                    100.0 * score.median_half(),
                    100.0 * score.coverage(),
                    score.count(),
                );
                if score.count() >= ENOUGH {
                    assert!(score.coverage() >= 0.9, "{what}: {}", score.coverage());
                }
                let limit = limits.iter().find(|(from, _)| *from == window);
                if let Some((_, most)) = limit {
                    // An interval that holds everything says nothing.
                    assert!(
                        score.median_half() <= 2.0 * most,
                        "{what}: half width {}",
                        score.median_half()
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
fn counter_and_buffer_together_on_volta_turing_and_ga100() {
    let boards = [
        Generation::Volta,
        Generation::Turing,
        Generation::AmpereGa100,
    ];
    check(&boards, BOTH, MethodChoice::Auto, &SHAPES, &WITH_BUFFER);
}

#[test]
fn counter_and_buffer_together_on_ampere_ada_and_hopper() {
    let boards = [Generation::Ampere, Generation::Ada, Generation::Hopper];
    check(&boards, BOTH, MethodChoice::Auto, &SHAPES, &WITH_BUFFER);
}

#[test]
fn without_a_counter_the_interval_says_how_little_is_known() {
    let boards = [Generation::Maxwell, Generation::Pascal];
    check(&boards, BOTH, MethodChoice::Auto, &SHAPES, &[(20.0, 0.008)]);
    check(&boards[1..], NEITHER, MethodChoice::Auto, &SHAPES, &[]);
}

#[test]
fn the_counter_alone() {
    let boards = [Generation::Volta, Generation::Hopper];
    check(
        &boards,
        COUNTER,
        MethodChoice::Counter,
        &SHAPES,
        &COUNTER_ALONE,
    );
}

#[test]
fn the_buffer_alone() {
    let choice = MethodChoice::Buffer;
    check(
        &[Generation::Hopper],
        BOTH,
        choice,
        &SHAPES,
        &[(20.0, 0.008)],
    );
}

#[test]
fn the_methods_of_the_papers_know_what_they_cannot_see() {
    let some = [
        Shape::Constant,
        Shape::Square(0.1),
        Shape::Square(2.0),
        Shape::Training(0.06),
    ];
    for text in ["poll:2ms", "poll:500ms"] {
        let choice = text.parse().unwrap();
        for generation in [Generation::Pascal, Generation::Turing, Generation::Hopper] {
            check(&[generation], BOTH, choice, &some, &[]);
        }
    }
}

#[test]
fn windows_snapped_to_the_counter_are_exact() {
    for generation in GENERATIONS.into_iter().filter(|g| g.has_energy_counter()) {
        let seed = Seed::new(7).label(&format!("{generation:?}"));
        let load = Shape::Square(0.37).stretches(seed);
        let mut scene = Scene::new(generation, COUNTER, load, Vec::new(), seed);
        // The simulated counter moves at every tenth of a second: there the truth is known.
        let at: Vec<f64> = marks(seed, 0.7, 20.0)
            .iter()
            .map(|at| (at * 10.0).round() / 10.0)
            .collect();
        let recording = scene.record(MethodChoice::Counter, 20.0, &at);
        let estimator = EnergyEstimator::new(&recording.trace);
        let mut exact = 0;
        for pair in 0..recording.marks.len() - 1 {
            let window = Span::new(recording.marks[pair], recording.marks[pair + 1]);
            let snapped = estimator.snapped(&window).unwrap();
            let moved = (snapped.covered.length() - window.length()).abs().get();
            let truth = recording.truths[pair + 1] - recording.truths[pair];
            if moved < 0.02 {
                assert!(
                    (snapped.value.get() - truth).abs() < 0.003,
                    "{generation:?} {pair}: {} {truth}",
                    snapped.value
                );
                exact += 1;
            }
        }
        assert!(2 * exact > recording.marks.len(), "{generation:?}: {exact}");
    }
}

/// Loads that nothing was tuned to, one window in each trace.
#[test]
fn lone_windows_of_other_loads() {
    let shapes = [
        Shape::Constant,
        Shape::Square(0.07),
        Shape::Square(0.33),
        Shape::Training(0.025),
        Shape::Training(0.11),
        Shape::FromIdle(2.2),
    ];
    for (generation, length, most) in [
        (Generation::Hopper, 0.5, 0.025),
        (Generation::Volta, 1.0, 0.01),
        (Generation::Pascal, 1.0, 0.05),
    ] {
        let (mut held, mut count) = (0, 0);
        for shape in shapes {
            let score = lone_scores(generation, BOTH, shape, MethodChoice::Auto, 35, length);
            println!(
                "{generation:?}, {shape}, {length} s: 95 % within {:.3} %, median half width {:.3} %, {} of {} held",
                100.0 * score.quantile(0.95),
                100.0 * score.median_half(),
                score.held,
                score.count(),
            );
            assert!(score.quantile(0.95) < most, "{generation:?} {shape}");
            held += score.held;
            count += score.count();
        }
        assert!(
            count >= 200 && held as f64 >= 0.93 * count as f64,
            "{generation:?}: {held} of {count}"
        );
    }
}
