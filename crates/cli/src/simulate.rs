//! `sweetspot simulate`.

use std::process::{Command, ExitCode};

use anyhow::Result;
use sweetspot_report::{deviations_text, profiles_text};
use sweetspot_session::{SimulatedHost, TOLERANCE, deviations, parse_gpus};
use sweetspot_sim::{gpus, workloads};

use crate::NOT_MET;
use crate::args::SimulateArgs;
use crate::child;
use crate::export::print;

/// The simulated NVML travels inside the program.
static LIBRARY: &[u8] = include_bytes!(env!("SWEETSPOT_NVML_SIM"));

pub fn run(args: SimulateArgs) -> Result<ExitCode> {
    if let Some(selector) = &args.gpu {
        let host = SimulatedHost::new(parse_gpus(selector)?, LIBRARY, args.seed)?;
        let mut command = Command::new(&args.cmd[0]);
        command.args(&args.cmd[1..]).envs(host.environment());
        return child::run(command);
    }
    if args.list {
        print(&profiles_text(&gpus()?, &workloads()?, args.markdown))?;
        return Ok(ExitCode::SUCCESS);
    }
    let studies = deviations()?;
    print(&deviations_text(&studies, args.markdown))?;
    let met = studies.iter().all(|study| study.worst() <= TOLERANCE);
    Ok(ExitCode::from(if met { 0 } else { NOT_MET }))
}
