//! What the measuring process shows of jobs: the energy of leased ones, and whatever a process reports about itself.

use serde_json::{Value, json};
use sweetspot_guard::SettingsReply;

use super::client::Client;
use super::measuring::{counter, measured, monitor_pid};
use super::measuring_tcp::{body, free_address, get};
use super::served_host::{ALICE, Account, BOB, ServedHost, wait_for};

const ROOT: Account = Account {
    uid: 0,
    groups: &[],
};

/// Leases GPU 0 for a job of Alice, as the prolog of a scheduler does.
fn lease_for_job(served: &ServedHost, name: &str) -> Client {
    let mut root = Client::start(served, ROOT);
    let connection = root.open();
    let job = json!({"name": name, "uid": ALICE.uid});
    let reply = root.ask(connection, &json!({"hello": {"version": 1, "job": job}}));
    assert_eq!(reply, SettingsReply::Hello { version: 1 });
    let lease = json!({"lease": {"devices": [served.uuid(0)], "kind": "ceiling"}});
    root.ask_allowed(connection, &lease);
    root
}

/// The leases that the live page shows, each with whether its energy is known.
fn leases(address: &str) -> Vec<(Value, bool)> {
    let live: Value = serde_json::from_str(body(&get(address, "/live"))).unwrap();
    let leases = live["leases"].as_array().unwrap().iter();
    let leases = leases.map(|lease| (lease["job"].clone(), lease["energy_j"].is_number()));
    leases.collect()
}

#[test]
#[ignore = "needs root"]
fn a_command_within_a_job_does_not_hide_the_energy_of_the_job() {
    let address = free_address();
    let served = measured("v100", &["--listen", &address]);
    let _root = lease_for_job(&served, "slurm-7");
    let mut alice = Client::start(&served, ALICE);
    let connection = alice.lease_and_cap(&served.uuid(0), 180);
    wait_for("both leases", || leases(&address).len() == 2);
    assert!(leases(&address).iter().all(|(_, is_known)| *is_known));
    alice.close(connection);
    drop(alice);
    wait_for("the end of the inner lease", || leases(&address).len() == 1);
    assert_eq!(leases(&address), [(json!("slurm-7"), true)]);
    // A program of another user on the GPU hides it.
    let _workload = served.use_gpu(BOB);
    wait_for("the other program", || {
        leases(&address) == [(json!("slurm-7"), false)]
    });
}

#[test]
#[ignore = "needs root"]
fn no_report_of_a_user_ends_the_measuring_process() {
    let address = free_address();
    let served = measured("v100", &["--listen", &address]);
    let pid = monitor_pid(&served);
    assert!(counter(&served, ALICE, &["start", "a"]).status.success());
    let mut bob = Client::start(&served, BOB);
    let verb = format!("a{}", "é".repeat(40));
    let job = json!({"verb": verb, "elapsed_s": 1, "saved_energy_j": 1e300}).to_string();
    let length = job.len();
    let head = format!(
        "POST /job HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let answer = bob.http((head + &job).as_bytes());
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let metrics = get(&address, "/metrics");
    assert!(
        metrics.contains("sweetspot_saved_energy_joules{source=\"jobs\"} 0\n"),
        "{metrics}"
    );
    assert_eq!(monitor_pid(&served), pid);
    assert!(counter(&served, ALICE, &["stop", "a"]).status.success());
}
