//! A tuned training run, for a terminal and as Markdown.

use sweetspot_control::limit::LoadLimit;
use sweetspot_control::tune::TunedJob;
use sweetspot_control::tune::{
    ExploringCost, GiveUpReason, LoadOutcome, PROGRESS_HELP, RatioInterval, TuneWindow,
    WindowPurpose, progress_requirement,
};

use super::gpus::{gpu_names, gpu_rows};
use super::savings::savings_text;
use crate::table::Table;
use crate::text::{Line, Role, Text, change_role};

/// Makes the text that `sweetspot tune` prints on a terminal.
pub fn tuning_text(job: &TunedJob) -> Text {
    let mut parts: Vec<Text> = vec![title(job).into()];
    let rows = rows(job);
    if !rows.is_empty() {
        parts.push(rows.into());
    }
    let many = job.tuned.loads.len() > 1;
    for (number, load) in job.tuned.loads.iter().enumerate() {
        let lines = load_lines(job, load);
        let mut text = Text::default();
        if many && !lines.is_empty() {
            let title = format!("Load {}{}:", number + 1, phase(load));
            text += Line::with_role_of(Role::Heading, title);
        }
        for line in &lines {
            text += match line.starts_with("Choice:") {
                true => Line::with_introduction(Role::Good, line),
                false => Line::new(line),
            };
        }
        if !lines.is_empty() {
            parts.push(text);
        }
    }
    let gpus = gpu_rows(job);
    if !gpus.is_empty() {
        parts.push(gpus.into());
    }
    parts.extend(savings_text(job));
    parts.push(ending_text(job));
    Text::from_parts(parts)
}

/// Makes the Markdown document of `sweetspot tune`.
pub fn tuning_markdown(job: &TunedJob) -> String {
    tuning_text(job).to_markdown()
}

/// The title: the job, its GPUs, and what was tuned for which objective.
fn title(job: &TunedJob) -> String {
    let gpus = gpu_names(job);
    let simulated = match job.devices[0].backend.as_str() {
        "sim" => " (simulated)",
        _ => "",
    };
    let limits = job.criteria.limits.iter();
    let limits: String = limits.map(|limit| format!(", {limit}")).collect();
    format!(
        "{}\non {gpus}{simulated}, {} tuned for {}{limits} by {}",
        job.workload, job.knob, job.criteria.objective, job.strategy
    )
}

/// Makes a row for each measurement window; consecutive windows at the same chosen setting share one row.
fn rows(job: &TunedJob) -> Table {
    let mut rows = Table::new(&[
        "Window",
        "Setting",
        "From\n[s]",
        "Time\n[s]",
        "Power\n[W]",
        "Items\n[1/s]",
        "Energy\n[J/item]",
        "Δ time\n[%]",
        "Δ energy\n[%]",
    ])
    .with_text_columns(2)
    .with_key_columns(2)
    .with_column_roles(&[7, 8], change_role);
    let mut reference: Option<&TuneWindow> = None;
    let mut held = None;
    for window in &job.tuned.windows {
        if window.purpose == WindowPurpose::Hold && held == Some(window.point) {
            continue;
        }
        held = (window.purpose == WindowPurpose::Hold).then_some(window.point);
        if window.purpose == WindowPurpose::Reference {
            reference = Some(window);
        }
        rows.push(row(job, window, reference));
    }
    rows
}

/// Makes the row of one measurement window.
fn row(job: &TunedJob, window: &TuneWindow, reference: Option<&TuneWindow>) -> Vec<String> {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or(String::new(), |value| format!("{value:.digits$}"))
    };
    let per_item = |window: &TuneWindow| {
        let time = window.time_per_item()?.get();
        Some((time, window.energy_per_item()?.get()))
    };
    let own = per_item(window);
    let other = match window.purpose {
        WindowPurpose::Reference => None,
        _ => reference.and_then(per_item),
    };
    let off = |of: fn((f64, f64)) -> f64| {
        let (own, other) = own.zip(other)?;
        Some((of(own) / of(other) - 1.0) * 100.0)
    };
    let signed = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:+.1}"));
    let energy = own.map(|(_, energy)| energy);
    let digits = energy.map_or(3, |energy| if energy < 0.1 { 4 } else { 3 });
    vec![
        match window.purpose {
            WindowPurpose::Reference => "reference",
            WindowPurpose::Explore => "tried",
            WindowPurpose::Hold => "held",
        }
        .to_owned(),
        job.labels[window.point].clone(),
        format!("{:.1}", window.begin.get()),
        format!("{:.1}", window.time().get()),
        format!("{:.1}", window.power.get()),
        number(window.items_per_second, 1),
        number(energy, digits),
        signed(off(|values| values.0)),
        signed(off(|values| values.1)),
    ]
}

/// The name of the phase in which a load occurred; empty outside phases.
fn phase(load: &LoadOutcome) -> String {
    load.phase
        .as_ref()
        .map_or(String::new(), |name| format!(" (phase '{name}')"))
}

/// What limits a load at the reference, if anything is known about it.
pub(super) fn known_limit(load: &LoadOutcome) -> Option<&LoadLimit> {
    load.limit.as_ref().filter(|limit| limit.is_known())
}

/// Says what limits a load at the reference; `None` if it is unknown.
fn limit_line(load: &LoadOutcome) -> Option<String> {
    let finding = known_limit(load)?.finding();
    (!finding.is_empty()).then(|| format!("At the reference, {finding}."))
}

/// Describes the choice for one load of the job, and what it saves.
fn load_lines(job: &TunedJob, load: &LoadOutcome) -> Vec<String> {
    let mut lines: Vec<String> = limit_line(load).into_iter().collect();
    let (Some(choice), Some(found)) = (load.choice, load.found_at) else {
        return lines;
    };
    let label = &job.labels[choice];
    let after = load.steady_since.map_or(String::new(), |since| {
        format!(", {:.0} after the load was steady", found - since)
    });
    let until = applied_until(job, load);
    lines.push(match choice == job.reference {
        true if load.outside_limits => {
            format!("Choice: {label}, the reference: no tried setting meets the limits{after}.")
        }
        true => format!("Choice: {label}, the reference: no other tried setting is better{after}."),
        false => format!(
            "Choice: {label}{after}, after {} windows{until}.",
            load.evaluations
        ),
    });
    if let Some(regret) = load.expected_regret {
        lines.push(format!(
            "It is expected to be within {:.1} % of the best setting.",
            (regret.get() * 100.0).max(0.1)
        ));
    }
    if let Some(claim) = load.savings.filter(|_| choice != job.reference) {
        lines.push(format!(
            "Per item, compared with {}: energy {}, time {}.",
            job.labels[job.reference],
            share(claim.energy_saved, -1.0),
            share(claim.time_lost, 1.0)
        ));
    }
    if let Some(cost) = load.exploring_cost {
        let other = load
            .exploring_cost_against_choice
            .filter(|_| choice != job.reference)
            .map_or(String::new(), |other| {
                format!(
                    "; {} compared with the same items at {label}",
                    cost_text(other)
                )
            });
        lines.push(format!(
            "Extra cost of exploring: {} compared with the same items at the reference{other}.",
            cost_text(cost)
        ));
    }
    lines
}

/// Says until when the choice was applied, if something other than the tuner changed the setting.
fn applied_until(job: &TunedJob, load: &LoadOutcome) -> String {
    let is_last = job
        .tuned
        .last_choice()
        .is_some_and(|last| last.found_at == load.found_at);
    match (&job.tuned.gave_up, job.tuned.gave_up_at) {
        (Some(GiveUpReason::ChangedExternally(_)), Some(at)) if is_last => {
            format!(", applied until {at:.0}")
        }
        _ => String::new(),
    }
}

/// Formats a fraction as a signed percentage with its interval.
pub(super) fn share(share: RatioInterval, sign: f64) -> String {
    let (a, b) = (sign * share.low.get(), sign * share.high.get());
    format!(
        "{:+.1} % ({:+.1} to {:+.1} %)",
        sign * share.value.get() * 100.0,
        a.min(b) * 100.0,
        a.max(b) * 100.0
    )
}

/// Formats the time and energy that exploring costs.
fn cost_text(cost: ExploringCost) -> String {
    format!("{:+.1} s and {:+.0} J", cost.time.get(), cost.energy.get())
}

/// Describes how the job and its tuning ended.
fn ending_text(job: &TunedJob) -> Text {
    let mut done = format!("The job took {:.1}", job.time);
    if let Some(energy) = job.energy {
        done += &format!(" and {energy:.1}");
    }
    if let Some(items) = job.items {
        done += &format!(" for {items:.0} items");
    }
    done.push('.');
    let is_found = |load: &LoadOutcome| load.choice.is_some() && load.found_at.is_some();
    let was_tuned = job.tuned.loads.iter().any(is_found);
    let looked_again = job.tuned.loads.last().is_some_and(|load| !is_found(load));
    let needed = progress_requirement(&job.criteria).filter(|_| job.items.is_none());
    let problem = match (&job.tuned.gave_up, needed) {
        (Some(why), _) if was_tuned => {
            let at = job.tuned.gave_up_at.unwrap_or(job.time);
            Some(format!("Tuning was given up after {at:.0}: {why}."))
        }
        (Some(why), _) => Some(format!("Not tuned: {why}.")),
        (None, Some(needed)) => Some(format!(
            "Not tuned: no progress was found, and {needed} needs it. {PROGRESS_HELP}."
        )),
        (None, None) if job.tuned.ended_early && was_tuned => Some(
            "The job ended before a setting was found for its last load: it needs about a minute of steady work."
                .to_owned(),
        ),
        (None, None) if job.tuned.ended_early => Some(
            "The job ended before a setting was found: it needs about a minute of steady work."
                .to_owned(),
        ),
        (None, None) if looked_again => {
            Some("The job ended during a new search for its setting.".to_owned())
        }
        (None, None) => None,
    };
    let problem = problem.map(|problem| Line::with_role_of(Role::Warning, problem));
    problem.into_iter().chain([Line::new(done)]).collect()
}
