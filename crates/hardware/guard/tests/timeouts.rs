//! A guard that does not answer in time is killed, and another one restores what it left changed.

mod common;

use std::time::{Duration, Instant};

use common::{TestMachine, cap, core, id, stop};
use sweetspot_guard::{Guard, GuardError, GuardMessage, GuardTimeouts, Streams, WorkloadCommand};

#[test]
fn guard_process() {
    common::serve_if_guard_process();
}

/// Short timeouts, for tests that wait until they pass.
fn short_timeouts() -> GuardTimeouts {
    let limit = Duration::from_millis(300);
    GuardTimeouts {
        answer: limit,
        answer_per_device: Duration::ZERO,
        interruption: limit,
        end: limit,
        silence: limit,
        ping: limit,
    }
}

/// A guard that has set a device and is then stopped.
fn stopped_guard(machine: &TestMachine) -> Guard {
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    guard.set_timeouts(short_timeouts());
    stop(machine.guard_pid());
    guard
}

fn shell_command(script: &str) -> WorkloadCommand {
    WorkloadCommand {
        command: ["sh", "-c", script]
            .map(|word| word.as_bytes().to_vec())
            .to_vec(),
        environment: Vec::new(),
        process_group: 0,
        streams: Streams::default(),
        folder: None,
    }
}

/// Waits for the next message, however long it takes.
fn wait(guard: &mut Guard) -> Result<GuardMessage, GuardError> {
    loop {
        if let Some(message) = guard.wait_for(Duration::from_secs(3600))? {
            return Ok(message);
        }
    }
}

fn is_alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Checks that the guard is killed and reaped, that its journal is left, and that the next guard restores the
/// device.
fn assert_replaceable(machine: &TestMachine, pid: u32, error: &GuardError) {
    let message = error.to_string();
    assert!(
        matches!(error, GuardError::Gone(_)) && message.contains("no reply within"),
        "{message}"
    );
    assert!(!is_alive(pid), "the guard still lives");
    assert_eq!(machine.journals().len(), 1);
    let mut next = machine.guard();
    assert_eq!(next.lease(vec![id("a")]).unwrap().len(), 1);
    assert_eq!(machine.state("a").settings, cap(250.0));
    assert_eq!(next.release(false).unwrap(), []);
    assert!(machine.journals().is_empty());
}

#[test]
fn a_request_to_a_stopped_guard_times_out() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = stopped_guard(&machine);
    let pid = machine.guard_pid();
    let begun = Instant::now();
    let error = guard.apply(&id("a"), &core(1200.0)).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(3));
    // Later requests fail too.
    assert!(matches!(
        guard.restore(&id("a")).unwrap_err(),
        GuardError::Gone(_)
    ));
    drop(guard);
    assert_replaceable(&machine, pid, &error);
}

#[test]
fn a_request_that_a_stopped_guard_does_not_accept_times_out() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = stopped_guard(&machine);
    let pid = machine.guard_pid();
    let begun = Instant::now();
    let mut large = shell_command("true");
    large.environment = vec![("X".to_owned(), "x".repeat(8 << 20))];
    let error = guard.start_workload(large).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(3));
    drop(guard);
    assert_replaceable(&machine, pid, &error);
}

#[test]
fn the_release_of_a_stopped_guard_times_out() {
    let machine = TestMachine::new(&["a"]);
    let guard = stopped_guard(&machine);
    let pid = machine.guard_pid();
    let begun = Instant::now();
    let error = guard.release(false).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_replaceable(&machine, pid, &error);
}

#[test]
fn a_stopped_guard_is_killed_on_drop() {
    let machine = TestMachine::new(&["a"]);
    let guard = stopped_guard(&machine);
    let pid = machine.guard_pid();
    let begun = Instant::now();
    drop(guard);
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert!(!is_alive(pid));
    assert_eq!(machine.journals().len(), 1);
}

#[test]
fn a_stopped_guard_that_is_interrupted_is_killed() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = stopped_guard(&machine);
    guard.set_timeouts(GuardTimeouts {
        silence: Duration::from_secs(3600),
        ..short_timeouts()
    });
    let pid = machine.guard_pid();
    // Without a signal the workload may run for any time.
    assert_eq!(guard.wait_for(Duration::from_millis(500)).unwrap(), None);
    let mut interrupt = guard.interrupter();
    let begun = Instant::now();
    std::thread::spawn(move || interrupt(15, true));
    let error = wait(&mut guard).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(3));
    drop(guard);
    assert_replaceable(&machine, pid, &error);
}

#[test]
fn a_guard_that_does_not_answer_a_ping_is_killed() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = stopped_guard(&machine);
    let pid = machine.guard_pid();
    let begun = Instant::now();
    let error = wait(&mut guard).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(4));
    drop(guard);
    assert_replaceable(&machine, pid, &error);
}

#[test]
fn a_silent_guard_that_answers_pings_is_kept() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.set_timeouts(GuardTimeouts {
        silence: Duration::from_millis(100),
        ping: Duration::from_secs(10),
        ..GuardTimeouts::default()
    });
    guard.start_workload(shell_command("sleep 1")).unwrap();
    let GuardMessage::Ended(end) = wait(&mut guard).unwrap() else {
        panic!("the workload did not end");
    };
    assert_eq!(end.exit, sweetspot_guard::CommandExit::Code(0));
    // Answers to pings do not disturb the next request.
    guard.apply(&id("a"), &cap(200.0)).unwrap();
    assert_eq!(guard.release(false).unwrap(), []);
}

#[test]
fn a_slow_driver_is_waited_for() {
    let machine = TestMachine::new(&["a"]);
    machine.change("a", |state| state.write_ms = 700);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    assert_eq!(machine.state("a").settings, cap(180.0));
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(machine.state("a").settings, cap(250.0));
}

#[test]
fn a_short_wait_stays_short() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    let waits = || {
        let begun = Instant::now();
        for _ in 0..20 {
            assert_eq!(guard.wait_for(Duration::from_millis(5)).unwrap(), None);
        }
        begun.elapsed()
    };
    // A busy machine makes some of them longer, but not all.
    let shortest = std::iter::repeat_with(waits).take(20).min().unwrap();
    assert!(shortest >= Duration::from_millis(95), "{shortest:?}");
    assert!(shortest < Duration::from_millis(350), "{shortest:?}");
}
