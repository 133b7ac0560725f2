//! A cap is restored when the program, its guard or both are killed at any moment.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use sweetspot_stats::Seed;

use super::{LIMIT, Machine, text};
use crate::host::repeat_on;

fn kill(signal: &str, pid: &str) {
    Command::new("kill").args([signal, pid]).status().unwrap();
}

fn guard_of(client: &Child) -> String {
    let pid = client.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.unwrap_or_default().trim().to_owned()
}

/// Starts a run and waits until both packages are capped.
fn running(machine: &Machine) -> Child {
    let mut command = machine.sweetspot();
    command.args(["run", "--cpu-power-cap", "120", "--", "sleep", "20"]);
    let child = crate::common::own_group(&mut command).spawn().unwrap();
    while machine.limits() != (120.0, 120.0) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn kill_once(machine: &Machine, number: u64) -> bool {
    let mut command = machine.sweetspot();
    command.args(["run", "--cpu-power-cap", "120", "--", "sleep", "20"]);
    let mut client = command.spawn().unwrap();
    let seed = Seed::new(11).number(number);
    let moment = 0.3 * seed.label("moment").uniform();
    std::thread::sleep(Duration::from_secs_f64(moment));
    let was_set = machine.limits() != (205.0, 205.0);
    let signal =
        ["-KILL", "-TERM", "-INT", "-HUP"][(4.0 * seed.label("signal").uniform()) as usize];
    kill(signal, &client.id().to_string());
    // A guard that had not started yet may still start and must then end, so check until the second is over.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(
        machine.limits(),
        (205.0, 205.0),
        "kill {number} with {signal} after {moment} s"
    );
    client.wait().unwrap();
    was_set
}

#[test]
fn caps_are_restored_within_a_second_of_any_kill() {
    let set = repeat_on(12, Machine::new, kill_once);
    let count = set.iter().filter(|was_set| **was_set).count();
    println!("{} kills, {count} of them while a cap was set", set.len());
    assert!(count * 4 > set.len(), "only {count} kills fell into a run");
}

#[test]
fn a_killed_guard_is_replaced_and_restores() {
    let machine = Machine::new();
    let mut client = running(&machine);
    kill("-9", &guard_of(&client));
    client.wait().unwrap();
    assert_eq!(machine.limits(), (205.0, 205.0));
}

#[test]
fn what_a_killed_client_and_guard_left_is_restored_later() {
    let machine = Machine::new();
    machine.tree.write(LIMIT, 230_000_000);
    machine.tree.write(super::ENABLED, 0);
    let mut client = running(&machine);
    let guard = guard_of(&client);
    kill("-STOP", &client.id().to_string());
    kill("-9", &guard);
    client.kill().unwrap();
    client.wait().unwrap();
    assert_eq!(machine.limits(), (120.0, 120.0));
    let doctor = text(&machine.output(&["doctor"]).stdout);
    assert!(
        doctor.contains("processor package 0, processor package 1"),
        "{doctor}"
    );
    // The kernel frees the guard's lock when its last thread is gone.
    let begun = Instant::now();
    while !machine.output(&["restore"]).status.success() {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(machine.limits(), (230.0, 205.0));
    assert_eq!(machine.tree.read(super::ENABLED), "0");
}
