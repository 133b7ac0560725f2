//! Users without root cap the processors if the policy gives them that right.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::measuring::counter;
use super::served_host::{ALICE, Account, BOB, ServedHost, wait_for};
use crate::common::text;
use crate::processors::MadeTree;
use crate::schemas::problems;

const POLICY: &str = "[[allow]]\nusers = [64001]\nprocessor-cap = true\n\n[[allow]]\neveryone = true\npower-cap = true\n";
const LIMIT: &str = "powercap/intel-rapl:0/constraint_0_power_limit_uw";

#[test]
fn the_right_to_cap_processors_is_one_of_its_own() {
    let mut served = ServedHost::new("v100", POLICY);
    let tree = MadeTree::server_in(&served.folder);
    std::fs::set_permissions(tree.root(), Permissions::from_mode(0o755)).unwrap();
    let mut serve = served.serve();
    serve.arg("--sysfs").arg(tree.root());
    served.start_with(&mut serve);
    let limit = tree.path(LIMIT).display().to_string();
    let run = |account: Account| {
        let mut command = served.sweetspot_as(account);
        command.env("SWEETSPOT_SYSFS", tree.root());
        command.args(["run", "--cpu-power-cap", "120", "--", "cat", &limit]);
        command.output().unwrap()
    };
    let allowed = run(ALICE);
    assert_eq!(
        text(&allowed.stdout).trim(),
        "120000000",
        "{}",
        text(&allowed.stderr)
    );
    assert_eq!(tree.read(LIMIT), "205000000");
    let refused = run(BOB);
    assert_eq!(refused.status.code(), Some(125));
    assert!(
        text(&refused.stderr).contains("processor"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(tree.read(LIMIT), "205000000");
}

/// Lets the counter of a package rise by 50 W until it is dropped.
struct RisingCounter(Arc<AtomicBool>);

impl RisingCounter {
    fn start(file: std::path::PathBuf) -> Self {
        let is_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_ended);
        let begun = Instant::now();
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let microjoules = 1_000_000 + (begun.elapsed().as_secs_f64() * 50e6) as u64;
                // The file is replaced, so that no reader finds it empty.
                let new = file.with_extension("new");
                std::fs::write(&new, format!("{microjoules}\n")).unwrap();
                std::fs::rename(&new, &file).unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self(is_ended)
    }
}

impl Drop for RisingCounter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "needs root"]
fn processor_energy_is_in_the_counters_of_permitted_users_alone() {
    let policy = format!(
        "[[allow]]\nusers = [{}]\nprocessor-energy = true\n\n[[allow]]\neveryone = true\npower-cap = true\n",
        ALICE.uid
    );
    let mut served = ServedHost::new("v100", &policy);
    let tree = MadeTree::server_in(&served.folder);
    let file = tree.path("powercap/intel-rapl:0/energy_uj");
    let _rising = RisingCounter::start(file);
    let mut serve = served.serve_and_measure();
    serve.arg("--sysfs").arg(tree.root());
    served.start_with(&mut serve);
    wait_for("the measuring process", || {
        counter(&served, ALICE, &["list"]).status.success()
    });
    // Until it has got a reading.
    std::thread::sleep(Duration::from_secs(3));
    for account in [ALICE, BOB] {
        assert!(counter(&served, account, &["start", "a"]).status.success());
    }
    std::thread::sleep(Duration::from_secs(3));
    let stopped = |account| -> Value {
        let output = counter(&served, account, &["stop", "a", "--export-json", "-"]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let alice = stopped(ALICE);
    assert_eq!(problems("counter", std::slice::from_ref(&alice)), [""]);
    let parts = alice["processors"].as_array().unwrap();
    let names: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["name"].as_str())
        .collect();
    assert_eq!(
        names.len(),
        4,
        "two packages, each with its memory: {alice}"
    );
    let package = parts
        .iter()
        .find(|part| part["zone"] == "intel-rapl:0")
        .unwrap();
    let truth = 50.0 * alice["time_s"].as_f64().unwrap();
    let bound = |place: usize| package["interval95_j"][place].as_f64().unwrap();
    assert!(bound(0) <= truth && truth <= bound(1), "{alice} {truth}");
    let other = parts
        .iter()
        .find(|part| part["zone"] == "intel-rapl:1")
        .unwrap();
    assert_eq!(other["energy_j"], 0.0, "{alice}");
    let shown = text(&counter(&served, ALICE, &["read", "a"]).stdout);
    assert!(shown.contains("Processors:  1"), "{shown}");
    let bob = stopped(BOB);
    assert!(
        bob["processors"].is_null() && bob["notes"].is_null(),
        "{bob}"
    );
    let shown = text(&counter(&served, BOB, &["read", "a"]).stdout);
    assert!(!shown.contains("Processors"), "{shown}");
}
