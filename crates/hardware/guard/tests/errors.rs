//! Errors keep their type on the way from the guard to its client, and have these messages.

use std::path::Path;
use std::process::Command;

use sweetspot_device::{DeviceId, Knob, OpenError, ReadError, SensorKind, WriteError};
use sweetspot_guard::{
    Guard, GuardError, Journal, JournalError, Owner, Refusal, RestoreError, RestoreOutcome,
};

fn gpu() -> DeviceId {
    DeviceId::new("GPU-1")
}

fn journal_error(denied: bool) -> JournalError {
    JournalError::Disk {
        folder: "/run/sweetspot".to_owned(),
        denied,
        reason: "Permission denied (os error 13)".to_owned(),
    }
}

fn write_refusal(error: WriteError) -> Refusal {
    let name = "Tesla V100".to_owned();
    Refusal::Write { name, error }
}

fn restore_error(errors: Vec<WriteError>) -> RestoreError {
    RestoreError::Write {
        device: gpu(),
        name: "Tesla V100".to_owned(),
        errors,
    }
}

/// Every refusal, whether it is a missing permission, and its message.
fn refusals() -> Vec<(Refusal, bool, &'static str)> {
    let device = gpu();
    let reason = "no such device".to_owned();
    vec![
        (Refusal::Interrupted, false, "interrupted"),
        (
            Refusal::NotLeased(gpu()),
            false,
            "GPU-1 was not reserved before a request to use it",
        ),
        (
            Refusal::UnknownPowerCap(gpu()),
            false,
            "GPU-1: the present power cap cannot be read, so it is not changed: it could not be restored later",
        ),
        (
            journal_error(true).into(),
            true,
            "cannot use the journal in /run/sweetspot: Permission denied (os error 13)",
        ),
        (
            journal_error(false).into(),
            false,
            "cannot use the journal in /run/sweetspot: Permission denied (os error 13)",
        ),
        (
            JournalError::Held {
                device: device.clone(),
                owner: "process 7 (sweetspot)".to_owned(),
            }
            .into(),
            false,
            "GPU-1 is in use by process 7 (sweetspot): wait for that process to end",
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
            write_refusal(WriteError::Denied(Knob::PowerCap)),
            true,
            "Tesla V100: no permission to set power cap: it needs root",
        ),
        (
            write_refusal(WriteError::Lost),
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
            restore_error(vec![
                WriteError::Lost,
                WriteError::Unsupported(Knob::CoreClock),
            ])
            .into(),
            false,
            "Tesla V100 (GPU-1): the device is lost: it no longer answers, the device has no core clock; its settings could not be restored: try `sweetspot restore`",
        ),
        (
            restore_error(vec![WriteError::Denied(Knob::CoreClock)]).into(),
            true,
            "Tesla V100 (GPU-1): no permission to set core clock: it needs root; its settings could not be restored: try `sweetspot restore`",
        ),
        (
            Refusal::WorkloadRemains,
            false,
            "a process of the command cannot be killed: it is blocked in a device driver",
        ),
    ]
}

#[test]
fn a_refusal_keeps_its_type_and_its_message() {
    for (refusal, denied, message) in refusals() {
        let sent = serde_json::to_string(&refusal).unwrap();
        let received: Refusal = serde_json::from_str(&sent).unwrap();
        assert_eq!(received, refusal, "{sent}");
        let error = GuardError::from(received);
        assert_eq!(error.to_string(), message);
        assert_eq!(error.is_permission_denied(), denied, "{message}");
    }
}

#[test]
fn the_word_permission_in_a_message_is_no_missing_permission() {
    let error = write_refusal(WriteError::Failed {
        knob: Knob::PowerCap,
        reason: "Permission denied by a policy: no permission".to_owned(),
    });
    assert!(!GuardError::from(error).is_permission_denied());
}

#[test]
fn restore_outcomes_have_messages() {
    let name = "Tesla V100".to_owned();
    let owner = Owner {
        boot_id: String::new(),
        pid: 7,
        start_time: 0,
        command: "sweetspot run".to_owned(),
        uid: None,
        job: None,
    };
    let lines = [
        RestoreOutcome::AlreadyRestored { name: name.clone() },
        RestoreOutcome::Restored {
            name: name.clone(),
            owner,
        },
        RestoreOutcome::EarlierBoot { name },
    ]
    .map(|restored| restored.to_string());
    assert_eq!(
        lines,
        [
            "the settings of Tesla V100 are already restored",
            "the settings of Tesla V100, left changed by process 7 (sweetspot run), are now restored",
            "the settings of Tesla V100 were left changed before the last reboot, which reset them",
        ]
    );
}

#[test]
fn start_errors_name_the_reason() {
    let ended = Guard::start(Command::new("false")).unwrap_err();
    assert!(
        ended.to_string().contains("the process exited immediately"),
        "{ended}"
    );
    for program in ["/no/such/program", "/etc/passwd"] {
        let error = Guard::start(Command::new(program)).unwrap_err();
        assert!(matches!(error, GuardError::CannotStart(_)), "{error}");
        // More permissions do not help where the program cannot be run.
        assert!(!error.is_permission_denied(), "{error}");
    }
}

/// A stopped process, for example, does not answer.
#[test]
fn the_wait_for_a_guard_that_does_not_start_can_be_cancelled() {
    let begun = std::time::Instant::now();
    let mut program = Command::new("sleep");
    program.arg("60");
    let is_cancelled = || begun.elapsed().as_millis() > 200;
    let error = Guard::start_unless(program, &is_cancelled).unwrap_err();
    assert!(begun.elapsed().as_secs() < 5, "{error}");
    assert!(error.to_string().contains("a signal arrived"), "{error}");
}

/// The kernel rejects new files in its own folders, even from root.
#[test]
fn an_unwritable_folder_is_a_missing_permission() {
    let error = Journal::open(Path::new("/sys/sweetspot")).unwrap_err();
    assert!(error.is_permission_denied(), "{error}");
}
