//! Evaluates `budget`: `cargo run --release -p sweetspot-benchmarks --bin budget [FIRST [MIXES [varied]]]`.
//!
//! Random mixes of 8 GPUs and programs, three budgets each, for ten minutes of virtual time: the budgeter beside equal
//! shares, shares in proportion to the default caps, and the offline optimum, which knows the throughput of every program
//! at every cap (dynamic programming in steps of 5 W). FIRST is the number of the first mix, for mixes that were not used
//! while the budgeter was made. Then the same mixes with a budget that falls and rises and with programs that start and
//! end, and the time of a decision for 1,000 GPUs. With `varied`, a third of the programs report no progress, and pairs of
//! equal GPUs work on one job: they wait for each other after each iteration. `VERBOSE=1` shows every case, `VERBOSE=2` every GPU too.
//!
//! Definitions, which do not depend on the results:
//! - Every policy may give a GPU a cap between its lowest and its default one.
//! - The optimum counts a GPU with its cap, or with its power where that is higher: so does the budgeter, because a program
//!   that starts on an idle GPU must keep the budget. The second optimum counts powers alone: idle GPUs leave more.
//! - Equal shares are an eighth of the budget each, clamped to what the GPU can take. Where GPUs then draw more than the
//!   budget, the comparison is left out: that policy did not keep it. With watts handed on, what one GPU cannot take goes to
//!   the others, and all get less where GPUs draw more than their caps.
//! - A case with changes cannot be kept by caps if the budget is exceeded for 0.5 % of the time or longer even though every
//!   GPU has, from start to end, the cap at which it draws least. Those cases are counted apart. The mean powers of programs
//!   do not tell: one that waits for its input now and then draws more than its mean for seconds.
//! - The optimum gives each GPU of a job the cap that is best for it alone. A pair is equal, so that both caps are the same
//!   or neighbours.

mod changes;
mod mix;
mod policies;
mod results;

use std::time::Instant;

use anyhow::{Context, Result, bail};
use sweetspot_control::budget::{
    BudgetAction, BudgetConfig, BudgetEvent, BudgetedDevice, Budgeter, GpuReading,
};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::gpus;
use sweetspot_stats::Seed;

use crate::mix::{Programs, draw};
use crate::results::Results;

/// The number of GPUs of a mix.
const GPUS: usize = 8;
/// The highest share of time above the budget that is aimed at.
const HIGHEST_SHARE_ABOVE: f64 = 0.005;
/// The length of a run.
const TIME: Seconds = Seconds::new(600.0);

/// The longest decision with 1,000 GPUs, in milliseconds.
fn longest_decision() -> Result<f64> {
    let count = 1000;
    let device = BudgetedDevice::new(Watts::new(100.0), Watts::new(300.0));
    let config = BudgetConfig {
        budget: Watts::new(200.0 * count as f64),
        gpus: vec![device; count],
    };
    let mut budgeter = Budgeter::new(&config)?;
    let mut longest = 0.0_f64;
    for tick in 0..300 {
        let now = Seconds::new(f64::from(tick) * 0.1);
        for gpu in 0..count {
            let cap = budgeter.cap(gpu).context("the GPU exists")?;
            let reading = GpuReading {
                power: cap * 0.99,
                limited: Some(Ratio::new(1.0)),
                is_busy: true,
            };
            budgeter.step(now, BudgetEvent::Read { gpu, reading });
            let items = now.get() * (10.0 + gpu as f64);
            let at = now;
            budgeter.step(now, BudgetEvent::Progress { gpu, at, items });
        }
        let begun = Instant::now();
        let actions = budgeter.step(now, BudgetEvent::Tick);
        longest = longest.max(begun.elapsed().as_secs_f64());
        for action in actions {
            if let BudgetAction::Set { gpu, cap } = action {
                budgeter.step(now, BudgetEvent::Applied { gpu, cap });
            }
        }
    }
    Ok(1e3 * longest)
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let programs = match words.get(2).map(String::as_str) {
        Some("varied") => Programs::Varied,
        Some(other) => bail!("`{other}` is not `varied`"),
        None => Programs::Reporting,
    };
    let mut numbers = words.iter().map(|word| word.parse::<u64>());
    let first = numbers.next().transpose().context("FIRST is a number")?;
    let count = numbers.next().transpose().context("MIXES is a number")?;
    let (first, count) = (first.unwrap_or(1000), count.unwrap_or(50));
    let profiles = gpus()?;
    let mut results = Results::default();
    for number in first..first + count {
        let seed = Seed::new(number).label("mix");
        results.add(number, &draw(&profiles, seed, programs));
    }
    results.print();
    println!(
        "1,000 GPUs: the longest decision took {:.2} ms",
        longest_decision()?
    );
    Ok(())
}
