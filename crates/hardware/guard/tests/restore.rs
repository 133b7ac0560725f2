//! Settings are restored: their order, refused writes, and journals that guards unrestored.

mod common;

use common::{TestMachine, cap, core, id, kill, open};
use sweetspot_device::{Knob, Settings, WriteError};
use sweetspot_guard::{
    Guard, GuardError, JournalError, Refusal, RestoreError, RestoreOutcome, UnrestoredDevice,
    restore_device,
};
use sweetspot_quantity::{Megahertz, Watts};

#[test]
fn guard_process() {
    common::serve_if_guard_process();
}

fn cap_and_clock() -> Settings {
    Settings {
        power_cap: Some(Watts::new(180.0)),
        core_clock: Some(Megahertz::new(1200.0)),
        memory_clock: None,
    }
}

/// A guard sets the device and is then killed.
fn leave_changed(machine: &TestMachine, settings: &Settings) {
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), settings).unwrap();
    let pid = machine.guard_pid();
    kill("-KILL", pid);
    drop(guard);
    assert_eq!(machine.journals().len(), 1);
}

fn unrestored(machine: &TestMachine) -> Vec<Result<UnrestoredDevice, JournalError>> {
    machine.journal().unrestored_devices().unwrap()
}

fn restore(machine: &TestMachine) -> Result<RestoreOutcome, RestoreError> {
    let unrestored = unrestored(machine).remove(0).unwrap();
    let folder = machine.folder().to_owned();
    restore_device(&machine.journal(), &unrestored, &mut |id| open(&folder, id))
}

#[test]
fn settings_are_restored_in_the_opposite_order() {
    let machine = TestMachine::new(&["a", "b"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a"), id("b")]).unwrap();
    guard.apply(&id("a"), &cap_and_clock()).unwrap();
    guard.apply(&id("b"), &cap(200.0)).unwrap();
    guard.apply(&id("b"), &core(900.0)).unwrap();
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(
        machine.writes(),
        [
            "a core 1200 MHz",
            "a cap 180 W",
            "b cap 200 W",
            "b core 900 MHz",
            "a cap 250 W",
            "a reset core clock",
            "b reset core clock",
            "b cap 250 W",
        ]
    );
    assert!(machine.journals().is_empty());
}

#[test]
fn a_restored_device_stays_leased() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap_and_clock()).unwrap();
    guard.restore(&id("a")).unwrap();
    assert_eq!(machine.state("a").settings, cap(250.0));
    assert!(machine.journals().is_empty());
    guard.apply(&id("a"), &cap(190.0)).unwrap();
    assert_eq!(machine.journals().len(), 1);
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(machine.state("a").settings, cap(250.0));
}

fn touched(machine: &TestMachine) -> Vec<String> {
    let Some(path) = machine.journals().pop() else {
        return Vec::new();
    };
    let entry: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let knobs = entry["touched"].as_array().unwrap().iter();
    knobs
        .map(|knob| knob.as_str().unwrap().to_owned())
        .collect()
}

fn refusal(result: Result<sweetspot_device::AppliedSettings, GuardError>) -> Refusal {
    match result {
        Err(GuardError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_refused_write_is_not_in_the_journal() {
    let machine = TestMachine::new(&["a"]);
    machine.change("a", |state| state.denied = vec![Knob::CoreClock]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    let name = "Fake a".to_owned();
    let error = WriteError::Denied(Knob::CoreClock);
    let denied = refusal(guard.apply(&id("a"), &core(1200.0)));
    assert_eq!(denied, Refusal::Write { name, error });
    assert!(denied.is_permission_denied());
    assert_eq!(touched(&machine), [""; 0]);
    // Of two knobs, the one that was set is in the journal.
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    refusal(guard.apply(&id("a"), &core(1200.0)));
    assert_eq!(touched(&machine), ["power-cap"]);
    // A guard that is killed now leaves a journal that can be restored.
    let pid = machine.guard_pid();
    kill("-KILL", pid);
    drop(guard);
    assert!(matches!(
        restore(&machine),
        Ok(RestoreOutcome::Restored { .. })
    ));
    assert_eq!(machine.state("a").settings, cap(250.0));
    assert!(machine.journals().is_empty());
}

#[test]
fn a_write_with_unknown_effect_is_in_the_journal() {
    let machine = TestMachine::new(&["a"]);
    machine.change("a", |state| state.reads_back_other = true);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    let error = refusal(guard.apply(&id("a"), &cap(180.0)));
    assert!(
        matches!(
            &error,
            Refusal::Write {
                error: WriteError::ReadBackDiffers { .. },
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(touched(&machine), ["power-cap"]);
    machine.change("a", |state| state.reads_back_other = false);
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(machine.state("a").settings, cap(250.0));
}

#[test]
fn a_knob_whose_journal_could_not_be_written_is_not_restored() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    // A folder in the place of the new journal makes writing it fail, even for root.
    let obstacle = machine.journal_folder().join("a.new");
    std::fs::create_dir(&obstacle).unwrap();
    let error = refusal(guard.apply(&id("a"), &core(1200.0)));
    assert!(matches!(error, Refusal::Journal(_)), "{error}");
    std::fs::remove_dir(&obstacle).unwrap();
    assert_eq!(guard.release(false).unwrap(), []);
    // A clock lock of another program cannot be read and must not be reset.
    assert_eq!(machine.writes(), [""; 0]);
}

#[test]
fn settings_that_cannot_be_restored_stay_in_the_journal() {
    let machine = TestMachine::new(&["a", "b"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a"), id("b")]).unwrap();
    guard.apply(&id("a"), &cap_and_clock()).unwrap();
    guard.apply(&id("b"), &cap_and_clock()).unwrap();
    machine.change("a", |state| state.failing = vec![Knob::PowerCap]);
    let problems = guard.release(false).unwrap();
    let [RestoreError::Write { device, errors, .. }] = &problems[..] else {
        panic!("{problems:?}");
    };
    assert_eq!((device, errors.len()), (&id("a"), 1));
    assert!(
        problems[0].to_string().ends_with("try `sweetspot restore`"),
        "{}",
        problems[0]
    );
    // The other knob and the other device are restored.
    assert_eq!(machine.state("a").settings, cap(180.0));
    assert_eq!(machine.state("b").settings, cap(250.0));
    assert_eq!(machine.journals().len(), 1);
    assert!(matches!(restore(&machine), Err(RestoreError::Write { .. })));
    assert_eq!(machine.journals().len(), 1);
    machine.change("a", |state| state.failing.clear());
    assert!(matches!(
        restore(&machine),
        Ok(RestoreOutcome::Restored { .. })
    ));
    assert_eq!(machine.state("a").settings, cap(250.0));
    assert!(unrestored(&machine).is_empty());
}

#[test]
fn a_lost_device_keeps_its_journal() {
    let machine = TestMachine::new(&["a"]);
    leave_changed(&machine, &cap_and_clock());
    machine.change("a", |state| state.is_lost = true);
    assert!(matches!(restore(&machine), Err(RestoreError::Open(_))));
    assert_eq!(machine.journals().len(), 1);
    machine.change("a", |state| state.is_lost = false);
    restore(&machine).unwrap();
    assert_eq!(machine.state("a").settings, cap(250.0));
}

#[test]
fn the_next_lease_restores_what_was_left_changed() {
    let machine = TestMachine::new(&["a"]);
    leave_changed(&machine, &cap_and_clock());
    let mut guard = machine.guard();
    let notes = guard.lease(vec![id("a")]).unwrap();
    assert!(
        matches!(&notes[..], [RestoreOutcome::Restored { owner, .. }] if owner.pid == std::process::id()),
        "{notes:?}"
    );
    assert_eq!(machine.state("a").settings, cap(250.0));
    assert!(machine.journals().is_empty());
}

#[test]
fn a_cap_that_cannot_be_read_is_not_set() {
    let machine = TestMachine::new(&["a"]);
    machine.change("a", |state| state.cap_unreadable = true);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    let error = refusal(guard.apply(&id("a"), &cap(180.0)));
    assert_eq!(error, Refusal::UnknownPowerCap(id("a")));
    let error = refusal(guard.apply(&id("b"), &cap(180.0)));
    assert_eq!(error, Refusal::NotLeased(id("b")));
    assert_eq!(machine.writes(), [""; 0]);
}

#[test]
fn a_second_client_gets_the_holders_name() {
    let machine = TestMachine::new(&["a", "b"]);
    let mut first = machine.guard();
    first.lease(vec![id("a")]).unwrap();
    first.apply(&id("a"), &cap(180.0)).unwrap();
    let mut second: Guard = machine.guard();
    let Err(GuardError::Refused(Refusal::Journal(JournalError::Held { device, owner }))) =
        second.lease(vec![id("b"), id("a")])
    else {
        panic!("the device was leased twice");
    };
    assert_eq!(device, id("a"));
    let own = format!("process {} (", std::process::id());
    assert!(owner.starts_with(&own), "{owner}");
    // It changed neither the settings of the first client nor kept the other device.
    assert_eq!(machine.state("a").settings, cap(180.0));
    first.lease(vec![id("b")]).unwrap();
    // A device that is held is not reported as unrestored changed.
    assert!(unrestored(&machine).is_empty());
    assert_eq!(first.release(false).unwrap(), []);
    second.lease(vec![id("a")]).unwrap();
}

#[test]
fn an_unknown_device_is_refused() {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    let Err(GuardError::Refused(Refusal::Open(error))) = guard.lease(vec![id("a"), id("z")]) else {
        panic!("there is no such device");
    };
    assert!(matches!(
        error,
        sweetspot_device::OpenError::NotFound { .. }
    ));
    // The first of the two devices was released.
    let mut other = machine.guard();
    other.lease(vec![id("a")]).unwrap();
}
