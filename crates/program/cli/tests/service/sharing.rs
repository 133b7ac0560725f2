//! GPUs on which processes of several users run.

use sweetspot_guard::Refusal;

use super::client::{Client, apply_cap, lease};
use super::refusals::Refusals;
use super::served_host::{ALICE, BOB, ServedHost, wait_for};

const POLICY: &str = "[[allow]]\neveryone = true\npower-cap = true\n";

#[test]
#[ignore = "needs root"]
fn a_gpu_that_another_user_uses_is_not_leased() {
    let served = ServedHost::started("v100:2", POLICY);
    let (first, second) = (served.uuid(0), served.uuid(1));
    let workload = served.use_gpu(BOB);
    let mut alice = Refusals::new(&served, ALICE);
    let pid = workload.0.id();
    let in_use = format!("process {pid} of user {} uses the GPU too", BOB.uid);
    alice.of(&[], &lease(&first), &in_use);
    let both = serde_json::json!({"lease": {"devices": [second, first]}});
    alice.of(&[], &both, &in_use);
    let limit = "POST /gpu/set_power_limit?gpu_ids=0&power_limit_mw=180000&block=true HTTP/1.1\r\n\
                 Host: a\r\nConnection: close\r\n\r\n";
    alice.of_http(limit, 403, &in_use);
    // The other GPU is free, and so is the first one for Bob himself.
    alice.client.lease_and_cap(&second, 160);
    Client::start(&served, BOB).lease_and_cap(&first, 170);
    served.wait_for_cap(0, 300.0);
    drop(workload);
    wait_for("the GPU to be free", || {
        let mut client = Client::start(&served, ALICE);
        let connection = client.greet();
        let reply = client.ask(connection, &lease(&first));
        !matches!(reply, sweetspot_guard::SettingsReply::Refused(_))
    });
}

#[test]
#[ignore = "needs root"]
fn a_lease_ends_when_another_user_begins_to_use_the_gpu() {
    let served = ServedHost::started("v100:2", POLICY);
    let first = served.uuid(0);
    let mut alice = Client::start(&served, ALICE);
    let connection = alice.lease_and_cap(&first, 160);
    // A process of the same user changes nothing.
    let _own = served.use_gpu(ALICE);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    alice.ask_allowed(connection, &apply_cap(&first, "165 W"));
    let workload = served.use_gpu(BOB);
    served.wait_for_cap(0, 300.0);
    wait_for("a line in the log", || {
        !served.audited("lease-ended").is_empty()
    });
    let ended = served.audited("lease-ended");
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0]["uid"], ALICE.uid);
    let reason = format!("process {} of user {}", workload.0.id(), BOB.uid);
    assert!(ended[0]["reason"].as_str().unwrap().contains(&reason));
    // The next request says why, and so does the one after it.
    let before = served.host.writes();
    for cap in ["170 W", "180 W"] {
        let refusal = alice.ask_refused(connection, &apply_cap(&first, cap));
        let Refusal::LeaseEnded { reason: told, .. } = &refusal else {
            panic!("{refusal}");
        };
        assert!(told.contains(&reason), "{told}");
    }
    assert_eq!(served.host.writes(), before);
    assert_eq!(served.audited("refused").len(), 2);
    // A new lease is refused while Bob's process runs.
    let refusal = alice.ask_refused(connection, &lease(&first)).to_string();
    assert!(refusal.contains(&reason), "{refusal}");
}

#[test]
#[ignore = "needs root"]
fn a_process_that_appears_between_lease_and_setting_ends_the_lease() {
    let served = ServedHost::started("v100:2", POLICY);
    let first = served.uuid(0);
    let mut alice = Client::start(&served, ALICE);
    let connection = alice.greet();
    alice.ask_allowed(connection, &lease(&first));
    let workload = served.use_gpu(BOB);
    // Whether the periodic check comes first or not, nothing is written.
    let refusal = alice.ask_refused(connection, &apply_cap(&first, "160 W"));
    let reason = format!("process {} of user", workload.0.id());
    assert!(refusal.to_string().contains(&reason), "{refusal}");
    assert_eq!(served.host.writes(), "");
}

#[test]
#[ignore = "needs root"]
fn a_command_says_why_its_setting_is_refused() {
    let served = ServedHost::started("v100:2", POLICY);
    let _workload = served.use_gpu(BOB);
    let mut run = served.sweetspot_as(ALICE);
    run.args(["run", "--device", "0", "--power-cap", "160", "--", "true"]);
    let output = run.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("uses the GPU too"), "{message}");
    assert!(message.contains("shared-gpus"), "{message}");
    assert_eq!(served.host.writes(), "");
}
