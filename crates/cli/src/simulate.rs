//! `sweetspot simulate`.

use std::process::{Command, ExitCode};

use anyhow::Result;
use sweetspot_report::{deviations_text, profiles_text};
use sweetspot_session::{HostParts, Profiles, SimulatedHost, deviations};
use sweetspot_sim::{gpus, nodes, workloads};

use crate::NOT_MET;
use crate::args::SimulateArgs;
use crate::child;
use crate::export::print;

/// The simulated NVML travels inside the program.
static LIBRARY: &[u8] = include_bytes!(env!("SWEETSPOT_NVML_SIM"));

pub fn run(args: SimulateArgs) -> Result<ExitCode> {
    if args.gpu.is_some() || args.node.is_some() {
        let parts = HostParts::new(args.gpu.as_deref(), args.node.as_deref())?;
        let host = SimulatedHost::new(parts, LIBRARY, args.seed)?;
        let mut command = Command::new(&args.cmd[0]);
        command.args(&args.cmd[1..]).envs(host.environment());
        return child::run(command);
    }
    if args.list {
        print(&profiles_text(
            &gpus()?,
            &nodes()?,
            &workloads()?,
            args.markdown,
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let studies = deviations(&Profiles::built_in()?)?;
    print(&deviations_text(&studies, args.markdown))?;
    let met = studies.iter().all(|study| {
        let (met, judged) = study.met();
        met == judged
    });
    Ok(ExitCode::from(if met { 0 } else { NOT_MET }))
}
