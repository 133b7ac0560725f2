//! `sweetspot devices`.

use anyhow::Result;
use sweetspot_device::HostError;
use sweetspot_report::{Line, devices_json, devices_text};
use sweetspot_session::{
    DevicesError, ListedDevices, SessionError, devices as inspect_devices, host_parts,
    meter_reports,
};

use crate::args::DevicesArgs;
use crate::documents::{Content, Documents, Format};
use crate::exit::Outcome;
use crate::messages::print_error;

/// Runs `sweetspot devices`.
pub fn run(args: &DevicesArgs) -> Result<Outcome> {
    let documents = Documents::open([(Format::Json, args.export_json.as_deref())])?;
    let found = inspect_devices(args.device.as_deref());
    let host = host_parts()?;
    let meters = meter_reports(&args.meter)?;
    let has_others = !host.is_empty() || !meters.is_empty();
    let listed = match found {
        // A machine without GPUs has other things to list, unless GPUs were asked for.
        Err(error) if is_without_gpu(&error) && has_others && args.device.is_none() => {
            print_error(&format!("no GPU is listed: {error}"));
            ListedDevices::default()
        }
        found => found?,
    };
    let driver = listed.driver.as_deref();
    for (index, name) in &listed.lost {
        print_error(&format!(
            "GPU {index} ({name}) is lost: it no longer answers; a reboot or `nvidia-smi --gpu-reset` may bring it back"
        ));
    }
    let written = documents.write(
        Content::default()
            .text(|| devices_text(driver, &listed.devices, &host, &meters))
            .next_step(Some(Line::with_command(
                "What works, and what is missing:",
                "sweetspot doctor",
            )))
            .json(|| devices_json(driver, &listed.devices, &host, &meters)),
    );
    Ok(Outcome {
        is_met: listed.lost.is_empty() && meters.iter().all(|meter| meter.state.is_ok()),
        written,
        ..Outcome::DONE
    })
}

/// Whether the machine has no GPU, or no driver of one.
fn is_without_gpu(error: &SessionError) -> bool {
    matches!(
        error,
        SessionError::Devices(DevicesError::NoGpu | DevicesError::Host(HostError::Unavailable(_)))
    )
}
