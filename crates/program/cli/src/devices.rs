//! `sweetspot devices`.

use anyhow::Result;
use sweetspot_report::{Line, devices_json, devices_text};
use sweetspot_session::devices as inspect_devices;

use crate::args::DevicesArgs;
use crate::documents::{Content, Documents, Format};
use crate::exit::Outcome;

/// Runs `sweetspot devices`.
pub fn run(args: &DevicesArgs) -> Result<Outcome> {
    let documents = Documents::open([(Format::Json, args.export_json.as_deref())])?;
    let (driver, reports) = inspect_devices(args.device.as_deref())?;
    let written = documents.write(
        Content::default()
            .text(|| devices_text(&driver, &reports))
            .next_step(Some(Line::with_command(
                "What works, and what is missing:",
                "sweetspot doctor",
            )))
            .json(|| devices_json(&driver, &reports)),
    );
    Ok(Outcome {
        written,
        ..Outcome::DONE
    })
}
