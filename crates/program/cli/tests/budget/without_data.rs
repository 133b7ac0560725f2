//! Without power readings there is no verdict and no energy.

use std::process::Stdio;

use super::common::{PROGRAM, document, start_budget, stderr_text};
use crate::common::{own_group, text};
use crate::host::TestHost;
use crate::node_energy::{example, on_node};

/// The first GPU works, and its sensors have stopped; the second one is idle.
#[test]
fn stuck_sensors_leave_the_verdict_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let profile = include_str!("../../../../simulate/sim/profiles/gpus/nvidia_h200.toml");
    let sensors = [
        "energy-counter",
        "average-power",
        "instant-power",
        "buffered-power",
    ];
    let stuck = sensors.map(|sensor| {
        format!("[[fault]]\nkind = \"stuck-sensor\"\nsensor = \"{sensor}\"\nafter = \"2 s\"\n")
    });
    let path = folder.path().join("stuck.toml");
    std::fs::write(&path, format!("{profile}\n{}", stuck.concat())).unwrap();
    let host = TestHost::new(&format!("{},nvidia_h200", path.display()));
    let mut command = host.command(PROGRAM);
    let words = ["sim-workload", "--network", "vgg19", "--seconds", "9"];
    command.args(words).env("CUDA_VISIBLE_DEVICES", "0");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut workload = own_group(command.stderr(Stdio::null())).spawn().unwrap();
    let budget = start_budget(&host, &["--below", "1300W", "--for", "8s"]);
    let output = budget.wait_with_output().unwrap();
    workload.wait().unwrap();
    let (shown, document) = (stderr_text(&output), document(&output));
    assert_eq!(output.status.code(), Some(1), "{shown} {document}");
    assert!(document.get("met").is_none(), "{document}");
    assert!(document["unread_s"].as_f64().unwrap() > 3.0, "{document}");
    assert!(document.get("energy_j").is_none(), "{document}");
    assert!(document.get("mean_power_w").is_none(), "{document}");
    let [stuck, working] = [&document["devices"][0], &document["devices"][1]];
    assert!(stuck.get("energy_j").is_none(), "{document}");
    assert!(stuck["unread_s"].as_f64().unwrap() > 3.0, "{document}");
    assert!(working.get("unread_s").is_none(), "{document}");
    assert!(working["energy_j"].as_f64().unwrap() > 100.0, "{document}");
    let told = shown.matches("GPU 0: no new power reading for 2 s");
    assert_eq!(told.count(), 1, "{shown}");
}

#[test]
fn a_silent_meter_leaves_the_verdict_of_a_node_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let workload = example("my_workload.toml");
    let script = format!(
        "$S sim-workload --network {workload} --seconds 9 >gpu.log 2>&1 & $S budget --of node --meter wall --below 2kW --for 9s --export-json budget.json; echo code $?; wait"
    );
    let output = on_node(
        folder.path(),
        &["--meter-fault", "wt310=silent@40"],
        &script,
    );
    let shown = text(&output.stdout) + &text(&output.stderr);
    let written = std::fs::read_to_string(folder.path().join("budget.json")).expect(&shown);
    let document: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert!(shown.contains("code 1"), "{shown} {document}");
    assert!(
        shown.contains("It is unknown whether the budget was kept (no power readings for"),
        "{shown}"
    );
    assert!(document.get("met").is_none(), "{document}");
    assert!(
        document["node"]["unread_s"].as_f64().unwrap() > 1.0,
        "{document}"
    );
}
