//! A study as CSV: a line for every configuration.

use sweetspot_stats::Summary;
use sweetspot_study::{Point, Status, Study, Varied};

const HEADER: [&str; 16] = [
    "power_cap_w",
    "core_clock_mhz",
    "memory_clock_mhz",
    "batch",
    "gpus",
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
];

/// The points of a study and its reference; what is unknown is an empty field.
pub fn study_csv(study: &Study) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER)?;
    let is_reference = |point: &Point| point.configuration == study.reference.configuration;
    let off_axes = (!study.points.iter().any(is_reference)).then_some(&study.reference);
    for point in study.points.iter().chain(off_axes) {
        writer.write_record(record(study, point))?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn record(study: &Study, point: &Point) -> [String; 16] {
    let text = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let mean = |summary: Option<Summary>| text(summary.map(|summary| summary.mean));
    let deviation = |summary: Option<Summary>| text(summary.and_then(|s| s.deviation));
    let (outcome, reference) = (point.outcome(), study.reference.outcome());
    let against = outcome.as_ref().zip(reference.as_ref());
    let relative = |ratio: f64| Some(ratio - 1.0);
    [
        text(Varied::PowerCap.value(&point.configuration)),
        text(Varied::CoreClock.value(&point.configuration)),
        text(Varied::MemoryClock.value(&point.configuration)),
        point.configuration.batch.to_string(),
        point.configuration.gpus.to_string(),
        match point.status {
            Status::Ok => "ok".to_owned(),
            Status::Failed(_) => "failed".to_owned(),
        },
        point.runs.len().to_string(),
        mean(point.time()),
        deviation(point.time()),
        mean(point.energy()),
        deviation(point.energy()),
        text(point.average_power().map(|power| power.get())),
        text(outcome.as_ref().and_then(|outcome| outcome.items)),
        text(against.and_then(|(here, there)| relative((here.time / there.time).get()))),
        text(against.and_then(|(here, there)| relative((here.energy? / there.energy?).get()))),
        (point.configuration == study.reference.configuration).to_string(),
    ]
}
