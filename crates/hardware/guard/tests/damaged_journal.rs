//! Journals of another boot or version, or truncated at any byte, cause no panic and no wrong write.

mod common;

use std::path::PathBuf;

use common::{TestMachine, cap, id, kill, open};
use sweetspot_guard::{GuardError, Journal, JournalError, Refusal, RestoreOutcome, restore_device};

#[test]
fn guard_process() {
    common::serve_if_guard_process();
}

/// A device that was left at 180 W, with its journal.
fn machine_left_changed() -> (TestMachine, PathBuf, String) {
    let machine = TestMachine::new(&["a"]);
    let mut guard = machine.guard();
    guard.lease(vec![id("a")]).unwrap();
    guard.apply(&id("a"), &cap(180.0)).unwrap();
    kill("-KILL", machine.guard_pid());
    drop(guard);
    let path = machine.journals().pop().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    (machine, path, text)
}

#[test]
fn a_journal_of_another_boot_is_reported_and_not_restored() {
    let (machine, path, text) = machine_left_changed();
    let mut entry: serde_json::Value = serde_json::from_str(&text).unwrap();
    entry["owner"]["boot_id"] = "another".into();
    std::fs::write(&path, entry.to_string()).unwrap();
    let left = machine
        .journal()
        .unrestored_devices()
        .unwrap()
        .remove(0)
        .unwrap();
    assert!(!left.is_this_boot);
    let writes = machine.writes();
    let folder = machine.folder().to_owned();
    let restored = restore_device(&machine.journal(), &left, &mut |id| open(&folder, id)).unwrap();
    assert!(
        matches!(restored, RestoreOutcome::EarlierBoot { .. }),
        "{restored}"
    );
    assert_eq!((machine.writes(), machine.journals().len()), (writes, 0));
    // The second time there is nothing to do.
    let again = restore_device(&machine.journal(), &left, &mut |id| open(&folder, id)).unwrap();
    assert!(
        matches!(again, RestoreOutcome::AlreadyRestored { .. }),
        "{again}"
    );
    // A lease reports it as well.
    std::fs::write(&path, entry.to_string()).unwrap();
    let notes = machine.guard().lease(vec![id("a")]).unwrap();
    assert!(
        matches!(&notes[..], [RestoreOutcome::EarlierBoot { .. }]),
        "{notes:?}"
    );
    assert_eq!(machine.state("a").settings, cap(180.0));
}

#[test]
fn a_truncated_journal_is_never_restored() {
    let (machine, path, text) = machine_left_changed();
    let writes = machine.writes();
    let left = machine
        .journal()
        .unrestored_devices()
        .unwrap()
        .remove(0)
        .unwrap();
    let folder = machine.folder().to_owned();
    for length in 0..text.len() {
        std::fs::write(&path, &text.as_bytes()[..length]).unwrap();
        let found = machine.journal().unrestored_devices().unwrap();
        assert!(
            matches!(&found[..], [Err(JournalError::Damaged { .. })]),
            "{length}: {found:?}"
        );
        let restored = restore_device(&machine.journal(), &left, &mut |id| open(&folder, id));
        assert!(restored.is_err(), "{length}: {restored:?}");
        assert_eq!(machine.writes(), writes, "{length}");
        assert!(path.exists(), "{length}");
    }
    // A guard refuses the device and names the file.
    let mut guard = machine.guard();
    let Err(GuardError::Refused(Refusal::Journal(JournalError::Damaged { path: named, .. }))) =
        guard.lease(vec![id("a")])
    else {
        panic!("a device with a damaged journal was leased");
    };
    assert_eq!(named, path.display().to_string());
    drop(guard);
    assert_eq!(machine.state("a").settings, cap(180.0));
    // The complete journal is restored.
    std::fs::write(&path, text).unwrap();
    restore_device(&machine.journal(), &left, &mut |id| open(&folder, id)).unwrap();
    assert_eq!(machine.state("a").settings, cap(250.0));
}

#[test]
fn changed_bytes_cause_no_panic() {
    let (machine, path, text) = machine_left_changed();
    for place in 0..text.len() {
        for byte in [b'0', b'"', b'}', 0, 0xff] {
            let mut bytes = text.clone().into_bytes();
            bytes[place] = byte;
            std::fs::write(&path, bytes).unwrap();
            // The journal is read without a panic.
            assert!(machine.journal().unrestored_devices().unwrap().len() <= 1);
        }
    }
}

#[test]
fn a_journal_of_a_later_version_or_of_another_device_is_damaged() {
    let (machine, path, text) = machine_left_changed();
    let writes = machine.writes();
    for (key, value) in [
        ("version", serde_json::json!(3)),
        ("device", "b".into()),
        ("news", "of a later version".into()),
    ] {
        let mut entry: serde_json::Value = serde_json::from_str(&text).unwrap();
        entry[key] = value;
        std::fs::write(&path, entry.to_string()).unwrap();
        let error = machine.guard().lease(vec![id("a")]).unwrap_err();
        assert!(
            matches!(
                &error,
                GuardError::Refused(Refusal::Journal(JournalError::Damaged { .. }))
            ),
            "{key}: {error}"
        );
        assert_eq!(machine.writes(), writes, "{key}");
    }
}

#[test]
fn only_files_are_read_and_written() {
    let machine = TestMachine::new(&["a"]);
    let folder = machine.journal_folder();
    let other = machine.folder().join("other");
    std::fs::write(&other, "mine").unwrap();
    // A named pipe as a journal would be waited for without end.
    let pipe = folder.join("a.journal");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let error = machine.guard().lease(vec![id("a")]).unwrap_err();
    assert!(error.to_string().contains("not a file"), "{error}");
    std::fs::remove_file(&pipe).unwrap();
    // A link as a lock or a journal would overwrite another file.
    for name in ["a.lock", "a.journal"] {
        let link = folder.join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let mut guard = machine.guard();
        let set = guard
            .lease(vec![id("a")])
            .and_then(|_| guard.apply(&id("a"), &common::cap(180.0)));
        assert!(set.is_err(), "{name}");
        drop(guard);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "mine", "{name}");
        assert_eq!(machine.state("a").settings, common::cap(250.0), "{name}");
        std::fs::remove_file(&link).unwrap();
    }
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    Journal::open(&path).unwrap();
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    for mode in [0o770, 0o707, 0o777] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = Journal::open(&path).unwrap_err().to_string();
        assert!(error.contains("other users can write to it"), "{error}");
    }
    let link = folder.path().join("link");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let error = Journal::open(&link).unwrap_err().to_string();
    assert!(error.contains("it is not a folder"), "{error}");
}
