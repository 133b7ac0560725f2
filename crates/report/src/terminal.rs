//! A study as tables 2 and 3 of power_capping_2022 show it.

use sweetspot_decide::Objective;
use sweetspot_study::{Status, Study, Varied};

use crate::choices::{cell, choices, heading, recommendation, setting};
use crate::table::Rows;

/// For a terminal.
pub fn study_text(study: &Study, objective: Objective) -> String {
    let mut parts = vec![title(study), rows(study, objective).terminal()];
    parts.extend(failures(study));
    parts.extend(recommendation(study, objective));
    parts.join("\n\n") + "\n"
}

/// For a document.
pub fn study_markdown(study: &Study, objective: Objective) -> String {
    let mut parts = vec![title(study), rows(study, objective).markdown()];
    parts.extend(failures(study));
    parts.extend(recommendation(study, objective));
    parts.join("\n\n") + "\n"
}

fn title(study: &Study) -> String {
    let workload = &study.workload;
    let scaled = match &workload.scaled_from {
        Some(from) => format!(", work scaled from {from}"),
        None => String::new(),
    };
    let form: String = [&workload.conv_algorithm, &workload.dataset]
        .into_iter()
        .flatten()
        .map(|form| format!(", {form}"))
        .collect();
    let tried = match study.varied().as_slice() {
        _ if study.points.len() == 1 => "configuration",
        [Varied::PowerCap] => "power caps",
        [Varied::CoreClock] => "core clocks",
        [Varied::MemoryClock] => "memory clocks",
        _ => "configurations",
    };
    format!(
        "{}, {}{form}, {} items in batches of {}{scaled}\non {} ({}), {} {tried}, {} {} each, energy of {}",
        workload.name,
        workload.mode,
        workload.items,
        workload.batch,
        devices(study),
        if study.device.backend == "sim" {
            "simulated"
        } else {
            study.device.id.as_str()
        },
        study.points.len(),
        study.repeat,
        if study.repeat == 1 { "run" } else { "runs" },
        study.energy_of,
    )
}

/// The device by its product name; several as the user would write them.
fn devices(study: &Study) -> &str {
    if study.device_name.contains([',', ':']) {
        &study.device_name
    } else {
        &study.device.name
    }
}

fn rows(study: &Study, objective: Objective) -> Rows {
    let varied = study.varied();
    let mut headings = vec!["Target metric"];
    headings.extend(varied.iter().map(|knob| heading(*knob)));
    headings.extend([
        "Average power\n[W]",
        "Energy\n[kJ]",
        "vs default\n[%]",
        "Time\n[s]",
        "vs default\n[%]",
    ]);
    let mut rows = Rows::new(&headings);
    for (index, choice) in choices(study, objective).into_iter().enumerate() {
        let percent = |ratio: sweetspot_quantity::Ratio| match index {
            0 => "-".to_owned(),
            _ => format!("{:+.1}", 100.0 * ratio.get()),
        };
        let mut row = vec![choice.label.clone()];
        row.extend(varied.iter().map(|knob| cell(*knob, choice.point)));
        let Some(joules) = choice.outcome.energy else {
            continue;
        };
        row.extend([
            format!("{:.1}", (joules / choice.outcome.time).get()),
            format!("{:.3}", joules.get() / 1e3),
            percent(choice.energy),
            format!("{:.1}", choice.outcome.time.get()),
            percent(choice.time),
        ]);
        rows.push(row);
    }
    rows
}

fn failures(study: &Study) -> Option<String> {
    let failed: Vec<_> = study
        .points
        .iter()
        .filter_map(|point| match &point.status {
            Status::Ok => None,
            Status::Failed(reason) => Some((point, reason)),
        })
        .collect();
    let (first, reason) = failed.first()?;
    Some(format!(
        "{} of {} configurations failed; the first was {}: {reason}",
        failed.len(),
        study.points.len(),
        setting(&study.varied(), first),
    ))
}
