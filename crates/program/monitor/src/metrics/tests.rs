//! Labels, and the page `docs/reference/metric-names.md`.

use std::path::Path;

use sweetspot_device::{DeviceId, Settings};
use sweetspot_guard::LeaseKind;

use super::*;

/// All metrics, each with a value.
fn samples() -> [Vec<Metric<'static>>; 5] {
    let gpu = LiveGpu {
        power_w: Some(1.0),
        cap_w: Some(1.0),
        default_cap_w: Some(1.0),
        core_clock_mhz: Some(1.0),
        memory_clock_mhz: Some(1.0),
        temperature_c: Some(1.0),
        utilisation: Some(1.0),
        throttled_by_power_s: Some(1.0),
        throttled_by_heat_s: Some(1.0),
        energy_j: Some(1.0),
        ..LiveGpu::default()
    };
    let lease = LeaseView {
        device: DeviceId::new("GPU-1"),
        user: String::new(),
        uid: None,
        pid: 1,
        job: None,
        kind: LeaseKind::Setting,
        settings: Settings::default(),
        age_s: 1.0,
        left_s: None,
    };
    let job = LiveJob {
        items_per_s: Some(1.0),
        energy_per_item_j: Some(1.0),
        saved_energy_j: Some(1.0),
        ..LiveJob::default()
    };
    [
        gpu_metrics(std::slice::from_ref(&gpu)),
        lease_metrics(&[lease], |_| Some(1.0)),
        job_metrics(&[&job]),
        total_metrics(1.0, 1),
        dcgm_metrics(&[gpu]),
    ]
}

/// The names of the labels of a metric.
fn label_names(metric: &Metric<'_>) -> String {
    let (labels, _) = &metric.values[0];
    let names = labels.split(',').filter_map(|label| label.split_once('='));
    let names: Vec<String> = names.map(|(name, _)| format!("`{name}`")).collect();
    names.join(", ")
}

#[test]
fn the_page_of_metrics_matches_the_code() {
    let mut text = "# Metrics\n\n<!-- Made from the code by `SNAPSHOTS=overwrite cargo test --release -p \
    sweetspot-monitor the_page_of_metrics`; do not edit. -->\n\n\
    What `sweetspot serve --listen` answers to Prometheus ([how to use it](metrics.md#prometheus)). A value that \
    is unknown is absent. Names that begin with `DCGM` are there with `--dcgm-names`.\n\n\
    | metric | type | labels | what it is |\n|---|---|---|---|\n"
        .to_owned();
    for metric in samples().iter().flatten() {
        let Metric {
            name, kind, help, ..
        } = metric;
        let labels = label_names(metric);
        let _ = writeln!(text, "| `{name}` | {kind} | {labels} | {help} |");
    }
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/metric-names.md");
    snapbox::assert_data_eq!(text, snapbox::Data::read_from(&page, None).raw());
}

#[test]
fn labels_are_escaped_and_absent_values_are_left_out() {
    let gpu = LiveGpu {
        index: 3,
        uuid: "GPU-1".to_owned(),
        name: "A \"B\" \\ C".to_owned(),
        power_w: Some(71.5),
        ..LiveGpu::default()
    };
    let mut text = String::new();
    for metric in gpu_metrics(std::slice::from_ref(&gpu)) {
        metric.write(&mut text);
    }
    let power = "sweetspot_gpu_power_watts{gpu=\"3\",uuid=\"GPU-1\",name=\"A \\\"B\\\" \\\\ C\",source=\"sweetspot\"} 71.5\n";
    assert!(text.contains(power), "{text}");
    assert!(!text.contains("energy") && text.contains("sweetspot_gpu_lost"));
    let dcgm: Vec<_> = dcgm_metrics(&[gpu])
        .into_iter()
        .filter(|one| !one.values.is_empty())
        .collect();
    assert_eq!(dcgm.len(), 1);
}
