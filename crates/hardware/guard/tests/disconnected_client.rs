//! A client that disconnects at any step of the protocol: its devices are restored and the journal is removed.

mod common;

use std::os::unix::ffi::OsStrExt;

use common::{RawGuard, TestMachine, cap, is_running};

#[test]
fn guard_process() {
    common::serve_if_guard_process();
}

const LEASE: &str = r#"{"lease":{"devices":["a","b"],"owner":{"boot_id":"x","pid":1,"start_time":2,"command":"test"}}}"#;
const APPLY_CAP: &str = r#"{"apply":{"device":"a","settings":{"power_cap":"180 W"}}}"#;
const APPLY_CORE: &str = r#"{"apply":{"device":"b","settings":{"core_clock":"1200 MHz"}}}"#;

fn assert_restored(machine: &TestMachine, step: &str) {
    for device in ["a", "b"] {
        assert_eq!(
            machine.state(device).settings,
            cap(250.0),
            "{step}: {device}"
        );
    }
    assert!(machine.journals().is_empty(), "{step}");
}

/// Sends the first steps of the protocol and checks each answer.
fn send_steps(guard: &mut RawGuard, steps: usize) {
    for (request, answer) in [
        (LEASE, "leased"),
        (APPLY_CAP, "applied"),
        (APPLY_CORE, "applied"),
    ]
    .iter()
    .take(steps)
    {
        let reply = guard.ask(request);
        assert!(reply.contains(answer), "{reply}");
    }
}

fn start_request(marker: &str) -> String {
    let script = format!("setsid sh -c 'sleep 60' {marker} & sleep 60; true");
    let words: Vec<Vec<u8>> = ["sh", "-c", &script, marker]
        .map(|word| std::ffi::OsStr::new(word).as_bytes().to_vec())
        .to_vec();
    serde_json::json!({"start": {
        "command": words, "environment": [], "process_group": 0,
        "streams": {"no_input": true, "output": null, "error": null}, "folder": null,
    }})
    .to_string()
}

#[test]
fn a_client_may_disconnect_after_each_step() {
    for steps in 0..=3 {
        let machine = TestMachine::new(&["a", "b"]);
        let mut guard = machine.raw_guard();
        send_steps(&mut guard, steps);
        assert!(guard.disconnect(), "{steps}");
        assert_restored(&machine, &format!("after {steps} steps"));
    }
}

#[test]
fn a_client_may_disconnect_in_the_middle_of_a_line() {
    for request in [LEASE, APPLY_CAP, APPLY_CORE] {
        for length in (1..=request.len()).step_by(9) {
            let machine = TestMachine::new(&["a", "b"]);
            let mut guard = machine.raw_guard();
            send_steps(&mut guard, if request == LEASE { 0 } else { 2 });
            // A whole request without the end of its line does not count yet.
            guard.send(&request.as_bytes()[..length]);
            assert!(guard.disconnect(), "{length} bytes of {request}");
            assert_restored(&machine, &format!("{length} bytes of {request}"));
            let is_set = machine.writes().iter().any(|write| write.contains("core"));
            assert!(!is_set, "{length} bytes of {request}");
        }
    }
}

#[test]
fn a_client_may_disconnect_before_the_answer() {
    let machine = TestMachine::new(&["a", "b"]);
    let mut guard = machine.raw_guard();
    guard.send(format!("{LEASE}\n{APPLY_CAP}\n{APPLY_CORE}\n").as_bytes());
    assert!(guard.disconnect());
    assert_restored(&machine, "three requests at once");
}

#[test]
fn a_client_may_disconnect_while_the_workload_runs() {
    let machine = TestMachine::new(&["a", "b"]);
    let marker = format!("gone-client-{}", std::process::id());
    let mut guard = machine.raw_guard();
    send_steps(&mut guard, 3);
    let reply = guard.ask(&start_request(&marker));
    assert!(reply.contains("started"), "{reply}");
    common::wait_until("the workload runs", || is_running(&marker));
    assert!(guard.disconnect());
    assert_restored(&machine, "while the workload runs");
    assert!(!is_running(&marker));
}

#[test]
fn settings_are_refused_after_an_interruption() {
    let machine = TestMachine::new(&["a", "b"]);
    let mut guard = machine.raw_guard();
    send_steps(&mut guard, 3);
    let reply = guard.ask(r#"{"interrupt":{"signal":15,"pass_on":true}}"#);
    assert_eq!(reply.trim(), r#"{"released":{"problems":[]}}"#);
    assert_restored(&machine, "interrupted");
    for request in [LEASE, APPLY_CAP, &start_request("never")] {
        let reply = guard.ask(request);
        assert_eq!(reply.trim(), r#"{"refused":"interrupted"}"#);
    }
    assert!(guard.disconnect());
    assert_restored(&machine, "interrupted and gone");
}

/// A signal that directly follows the release has ended the workload, so its orphans must end too.
#[test]
fn an_interruption_after_the_release_ends_the_workload() {
    let machine = TestMachine::new(&["a", "b"]);
    let marker = format!("late-signal-{}", std::process::id());
    let mut guard = machine.raw_guard();
    send_steps(&mut guard, 3);
    guard.ask(&start_request(&marker));
    common::wait_until("the workload runs", || is_running(&marker));
    guard.send(b"{\"release\":{\"end_workload\":false}}\n{\"interrupt\":{\"signal\":15,\"pass_on\":true}}\n");
    let reply = guard.receive();
    assert!(reply.contains("released"), "{reply}");
    assert!(guard.disconnect());
    assert!(!is_running(&marker));
    assert_restored(&machine, "a late signal");
}

mod invalid_requests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        /// Invalid bytes after a device was set: all settings are restored, and the guard exits with success.
        #[test]
        fn any_bytes_end_with_restored_settings(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            steps in 0usize..=3,
        ) {
            let machine = TestMachine::new(&["a", "b"]);
            let mut guard = machine.raw_guard();
            send_steps(&mut guard, steps);
            use std::io::Write;
            // The guard may close the connection in the middle.
            let _ = guard.stream.write_all(&bytes);
            let _ = guard.stream.write_all(b"\n");
            prop_assert!(guard.disconnect());
            assert_restored(&machine, "nonsense");
        }
    }
}
