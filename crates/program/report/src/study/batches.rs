//! The costs of a batch and of a whole training by batch size and number of GPUs, as in tables 4 to 9 of
//! multi_gpu_2018.

use sweetspot_quantity::Seconds;
use sweetspot_study::{Axis, BatchCosts, PhaseResult, Point, Study, WAITING_PHASES};

use crate::settings::{cell, heading};
use crate::table::Table;
use crate::text::{Role, Text};

/// The number of configurations that the tables show; the documents have all.
const MAX_ROWS: usize = 36;
/// A phase that never takes this share of a batch's time has no columns.
const MIN_PHASE_SHARE: f64 = 0.005;

/// The tables of a study that compares batch sizes or numbers of GPUs; empty for other studies.
pub(crate) fn batch_tables(study: &Study) -> Vec<Text> {
    let points = compared_points(study);
    let shown = &points[..points.len().min(MAX_ROWS)];
    let mut parts = Vec::new();
    for (title, table) in titled_tables(study, shown) {
        parts.push(Text::from(format!("{title}:")));
        parts.push(table.into());
    }
    parts.extend(unknown_phase_energy(shown));
    if shown.len() < points.len() {
        let more = points.len() - shown.len();
        let text = format!(
            "{more} more configurations are in the documents (--export-csv, --export-json)."
        );
        parts.push(Text::from(text));
    }
    parts
}

/// Says why the energy of phases is unknown at some points; `None` if it is known.
fn unknown_phase_energy(points: &[&Point]) -> Option<Text> {
    let mut problems = points.iter().filter_map(|point| point.phase_problem());
    let first = problems.next()?;
    let more = match problems.count() {
        0 => String::new(),
        count => format!(" ({} configurations)", count + 1),
    };
    let text = format!("No energy by phase where it is `-`{more}: {first}.");
    Some(Text::from(text).with_role(Role::Warning))
}

/// The same tables with all configurations, each with its title.
pub(crate) fn whole_batch_tables(study: &Study) -> Vec<(String, Table)> {
    titled_tables(study, &compared_points(study))
}

/// The points of the tables, which have results; none if the study compares neither batch sizes nor numbers of GPUs.
fn compared_points(study: &Study) -> Vec<&Point> {
    let points = study.points.iter();
    points
        .filter(|point| study.compares_batches_or_gpus() && point.outcome().is_some())
        .collect()
}

/// The tables of some points, each with its title.
fn titled_tables(study: &Study, points: &[&Point]) -> Vec<(String, Table)> {
    let title = "Time and energy of a batch, on all GPUs together".to_owned();
    let batch = costs_of_a_batch(study, points).map(|table| (title, table));
    let whole = (points.len() > 1).then(|| (whole_title(study, points), whole_runs(study, points)));
    batch.into_iter().chain(whole).collect()
}

/// A number with a fitting number of decimals; `-` if it is unknown.
fn number(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 100.0 => format!("{value:.1}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.3}"),
    }
}

/// The axes of the tables: those that vary.
fn axes(study: &Study) -> Vec<Axis> {
    study.varied_axes()
}

/// A table whose first columns are the settings.
fn table(axes: &[Axis], results: &[String]) -> Table {
    let headings: Vec<String> = axes
        .iter()
        .map(heading)
        .chain(results.iter().cloned())
        .collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    Table::new(&headings)
        .with_text_columns(0)
        .with_key_columns(axes.len())
}

/// Time and energy of a batch and its phases; `None` if no batch size or number of items is known.
fn costs_of_a_batch(study: &Study, points: &[&Point]) -> Option<Table> {
    let costs: Vec<(&Point, BatchCosts)> = points
        .iter()
        .filter_map(|point| Some((*point, study.batch_costs(point)?)))
        .collect();
    if costs.is_empty() {
        return None;
    }
    let phases = shown_phases(&costs);
    let waits = costs
        .iter()
        .any(|(_, costs)| costs.waiting().is_some_and(|one| one.time > Seconds::ZERO));
    let axes = axes(study);
    let mut headings = Vec::new();
    let waiting = waits.then(|| "waiting".to_owned());
    for name in phases.iter().chain(&waiting) {
        headings.extend([format!("{name}\n[ms]"), format!("{name}\n[J]")]);
    }
    headings.extend(["batch\n[ms]", "batch\n[J]", "items/s"].map(str::to_owned));
    let mut rows = table(&axes, &headings);
    for (point, costs) in &costs {
        let mut cells: Vec<String> = axes.iter().map(|axis| cell(axis, point)).collect();
        for name in &phases {
            let phase = costs.phase(name);
            cells.push(number(phase.map(|phase| 1e3 * phase.time.get())));
            cells.push(number(phase.and_then(|phase| Some(phase.energy?.get()))));
        }
        if waits {
            let waiting = costs.waiting();
            cells.push(number(waiting.map(|one| 1e3 * one.time.get())));
            cells.push(number(waiting.and_then(|one| Some(one.energy?.get()))));
        }
        cells.push(number(Some(1e3 * costs.time.get())));
        cells.push(number(costs.energy.map(|energy| energy.get())));
        cells.push(number(Some(costs.batch as f64 / costs.time.get())));
        rows.push(cells);
    }
    Some(rows)
}

/// The names of the phases with columns of their own, in the order of the first point.
fn shown_phases(costs: &[(&Point, BatchCosts)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, costs) in costs {
        let is_shown = |phase: &&PhaseResult| {
            let share = (phase.time / costs.time).get();
            share >= MIN_PHASE_SHARE
                && !WAITING_PHASES.contains(&phase.name.as_str())
                && phase.name != "other"
                && phase.name != "startup"
        };
        for phase in costs.phases.iter().filter(is_shown) {
            if !names.contains(&phase.name) {
                names.push(phase.name.clone());
            }
        }
    }
    names
}

/// Whether the points have different numbers of GPUs, so that their scaling is known.
fn has_scaling(study: &Study, points: &[&Point]) -> bool {
    points.iter().any(|point| study.scaling(point).is_some())
}

/// The title of the table of whole runs.
fn whole_title(study: &Study, points: &[&Point]) -> String {
    let items = study.subject.workload.items;
    let what = match items {
        Some(items) => format!("Work of {items} items"),
        None => "Whole runs".to_owned(),
    };
    let scaling = match has_scaling(study, points) {
        true => ", scaling is against the fewest GPUs with the same batch",
        false => "",
    };
    format!("{what}; * is the best of its column{scaling}")
}

/// Time, energy and energy-delay product of each configuration, and how it scales.
fn whole_runs(study: &Study, points: &[&Point]) -> Table {
    let axes = axes(study);
    let outcomes: Vec<_> = points.iter().filter_map(|point| point.outcome()).collect();
    let longest = outcomes
        .iter()
        .map(|one| one.time.get())
        .fold(0.0, f64::max);
    let (factor, units) = match longest >= 10_000.0 {
        true => (1e-3, ["ks", "MJ", "MJ ks"]),
        false => (1.0, ["s", "kJ", "kJ s"]),
    };
    let columns: Vec<[Option<f64>; 3]> = outcomes
        .iter()
        .map(|one| {
            let time = one.time.get() * factor;
            let energy = one.energy.map(|energy| energy.get() * factor * 1e-3);
            [Some(time), energy, energy.map(|energy| energy * time)]
        })
        .collect();
    let best = |column: usize| {
        let values = columns.iter().filter_map(|values| values[column]);
        values.fold(f64::INFINITY, f64::min)
    };
    let best = [best(0), best(1), best(2)];
    let multiplied = |point: &Point| study.one_measured_and_multiplied(point);
    let has_multiplied = points.iter().any(|point| multiplied(point).is_some());
    let has_waiting = points
        .iter()
        .any(|point| study.waiting_share(point).is_some());
    let mut headings = vec![
        format!("Time\n[{}]", units[0]),
        format!("Energy\n[{}]", units[1]),
        format!("EDP\n[{}]", units[2]),
    ];
    let has_scaling = has_scaling(study, points);
    if has_scaling {
        headings.extend(["Speed-up", "Scaling\n[%]"].map(str::to_owned));
    }
    headings.extend(has_waiting.then(|| "Waiting\n[% of E]".to_owned()));
    headings.extend(has_multiplied.then(|| format!("One GPU x n\n[{}]", units[1])));
    let mut rows = table(&axes, &headings);
    for (point, values) in points.iter().zip(&columns) {
        let mut cells: Vec<String> = axes.iter().map(|axis| cell(axis, point)).collect();
        for (value, best) in values.iter().zip(best) {
            let mark = if *value == Some(best) { "*" } else { "" };
            cells.push(number(*value) + mark);
        }
        let scaling = study.scaling(point);
        let share = |value: Option<f64>| {
            value.map_or("-".to_owned(), |value| format!("{:.1}", 100.0 * value))
        };
        if has_scaling {
            let speed_up = scaling.map(|one| format!("{:.2}", one.speed_up.get()));
            cells.push(speed_up.unwrap_or("-".to_owned()));
            cells.push(share(scaling.map(|one| one.efficiency.get())));
        }
        if has_waiting {
            cells.push(share(study.waiting_share(point).map(|share| share.get())));
        }
        if has_multiplied {
            let joules = multiplied(point).map(|energy| energy.get());
            cells.push(number(joules.map(|joules| joules * factor * 1e-3)));
        }
        rows.push(cells);
    }
    rows
}
