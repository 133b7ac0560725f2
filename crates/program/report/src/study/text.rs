//! A study as in tables 2 and 3 of power_capping_2022, for a terminal and as Markdown.

use sweetspot_decide::Criteria;
use sweetspot_device::Shortfall;
use sweetspot_quantity::Ratio;
use sweetspot_study::{Axis, EnergyOf, Point, Study};

use super::{batch_tables, node_warning, nodes_table};
use crate::analysis::accuracy::AccuracyChoice;
use crate::analysis::choices::{ChoiceRow, choices};
use crate::analysis::recommendation::recommendation;
use crate::analysis::view::StudyView;
use crate::settings::{axis_name, cell, heading, setting};
use crate::table::Table;
use crate::text::{Line, Role, Text, change_role};

/// Makes the text that `sweetspot sweep` prints on a terminal.
pub fn study_text(study: &Study, criteria: &Criteria) -> Text {
    let mut parts: Vec<Text> = vec![title(study).into(), rows(study, criteria).into()];
    parts.extend(batch_tables(study));
    let bad = |text: String| Text::from(text).with_role(Role::Bad);
    let warning = |text: String| Text::from(text).with_role(Role::Warning);
    parts.extend(failures(study).map(bad));
    parts.extend(no_reference(study).map(bad));
    parts.extend(shortfalls(study).map(warning));
    parts.extend(nodes_table(study).map(Text::from));
    parts.extend(node_warning(study).map(warning));
    parts.push(recommendation_line(&recommendation(study, criteria)).into());
    let accuracy = AccuracyChoice::new(study, criteria);
    parts.extend(accuracy.map(|choice| recommendation_line(&choice.text).into()));
    Text::from_parts(parts)
}

/// Makes the Markdown document of `sweetspot sweep`.
pub fn study_markdown(study: &Study, criteria: &Criteria) -> String {
    study_text(study, criteria).to_markdown()
}

/// The line with a recommendation, whose first words say whether there is one.
fn recommendation_line(sentence: &str) -> Line {
    let role = match sentence.starts_with("Recommendation:") || sentence.starts_with("Accuracy:") {
        true => Role::Good,
        false => Role::Warning,
    };
    Line::with_introduction(role, sentence)
}

/// The title: the workload, the devices and the number of configurations and runs.
pub(crate) fn title(study: &Study) -> String {
    let (subject, plan) = (&study.subject, &study.plan);
    let workload = &subject.workload;
    let mut about = vec![workload.name.clone()];
    about.extend(workload.mode.clone());
    about.extend(workload.conv_algorithm.clone());
    about.extend(workload.dataset.clone());
    about.extend(match (workload.items, workload.batch) {
        (Some(items), Some(batch)) => Some(format!("{items} items in batches of {batch}")),
        (Some(items), None) => Some(format!("{items} items")),
        (None, _) => None,
    });
    let scaled = workload.scaled_from.as_ref();
    about.extend(scaled.map(|from| format!("work scaled from {from}")));
    let tried = match study.varied_axes().as_slice() {
        _ if study.points.len() == 1 => "configuration".to_owned(),
        [Axis::Parameter(name)] => format!("values of {name}"),
        [Axis::Gpus] => "numbers of GPUs".to_owned(),
        [knob] => format!("{}s", axis_name(knob)),
        _ => "configurations".to_owned(),
    };
    let runs = match (&plan.search, plan.is_adaptive(), plan.repeat) {
        (Some(search), ..) => format!("{} runs by a {} search", study.run_count(), search.strategy),
        (_, true, least) => format!("{least} to {} runs each", plan.max_repeats()),
        (_, _, 1) => "1 run each".to_owned(),
        (_, _, runs) => format!("{runs} runs each"),
    };
    format!(
        "{}\non {} ({}), {} {tried}, {runs}, energy of {}{}",
        about.join(", "),
        devices(study),
        match study.device().backend.as_str() {
            "sim" => "simulated",
            _ => study.device().id.as_str(),
        },
        study.points.len(),
        study.energy_of(),
        gpu_share(study).map_or(String::new(), |share| {
            format!(" ({:.0} % of it that of the GPUs)", 100.0 * share)
        }),
    )
}

/// The share of the GPUs in the energy of the node, over all runs of a study on a real machine that compares the energy
/// of the node.
pub(crate) fn gpu_share(study: &Study) -> Option<f64> {
    if study.energy_of() != EnergyOf::Node || study.device().backend == "sim" {
        return None;
    }
    let results = study.points.iter().flat_map(|point| point.results());
    let known = results.filter_map(|result| {
        let energies = &result.energies;
        Some((energies.all_gpus?.value.get(), energies.node?.value.get()))
    });
    let (gpus, node) = known.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (node > 0.0).then(|| gpus / node)
}

/// Names a single device by its product name, and several devices as the user wrote them.
fn devices(study: &Study) -> &str {
    if study.subject.devices.len() > 1 {
        &study.subject.device_name
    } else {
        &study.device().name
    }
}

/// Makes the table of the best settings.
pub(crate) fn rows(study: &Study, criteria: &Criteria) -> Table {
    let varied = study.varied_axes();
    let mut headings = vec!["Target metric".to_owned()];
    headings.extend(varied.iter().map(heading));
    headings.extend(RESULTS.map(str::to_owned));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut rows = Table::new(&headings).with_column_roles(&changes(headings.len()), change_role);
    let recommended = recommended_point(study, criteria);
    for (index, row) in choices(study, criteria).into_iter().enumerate() {
        let mut cells = vec![row.label.clone()];
        cells.extend(varied.iter().map(|axis| cell(axis, row.point)));
        cells.extend(results(&row, index == 0));
        rows.push_with_role(cells, role_of_choice(&row, recommended));
    }
    rows
}

/// The columns with relative changes in a table that ends with the columns of [`RESULTS`].
fn changes(columns: usize) -> [usize; 2] {
    [columns - 3, columns - 1]
}

/// The recommended point; `None` if no change is recommended.
fn recommended_point<'a>(study: &'a Study, criteria: &Criteria) -> Option<&'a Point> {
    let view = StudyView::new(study, criteria);
    let chosen = view.chosen().filter(|_| !view.keeps_reference())?;
    study.points.get(chosen)
}

/// The role of a row: whether it is the recommended setting.
fn role_of_choice(row: &ChoiceRow<'_>, recommended: Option<&Point>) -> Role {
    match recommended {
        Some(point) if point.configuration == row.point.configuration => Role::Good,
        _ => Role::Plain,
    }
}

/// The headings of the columns with a setting's results.
const RESULTS: [&str; 5] = [
    "Average power\n[W]",
    "Energy\n[kJ]",
    "vs default\n[%]",
    "Time\n[s]",
    "vs default\n[%]",
];

/// Formats the results of a setting; the reference is not compared with itself.
fn results(row: &ChoiceRow<'_>, is_reference: bool) -> [String; 5] {
    let percent = |ratio: Option<Ratio>| match ratio {
        Some(ratio) if !is_reference => format!("{:+.1}", 100.0 * ratio.get()),
        _ => "-".to_owned(),
    };
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let outcome = &row.outcome;
    let power = outcome.energy.map(|energy| (energy / outcome.time).get());
    let power = power.filter(|power| power.is_finite());
    let energy = outcome.energy.map(|energy| energy.get() / 1e3);
    [
        known(power.map(|power| format!("{power:.1}"))),
        known(energy.map(|energy| format!("{energy:.3}"))),
        percent(row.energy),
        format!("{:.1}", outcome.time.get()),
        percent(row.time),
    ]
}

/// Says how many configurations failed, and why the first did; `None` if none did.
pub(crate) fn failures(study: &Study) -> Option<String> {
    let failed: Vec<_> = study
        .points
        .iter()
        .filter_map(|point| Some((point, point.failure()?)))
        .collect();
    let (first, failure) = failed.first()?;
    Some(format!(
        "{} of {} configurations failed; the first was {} ({}): {}",
        failed.len(),
        study.points.len(),
        setting(&study.varied_axes(), first),
        failure.status,
        failure.reason,
    ))
}

/// Says that the reference failed; `None` if it did not.
fn no_reference(study: &Study) -> Option<String> {
    let failure = study.reference.failure()?;
    Some(format!(
        "The reference ({}) failed, so nothing is compared with it: {}",
        setting(&study.varied_axes(), &study.reference),
        failure.reason
    ))
}

/// Lists the power caps that a device replaced by a lower one; `None` if there are none.
pub(crate) fn shortfalls(study: &Study) -> Option<String> {
    let all = study.points.iter().flat_map(|point| point.reduced_caps());
    let problems = all.map(|one| {
        let why = match one.reason {
            Shortfall::Thermal => "it is too hot",
            Shortfall::BoardLimit => "another limit of the board is lower",
            Shortfall::Ceiling => "a budget or the scheduler allows less",
            Shortfall::Unknown => "it reports no reason",
        };
        format!(
            "{}: {} was requested, but the device enforces {}: {why}",
            one.device, one.requested, one.enforced
        )
    });
    let problems: Vec<String> = problems.collect();
    (!problems.is_empty()).then(|| problems.join("\n"))
}
