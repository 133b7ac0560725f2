//! Another program changes a device, or has it locked, while a guard uses it.

mod common;

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{TestMachine, cap, core, id, kill, open};
use rustix::fs::{FlockOperation, flock};
use sweetspot_guard::{
    Journal, JournalError, LeaseKind, LeaseTerms, Leases, Owner, Refusal, RestoreError,
};

#[test]
fn guard_process() {
    common::serve_if_guard_process();
}

/// Leaves a device changed, as a guard and its client do that are killed.
fn leave_changed(machine: &TestMachine) {
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    kill("-KILL", machine.guard_pid());
    drop(guard);
    assert_eq!(machine.state("a").settings, cap(180.0));
}

fn leases(machine: &TestMachine, journal: Journal) -> Leases<'_> {
    Leases::new(journal, |id| open(machine.folder(), id))
}

fn terms() -> LeaseTerms {
    LeaseTerms {
        owner: Owner::current_process(),
        kind: LeaseKind::Setting,
    }
}

#[test]
fn a_cap_that_was_not_written_is_not_restored() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &core(1000.0)).unwrap();
    machine.change("a", |state| state.settings.power_cap = cap(200.0).power_cap);
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(machine.state("a").settings, cap(200.0));
    assert_eq!(machine.writes(), ["a core 1000 MHz", "a reset core clock"]);
}

#[test]
fn a_cap_that_somebody_else_changed_is_left_and_reported() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    machine.change("a", |state| state.settings.power_cap = cap(150.0).power_cap);
    // Not even this guard writes over it.
    let refused = guard.apply(&id("a"), &cap(200.0)).unwrap_err().to_string();
    assert!(
        refused.contains("changed the power cap from 180 W to 150 W"),
        "{refused}"
    );
    let problems = guard.release(false).unwrap();
    assert!(
        matches!(&problems[..], [RestoreError::ChangedByOther(change)] if change.before == cap(250.0).power_cap.unwrap()),
        "{problems:?}"
    );
    assert_eq!(machine.state("a").settings, cap(150.0));
    // The next lease accepts the change, and says so.
    let mut next = machine.guard();
    let notes = next.lease(vec![id("a")]).unwrap();
    assert!(notes[0].to_string().contains("left as it is"), "{notes:?}");
    assert_eq!(next.release(false).unwrap(), []);
    assert_eq!(machine.state("a").settings, cap(150.0));
    assert!(machine.journals().is_empty());
}

#[test]
fn what_was_there_before_two_writers_that_do_not_see_each_other_is_restored() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    // The other one finds 180 W, sets 150 W, and restores 180 W after this one has ended.
    machine.change("a", |state| state.settings.power_cap = cap(150.0).power_cap);
    assert_eq!(guard.release(false).unwrap().len(), 1);
    machine.change("a", |state| state.settings.power_cap = cap(180.0).power_cap);
    let mut next = machine.guard();
    let notes = next.lease(vec![id("a")]).unwrap();
    assert!(notes[0].to_string().contains("restored"), "{notes:?}");
    assert_eq!(machine.state("a").settings, cap(250.0));
}

#[test]
fn a_change_before_the_first_write_is_what_is_restored() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    machine.change("a", |state| state.settings.power_cap = cap(200.0).power_cap);
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(machine.state("a").settings, cap(200.0));
}

#[test]
fn after_a_crash_a_cap_of_somebody_else_is_left() {
    let machine = TestMachine::new(&["a"]);
    leave_changed(&machine);
    machine.change("a", |state| state.settings.power_cap = cap(150.0).power_cap);
    let mut guard = machine.guard();
    let notes = guard.lease(vec![id("a")]).unwrap();
    assert!(notes[0].to_string().contains("left as it is"), "{notes:?}");
    assert_eq!(machine.state("a").settings, cap(150.0));
}

#[test]
fn a_write_that_fails_for_a_moment_is_tried_again() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    machine.change("a", |state| state.failing_writes = 3);
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(machine.state("a").settings, cap(250.0));
    assert!(machine.journals().is_empty());
}

#[test]
fn a_device_has_one_lease_on_the_whole_machine() {
    let machine = TestMachine::new(&["a"]);
    let scope = machine.folder().display().to_string();
    let journal = |folder: &str| {
        let journal = Journal::open(&machine.folder().join(folder)).unwrap();
        journal.locking_machine(scope.clone())
    };
    let mut first = leases(&machine, journal("one"));
    first.lease(&[id("a")], &terms()).unwrap();
    let mut second = leases(&machine, journal("two"));
    let refused = second.lease(&[id("a")], &terms()).unwrap_err();
    let own = std::process::id().to_string();
    assert!(
        matches!(&refused, Refusal::Journal(JournalError::Held { owner, .. }) if owner.contains(&own)),
        "{refused}"
    );
    first.release_all();
    second.lease(&[id("a")], &terms()).unwrap();
}

#[test]
fn a_lock_of_a_stranger_is_no_all_clear() {
    let machine = TestMachine::new(&["a"]);
    leave_changed(&machine);
    // Its owner is not this process, which is alive, but one that has ended.
    let path = machine.journals().remove(0);
    let text = std::fs::read_to_string(&path).unwrap();
    let own = format!("\"pid\": {}", std::process::id());
    std::fs::write(&path, text.replace(&own, "\"pid\": 999999999")).unwrap();
    let lock = File::open(machine.journal_folder().join("a.lock")).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let found = machine.journal().unrestored_devices().unwrap();
    assert!(
        matches!(&found[..], [Err(JournalError::Locked { .. })]),
        "{found:?}"
    );
    drop(lock);
    let found = machine.journal().unrestored_devices().unwrap();
    assert!(matches!(&found[..], [Ok(_)]), "{found:?}");
}

#[test]
fn files_that_somebody_has_prepared_are_neither_followed_nor_waited_for() {
    let machine = TestMachine::new(&["a"]);
    let precious = machine.folder().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    let folder = machine.journal_folder();
    for name in ["a.lock", "a.new"] {
        std::os::unix::fs::symlink(&precious, folder.join(name)).unwrap();
    }
    let refused = leases(&machine, machine.journal()).lease(&[id("a")], &terms());
    assert!(refused.is_err());
    std::fs::remove_file(folder.join("a.lock")).unwrap();
    let mut given = leases(&machine, machine.journal());
    given.lease(&[id("a")], &terms()).unwrap();
    given.apply(&id("a"), &terms().owner, &cap(180.0)).unwrap();
    given.release_all();
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    // A hard link is another name of a file that may be precious too.
    std::fs::remove_file(folder.join("a.lock")).unwrap();
    std::fs::hard_link(&precious, folder.join("a.lock")).unwrap();
    assert!(
        leases(&machine, machine.journal())
            .lease(&[id("a")], &terms())
            .is_err()
    );
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    std::fs::remove_file(folder.join("a.lock")).unwrap();
    let begun = Instant::now();
    for name in ["a.journal", "a.lock"] {
        let made = Command::new("mkfifo").arg(folder.join(name)).status();
        assert!(made.unwrap().success());
    }
    assert!(
        leases(&machine, machine.journal())
            .lease(&[id("a")], &terms())
            .is_err()
    );
    let found = machine.journal().unrestored_devices().unwrap();
    assert!(matches!(&found[..], [Err(_)]), "{found:?}");
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn nobody_else_can_read_or_write_the_journal() {
    let machine = TestMachine::new(&["a"]);
    let folder = machine.journal_folder();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    leave_changed(&machine);
    assert_eq!(mode(&folder), 0o700);
    for name in ["a.journal", "a.lock"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
    // What others could have written is not restored.
    std::fs::set_permissions(folder.join("a.journal"), PermissionsExt::from_mode(0o666)).unwrap();
    let found = machine.journal().unrestored_devices().unwrap();
    assert!(
        matches!(&found[..], [Err(JournalError::Damaged { .. })]),
        "{found:?}"
    );
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    assert!(Journal::open(&folder).is_err());
}

#[test]
fn journals_of_earlier_versions_are_taken_over_and_restored() {
    let machine = TestMachine::new(&["a"]);
    leave_changed(&machine);
    // Earlier versions did not store what they had written.
    let path = machine.journals().remove(0);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut entry: serde_json::Value = serde_json::from_str(&text).unwrap();
    let fields = entry.as_object_mut().unwrap();
    assert!(fields.remove("next_cap").is_some());
    fields.remove("written_cap");
    std::fs::write(&path, entry.to_string()).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let new = Journal::open(&machine.folder().join("new")).unwrap();
    new.take_over(&machine.journal_folder());
    assert!(machine.journals().is_empty());
    let notes = leases(&machine, new).lease(&[id("a")], &terms()).unwrap();
    assert!(notes[0].to_string().contains("now restored"), "{notes:?}");
    assert_eq!(machine.state("a").settings, cap(250.0));
}
