//! Studies before and beside their results: the plan, the list of them, every run of one.

use std::time::Duration;

use sweetspot_quantity::Joules;
use sweetspot_session::SweepTime;
use sweetspot_study::{Axis, Configuration, Info, Outline, RunEnd, Study};

use crate::table::Rows;

/// `power cap 150 W, batch 64`: what is particular about a configuration.
pub fn configuration_text(axes: &[Axis], configuration: &Configuration) -> String {
    let named = axes.iter().filter_map(|axis| {
        let value = axis.text(configuration)?;
        Some(match axis {
            Axis::Gpus if value == "1" => "1 GPU".to_owned(),
            Axis::Gpus => format!("{value} GPUs"),
            Axis::PowerCap => format!("{value} W"),
            Axis::CoreClock => format!("{value} MHz"),
            Axis::MemoryClock => format!("memory {value} MHz"),
            Axis::Parameter(name) => format!("{name} {value}"),
        })
    });
    named.collect::<Vec<_>>().join(", ")
}

/// `1 h 23 min`, `45 s`: as people say it.
pub fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds % 3600 / 60);
    match (hours, minutes) {
        (0, 0) if seconds < 10 => format!("{:.1} s", time.as_secs_f64()),
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// What would be run.
pub fn plan_text(outline: &Outline, estimate: &SweepTime) -> String {
    let (subject, plan) = (&outline.subject, &outline.plan);
    let mut lines = vec![format!(
        "{} on {}",
        subject.workload.name, subject.device_name
    )];
    for axis in &plan.axes {
        let mut values: Vec<String> = Vec::new();
        for configuration in &plan.configurations[..plan.on_axes] {
            let value = axis
                .text(configuration)
                .unwrap_or_else(|| "default".to_owned());
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let shown = match values.as_slice() {
            [first, second, .., last] if values.len() > 12 => {
                format!("{first}, {second} ... {last}")
            }
            all => all.join(", "),
        };
        lines.push(format!("  {}: {} ({shown})", axis.column(), values.len()));
    }
    let reference = &plan.configurations[plan.reference];
    let compared = configuration_text(&plan.axes, reference);
    if !compared.is_empty() {
        lines.push(format!("  compared with {compared}"));
    }
    let until = plan.until.map_or(String::new(), |until| {
        format!(
            ", more until {} is reached, {} at most",
            until.within, until.most
        )
    });
    lines.push(match &plan.search {
        Some(search) => format!(
            "{} configurations, of which a {} search for {} runs those that it needs: {} runs at most",
            plan.configurations.len(),
            search.strategy,
            search.objective,
            plan.at_most(),
        ),
        None => format!(
            "{} configurations, {} runs each{until}: {} runs, {}",
            plan.configurations.len(),
            plan.repeat,
            plan.len(),
            plan.order,
        ),
    });
    for earlier in plan.search.iter().flat_map(|search| &search.earlier) {
        lines.push(format!("  learns from {}", earlier.name));
    }
    let time = |seconds: f64| duration_text(Duration::from_secs_f64(seconds.clamp(0.0, 1e12)));
    lines.push(match estimate {
        SweepTime::Simulated(gpus) => {
            format!("{} of GPU time, computed in seconds", time(gpus.get()))
        }
        SweepTime::Overhead(settling) => {
            let definition = &outline.definition;
            let warmups = definition.warmup.unwrap_or(0) as usize * plan.configurations.len();
            let least = plan.until.map_or("", |_| "at least ");
            let cooling = definition.cool_to.map_or("", |_| ", and cooling down");
            format!(
                "{} for settling, and {least}{} times the command's own time{cooling}",
                time(settling.get()),
                plan.len() + warmups,
            )
        }
    });
    if let Some(command) = &subject.workload.command
        && let Ok(filled) = sweetspot_study::fill(command, &plan.configurations[0])
    {
        lines.push(format!("first command: {}", filled.join(" ")));
    }
    lines.join("\n") + "\n"
}

/// A study in a list: its folder, and what it is or why it cannot be read.
pub type Listed = (String, Result<(Outline, Info), String>);

/// A line for each study, or why it cannot be read.
pub fn studies_text(studies: &[Listed]) -> String {
    if studies.is_empty() {
        return "no studies here: `sweetspot sweep` makes one\n".to_owned();
    }
    let mut rows = Rows::new(&["Study", "Workload", "Device", "Runs", "Failed", "Made"]);
    let mut problems = Vec::new();
    for (folder, study) in studies {
        match study {
            Ok((outline, info)) => rows.push(vec![
                folder.clone(),
                shortened(workload(outline), 24),
                shortened(&outline.subject.device_name, 24),
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
    let mut text = rows.terminal() + "\n";
    for problem in problems {
        text += &format!("{problem}\n");
    }
    text
}

/// What a study is and every run of it.
pub fn study_runs_text(study: &Study, outline: &Outline, info: &Info) -> String {
    let (subject, plan) = (&outline.subject, &outline.plan);
    let mut text = format!("{} on {}\n", subject.workload.name, subject.device_name);
    if let Some(command) = &subject.workload.command {
        text += &format!("command: {}\n", command.join(" "));
    }
    let made = outline.created_unix_s.map_or_else(|| "-".to_owned(), date);
    text += &format!(
        "made {made} by {} on {}; {} of {} runs there, {} failed; energy of {}\n\n",
        outline.program,
        outline.machine,
        info.runs,
        plan.len().max(info.runs),
        info.failed,
        study.energy_of(),
    );
    let mut rows = Rows::new(&[
        "Run",
        "Configuration",
        "Status",
        "Time\n[s]",
        "Energy\n[J]",
        "Items",
    ]);
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
                RunEnd::Done(result) => {
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
                RunEnd::Failed(failure) => {
                    let unknown = || "-".to_owned();
                    row.extend([failure.status.to_string(), unknown(), unknown(), unknown()]);
                    failures.push((id, failure));
                }
            }
            rows.push(row);
        }
    }
    text += &rows.terminal();
    text += "\n";
    for (id, failure) in failures {
        text += &format!("\nrun {id}: {}\n", failure.reason);
        for line in failure.output.lines() {
            text += &format!("  | {}\n", line.replace(char::is_control, "\u{fffd}"));
        }
    }
    text
}

/// The network or the program, without where it is from.
fn workload(outline: &Outline) -> &str {
    let name = &outline.subject.workload.name;
    match &outline.subject.workload.command {
        Some(_) => name.rsplit('/').next().unwrap_or(name),
        None => name.split('@').next().unwrap_or(name),
    }
}

fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).collect::<String>() + "…",
        false => text.to_owned(),
    }
}

/// `2026-11-15 09:30` in universal time.
fn date(unix_s: f64) -> String {
    let seconds = unix_s as i64;
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute) = (of_day / 3600, of_day % 3600 / 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// The date of a day counted from 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
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

    #[test]
    fn durations_as_people_say_them() {
        let text = |seconds: f64| duration_text(Duration::from_secs_f64(seconds));
        assert_eq!(text(3.21), "3.2 s");
        assert_eq!(text(45.0), "45 s");
        assert_eq!(text(150.0), "2 min 30 s");
        assert_eq!(text(8000.0), "2 h 13 min");
    }
}
