//! Errors keep their type on the way from the guard to its client, and their words stay as they were.

use std::path::Path;
use std::process::Command;

use sweetspot_device::{DeviceId, Knob, OpenError, ReadError, SensorKind, WriteError};
use sweetspot_guard::{
    Guard, GuardError, Journal, JournalError, Owner, Refusal, RestoreError, Restored,
};

fn gpu() -> DeviceId {
    DeviceId::new("GPU-1")
}

fn journal(denied: bool) -> JournalError {
    JournalError::Disk {
        folder: "/run/sweetspot".to_owned(),
        denied,
        reason: "Permission denied (os error 13)".to_owned(),
    }
}

fn write(error: WriteError) -> Refusal {
    let name = "Tesla V100".to_owned();
    Refusal::Write { name, error }
}

fn restore(errors: Vec<WriteError>) -> RestoreError {
    RestoreError::Write {
        device: gpu(),
        name: "Tesla V100".to_owned(),
        errors,
    }
}

/// Every refusal, whether it is for want of a right, and its words.
fn refusals() -> Vec<(Refusal, bool, &'static str)> {
    let device = gpu();
    let reason = "no such device".to_owned();
    vec![
        (Refusal::Interrupted, false, "interrupted"),
        (Refusal::NotLeased(gpu()), false, "GPU-1 is not leased"),
        (
            Refusal::UnknownPowerCap(gpu()),
            false,
            "GPU-1: the power cap cannot be read, so it could not be put back",
        ),
        (
            journal(true).into(),
            true,
            "the journal in /run/sweetspot: Permission denied (os error 13); settings can be changed by root, or by the owner of that folder: use sudo, or --read-only where nothing is to be set",
        ),
        (
            journal(false).into(),
            false,
            "the journal in /run/sweetspot: Permission denied (os error 13)",
        ),
        (
            JournalError::Held {
                device: device.clone(),
                owner: "process 7 (sweetspot)".to_owned(),
            }
            .into(),
            false,
            "GPU-1 is held by process 7 (sweetspot): wait for it to end",
        ),
        (
            OpenError::Lost {
                name: "Tesla V100".to_owned(),
            }
            .into(),
            false,
            "Tesla V100: the device is lost: it no longer answers",
        ),
        (
            OpenError::Denied { device, reason }.into(),
            true,
            "cannot open GPU-1: no such device",
        ),
        (
            write(WriteError::Denied(Knob::PowerCap)),
            true,
            "Tesla V100: no permission to set power cap: it needs root",
        ),
        (
            write(WriteError::Lost),
            false,
            "Tesla V100: the device is lost: it no longer answers",
        ),
        (
            Refusal::Read {
                name: "Tesla V100".to_owned(),
                error: ReadError::Denied(SensorKind::AveragePower),
            },
            true,
            "Tesla V100: no permission to read averaged power",
        ),
        (
            restore(vec![
                WriteError::Lost,
                WriteError::Unsupported(Knob::CoreClock),
            ])
            .into(),
            false,
            "Tesla V100 (GPU-1): the device is lost: it no longer answers, the device has no core clock; its settings could not be put back: try `sweetspot restore`",
        ),
        (
            restore(vec![WriteError::Denied(Knob::CoreClock)]).into(),
            true,
            "Tesla V100 (GPU-1): no permission to set core clock: it needs root; its settings could not be put back: try `sweetspot restore`",
        ),
        (
            Refusal::WorkloadRemains,
            false,
            "a process of the command cannot be ended: it waits for a device",
        ),
    ]
}

#[test]
fn a_refusal_keeps_its_type_and_its_words() {
    for (refusal, denied, words) in refusals() {
        let sent = serde_json::to_string(&refusal).unwrap();
        let received: Refusal = serde_json::from_str(&sent).unwrap();
        assert_eq!(received, refusal, "{sent}");
        let error = GuardError::from(received);
        assert_eq!(error.to_string(), words);
        assert_eq!(error.is_permission_denied(), denied, "{words}");
    }
}

#[test]
fn text_that_speaks_of_permission_is_not_a_missing_right() {
    let error = write(WriteError::Failed {
        knob: Knob::PowerCap,
        reason: "Permission denied by a policy: no permission".to_owned(),
    });
    assert!(!GuardError::from(error).is_permission_denied());
}

#[test]
fn what_was_restored_is_said_in_a_line() {
    let name = "Tesla V100".to_owned();
    let owner = Owner {
        boot_id: String::new(),
        pid: 7,
        start_time: 0,
        command: "sweetspot run".to_owned(),
    };
    let lines = [
        Restored::AlreadyAsBefore { name: name.clone() },
        Restored::PutBack {
            name: name.clone(),
            owner,
        },
        Restored::EarlierBoot { name },
    ]
    .map(|restored| restored.to_string());
    assert_eq!(
        lines,
        [
            "Tesla V100 is as before already",
            "Tesla V100 was left changed by process 7 (sweetspot run): it is as before now",
            "Tesla V100 was left changed in an earlier boot of this machine, which undid it",
        ]
    );
}

#[test]
fn a_guard_that_cannot_be_started_says_where_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let ended = Guard::start(Command::new("false"), folder.path()).unwrap_err();
    assert!(
        matches!(&ended, GuardError::CannotStart { denied: false, .. }),
        "{ended:?}"
    );
    assert!(ended.to_string().contains("it ended at once"), "{ended}");
    let missing = Guard::start(Command::new("/no/such/program"), folder.path()).unwrap_err();
    assert!(!missing.is_permission_denied(), "{missing}");
    // A program that may not be run is not mended by more rights to the folder.
    let no_program = Guard::start(Command::new("/etc/passwd"), folder.path()).unwrap_err();
    assert!(!no_program.is_permission_denied(), "{no_program}");
}

/// The kernel refuses new files in its own folders, to root as well.
#[test]
fn a_folder_that_nobody_may_write_is_a_missing_right() {
    let folder = Path::new("/sys");
    let error = Guard::start(Command::new("true"), folder).unwrap_err();
    let GuardError::CannotStart {
        folder: named,
        denied,
        reason,
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(named, folder);
    assert!(*denied && error.is_permission_denied(), "{reason}");
    let error = Journal::open(&folder.join("sweetspot")).unwrap_err();
    assert!(error.is_permission_denied(), "{error}");
}
