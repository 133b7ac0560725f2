//! The time of a decision about what limits a load, relative to its target.

use std::hint::black_box;
use std::time::Instant;

use sweetspot_control::limit::{LoadEvidence, LoadLimit};
use sweetspot_device::UnitUse;
use sweetspot_quantity::{Ratio, Watts};
use sweetspot_stats::Seed;

/// The longest time that a decision with its sentence may take, in seconds.
const TARGET: f64 = 50e-6;
/// The number of decisions that are timed.
const DECISIONS: u64 = 200_000;

/// Draws a load at random; each value is missing in one of four cases.
fn draw_load(seed: Seed) -> LoadEvidence {
    let value = |label| {
        let seed = seed.label(label);
        (seed.label("known").uniform() < 0.75).then(|| seed.label("value").uniform())
    };
    let share = |label| value(label).map(Ratio::new);
    LoadEvidence {
        power: value("power").map(|share| Watts::new(700.0 * share)),
        power_cap: value("cap").map(|share| Watts::new(200.0 + 500.0 * share)),
        throttled_by_cap: share("capped"),
        throttled_by_heat: share("heat"),
        throttled_by_brake: share("brake"),
        utilisation: share("utilisation"),
        units: UnitUse {
            cores: share("cores"),
            tensor: share("tensor"),
            memory: share("memory"),
        },
    }
}

fn main() {
    let loads: Vec<LoadEvidence> = (0..1000).map(|n| draw_load(Seed::new(n))).collect();
    let begin = Instant::now();
    for number in 0..DECISIONS {
        let load = &loads[(number % 1000) as usize];
        black_box(LoadLimit::decide(black_box(load)).to_string());
    }
    let each = begin.elapsed().as_secs_f64() / DECISIONS as f64;
    println!(
        "a decision and its sentence: {:.2} us, {:.4} of the target of {:.0} us",
        each * 1e6,
        each / TARGET,
        TARGET * 1e6
    );
}
