//! `sweetspot simulate`.

use std::process::ExitCode;

use anyhow::Result;
use sweetspot_report::{deviations_text, profiles_text};
use sweetspot_session::{TOLERANCE, deviations};
use sweetspot_sim::{gpus, workloads};

use crate::args::SimulateArgs;
use crate::export::print;

/// Done, and something asked for was not met.
const NOT_MET: u8 = 1;

pub fn run(args: &SimulateArgs) -> Result<ExitCode> {
    if args.list {
        print(&profiles_text(&gpus()?, &workloads()?, args.markdown))?;
        return Ok(ExitCode::SUCCESS);
    }
    let studies = deviations()?;
    print(&deviations_text(&studies, args.markdown))?;
    let met = studies.iter().all(|study| study.worst() <= TOLERANCE);
    Ok(ExitCode::from(if met { 0 } else { NOT_MET }))
}
