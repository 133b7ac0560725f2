//! What was set before comes back: in which order, after which refusal, from which journal.

mod common;

use common::{Bench, cap, core, id, kill, open};
use sweetspot_device::{Knob, Settings, WriteError};
use sweetspot_guard::{
    Guard, GuardError, JournalError, Left, Refusal, RestoreError, Restored, restore_left,
};
use sweetspot_quantity::{Megahertz, Watts};

#[test]
fn guard_process() {
    common::serve_where_asked();
}

fn both() -> Settings {
    Settings {
        power_cap: Some(Watts::new(180.0)),
        core_clock: Some(Megahertz::new(1200.0)),
        memory_clock: None,
    }
}

/// A guard that has set the device, and is then killed.
fn leave_changed(bench: &Bench, settings: &Settings) {
    let mut guard = bench.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), settings).unwrap();
    let pid = bench.guard_pid();
    kill("-KILL", pid);
    drop(guard);
    assert_eq!(bench.journals().len(), 1);
}

fn left(bench: &Bench) -> Vec<Result<Left, JournalError>> {
    bench.journal().left().unwrap()
}

fn restore(bench: &Bench) -> Result<Restored, RestoreError> {
    let left = left(bench).remove(0).unwrap();
    let folder = bench.folder().to_owned();
    restore_left(&bench.journal(), &left, &mut |id| open(&folder, id))
}

#[test]
fn settings_come_back_in_the_opposite_order() {
    let bench = Bench::new(&["a", "b"]);
    let mut guard = bench.guard();
    guard.lease(vec![id("a"), id("b")]).unwrap();
    guard.apply(&id("a"), &both()).unwrap();
    guard.apply(&id("b"), &cap(200.0)).unwrap();
    guard.apply(&id("b"), &core(900.0)).unwrap();
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(
        bench.writes(),
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
    assert!(bench.journals().is_empty());
}

#[test]
fn a_device_is_put_back_and_stays_leased() {
    let bench = Bench::new(&["a"]);
    let mut guard = bench.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &both()).unwrap();
    guard.put_back(&id("a")).unwrap();
    assert_eq!(bench.state("a").set, cap(250.0));
    assert!(bench.journals().is_empty());
    guard.apply(&id("a"), &cap(190.0)).unwrap();
    assert_eq!(bench.journals().len(), 1);
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(bench.state("a").set, cap(250.0));
}

#[test]
fn what_somebody_else_changed_meanwhile_is_put_back_too() {
    let bench = Bench::new(&["a"]);
    let mut guard = bench.guard();
    guard.lease(vec![id("a")]).unwrap();
    bench.change("a", |state| state.set = cap(199.0));
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(bench.state("a").set, cap(250.0));
}

fn touched(bench: &Bench) -> Vec<String> {
    let Some(path) = bench.journals().pop() else {
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
    let bench = Bench::new(&["a"]);
    bench.change("a", |state| state.denied = vec![Knob::CoreClock]);
    let mut guard = bench.guard();
    guard.lease(vec![id("a")]).unwrap();
    let name = "Fake a".to_owned();
    let error = WriteError::Denied(Knob::CoreClock);
    let denied = refusal(guard.apply(&id("a"), &core(1200.0)));
    assert_eq!(denied, Refusal::Write { name, error });
    assert!(denied.is_permission_denied());
    assert_eq!(touched(&bench), [""; 0]);
    // Of two knobs, the one that was set stays.
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    refusal(guard.apply(&id("a"), &core(1200.0)));
    assert_eq!(touched(&bench), ["power-cap"]);
    // A guard that is killed now leaves a journal that can be put back.
    let pid = bench.guard_pid();
    kill("-KILL", pid);
    drop(guard);
    assert!(matches!(restore(&bench), Ok(Restored::PutBack { .. })));
    assert_eq!(bench.state("a").set, cap(250.0));
    assert!(bench.journals().is_empty());
}

#[test]
fn a_write_that_may_have_been_taken_is_in_the_journal() {
    let bench = Bench::new(&["a"]);
    bench.change("a", |state| state.lies = true);
    let mut guard = bench.guard();
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
    assert_eq!(touched(&bench), ["power-cap"]);
    bench.change("a", |state| state.lies = false);
    assert_eq!(guard.release(false).unwrap(), []);
    assert_eq!(bench.state("a").set, cap(250.0));
}

#[test]
fn a_knob_whose_journal_could_not_be_written_is_not_put_back() {
    let bench = Bench::new(&["a"]);
    let mut guard = bench.guard();
    guard.lease(vec![id("a")]).unwrap();
    // A folder in the place of the next journal: writing the journal fails, for root as well.
    let obstacle = bench.journal_folder().join("a.new");
    std::fs::create_dir(&obstacle).unwrap();
    let error = refusal(guard.apply(&id("a"), &core(1200.0)));
    assert!(matches!(error, Refusal::Journal(_)), "{error}");
    std::fs::remove_dir(&obstacle).unwrap();
    assert_eq!(guard.release(false).unwrap(), []);
    // A lock of somebody else's cannot be read, and was not ours to free.
    assert_eq!(bench.writes(), [""; 0]);
}

#[test]
fn what_cannot_be_put_back_stays_in_the_journal_and_is_mended_later() {
    let bench = Bench::new(&["a", "b"]);
    let mut guard = bench.guard();
    guard.lease(vec![id("a"), id("b")]).unwrap();
    guard.apply(&id("a"), &both()).unwrap();
    guard.apply(&id("b"), &both()).unwrap();
    bench.change("a", |state| state.failing = vec![Knob::PowerCap]);
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
    // The other knob and the other device are as before.
    assert_eq!(bench.state("a").set, cap(180.0));
    assert_eq!(bench.state("b").set, cap(250.0));
    assert_eq!(bench.journals().len(), 1);
    assert!(matches!(restore(&bench), Err(RestoreError::Write { .. })));
    assert_eq!(bench.journals().len(), 1);
    bench.change("a", |state| state.failing.clear());
    assert!(matches!(restore(&bench), Ok(Restored::PutBack { .. })));
    assert_eq!(bench.state("a").set, cap(250.0));
    assert!(left(&bench).is_empty());
}

#[test]
fn a_lost_device_keeps_its_journal() {
    let bench = Bench::new(&["a"]);
    leave_changed(&bench, &both());
    bench.change("a", |state| state.is_lost = true);
    assert!(matches!(restore(&bench), Err(RestoreError::Open(_))));
    assert_eq!(bench.journals().len(), 1);
    bench.change("a", |state| state.is_lost = false);
    restore(&bench).unwrap();
    assert_eq!(bench.state("a").set, cap(250.0));
}

#[test]
fn the_next_lease_puts_back_what_was_left() {
    let bench = Bench::new(&["a"]);
    leave_changed(&bench, &both());
    let mut guard = bench.guard();
    let notes = guard.lease(vec![id("a")]).unwrap();
    assert!(
        matches!(&notes[..], [Restored::PutBack { owner, .. }] if owner.pid == std::process::id()),
        "{notes:?}"
    );
    assert_eq!(bench.state("a").set, cap(250.0));
    assert!(bench.journals().is_empty());
}

#[test]
fn a_cap_that_cannot_be_read_is_not_set() {
    let bench = Bench::new(&["a"]);
    bench.change("a", |state| state.hides_cap = true);
    let mut guard = bench.guard();
    guard.lease(vec![id("a")]).unwrap();
    let error = refusal(guard.apply(&id("a"), &cap(180.0)));
    assert_eq!(error, Refusal::UnknownPowerCap(id("a")));
    let error = refusal(guard.apply(&id("b"), &cap(180.0)));
    assert_eq!(error, Refusal::NotLeased(id("b")));
    assert_eq!(bench.writes(), [""; 0]);
}

#[test]
fn a_second_client_is_told_who_holds_the_device() {
    let bench = Bench::new(&["a", "b"]);
    let mut first = bench.guard();
    first.lease(vec![id("a")]).unwrap();
    first.apply(&id("a"), &cap(180.0)).unwrap();
    let mut second: Guard = bench.guard();
    let Err(GuardError::Refused(Refusal::Journal(JournalError::Held { device, owner }))) =
        second.lease(vec![id("b"), id("a")])
    else {
        panic!("the device was leased twice");
    };
    assert_eq!(device, id("a"));
    let own = format!("process {} (", std::process::id());
    assert!(owner.starts_with(&own), "{owner}");
    // Neither did it touch what the first has set, nor does it keep the other device.
    assert_eq!(bench.state("a").set, cap(180.0));
    first.lease(vec![id("b")]).unwrap();
    // A device that is held is not left.
    assert!(left(&bench).is_empty());
    assert_eq!(first.release(false).unwrap(), []);
    second.lease(vec![id("a")]).unwrap();
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    let bench = Bench::new(&["a"]);
    let mut guard = bench.guard();
    let Err(GuardError::Refused(Refusal::Open(error))) = guard.lease(vec![id("a"), id("z")]) else {
        panic!("there is no such device");
    };
    assert!(matches!(
        error,
        sweetspot_device::OpenError::NotFound { .. }
    ));
    // The first of the two was let go.
    let mut other = bench.guard();
    other.lease(vec![id("a")]).unwrap();
}
