//! The measuring process of the service: counters of several users, and what happens when it dies.

use std::process::Output;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use sweetspot_sim_host::Host;

use super::client::Client;
use super::served_host::{ALICE, Account, BOB, ServedHost, send_signal, wait_for};
use crate::schemas::problems;

/// A policy that lets Alice set a cap.
pub fn policy() -> String {
    format!("[[allow]]\nusers = [{}]\npower-cap = true\n", ALICE.uid)
}

/// A host with the service and its measuring process.
pub fn measured(gpus: &str, arguments: &[&str]) -> ServedHost {
    let mut served = ServedHost::new(gpus, &policy());
    let mut serve = served.serve_and_measure();
    serve.args(arguments);
    served.start_with(&mut serve);
    wait_for("the measuring process", || {
        counter(&served, ALICE, &["list"]).status.success()
    });
    served
}

/// Runs `sweetspot counter` as a user.
pub fn counter(served: &ServedHost, account: Account, arguments: &[&str]) -> Output {
    let mut command = served.sweetspot_as(account);
    command.arg("counter").args(arguments).output().unwrap()
}

/// The result of a counter as JSON.
fn counted(served: &ServedHost, account: Account, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--export-json", "-"]].concat();
    let output = counter(served, account, &arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// The sentence with which a request is refused.
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The id of the measuring process.
pub fn monitor_pid(served: &ServedHost) -> u32 {
    let parent = served.service_pid();
    let children = format!("/proc/{parent}/task/{parent}/children");
    let children = std::fs::read_to_string(children).unwrap();
    let mut children = children.split_whitespace().map(|pid| pid.parse().unwrap());
    children.next().expect("the measuring process runs")
}

#[test]
#[ignore = "needs root"]
fn a_counter_measures_what_the_gpu_drew() {
    let served = measured("v100:2", &[]);
    let _workload = served.use_gpu(ALICE);
    let energy = || {
        let host = Host::open(served.host.folder()).unwrap();
        let energy = host.gpus()[0].with_gpu(|gpu| gpu.energy().get());
        energy.unwrap()
    };
    let (before, started) = (energy(), std::time::Instant::now());
    assert!(
        counter(&served, ALICE, &["start", "a", "--device", "0"])
            .status
            .success()
    );
    let inner_before = energy();
    std::thread::sleep(Duration::from_secs(3));
    let inner_after = energy();
    let stopped = counted(&served, ALICE, &["stop", "a"]);
    let (after, passed) = (energy(), started.elapsed().as_secs_f64());
    let measured = stopped["energy_j"].as_f64().unwrap();
    // The counter lies between the two times that enclose it and are enclosed by it.
    assert!(measured > 0.97 * (inner_after - inner_before), "{stopped}");
    assert!(
        measured < 1.03 * (after - before),
        "{stopped} {}",
        after - before
    );
    assert!(
        (3.0..passed).contains(&stopped["time_s"].as_f64().unwrap()),
        "{stopped}"
    );
    assert_eq!(stopped["devices"].as_array().unwrap().len(), 1);
    assert_eq!(problems("counter", std::slice::from_ref(&stopped)), [""]);
    // Its samples integrate to the same energy.
    let output = counter(&served, ALICE, &["read", "a", "--export-csv", "-"]);
    let csv = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<f64>> = csv
        .lines()
        .skip(1)
        .map(|line| {
            line.split(',')
                .map(|field| field.parse().unwrap())
                .collect()
        })
        .collect();
    assert!(rows.len() > 100, "{csv}");
    let mean = rows.iter().map(|row| row[3]).sum::<f64>() / rows.len() as f64;
    let power = stopped["average_power_w"].as_f64().unwrap();
    assert!((mean / power - 1.0).abs() < 0.05, "{mean} {power}");
}

#[test]
#[ignore = "needs root"]
fn a_counter_belongs_to_its_user() {
    let served = measured("v100", &[]);
    assert!(counter(&served, ALICE, &["start", "mine"]).status.success());
    for verb in ["stop", "read", "delete"] {
        let text = refusal(&counter(&served, BOB, &[verb, "mine"]));
        assert!(text.contains("you have no counter `mine`"), "{text}");
    }
    let own = counter(&served, BOB, &["list"]);
    assert_eq!(
        String::from_utf8_lossy(&own.stdout),
        "You have no counters.\n"
    );
    let text = refusal(&counter(&served, ALICE, &["start", "mine"]));
    assert!(text.contains("runs already"), "{text}");
    let text = refusal(&counter(&served, ALICE, &["start", "a b"]));
    assert!(text.contains("invalid counter name"), "{text}");
    let text = refusal(&counter(&served, ALICE, &["start", "b", "--device", "7"]));
    assert!(text.contains("there is no GPU `7`"), "{text}");
    assert_eq!(
        counted(&served, ALICE, &["read", "mine"])["state"],
        "running"
    );
    assert_eq!(
        counted(&served, ALICE, &["stop", "mine"])["state"],
        "stopped"
    );
    let text = refusal(&counter(&served, ALICE, &["stop", "mine"]));
    assert!(text.contains("was stopped already"), "{text}");
}

#[test]
#[ignore = "needs root"]
fn the_measuring_process_has_no_rights_and_its_death_changes_no_lease() {
    let served = measured("v100", &[]);
    let first = monitor_pid(&served);
    let status = std::fs::read_to_string(format!("/proc/{first}/status")).unwrap();
    let line = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_else(|| panic!("{key}")).trim().to_owned()
    };
    assert!(
        line("Uid:").split_whitespace().all(|uid| uid != "0"),
        "{status}"
    );
    assert!(
        line("Gid:").split_whitespace().all(|gid| gid != "0"),
        "{status}"
    );
    assert_eq!(line("Groups:"), "");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(line(set), "0000000000000000");
    }
    assert_eq!(line("NoNewPrivs:"), "1");
    let mut alice = Client::start(&served, ALICE);
    let connection = alice.lease_and_cap(&served.uuid(0), 180);
    assert_eq!(served.cap(0), 180.0);
    send_signal(first, Signal::KILL);
    wait_for("another measuring process", || {
        let is_other =
            std::panic::catch_unwind(|| monitor_pid(&served)).is_ok_and(|pid| pid != first);
        is_other && counter(&served, ALICE, &["list"]).status.success()
    });
    assert_eq!(served.cap(0), 180.0);
    alice.close(connection);
    drop(alice);
    served.wait_for_cap(0, 300.0);
}

#[test]
#[ignore = "needs root"]
fn python_programs_have_counters() {
    let served = measured("v100", &[]);
    let package = served.path("python/sweetspot");
    std::fs::create_dir_all(&package).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python/src/sweetspot");
    for entry in std::fs::read_dir(source).unwrap().map(Result::unwrap) {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), package.join(entry.file_name())).unwrap();
        }
    }
    let program = "
import sweetspot, time
with sweetspot.Counter('a', devices=[0]) as counter:
    time.sleep(0.5)
assert 0.5 < counter.result['time_s'] < 5, counter.result
assert 10 < counter.average_power_w < 300, counter.result
assert counter.samples_csv().startswith('time_s,'), counter.samples_csv()
try:
    counter.stop()
except sweetspot.CounterError as error:
    print(error)
with sweetspot.measure(devices=[0]) as block:
    time.sleep(0.5)
assert block.source == 'service', block.reason
assert 0.4 < block.time_s < 5 and 10 < block.average_power_w < 300, block
assert [one.index for one in block.by_device.values()] == [0], block.by_device
# There is no GPU 7, and no program that could measure without the service.
with sweetspot.measure(devices=[7]) as block: pass
assert block.energy_j is None and block.reason, block
";
    let mut python = served.command_as(ALICE, "python3");
    python
        .args(["-c", program])
        .env("PYTHONPATH", served.path("python"));
    let output = python.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("the counter `a` was stopped already"),
        "{text}"
    );
}
