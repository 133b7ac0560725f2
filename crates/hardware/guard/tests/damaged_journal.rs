//! Journals of another boot, of another version, torn at any byte: never a panic, never a wrong write.

mod common;

use std::path::PathBuf;

use common::{Bench, cap, id, kill, open};
use sweetspot_guard::{GuardError, JournalError, Refusal, Restored, restore_left};

#[test]
fn guard_process() {
    common::serve_where_asked();
}

/// A device that was left at 180 W, and the journal that says so.
fn left_changed() -> (Bench, PathBuf, String) {
    let bench = Bench::new(&["a"]);
    let mut guard = bench.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    kill("-KILL", bench.guard_pid());
    drop(guard);
    let path = bench.journals().pop().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    (bench, path, text)
}

#[test]
fn a_journal_of_another_boot_is_reported_and_not_written_back() {
    let (bench, path, text) = left_changed();
    let mut entry: serde_json::Value = serde_json::from_str(&text).unwrap();
    entry["owner"]["boot_id"] = "another".into();
    std::fs::write(&path, entry.to_string()).unwrap();
    let left = bench.journal().left().unwrap().remove(0).unwrap();
    assert!(!left.this_boot);
    let writes = bench.writes();
    let folder = bench.folder().to_owned();
    let restored = restore_left(&bench.journal(), &left, &mut |id| open(&folder, id)).unwrap();
    assert!(
        matches!(restored, Restored::EarlierBoot { .. }),
        "{restored}"
    );
    assert_eq!((bench.writes(), bench.journals().len()), (writes, 0));
    // A second time there is nothing to do.
    let again = restore_left(&bench.journal(), &left, &mut |id| open(&folder, id)).unwrap();
    assert!(matches!(again, Restored::AlreadyAsBefore { .. }), "{again}");
    // A lease says so as well.
    std::fs::write(&path, entry.to_string()).unwrap();
    let notes = bench.guard().lease(vec![id("a")]).unwrap();
    assert!(
        matches!(&notes[..], [Restored::EarlierBoot { .. }]),
        "{notes:?}"
    );
    assert_eq!(bench.state("a").set, cap(180.0));
}

#[test]
fn a_torn_journal_is_never_written_back() {
    let (bench, path, text) = left_changed();
    let writes = bench.writes();
    let left = bench.journal().left().unwrap().remove(0).unwrap();
    let folder = bench.folder().to_owned();
    for length in 0..text.len() {
        std::fs::write(&path, &text.as_bytes()[..length]).unwrap();
        let found = bench.journal().left().unwrap();
        assert!(
            matches!(&found[..], [Err(JournalError::Damaged { .. })]),
            "{length}: {found:?}"
        );
        let restored = restore_left(&bench.journal(), &left, &mut |id| open(&folder, id));
        assert!(restored.is_err(), "{length}: {restored:?}");
        assert_eq!(bench.writes(), writes, "{length}");
        assert!(path.exists(), "{length}");
    }
    // A guard refuses the device, and says which file to look at.
    let mut guard = bench.guard();
    let Err(GuardError::Refused(Refusal::Journal(JournalError::Damaged { path: named, .. }))) =
        guard.lease(vec![id("a")])
    else {
        panic!("a device with a damaged journal was leased");
    };
    assert_eq!(named, path.display().to_string());
    drop(guard);
    assert_eq!(bench.state("a").set, cap(180.0));
    // Whole again, it is put back.
    std::fs::write(&path, text).unwrap();
    restore_left(&bench.journal(), &left, &mut |id| open(&folder, id)).unwrap();
    assert_eq!(bench.state("a").set, cap(250.0));
}

#[test]
fn changed_bytes_are_never_a_panic() {
    let (bench, path, text) = left_changed();
    for place in 0..text.len() {
        for byte in [b'0', b'"', b'}', 0, 0xff] {
            let mut bytes = text.clone().into_bytes();
            bytes[place] = byte;
            std::fs::write(&path, bytes).unwrap();
            // Whatever it says, saying it is all that happens.
            assert!(bench.journal().left().unwrap().len() <= 1);
        }
    }
}

#[test]
fn a_journal_of_a_later_version_or_of_another_device_is_damaged() {
    let (bench, path, text) = left_changed();
    let writes = bench.writes();
    for (key, value) in [
        ("version", serde_json::json!(2)),
        ("device", "b".into()),
        ("news", "of a later version".into()),
    ] {
        let mut entry: serde_json::Value = serde_json::from_str(&text).unwrap();
        entry[key] = value;
        std::fs::write(&path, entry.to_string()).unwrap();
        let error = bench.guard().lease(vec![id("a")]).unwrap_err();
        assert!(
            matches!(
                &error,
                GuardError::Refused(Refusal::Journal(JournalError::Damaged { .. }))
            ),
            "{key}: {error}"
        );
        assert_eq!(bench.writes(), writes, "{key}");
    }
}
