//! `--meter` against stand-in meters of a simulated node: the energy of the machine, and meters that misbehave.

use std::path::Path;

use crate::common::{sweetspot, text};

pub fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/examples");
    path.join(name).to_string_lossy().into_owned()
}

/// Runs a script on a simulated node with meters; `$S` is the program.
pub fn on_node(folder: &Path, more: &[&str], script: &str) -> std::process::Output {
    on_node_with("--meters", folder, more, script)
}

fn on_node_with(meters: &str, folder: &Path, more: &[&str], script: &str) -> std::process::Output {
    let node = example("my_node.toml");
    let script = format!("S={}; {script}", env!("CARGO_BIN_EXE_sweetspot"));
    let mut args = vec!["simulate", "--node", &node, meters];
    args.extend(more);
    args.extend(["--", "sh", "-c", &script]);
    sweetspot(folder, &args)
}

/// The lines of the node's true energies: time in seconds, energy at the wall, energy of the GPUs.
pub fn truth(folder: &Path) -> Vec<[f64; 3]> {
    let text = std::fs::read_to_string(folder.join("truth.csv")).unwrap();
    let rows = text.lines().skip(1).map(|line| {
        let mut numbers = line.split(',').map(|number| number.parse::<f64>().unwrap());
        let mut next = || numbers.next().unwrap();
        [next() * 1e-9, next(), next()]
    });
    rows.collect()
}

/// The energy at the wall in the window of this length in which the GPUs drew most: that of the job.
fn busiest(truth: &[[f64; 3]], length: f64) -> f64 {
    let at = |time: f64, column: usize| {
        let next = truth
            .partition_point(|row| row[0] < time)
            .clamp(1, truth.len() - 1);
        let (a, b) = (truth[next - 1], truth[next]);
        a[column] + (b[column] - a[column]) * (time - a[0]) / (b[0] - a[0])
    };
    let (first, last) = (truth[0][0], truth[truth.len() - 1][0]);
    let steps = ((last - first - length) / 0.01) as usize;
    let windows = (0..steps).map(|step| first + step as f64 * 0.01);
    let gpus = |begin: &f64| at(begin + length, 2) - at(*begin, 2);
    let begin = windows.max_by(|a, b| gpus(a).total_cmp(&gpus(b))).unwrap();
    at(begin + length, 1) - at(begin, 1)
}

#[test]
fn the_energy_of_the_node_is_measured_at_the_wall() {
    let folder = tempfile::tempdir().unwrap();
    let workload = example("my_workload.toml");
    let script = format!(
        "$S measure --host --meter wall --energy-of node --export-json wall.json -- $S sim-workload --network {workload} --seconds 5 && cp $SWEETSPOT_SIM/truth.csv ."
    );
    let output = on_node(folder.path(), &[], &script);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{shown}");
    assert!(
        shown.contains("of the energy of the whole machine"),
        "{shown}"
    );
    let written = std::fs::read_to_string(folder.path().join("wall.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&written).unwrap();
    let node = &document["node"];
    let truth = busiest(&truth(folder.path()), document["time_s"].as_f64().unwrap());
    let error = node["energy_j"].as_f64().unwrap() / truth - 1.0;
    // The truth has a line each 100 ms, so that the ends of the job are known to about 10 ms of its 5 s.
    assert!(error.abs() < 0.005, "{error}: {node}");
    let interval = &node["interval95_j"];
    assert!(interval[0].as_f64().unwrap() < interval[1].as_f64().unwrap());
    assert!((0.0..1.0).contains(&node["gpu_share"].as_f64().unwrap()));
    assert!(document["host"]["energy_j"].as_f64().unwrap() > 0.0);
    assert_eq!(document["energy_of"], "node");
}

#[test]
fn meters_that_cannot_be_used_are_explained_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |faults: &[&str], meter: &str, expected: &str| {
        let script = format!("$S measure --meter '{meter}' -- true");
        let output = on_node(folder.path(), faults, &script);
        let shown = text(&output.stderr);
        assert!(shown.contains(expected), "{shown}");
        assert!(!output.status.success());
        let lines = shown
            .lines()
            .filter(|line| line.starts_with("sweetspot: "))
            .count();
        assert!(lines <= 2, "{shown}");
    };
    refused(
        &["--meter-fault", "wt310=model:WT500"],
        "wall",
        "not a WT310 or WT310E",
    );
    refused(&[], "walls", "there is no meter `walls`");
    refused(
        &[],
        "shelly:http://u:secret@h",
        "a password in a URL is visible",
    );
    refused(
        &[],
        "shelly:http://127.0.0.1:9",
        "it refuses the connection",
    );
    let script =
        "$S measure --energy-of node -- true; $S measure --meter wall --meter wall -- true";
    let shown = text(&on_node(folder.path(), &[], script).stderr);
    assert!(shown.contains("name it with --meter"), "{shown}");
    assert!(shown.contains("the meter wall is given twice"), "{shown}");
}

#[test]
fn a_meter_that_loses_its_connection_is_connected_again() {
    let folder = tempfile::tempdir().unwrap();
    let script = "$S measure --meter wall --export-json wall.json -- sleep 4";
    let output = on_node(
        folder.path(),
        &["--meter-fault", "wt310=disconnect@60"],
        script,
    );
    let shown = text(&output.stdout) + &text(&output.stderr);
    let written = std::fs::read_to_string(folder.path().join("wall.json"));
    let document: serde_json::Value = serde_json::from_str(&written.expect(&shown)).unwrap();
    assert!(
        document["node"]["energy_j"].as_f64().unwrap() > 0.0,
        "{shown}"
    );
    assert!(shown.contains("meter wall: no readings for"), "{shown}");
}

/// Three of four GPUs work; without the budget the node draws above 1100 W.
#[test]
fn a_budget_of_the_node_is_kept_and_judged_at_the_wall() {
    let folder = tempfile::tempdir().unwrap();
    let workload = example("my_workload.toml");
    let script = format!(
        "for gpu in 0 1 2; do CUDA_VISIBLE_DEVICES=$gpu $S sim-workload --network {workload} --seconds 6 >gpu$gpu.log 2>&1 & done; $S budget --of node --meter plug --below 950W --for 6s --export-json budget.json; cp $SWEETSPOT_SIM/truth.csv ."
    );
    let output = on_node(folder.path(), &[], &script);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(shown.contains("for the whole machine"), "{shown}");
    let written = std::fs::read_to_string(folder.path().join("budget.json")).expect(&shown);
    let document: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(document["of"], "node", "{document}");
    let truth = truth(folder.path());
    // The power at the wall from 4 s after the first line on, when the plug has shown the load for a second or more.
    let begin = truth.iter().find(|row| row[0] - truth[0][0] > 4.5).unwrap();
    let end = truth.iter().find(|row| row[0] - truth[0][0] > 6.0).unwrap();
    let mean = (end[1] - begin[1]) / (end[0] - begin[0]);
    assert!(mean < 950.0 && mean > 500.0, "{mean} W: {document}");
    let shown_last = &document["over_time"].as_array().unwrap().last().unwrap()["node_power_w"];
    let shown_last = shown_last.as_f64().unwrap();
    assert!(
        (shown_last / mean - 1.0).abs() < 0.1,
        "{mean} W: {document}"
    );
    assert!(document["node"]["mean_power_w"].as_f64().unwrap() > 500.0);
}

#[test]
fn devices_without_a_gpu_driver_lists_meters_and_packages() {
    let folder = tempfile::tempdir().unwrap();
    let script = "export SWEETSPOT_NVML=/nonexistent.so; $S devices --meter wall --export-json devices.json && ! $S devices --device 0";
    let output = on_node(folder.path(), &[], script);
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("no GPU is listed"), "{shown}");
    let written = std::fs::read_to_string(folder.path().join("devices.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(document["devices"].as_array().unwrap().len(), 0);
    assert!(document.get("driver").is_none());
    assert!(!document["host"].as_array().unwrap().is_empty());
    assert!(!document["meters"].as_array().unwrap().is_empty());
}

/// Reads a document that a script has written.
fn document(folder: &Path, name: &str, shown: &str) -> serde_json::Value {
    let written = std::fs::read_to_string(folder.join(name)).expect(shown);
    serde_json::from_str(&written).unwrap()
}

/// The other meters of a node: a serial line, a probe on each GPU's wires, the meter of the firmware.
#[test]
fn a_serial_line_and_the_probes_of_the_board_are_meters() {
    let folder = tempfile::tempdir().unwrap();
    let workload = example("my_workload.toml");
    let rails: String = (0..4)
        .map(|gpu| format!(" --meter hwmon:ina228:0-004{gpu}/power1"))
        .collect();
    let script = format!(
        "$S sim-workload --network {workload} --seconds 40 >load.log 2>&1 & load=$!; sleep 2; \
         $S measure --meter wall-serial --export-json serial.json -- sleep 5 & serial=$!; \
         $S measure{rails} --energy-of node --export-json rails.json -- sleep 5 & rails=$!; \
         $S measure --meter hwmon:power_meter --export-json board.json -- sleep 5 & board=$!; \
         wait $serial $rails $board; $S devices --export-json devices.json; $S measure --meter hwmon:ina228 -- true; kill $load"
    );
    let output = on_node_with("--meters=wt310-serial", folder.path(), &[], &script);
    let shown = text(&output.stdout) + &text(&output.stderr);
    let energy = |name: &str| {
        let document = document(folder.path(), name, &shown);
        document["node"]["energy_j"].as_f64().expect(&shown)
    };
    // Both are at the wall, in the same seconds.
    let (serial, board) = (energy("serial.json"), energy("board.json"));
    assert!(
        (board / serial - 1.0).abs() < 0.05,
        "{board} {serial}: {shown}"
    );
    let rails = energy("rails.json");
    assert!(
        rails > 0.2 * serial && rails < serial,
        "{rails} {serial}: {shown}"
    );
    let host = document(folder.path(), "devices.json", &shown)["host"].clone();
    let specs: Vec<&str> = host
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|part| part["meter"].as_str())
        .collect();
    assert!(
        specs.contains(&"hwmon:power_meter:ACPI000D:00/power1"),
        "{specs:?}"
    );
    assert!(specs.contains(&"hwmon:ina228:0-0040/power1"), "{specs:?}");
    assert!(shown.contains("hwmon has several such channels"), "{shown}");
}

#[test]
fn a_meter_that_stops_gives_no_energy_of_the_node() {
    let folder = tempfile::tempdir().unwrap();
    let script = "$S measure --meter plug --export-json plug.json -- sleep 4; echo code $?";
    let output = on_node(folder.path(), &["--meter-fault", "shelly=silent@8"], script);
    let shown = text(&output.stdout) + &text(&output.stderr);
    let node = document(folder.path(), "plug.json", &shown)["node"].clone();
    for absent in ["energy_j", "average_power_w", "gpu_share"] {
        assert!(node.get(absent).is_none(), "{absent}: {node}");
    }
    let problem = node["problem"].as_str().unwrap();
    assert!(problem.contains("plug"), "{problem}");
    assert!(shown.contains("code 1"), "{shown}");
}

#[test]
fn a_controller_that_averages_a_minute_refuses_a_short_run() {
    let folder = tempfile::tempdir().unwrap();
    let workload = example("my_workload.toml");
    let script = format!(
        "$S measure --meter bmc-old --export-json bmc.json -- $S sim-workload --network {workload} --seconds 5"
    );
    let output = on_node_with("--meters=redfish-old", folder.path(), &[], &script);
    let shown = text(&output.stdout) + &text(&output.stderr);
    let node = document(folder.path(), "bmc.json", &shown)["node"].clone();
    assert!(node.get("energy_j").is_none(), "{node}");
    let problem = node["problem"].as_str().unwrap();
    assert!(
        problem.contains("may be a mean over up to 60 s"),
        "{problem}"
    );
    assert!(problem.contains("measure for 90 s or longer"), "{problem}");
}

#[test]
fn samples_over_the_range_are_named_and_the_energy_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let script = "$S measure --meter wall --export-json wall.json -- sleep 4";
    let fault = ["--meter-fault", "wt310=over-range@60"];
    let output = on_node(folder.path(), &fault, script);
    let shown = text(&output.stdout) + &text(&output.stderr);
    let node = document(folder.path(), "wall.json", &shown)["node"].clone();
    assert!(node["energy_j"].as_f64().unwrap() > 0.0, "{node}");
    assert!(
        shown.contains("the power was over the meter's range"),
        "{shown}"
    );
}
