//! Prints the error of each method and the width of its intervals on simulated GPUs of every sensor generation:
//! `cargo run --release -p sweetspot-measure --example accuracy [SEEDS [GENERATION]]`.

#[path = "../tests/simulated_gpu/mod.rs"]
mod simulated_gpu;

use simulated_gpu::{COUNTER_AND_BUFFER, GENERATIONS, LOAD_SHAPES, Sensors, score_windows};
use sweetspot_measure::MethodChoice;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seeds = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let only = arguments.next();
    let methods = arguments.next();
    let counter = Sensors {
        buffer: false,
        counter: true,
    };
    let neither = Sensors {
        buffer: false,
        counter: false,
    };
    let poll = |text: &str| text.parse::<MethodChoice>().unwrap_or_default();
    let cases = [
        ("auto", COUNTER_AND_BUFFER, MethodChoice::Auto),
        ("buffer", COUNTER_AND_BUFFER, MethodChoice::Buffer),
        ("counter alone", counter, MethodChoice::Counter),
        ("power sensor alone", neither, MethodChoice::Auto),
        ("poll:2ms", COUNTER_AND_BUFFER, poll("poll:2ms")),
        ("poll:500ms", COUNTER_AND_BUFFER, poll("poll:500ms")),
    ];
    println!(
        "errors in % of the true energy; half: median half width of the 95 % interval; within: share of true energies within it"
    );
    for (name, sensors, choice) in cases {
        if methods.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        println!("\n{name}");
        println!(
            "  {:<12} {:<15} {:>6} {:>5} {:>7} {:>7} {:>7} {:>7} {:>6}",
            "generation", "load", "window", "n", "rms", "p95", "max", "half", "within"
        );
        for generation in GENERATIONS {
            let label = format!("{generation:?}");
            if only
                .as_ref()
                .is_some_and(|only| only != "all" && *only != label)
            {
                continue;
            }
            if name == "counter alone" && !generation.has_energy_counter() {
                continue;
            }
            for shape in LOAD_SHAPES {
                for (window, score) in
                    score_windows(generation, sensors, shape, choice, seeds, 60.0)
                {
                    if score.count() == 0 {
                        continue;
                    }
                    println!(
                        "  {label:<12} {shape:<15} {window:>5}s {:>5} {:>7.3} {:>7.3} {:>7.3} {:>7.3} {:>5.0}%",
                        score.count(),
                        100.0 * score.rms(),
                        100.0 * score.quantile(0.95),
                        100.0 * score.quantile(1.0),
                        100.0 * score.median_half_width(),
                        100.0 * score.coverage(),
                    );
                }
            }
        }
    }
}
