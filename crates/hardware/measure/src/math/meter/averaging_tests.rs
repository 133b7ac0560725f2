//! Meters that average longer than between two updates: the interval holds, or the energy is refused.

use super::simulated::{Node, Random, at, controller, read};
use super::*;
use crate::math::Span;
use sweetspot_quantity::Seconds;

/// What became of the measurements of one averaging time and one length.
#[derive(Debug, Default)]
struct Outcome {
    held: usize,
    missed: usize,
    refused: usize,
    worst: f64,
    widest: f64,
}

/// Measures many jobs of a length with a controller that averages over `window` seconds.
fn measure(window: f64, length: f64, with_gpus: bool, known: bool) -> Outcome {
    let mut outcome = Outcome::default();
    for seed in 0..25 {
        let mut random = Random(seed * 331 + 7);
        let node = Node::new(&mut random, length);
        let mut model = controller(&mut random, window);
        model.known.window = known.then_some(Seconds::new(window));
        let trace = read(&node, &model, &mut random);
        // The fast sensors are read from shortly before the job until the controller has shown its end.
        let fast = with_gpus.then(|| node.fast(&mut random).from(at(node.begin - 0.5)));
        let span = Span::new(at(node.begin), at(node.end));
        let truth = node.truth();
        match meter_energy(&trace, fast.as_ref(), &span) {
            Ok(energy) => {
                let (low, high) = (energy.interval95.0.get(), energy.interval95.1.get());
                match low <= truth && truth <= high {
                    true => outcome.held += 1,
                    false => outcome.missed += 1,
                }
                outcome.worst = outcome.worst.max((energy.value.get() / truth - 1.0).abs());
                outcome.widest = outcome.widest.max(0.5 * (high - low) / truth);
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("too short for that: measure for"), "{text}");
                outcome.refused += 1;
            }
        }
    }
    println!("averages {window} s, runs for {length} s, GPUs {with_gpus}: {outcome:.3?}");
    outcome
}

#[test]
fn the_interval_holds_or_the_energy_is_refused() {
    let mut wrong = Vec::new();
    for with_gpus in [true, false] {
        for window in [1.0, 5.0, 10.0, 20.0, 37.0, 60.0] {
            for length in [5.0, 10.0, 20.0, 40.0, 75.0, 95.0, 240.0] {
                let outcome = measure(window, length, with_gpus, false);
                if outcome.held < 9 * outcome.missed {
                    wrong.push((with_gpus, window, length, outcome));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_known_averaging_time_is_used() {
    let long = measure(60.0, 120.0, true, true);
    assert!(
        long.refused == 0 && long.missed <= 2 && long.worst < 0.03,
        "{long:?}"
    );
    let short = measure(60.0, 20.0, true, true);
    assert_eq!(short.refused, 25, "{short:?}");
}
