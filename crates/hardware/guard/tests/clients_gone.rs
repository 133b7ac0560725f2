//! A client that is gone, at whatever step of the protocol: the device is as before, and so is the journal.

mod common;

use std::os::unix::ffi::OsStrExt;

use common::{Bench, RawGuard, cap, is_running};

#[test]
fn guard_process() {
    common::serve_where_asked();
}

const LEASE: &str = r#"{"lease":{"devices":["a","b"],"owner":{"boot_id":"x","pid":1,"start_time":2,"command":"test"}}}"#;
const APPLY_CAP: &str = r#"{"apply":{"device":"a","settings":{"power_cap":"180 W"}}}"#;
const APPLY_CORE: &str = r#"{"apply":{"device":"b","settings":{"core_clock":"1200 MHz"}}}"#;

fn expect_as_before(bench: &Bench, step: &str) {
    for device in ["a", "b"] {
        assert_eq!(bench.state(device).set, cap(250.0), "{step}: {device}");
    }
    assert!(bench.journals().is_empty(), "{step}");
}

/// The first steps of the protocol, each with its answer.
fn go_to(guard: &mut RawGuard, steps: usize) {
    for (request, answer) in [
        (LEASE, "leased"),
        (APPLY_CAP, "applied"),
        (APPLY_CORE, "applied"),
    ]
    .iter()
    .take(steps)
    {
        let heard = guard.ask(request);
        assert!(heard.contains(answer), "{heard}");
    }
}

fn start(marker: &str) -> String {
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
fn after_each_step() {
    for steps in 0..=3 {
        let bench = Bench::new(&["a", "b"]);
        let mut guard = bench.raw_guard();
        go_to(&mut guard, steps);
        assert!(guard.vanish(), "{steps}");
        expect_as_before(&bench, &format!("after {steps} steps"));
    }
}

#[test]
fn in_the_middle_of_a_line() {
    for request in [LEASE, APPLY_CAP, APPLY_CORE] {
        for length in (1..=request.len()).step_by(9) {
            let bench = Bench::new(&["a", "b"]);
            let mut guard = bench.raw_guard();
            go_to(&mut guard, if request == LEASE { 0 } else { 2 });
            // The whole request without the end of its line is none yet.
            guard.say(&request.as_bytes()[..length]);
            assert!(guard.vanish(), "{length} bytes of {request}");
            expect_as_before(&bench, &format!("{length} bytes of {request}"));
            let is_set = bench.writes().iter().any(|write| write.contains("core"));
            assert!(!is_set, "{length} bytes of {request}");
        }
    }
}

#[test]
fn without_waiting_for_the_answer() {
    let bench = Bench::new(&["a", "b"]);
    let mut guard = bench.raw_guard();
    guard.say(format!("{LEASE}\n{APPLY_CAP}\n{APPLY_CORE}\n").as_bytes());
    assert!(guard.vanish());
    expect_as_before(&bench, "three requests at once");
}

#[test]
fn while_the_workload_runs() {
    let bench = Bench::new(&["a", "b"]);
    let marker = format!("gone-client-{}", std::process::id());
    let mut guard = bench.raw_guard();
    go_to(&mut guard, 3);
    let heard = guard.ask(&start(&marker));
    assert!(heard.contains("started"), "{heard}");
    common::eventually("the workload runs", || is_running(&marker));
    assert!(guard.vanish());
    expect_as_before(&bench, "while the workload runs");
    assert!(!is_running(&marker));
}

#[test]
fn after_an_interruption_nothing_is_set_any_more() {
    let bench = Bench::new(&["a", "b"]);
    let mut guard = bench.raw_guard();
    go_to(&mut guard, 3);
    let heard = guard.ask(r#"{"interrupt":{"signal":15,"pass_on":true}}"#);
    assert_eq!(heard.trim(), r#"{"released":{"problems":[]}}"#);
    expect_as_before(&bench, "interrupted");
    for request in [LEASE, APPLY_CAP, &start("never")] {
        let heard = guard.ask(request);
        assert_eq!(heard.trim(), r#"{"refused":"interrupted"}"#);
    }
    assert!(guard.vanish());
    expect_as_before(&bench, "interrupted and gone");
}

/// A release that a signal follows at once: the workload was ended by it, and its orphans are to end too.
#[test]
fn an_interruption_after_the_release_ends_what_is_left() {
    let bench = Bench::new(&["a", "b"]);
    let marker = format!("late-signal-{}", std::process::id());
    let mut guard = bench.raw_guard();
    go_to(&mut guard, 3);
    guard.ask(&start(&marker));
    common::eventually("the workload runs", || is_running(&marker));
    guard.say(b"{\"release\":{\"end_workload\":false}}\n{\"interrupt\":{\"signal\":15,\"pass_on\":true}}\n");
    let heard = guard.hear();
    assert!(heard.contains("released"), "{heard}");
    assert!(guard.vanish());
    assert!(!is_running(&marker));
    expect_as_before(&bench, "a late signal");
}

mod hostile {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        /// Nonsense on the wire, after a device was set: everything comes back, and the guard ends well.
        #[test]
        fn any_bytes_end_with_everything_as_before(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            steps in 0usize..=3,
        ) {
            let bench = Bench::new(&["a", "b"]);
            let mut guard = bench.raw_guard();
            go_to(&mut guard, steps);
            use std::io::Write;
            // The guard may hang up in the middle.
            let _ = guard.stream.write_all(&bytes);
            let _ = guard.stream.write_all(b"\n");
            prop_assert!(guard.vanish());
            expect_as_before(&bench, "nonsense");
        }
    }
}
