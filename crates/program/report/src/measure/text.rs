//! Measured runs, for a terminal and as Markdown.

use sweetspot_quantity::{Joules, Watts};
use sweetspot_session::measure::{
    DeviceRun, Measurement, PhaseSummary, RunMeasurement, TotalEnergy,
};
use sweetspot_stats::Summary;

use super::observer::{idle_sentence, observer_sentence};
use super::serving::serving_text;
use crate::calibrate::{calibration_sentences, method_text};
use crate::table::Table;
use crate::text::{Line, Role, Text};

/// Makes the text that `sweetspot measure` prints on a terminal.
pub fn measurement_text(measurement: &Measurement) -> Text {
    let mut parts: Vec<Text> = Vec::new();
    match measurement.runs.as_slice() {
        [] => parts.push("nothing was measured".into()),
        [run] => {
            parts.push(headline(measurement, run));
            parts.push(devices(run).into());
            parts.extend(share_sentence(run).map(Text::from));
            parts.extend(calibration_sentences(run).map(Text::from));
            parts.extend(serving_text(run));
            if run.serving.is_none() {
                parts.extend(items_sentence(run).map(Text::from));
            }
            parts.extend(limit_sentences(run).map(Text::from));
            parts.extend(idle_sentence(measurement, run).map(Text::from));
            parts.extend(phases(run));
        }
        runs => {
            let command = one_line(&measurement.command);
            parts.push(format!("{command}: {} runs", runs.len()).into());
            parts.push(runs_table(runs).into());
            if runs.iter().any(RunMeasurement::went_well) {
                parts.push(summary_table(runs).into());
            }
            if let Some(limits) = runs.last().and_then(limit_sentences) {
                parts.push(format!("Of the last run: {limits}").into());
            }
            let phases = runs.last().map(phases).unwrap_or_default();
            if !phases.is_empty() {
                parts.push(Text::from("Of the last run:"));
                parts.extend(phases);
            }
        }
    }
    let cost = measurement.observer.as_ref();
    let cost = cost.filter(|_| !measurement.runs.is_empty());
    parts.extend(cost.map(observer_sentence).map(Text::from));
    Text::from_parts(parts)
}

/// Makes the Markdown document of `sweetspot measure`.
pub fn measurement_markdown(measurement: &Measurement) -> String {
    measurement_text(measurement).to_markdown()
}

/// The first line: the command, its time and how it ended.
fn headline(measurement: &Measurement, run: &RunMeasurement) -> Text {
    let (ended, role) = match (run.signal, run.exit_code) {
        (Some(signal), _) => (format!("ended by signal {signal}"), Role::Bad),
        (None, 0) => ("exit code 0".to_owned(), Role::Plain),
        (None, code) => (format!("exit code {code}"), Role::Bad),
    };
    let window = if run.time == run.run_time {
        String::new()
    } else {
        format!(" (window {}: {:.3})", measurement.window, run.time)
    };
    let command = one_line(&measurement.command);
    let line = Line::new(format!("{command}: {:.3}{window},", run.run_time));
    line.and_in_role(role, ended).into()
}

/// The number of letters to which a command is shortened.
const MAX_COMMAND_LETTERS: usize = 120;

/// Returns a command on one line, with words quoted if a shell needs it.
pub fn one_line(command: &[String]) -> String {
    let plain = |word: char| word.is_alphanumeric() || "_-+=:,./@%^".contains(word);
    let words = command.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            let word = word.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    let line = words.collect::<Vec<_>>().join(" ");
    let line = line.replace(char::is_control, "?");
    match line.char_indices().nth(MAX_COMMAND_LETTERS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Formats joules with a suitable number of decimals.
pub(super) fn joules(value: Joules) -> String {
    // Small negative values would be shown as `-0.000`.
    let joules = if value.get().abs() < 5e-4 {
        0.0
    } else {
        value.get()
    };
    match joules.abs() {
        large if large >= 1e5 => format!("{joules:.0}"),
        middle if middle >= 100.0 => format!("{joules:.1}"),
        _ => format!("{joules:.3}"),
    }
}

/// Formats the ends of a confidence interval in joules.
pub(super) fn interval((low, high): (Joules, Joules)) -> String {
    format!("{} - {}", joules(low), joules(high))
}

/// Formats a power without its unit.
fn watts(power: Watts) -> String {
    format!("{:.1}", power.get())
}

/// Makes the table of the devices' energy and power.
fn devices(run: &RunMeasurement) -> Table {
    let mut rows = Table::new(&[
        "Device",
        "Energy\n[J]",
        "95 % interval\n[J]",
        "Power\n[W]",
        "Method",
    ]);
    for device in &run.devices {
        let label = device_label(run, device);
        rows.push(match &device.energy {
            Ok(measured) => {
                let energy = &measured.energy;
                vec![
                    label,
                    joules(energy.value),
                    interval(energy.interval95),
                    watts(energy.power()),
                    method_text(device, &energy.method.to_string()),
                ]
            }
            Err(_) => vec![label, unknown(), unknown(), unknown(), unknown()],
        });
    }
    if run.devices.len() > 1 {
        let total = |of: &dyn Fn(TotalEnergy) -> String| run.energy.map_or_else(unknown, of);
        rows.push(vec![
            "all".to_owned(),
            total(&|energy| joules(energy.value)),
            total(&|energy| interval(energy.interval95)),
            run.power().map_or_else(unknown, watts),
            String::new(),
        ]);
    }
    if let Some(host) = &run.host {
        rows.push(whole_row(
            "host (processors, memory)",
            host.energy.as_ref(),
            run,
            "counter",
        ));
    }
    if let Some(node) = &run.node {
        let node = node.as_ref().ok();
        let known = node.and_then(|node| Some((node, node.energy.as_ref().ok()?)));
        let method = known.map_or_else(unknown, |(node, _)| node.method());
        rows.push(whole_row(
            "node (whole machine)",
            known.map(|(_, energy)| energy),
            run,
            &method,
        ));
    }
    rows
}

/// Makes the row of the host or of the whole machine.
fn whole_row(
    label: &str,
    energy: Option<&TotalEnergy>,
    run: &RunMeasurement,
    method: &str,
) -> Vec<String> {
    let value = |of: &dyn Fn(&TotalEnergy) -> String| energy.map_or_else(unknown, of);
    vec![
        label.to_owned(),
        value(&|energy| joules(energy.value)),
        value(&|energy| interval(energy.interval95)),
        value(&|energy| watts(energy.value / run.time)),
        method.to_owned(),
    ]
}

/// Says how much of the machine's energy the GPUs used; `None` if that is unknown.
fn share_sentence(run: &RunMeasurement) -> Option<String> {
    let share = run.known_node()?.gpu_share?;
    Some(format!(
        "The measured GPUs used {:.0} % of the energy of the whole machine",
        100.0 * share.get()
    ))
}

/// The text that is shown for an unknown value.
fn unknown() -> String {
    "unknown".to_owned()
}

/// Describes the items of a run; `None` if none were reported.
fn items_sentence(run: &RunMeasurement) -> Option<String> {
    let items = run.items.filter(|items| *items > 0.0)?;
    let rate = items / run.time.get();
    let each = run.counted_energy().map(|energy| {
        let each = energy.value.get() / items;
        format!(", {each:.4} J per item")
    });
    Some(format!(
        "{items:.0} items, {rate:.1} items/s{}",
        each.unwrap_or_default()
    ))
}

/// Says what limits the load on each device and which knob works; `None` if that is unknown for all.
pub(crate) fn limit_sentences(run: &RunMeasurement) -> Option<String> {
    let known = run.devices.iter().filter(|device| device.limit.is_known());
    let lines = known.map(|device| match run.devices.len() {
        1 => upper_first(&device.limit.to_string()),
        _ => format!("{}: {}", device_label(run, device), device.limit),
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns a text with its first letter in upper case.
fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Returns the name of a device, and the beginning of its UUID if there are several.
fn device_label(run: &RunMeasurement, device: &DeviceRun) -> String {
    let id = device.device.id.as_str();
    match run.devices.len() {
        1 => device.device.name.clone(),
        _ => format!("{} {}", device.device.name, id.get(..12).unwrap_or(id)),
    }
}

/// Makes the table of phases and says why their energy is unknown, if it is; empty without phases.
fn phases(run: &RunMeasurement) -> Vec<Text> {
    let problem = run.phase_problem.iter().map(|problem| {
        let text = format!("No energy by phase: {problem}");
        Text::from(Line::with_introduction(Role::Warning, &text))
    });
    let table = (!run.phases.is_empty()).then(|| phase_table(&run.phases).into());
    problem.chain(table).collect()
}

/// Makes the table of phases.
fn phase_table(phases: &[PhaseSummary]) -> Table {
    let mut rows = Table::new(&[
        "Phase",
        "Times",
        "Each\n[ms]",
        "Each\n[J]",
        "Power\n[W]",
        "95 % interval\n[W]",
        "Whole run\n[s]",
        "Whole run\n[J]",
    ]);
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for phase in phases {
        let times = phase.count.max(1) as f64;
        let energy = phase.energy.map(|energy| energy.value);
        rows.push(vec![
            phase.name.clone(),
            match phase.count {
                0 => "-".to_owned(),
                count => count.to_string(),
            },
            format!("{:.3}", phase.time.get() * 1e3 / times),
            known(energy.map(|energy| format!("{:.4}", energy.get() / times))),
            known(phase.power.map(watts)),
            known(power_interval(phase)),
            format!("{:.3}", phase.time.get()),
            known(energy.map(joules)),
        ]);
    }
    rows
}

/// Returns the confidence interval of a phase's power, in proportion to the interval of its energy; `None` if the energy
/// is unknown.
fn power_interval(phase: &PhaseSummary) -> Option<String> {
    let (energy, power) = (phase.energy?, phase.power?);
    let (low, high) = energy.interval95;
    if energy.value <= Joules::ZERO {
        let (low, high) = (low / phase.time, high / phase.time);
        return Some(format!("{} - {}", watts(low), watts(high)));
    }
    let part = |end: Joules| watts(power * (end / energy.value));
    Some(format!("{} - {}", part(low), part(high)))
}

/// Makes the table with a row for each run.
fn runs_table(runs: &[RunMeasurement]) -> Table {
    let mut rows = Table::new(&[
        "Run",
        "Time\n[s]",
        "Energy\n[J]",
        "95 % interval\n[J]",
        "Power\n[W]",
        "Exit\ncode",
    ])
    .with_column_roles(&[5], exit_role);
    for (number, run) in runs.iter().enumerate() {
        rows.push(vec![
            (number + 1).to_string(),
            format!("{:.3}", run.time.get()),
            run.counted_energy()
                .map_or_else(unknown, |energy| joules(energy.value)),
            run.counted_energy()
                .map_or_else(unknown, |energy| interval(energy.interval95)),
            run.counted_energy()
                .map_or_else(unknown, |energy| watts(energy.value / run.time)),
            run.exit_code.to_string(),
        ]);
    }
    rows
}

/// The role of an exit code.
fn exit_role(cell: &str) -> Role {
    match cell {
        "0" => Role::Plain,
        _ => Role::Bad,
    }
}

/// Summarises a value over the successful runs that have it.
pub(crate) fn over_runs(
    runs: &[RunMeasurement],
    value: impl Fn(&RunMeasurement) -> Option<f64>,
) -> Option<Summary> {
    let runs = runs.iter().filter(|run| run.went_well());
    Summary::of(&runs.filter_map(value).collect::<Vec<f64>>())
}

/// Makes the table of mean values over the successful runs.
fn summary_table(runs: &[RunMeasurement]) -> Table {
    let mut rows = Table::new(&[
        match runs.iter().all(RunMeasurement::went_well) {
            true => "Over all runs",
            false => "Over successful runs",
        },
        "Mean",
        "Deviation",
        "95 % interval of the mean",
    ]);
    let energy = |run: &RunMeasurement| run.energy.map(|energy| energy.value.get());
    let values = [
        ("time [s]", over_runs(runs, |run| Some(run.time.get()))),
        ("energy [J]", over_runs(runs, energy)),
        (
            "power [W]",
            over_runs(runs, |run| run.power().map(Watts::get)),
        ),
        (
            "items/s",
            over_runs(runs, |run| run.items.map(|items| items / run.time.get())),
        ),
        (
            "J per item",
            over_runs(runs, |run| {
                let items = run.items.filter(|items| *items > 0.0)?;
                Some(energy(run)? / items)
            }),
        ),
    ];
    for (name, summary) in values {
        let Some(summary) = summary else { continue };
        let deviation = summary.deviation.map(|deviation| format!("{deviation:.4}"));
        let interval = summary.interval95;
        let interval = interval.map(|ci| format!("{:.4} - {:.4}", ci.low, ci.high));
        rows.push(vec![
            name.to_owned(),
            format!("{:.4}", summary.mean),
            deviation.unwrap_or_else(unknown),
            interval.unwrap_or_else(unknown),
        ]);
    }
    rows
}
