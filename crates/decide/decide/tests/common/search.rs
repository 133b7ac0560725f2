//! Helpers for tests of search strategies.

use sweetspot_decide::Outcome;
use sweetspot_decide::search::{Evaluation, Proposal, StopReason, Strategy};
use sweetspot_quantity::{Joules, Seconds};

pub fn outcome(time: f64, energy: f64) -> Outcome {
    Outcome {
        items: Some(1.0),
        ..Outcome::new(Seconds::new(time), Joules::new(energy))
    }
}

/// The time and energy of a GPU with static and dynamic power under a cap; a part of the time does not depend on
/// the clock.
pub fn capped(cap: f64, full: f64, bound: f64) -> (f64, f64) {
    let still = 0.25 * full;
    let power = cap.min(full);
    let clock = ((power - still) / (full - still)).max(0.05);
    let time = 100.0 * (1.0 - bound + bound / clock);
    (time, time * power)
}

/// Runs a search to its end with the evaluations that a function returns.
pub fn run_search(
    strategy: &mut dyn Strategy,
    mut answer: impl FnMut(usize, usize) -> Evaluation,
) -> (Vec<usize>, StopReason) {
    let mut asked = Vec::new();
    loop {
        match strategy.ask() {
            Proposal::Stop(done) => return (asked, done),
            Proposal::Evaluate(point) => {
                assert_eq!(strategy.ask(), Proposal::Evaluate(point), "asked twice");
                strategy.tell(point, answer(point, asked.len()));
                asked.push(point);
                assert!(asked.len() <= 1000, "no end: {asked:?}");
            }
        }
    }
}

pub fn caps(low: usize, high: usize, step: usize) -> Vec<f64> {
    (low..=high).step_by(step).map(|cap| cap as f64).collect()
}
