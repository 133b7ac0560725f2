//! `sweetspot calibrate`.

use anyhow::Result;
use sweetspot_report::{Line, Text, calibrate_json, calibrate_text};
use sweetspot_session::calibrate::{CalibrateRequest, CalibrateResult, calibrate};

use crate::args::CalibrateArgs;
use crate::documents::{Content, Documents, Format};
use crate::exit::Outcome;
use crate::observer::TerminalObserver;
use crate::typed::{shell_line, shell_word};

/// Runs `sweetspot calibrate`.
pub fn run(args: CalibrateArgs) -> Result<Outcome> {
    let documents = Documents::open([(Format::Json, args.export_json.as_deref())])?;
    let request = CalibrateRequest {
        meter: args.meter,
        scope: args.measures,
        device: args.device,
        host: args.host,
        name: args.name,
        replace: args.replace,
        command: args.cmd,
        time: args.time,
    };
    let result = calibrate(&request, &mut TerminalObserver::new())?;
    let next = next_step(&request, &result);
    let written = documents.write(
        Content::default()
            .text(|| Text::empty_line() + calibrate_text(&result))
            .notes(result.warnings.clone())
            .json(|| calibrate_json(&result))
            .next_step(next),
    );
    Ok(Outcome {
        command: result.command,
        written,
        ..Outcome::DONE
    })
}

/// The command that applies the calibration; `None` if it is not stored.
fn next_step(request: &CalibrateRequest, result: &CalibrateResult) -> Option<Line> {
    result.file.as_ref()?;
    let words = request.command.iter();
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let command = match words.is_empty() {
        true => "python train.py".to_owned(),
        false => shell_line(&words),
    };
    let host = if request.host { "--host " } else { "" };
    let name = shell_word(&result.calibration.name);
    Some(Line::with_command(
        "Apply it:",
        &format!("sweetspot measure {host}--calibration {name} -- {command}"),
    ))
}
