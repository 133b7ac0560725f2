//! A study as CSV: a line for every configuration.

use sweetspot_stats::Summary;
use sweetspot_study::{Axis, BATCH_PARAMETER, Point, Study};

/// The headings of the columns with results.
const RESULTS: [&str; 19] = [
    "status",
    "runs",
    "time_s",
    "time_sd_s",
    "energy_j",
    "energy_sd_j",
    "average_power_w",
    "items",
    "time_vs_reference",
    "energy_vs_reference",
    "reference",
    "job_gpus_j",
    "all_gpus_j",
    "node_j",
    "batch_time_s",
    "batch_energy_j",
    "speed_up",
    "scaling_efficiency",
    "waiting_share",
];

/// Writes the points of a study and its reference; an unknown value is an empty field.
pub fn study_csv(study: &Study) -> Result<String, csv::Error> {
    let axes = columns(study);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = axes.iter().map(Axis::column);
    writer.write_record(names.chain(RESULTS))?;
    let is_reference = |point: &Point| point.configuration == study.reference.configuration;
    let off_axes = (!study.points.iter().any(is_reference)).then_some(&study.reference);
    for point in study.points.iter().chain(off_axes) {
        let settings = axes.iter().map(|axis| axis.text(&point.configuration));
        let settings = settings.map(Option::unwrap_or_default);
        writer.write_record(settings.chain(results(study, point)))?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the axes that have a column: the knobs of devices, the batch, the GPUs, and all axes that the study varies.
fn columns(study: &Study) -> Vec<Axis> {
    let mut axes = vec![
        Axis::PowerCap,
        Axis::CoreClock,
        Axis::MemoryClock,
        Axis::Parameter(BATCH_PARAMETER.to_owned()),
        Axis::Gpus,
    ];
    let others = study.plan.axes.iter().filter(|axis| !axes.contains(axis));
    let others: Vec<Axis> = others.cloned().collect();
    axes.extend(others);
    axes
}

/// The fields with the results of one configuration.
fn results(study: &Study, point: &Point) -> [String; 19] {
    let text = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let mean = |summary: Option<Summary>| text(summary.map(|summary| summary.mean));
    let deviation = |summary: Option<Summary>| text(summary.and_then(|s| s.deviation));
    let (outcome, reference) = (point.outcome(), study.reference.outcome());
    let against = outcome.as_ref().zip(reference.as_ref());
    let relative = |ratio: f64| Some(ratio - 1.0);
    let [job, all, node] = sweetspot_study::EnergyOf::ALL.map(|energy_of| {
        let point = Point {
            energy_of,
            ..point.clone()
        };
        mean(point.energy())
    });
    let batch = study.batch_costs(point);
    let batch_energy = batch.as_ref().and_then(|batch| batch.energy);
    let scaling = study.scaling(point);
    [
        point.status().to_string(),
        point.results().count().to_string(),
        mean(point.time()),
        deviation(point.time()),
        mean(point.energy()),
        deviation(point.energy()),
        text(point.average_power().map(|power| power.get())),
        text(outcome.as_ref().and_then(|outcome| outcome.items)),
        text(against.and_then(|(here, there)| relative((here.time / there.time).get()))),
        text(against.and_then(|(here, there)| relative((here.energy? / there.energy?).get()))),
        (point.configuration == study.reference.configuration).to_string(),
        job,
        all,
        node,
        text(batch.as_ref().map(|batch| batch.time.get())),
        text(batch_energy.map(|energy| energy.get())),
        text(scaling.map(|scaling| scaling.speed_up.get())),
        text(scaling.map(|scaling| scaling.efficiency.get())),
        text(study.waiting_share(point).map(|share| share.get())),
    ]
}
