//! What to type after an error: libraries say what happened, and the program knows its flags.

use sweetspot_session::hold::HoldError;
use sweetspot_session::{DevicesError, MeasureError, NetworkUseError, SessionError, SweepError};
use sweetspot_study::AxesError;
use sweetspot_virtual_time::SimulationError;

/// The message of an error, with the flags that help.
pub fn message(error: &anyhow::Error) -> String {
    match hint(error) {
        Some(hint) => format!("{error:#}: {hint}"),
        None => format!("{error:#}"),
    }
}

fn hint(error: &anyhow::Error) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref::<SessionError>() {
        return match error {
            SessionError::Devices(error) => of_devices(error),
            SessionError::Measure(MeasureError::Prepare(_)) => Some("change or remove --prepare"),
            SessionError::Sweep(error) => of_sweep(error),
            SessionError::Simulation(error) => of_simulation(error),
            SessionError::Hold(error) => of_hold(error),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<NetworkUseError>() {
        return of_network(error);
    }
    error.downcast_ref().and_then(of_simulation)
}

fn of_network(error: &NetworkUseError) -> Option<&'static str> {
    match error {
        NetworkUseError::InputOfBuiltIn(_) => Some("remove --input"),
        NetworkUseError::NoItems => Some("sweep with --items"),
        _ => None,
    }
}

fn of_devices(error: &DevicesError) -> Option<&'static str> {
    match error {
        DevicesError::ReadOnly => Some(READ_ONLY),
        DevicesError::NothingToSet => Some("give --power-cap, --core-clock or --memory-clock"),
        _ => None,
    }
}

fn of_sweep(error: &SweepError) -> Option<&'static str> {
    match error {
        SweepError::NothingToRun => Some(
            "give your command after `--`, or a simulated GPU with --simulate (`sweetspot simulate --list` shows them)",
        ),
        SweepError::CommandInVirtualTime => Some("give --network NAME in place of `-- CMD`"),
        SweepError::NoMeter => Some("use --energy-of all-gpus"),
        SweepError::TooHot { .. } => Some("raise --cool-to"),
        SweepError::Axes(error) => of_axes(error),
        _ => None,
    }
}

fn of_simulation(error: &SimulationError) -> Option<&'static str> {
    match error {
        SimulationError::NoNetwork => {
            Some("give --network NAME (`sweetspot simulate --list` shows them)")
        }
        SimulationError::NoNode => {
            Some("give --node NAME (`sweetspot simulate --list` shows them)")
        }
        SimulationError::Axes(error) => of_axes(error),
        _ => None,
    }
}

fn of_axes(error: &AxesError) -> Option<&'static str> {
    match error {
        AxesError::ReadOnly => Some(READ_ONLY),
        AxesError::NothingToVary => Some("give --axis NAME=VALUES or --gpus"),
        _ => None,
    }
}

fn of_hold(error: &HoldError) -> Option<&'static str> {
    match error {
        HoldError::NoCap => Some("give --below 150W, --below device or --cap-file FILE"),
        HoldError::FixedBatch(_) => Some("give --batches in place of --fixed-batch"),
        HoldError::ReadOnly(_) => Some(READ_ONLY),
        HoldError::SeveralGpus(_) => Some("give --device"),
        _ => None,
    }
}

const READ_ONLY: &str = "remove --read-only or SWEETSPOT_READ_ONLY to allow it";
