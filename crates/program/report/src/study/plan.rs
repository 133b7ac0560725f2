//! The plan of a study.

use std::time::Duration;

use sweetspot_session::SweepTime;
use sweetspot_study::Outline;

use crate::settings::configuration_text;
use crate::text::{Line, Text};
use crate::wording::duration_text;

/// Describes what a study would run, and how long that would take if `done` of its runs are done already.
pub fn plan_text(outline: &Outline, estimate: &SweepTime, done: usize) -> Text {
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
            until.half_width, until.max_runs
        )
    });
    let until = plan.until_sure.as_ref().map_or(until, |target| {
        format!(
            ", more until the recommendation for {} is certain, {} at most",
            target.objective, target.max_runs
        )
    });
    lines.push(match &plan.search {
        Some(search) => format!(
            "{} configurations, of which a {} search for {} runs those that it needs: {} runs at most",
            plan.configurations.len(),
            search.strategy,
            search.objective,
            plan.max_runs(),
        ),
        None => format!(
            "{} configurations, {} runs each{until}: {} runs, {}",
            plan.configurations.len(),
            plan.repeat,
            plan.len(),
            plan.order,
        ),
    });
    let missing = plan.len().saturating_sub(done);
    if done > 0 {
        lines.push(format!("{done} runs are done, {missing} are missing"));
    }
    for earlier in plan.search.iter().flat_map(|search| &search.prior) {
        lines.push(format!("  learns from {}", earlier.name));
    }
    let time = |seconds: f64| {
        let left = seconds * missing as f64 / plan.len().max(1) as f64;
        duration_text(Duration::from_secs_f64(left.clamp(0.0, 1e12)))
    };
    lines.push(match estimate {
        SweepTime::Simulated(gpus) => {
            format!("{} of GPU time, computed in seconds", time(gpus.get()))
        }
        SweepTime::Jobs(counts) => {
            let jobs = missing.div_ceil(counts.runs_per_job.max(1));
            let arrays = jobs.div_ceil(counts.jobs.div_ceil(counts.arrays.max(1)).max(1));
            format!(
                "{jobs} Slurm jobs of {} runs, in {arrays} job arrays",
                counts.runs_per_job
            )
        }
        SweepTime::Overhead(settling) => {
            let definition = &outline.definition;
            let warmups = definition.warmup.unwrap_or(0) as usize * plan.configurations.len();
            let least = if plan.is_adaptive() { "at least " } else { "" };
            let cooling = definition.cool_to.map_or("", |_| ", and cooling down");
            format!(
                "{} for settling, and {least}{} times the command's own time{cooling}",
                time(settling.get()),
                missing + warmups,
            )
        }
    });
    if let Some(command) = &subject.workload.command
        && let Ok(filled) = sweetspot_study::fill_placeholders(command, &plan.configurations[0])
    {
        lines.push(format!("first command: {}", filled.join(" ")));
    }
    lines.iter().map(Line::new).collect()
}
