//! The plan of a study.

use std::time::Duration;

use sweetspot_session::{JobCounts, SweepTime, UnplannedJobs};
use sweetspot_study::{AxisText, Definition, Outline};

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
            jobs_text(&JobCounts {
                jobs,
                arrays,
                ..*counts
            })
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

/// Describes the jobs of a study: how many, and in how many arrays.
fn jobs_text(counts: &JobCounts) -> String {
    format!(
        "{} Slurm jobs of {} runs, in {} job arrays",
        counts.jobs, counts.runs_per_job, counts.arrays
    )
}

/// Describes what is known about a study that the first job plans, because this machine has no GPU.
pub fn unplanned_text(definition: &Definition, jobs: &UnplannedJobs) -> Text {
    let command = definition.command.clone().unwrap_or_default();
    let mut lines = vec![
        format!(
            "{} on the GPUs of a node: the first job plans the study there",
            command.join(" ")
        ),
        format!("  this machine cannot plan it: {}", jobs.reason),
    ];
    let knobs = [
        ("power-cap", &definition.power_cap),
        ("core-clock", &definition.core_clock),
        ("memory-clock", &definition.memory_clock),
        ("cpu-power-cap", &definition.cpu_power_cap),
        ("gpus", &definition.gpus),
    ];
    let knobs = knobs
        .into_iter()
        .filter_map(|(name, axis)| Some((name, axis.as_ref()?)));
    let parameters = definition.axis.iter();
    let axes = knobs.chain(parameters.map(|(name, axis)| (name.as_str(), axis)));
    lines.extend(axes.map(|(name, AxisText(values))| format!("  {name}: {values}")));
    match (jobs.configurations, &jobs.most) {
        (Some(configurations), Some((runs, counts))) => {
            lines.push(format!(
                "{configurations} configurations and the reference, {} runs each: {runs} runs at most",
                definition.most_repeats()
            ));
            lines.push(format!("{} at most", jobs_text(counts)));
        }
        _ => lines.push(format!(
            "as many configurations as the GPUs support, {} runs each",
            definition.most_repeats()
        )),
    }
    lines.push("Slurm accepts these jobs".to_owned());
    lines.iter().map(Line::new).collect()
}
