//! `sweetspot sim-workload`.

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use sweetspot_session::{Amount, SessionError, SimWorkloadRequest, sim_workload};
use sweetspot_sim::JobError;

use crate::args::SimWorkloadArgs;
use crate::export::print;

/// As a Python program that ran out of memory ends.
const OUT_OF_MEMORY: u8 = 1;

pub fn run(args: &SimWorkloadArgs) -> Result<ExitCode> {
    let request = SimWorkloadRequest {
        network: args.network.clone(),
        variant: args.variant.variant(),
        batch: args.batch,
        ranks: args.ranks.get(),
        amount: match (args.items, args.seconds) {
            (Some(items), _) => Amount::Items(items),
            (None, Some(time)) => Amount::For(time),
            (None, None) => Amount::Study,
        },
    };
    let finished = match sim_workload(&request, &mut io::stdout().lock()) {
        Err(SessionError::Job {
            workload,
            problem: problem @ JobError::OutOfMemory { .. },
        }) => {
            eprintln!("sim-workload: CUDA out of memory: {workload}: {problem}");
            return Ok(ExitCode::from(OUT_OF_MEMORY));
        }
        other => other?,
    };
    print(&format!(
        "done: {} items in {:.3} s, images/sec: {:.2}, {:.1} J\n",
        finished.items,
        finished.time.get(),
        finished.items as f64 / finished.time.get(),
        finished.energy.get(),
    ))?;
    Ok(ExitCode::SUCCESS)
}
