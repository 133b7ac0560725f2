//! The list of studies, and every run of one.

use sweetspot_quantity::Joules;
use sweetspot_study::{Outline, RunEnding, StoredRuns, Study};

use crate::settings::configuration_text;
use crate::table::Table;
use crate::text::{Line, Role, Text};

/// A study in a list: its folder, and either its outline and runs or why it cannot be read.
pub type Listed = (String, Result<(Outline, StoredRuns), String>);

/// Lists studies, a line each.
pub fn studies_text(studies: &[Listed]) -> Text {
    if studies.is_empty() {
        return "no studies here: `sweetspot sweep` makes one".into();
    }
    let mut rows = Table::new(&["Study", "Workload", "Device", "Runs", "Failed", "Made"])
        .with_text_columns(3)
        .with_column_roles(&[4], failed_role);
    let mut problems = Vec::new();
    for (folder, study) in studies {
        match study {
            Ok((outline, info)) => rows.push(vec![
                folder.clone(),
                workload(outline).to_owned(),
                outline.subject.device_name.clone(),
                match outline.merged {
                    true => info.runs.to_string(),
                    false => format!("{}/{}", info.runs, outline.plan.len().max(info.runs)),
                },
                info.failed.to_string(),
                outline
                    .created_unix_s
                    .map_or_else(|| "-".to_owned(), |made| date(made)[..10].to_owned()),
            ]),
            Err(problem) => problems.push(problem.clone()),
        }
    }
    let mut text = Text::from(rows);
    for problem in problems {
        text += Line::with_role_of(Role::Bad, problem);
    }
    text
}

/// Describes a study and lists every run.
pub fn study_runs_text(study: &Study, outline: &Outline, info: &StoredRuns) -> Text {
    let (subject, plan) = (&outline.subject, &outline.plan);
    let title = format!("{} on {}", subject.workload.name, subject.device_name);
    let mut text = Text::from(title);
    if let Some(command) = &subject.workload.command {
        text += Line::new(format!("command: {}", command.join(" ")));
    }
    let made = outline.created_unix_s.map_or_else(|| "-".to_owned(), date);
    text += format!(
        "made {made} by {} on {}; {} of {} runs done, {} failed; energy of {}\n\n",
        outline.program,
        outline.machine,
        info.runs,
        plan.len().max(info.runs),
        info.failed,
        study.energy_of(),
    );
    let mut rows = Table::new(&[
        "Run",
        "Configuration",
        "Status",
        "Time\n[s]",
        "Energy\n[J]",
        "Items",
    ])
    .with_text_columns(3)
    .with_column_roles(&[2], status_role);
    let mut failures = Vec::new();
    let is_reference = |index: usize| index == plan.reference;
    let off_axes = (plan.reference >= plan.on_axes).then_some(&study.reference);
    for (index, point) in study.points.iter().chain(off_axes).enumerate() {
        for run in &point.runs {
            let id = plan.id(run.task);
            let mut what = configuration_text(&plan.axes, &point.configuration);
            if is_reference(index) {
                what += " (reference)";
            }
            let mut row = vec![id.to_string(), what];
            match &run.end {
                RunEnding::Done(result) => {
                    let energy = result.energy_of(study.energy_of());
                    let joules = |joules: Joules| format!("{:.1}", joules.get());
                    row.extend([
                        "ok".to_owned(),
                        format!("{:.3}", result.time.get()),
                        energy.map_or_else(|| "-".to_owned(), |energy| joules(energy.value)),
                        result
                            .items
                            .map_or_else(|| "-".to_owned(), |items| items.to_string()),
                    ]);
                }
                RunEnding::Failed(failure) => {
                    let unknown = || "-".to_owned();
                    row.extend([failure.status.to_string(), unknown(), unknown(), unknown()]);
                    failures.push((id, failure));
                }
            }
            rows.push(row);
        }
    }
    text += rows;
    for (id, failure) in failures {
        text += Text::empty_line();
        text += Line::with_introduction(Role::Bad, &format!("run {id}: {}", failure.reason));
        let output = failure.output.lines();
        text += output
            .map(|line| Line::new(format!("  | {line}")))
            .collect::<Text>();
    }
    text
}

/// Returns the network's name without its study, or the program's name without its folder.
fn workload(outline: &Outline) -> &str {
    let name = &outline.subject.workload.name;
    match &outline.subject.workload.command {
        Some(_) => name.rsplit('/').next().unwrap_or(name),
        None => name.split('@').next().unwrap_or(name),
    }
}

/// The role of a number of failed runs.
fn failed_role(cell: &str) -> Role {
    match cell {
        "0" => Role::Plain,
        _ => Role::Bad,
    }
}

/// The role of the status of a run.
fn status_role(cell: &str) -> Role {
    match cell {
        "ok" => Role::Plain,
        _ => Role::Bad,
    }
}

/// Formats a time as `2026-11-15 09:30` in UTC.
fn date(unix_s: f64) -> String {
    let seconds = unix_s as i64;
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute) = (of_day / 3600, of_day % 3600 / 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// Returns year, month and day of a day counted from 1970 (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(date(0.0), "1970-01-01 00:00");
        assert_eq!(date(951_782_400.0), "2000-02-29 00:00");
        assert_eq!(date(1_794_735_060.0), "2026-11-15 09:31");
    }
}
