//! Processor energy that only root may read, and caps that only root may set.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{SharedMachine, VICTIM};
use crate::processors::MadeTree;

/// A tree as the kernel shows it: counters for root alone.
fn tree() -> MadeTree {
    let tree = MadeTree::server();
    std::fs::set_permissions(tree.root(), Permissions::from_mode(0o755)).unwrap();
    for zone in [
        "intel-rapl:0",
        "intel-rapl:0:1",
        "intel-rapl:1",
        "intel-rapl:1:1",
    ] {
        let file = tree.path(&format!("powercap/{zone}/energy_uj"));
        std::fs::set_permissions(file, Permissions::from_mode(0o400)).unwrap();
    }
    tree
}

fn output(mut command: Command, tree: &MadeTree, args: &[&str]) -> (Option<i32>, String, String) {
    let done = command
        .env("SWEETSPOT_SYSFS", tree.root())
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn a_user_without_rights_is_told_what_to_do() {
    let (machine, tree) = (SharedMachine::new(), tree());
    machine.give_gpus_to(VICTIM);
    let run = |args: &[&str]| output(machine.as_user(VICTIM, &machine.program()), &tree, args);
    let (_, devices, _) = run(&["devices", "--export-json", "-"]);
    let devices: serde_json::Value = serde_json::from_str(&devices).unwrap();
    let package = &devices["host"][0];
    // The energy is absent, and not zero.
    assert!(package["sensors"][0].get("energy_j").is_none(), "{package}");
    assert!(
        package["sensors"][0]["problem"]
            .as_str()
            .unwrap()
            .contains("permission")
    );
    assert!(package["remedy"].as_str().unwrap().contains("run as root"));
    assert!(
        package["power_cap_remedy"]
            .as_str()
            .unwrap()
            .contains("processor-cap")
    );
    let (_, doctor, _) = run(&["doctor"]);
    assert!(doctor.contains("this user may not read"), "{doctor}");
    let (code, _, message) = run(&[
        "sweep",
        "--host",
        "--energy-of",
        "node",
        "--power-cap",
        "200",
        "--",
        "true",
    ]);
    assert_eq!(code, Some(125));
    assert!(
        message.contains("this user may not read its energy: run as root"),
        "{message}"
    );
    let (code, _, message) = run(&["run", "--cpu-power-cap", "100", "--", "true"]);
    assert_eq!(code, Some(125), "{message}");
    assert!(message.contains("root"), "{message}");
    let limit = tree.read("powercap/intel-rapl:0/constraint_0_power_limit_uw");
    assert_eq!(limit, "205000000");
}
