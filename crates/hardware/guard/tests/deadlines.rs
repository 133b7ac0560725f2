//! A guard that does not answer is killed after a while, and another puts back what it left.

mod common;

use std::time::{Duration, Instant};

use common::{Bench, cap, core, id, kill};
use sweetspot_guard::{Guard, GuardError, Limits, Message, Start, Streams};

#[test]
fn guard_process() {
    common::serve_where_asked();
}

/// Short, for tests that wait for their end.
fn short() -> Limits {
    let limit = Duration::from_millis(300);
    Limits {
        answer: limit,
        answer_per_device: Duration::ZERO,
        interruption: limit,
        end: limit,
        silence: limit,
        sign_of_life: limit,
    }
}

/// A guard that has set a device, and is then stopped.
fn stopped(bench: &Bench) -> Guard {
    let mut guard = bench.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    guard.set_limits(short());
    kill("-STOP", bench.guard_pid());
    guard
}

fn start(script: &str) -> Start {
    Start {
        command: ["sh", "-c", script]
            .map(|word| word.as_bytes().to_vec())
            .to_vec(),
        environment: Vec::new(),
        process_group: 0,
        streams: Streams::default(),
        folder: None,
    }
}

fn is_alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// The guard is killed and reaped, its journal is there, and the next one puts the device back.
fn expect_replaceable(bench: &Bench, pid: u32, error: &GuardError) {
    let message = error.to_string();
    assert!(
        matches!(error, GuardError::Gone(_)) && message.contains("did not answer within"),
        "{message}"
    );
    assert!(!is_alive(pid), "the guard still lives");
    assert_eq!(bench.journals().len(), 1);
    let mut next = bench.guard();
    assert_eq!(next.lease(vec![id("a")]).unwrap().len(), 1);
    assert_eq!(bench.state("a").set, cap(250.0));
    assert_eq!(next.release(false).unwrap(), []);
    assert!(bench.journals().is_empty());
}

#[test]
fn a_request_to_a_stopped_guard_ends() {
    let bench = Bench::new(&["a"]);
    let mut guard = stopped(&bench);
    let pid = bench.guard_pid();
    let begun = Instant::now();
    let error = guard.apply(&id("a"), &core(1200.0)).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(3));
    // What comes later finds it gone.
    assert!(matches!(
        guard.put_back(&id("a")).unwrap_err(),
        GuardError::Gone(_)
    ));
    drop(guard);
    expect_replaceable(&bench, pid, &error);
}

#[test]
fn a_request_that_a_stopped_guard_does_not_take_ends() {
    let bench = Bench::new(&["a"]);
    let mut guard = stopped(&bench);
    let pid = bench.guard_pid();
    let begun = Instant::now();
    let mut large = start("true");
    large.environment = vec![("X".to_owned(), "x".repeat(8 << 20))];
    let error = guard.run(large).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(3));
    drop(guard);
    expect_replaceable(&bench, pid, &error);
}

#[test]
fn the_release_of_a_stopped_guard_ends() {
    let bench = Bench::new(&["a"]);
    let guard = stopped(&bench);
    let pid = bench.guard_pid();
    let begun = Instant::now();
    let error = guard.release(false).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(3));
    expect_replaceable(&bench, pid, &error);
}

#[test]
fn a_stopped_guard_that_is_dropped_is_ended() {
    let bench = Bench::new(&["a"]);
    let guard = stopped(&bench);
    let pid = bench.guard_pid();
    let begun = Instant::now();
    drop(guard);
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert!(!is_alive(pid));
    assert_eq!(bench.journals().len(), 1);
}

#[test]
fn a_stopped_guard_that_is_interrupted_is_given_up() {
    let bench = Bench::new(&["a"]);
    let mut guard = stopped(&bench);
    guard.set_limits(Limits {
        silence: Duration::from_secs(3600),
        ..short()
    });
    let pid = bench.guard_pid();
    // Without a signal the workload may take as long as it likes.
    assert_eq!(guard.wait_for(Duration::from_millis(500)).unwrap(), None);
    let mut interrupt = guard.interrupter();
    let begun = Instant::now();
    std::thread::spawn(move || interrupt(15, true));
    let error = guard.wait().unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(3));
    drop(guard);
    expect_replaceable(&bench, pid, &error);
}

#[test]
fn a_guard_without_a_sign_of_life_is_given_up() {
    let bench = Bench::new(&["a"]);
    let mut guard = stopped(&bench);
    let pid = bench.guard_pid();
    let begun = Instant::now();
    let error = guard.wait().unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(4));
    drop(guard);
    expect_replaceable(&bench, pid, &error);
}

#[test]
fn a_silent_guard_that_lives_is_kept() {
    let bench = Bench::new(&["a"]);
    let mut guard = bench.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.set_limits(Limits {
        silence: Duration::from_millis(100),
        sign_of_life: Duration::from_secs(10),
        ..Limits::default()
    });
    guard.run(start("sleep 1")).unwrap();
    let Message::Ended(end) = guard.wait().unwrap() else {
        panic!("the workload did not end");
    };
    assert_eq!(end.ended, sweetspot_guard::Ended::Code(0));
    // Answers to the questions meanwhile do not disturb the next one.
    guard.apply(&id("a"), &cap(200.0)).unwrap();
    assert_eq!(guard.release(false).unwrap(), []);
}

#[test]
fn a_driver_that_is_slow_is_waited_for() {
    let bench = Bench::new(&["a"]);
    bench.change("a", |state| state.write_ms = 700);
    let mut guard = bench.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    assert_eq!(bench.state("a").set, cap(180.0));
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(bench.state("a").set, cap(250.0));
}

#[test]
fn a_short_wait_stays_short() {
    let bench = Bench::new(&["a"]);
    let mut guard = bench.guard();
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(guard.wait_for(Duration::from_millis(5)).unwrap(), None);
    }
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(95), "{took:?}");
    assert!(took < Duration::from_millis(350), "{took:?}");
}
