//! `sweetspot sim-workload`.

use std::io;

use anyhow::Result;
use sweetspot_predict::find_workload;
use sweetspot_quantity::Seconds;
use sweetspot_sim::{JobError, PlacementError, Variant};
use sweetspot_sim_host::{
    Amount, ServeLlmRequest, Serving, StandInError, StandInRequest, run_llm_stand_in, run_stand_in,
};

use crate::args::SimWorkloadArgs;
use crate::documents::print_unchanged;
use crate::exit::Outcome;
use crate::print_error_line;

/// Runs `sweetspot sim-workload`.
pub fn run(args: &SimWorkloadArgs) -> Result<Outcome> {
    let amount = match (args.items, args.seconds) {
        (Some(items), _) => Amount::Items(items),
        (None, Some(time)) => Amount::For(time),
        (None, None) => Amount::Study,
    };
    // Without --serve-llm there is a network.
    let Some(network) = &args.network else {
        return serve_llm(args, amount);
    };
    let request = StandInRequest {
        network: network.clone(),
        variant: args.variant.variant(),
        batch: args.batch,
        ranks: args.ranks.get(),
        amount,
        serving: args.serve.then(|| Serving {
            arrivals: args.arrivals.clone().unwrap_or_default(),
            seed: args.seed,
        }),
    };
    let find = |name: &str, study: Option<&str>, variant: &Variant, gpus: &[_]| {
        Ok(find_workload(name, study, variant, gpus)?)
    };
    let finished = match run_stand_in(&request, &find, &mut io::stdout().lock()) {
        Err(StandInError::Placement(PlacementError {
            workload,
            problem: problem @ JobError::OutOfMemory { .. },
        })) => {
            print_error_line(&format!(
                "sim-workload: CUDA out of memory: {workload}: {problem}"
            ));
            // A Python program that runs out of memory also exits with code 1.
            return Ok(Outcome::met(false));
        }
        other => other?,
    };
    let p99 = finished
        .p99
        .map(|p99| format!(", p99 latency {:.1} ms", 1e3 * p99.get()));
    print_unchanged(&format!(
        "done: {} items in {:.3} s, images/sec: {:.2}, {:.1} J{}\n",
        finished.items,
        finished.time.get(),
        finished.items as f64 / finished.time.get(),
        finished.energy.get(),
        p99.unwrap_or_default(),
    ))?;
    Ok(Outcome::DONE)
}

/// Runs `sweetspot sim-workload --serve-llm`.
fn serve_llm(args: &SimWorkloadArgs, amount: Amount) -> Result<Outcome> {
    let request = ServeLlmRequest {
        port: args.port,
        arrivals: args.arrivals.clone(),
        lengths: args.lengths.clone().unwrap_or_default(),
        seed: args.seed,
        batch: args.batch,
        amount,
    };
    let served = match run_llm_stand_in(&request, &mut io::stdout().lock()) {
        Err(problem @ StandInError::LlmMemory { .. }) => {
            print_error_line(&format!("sim-workload: {problem}"));
            // A Python program that runs out of memory also exits with code 1.
            return Ok(Outcome::met(false));
        }
        other => other?,
    };
    let latency = |name: &str, latency: Option<Seconds>| {
        latency.map_or(String::new(), |latency| {
            format!(", {name} {:.1} ms", 1e3 * latency.get())
        })
    };
    print_unchanged(&format!(
        "done: {} tokens of {} requests in {:.3} s, tokens/sec: {:.2}, {:.1} J{}{}\n",
        served.tokens,
        served.requests,
        served.time.get(),
        served.tokens as f64 / served.time.get(),
        served.energy.get(),
        latency("time to first token p99", served.first_p99),
        latency("between tokens p95", served.between_p95),
    ))?;
    Ok(Outcome::DONE)
}
