//! The systemd unit is valid and as restrictive as it can be.

use std::process::{Command, Output};

use sweetspot_service::install::{Installation, PROGRAM, UNIT, install};

/// The largest exposure that `systemd-analyze security` may report. What is left belongs to a service that
/// runs as root with CAP_SYS_ADMIN, the driver's devices and a Unix socket, and that sees all processes.
const MAX_EXPOSURE: f64 = 1.5;

/// The text of the unit, as packages have it.
fn unit() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../packaging/systemd/sweetspot.service"
    );
    std::fs::read_to_string(path).unwrap()
}

/// Runs systemd-analyze on a unit with this text.
fn analyze(arguments: &[&str], text: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sweetspot.service");
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new("systemd-analyze");
    command.args(arguments).arg(path).output().unwrap()
}

/// What systemd-analyze says about a unit whose program exists.
fn verify(text: &str) -> String {
    let existing = text.replace(&format!("ExecStart={PROGRAM}"), "ExecStart=/bin/true");
    assert_ne!(existing, text);
    let output = analyze(&["verify", "--man=no"], &existing);
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).unwrap()
}

#[test]
#[ignore = "needs systemd-analyze"]
fn systemd_finds_no_mistake() {
    assert_eq!(verify(&unit()), "");
    // A mistake would be found.
    let wrong = unit().replace("ProtectHome=yes", "ProtectHomes=yes");
    assert!(
        verify(&wrong).contains("ProtectHomes"),
        "{}",
        verify(&wrong)
    );
}

#[test]
#[ignore = "needs systemd-analyze"]
fn systemd_finds_no_mistake_in_a_unit_with_a_library() {
    let root = tempfile::tempdir().unwrap();
    let options = Installation {
        root: root.path().to_owned(),
        program: "/bin/true".into(),
        // Any file of root serves as a library here.
        nvml: Some("/etc/passwd".into()),
        start: false,
    };
    install(&options).unwrap();
    let installed = root.path().join(UNIT.trim_start_matches('/'));
    let text = std::fs::read_to_string(installed).unwrap();
    assert!(text.contains("--nvml /etc/passwd"));
    assert_eq!(verify(&text), "");
}

#[test]
#[ignore = "needs systemd-analyze"]
fn the_exposure_is_low() {
    let output = analyze(&["security", "--offline=true", "--no-pager"], &unit());
    let text = String::from_utf8(output.stdout).unwrap();
    let overall = text
        .lines()
        .find_map(|line| line.split_once("Overall exposure level for sweetspot.service: "))
        .unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    let number = overall.1.split_whitespace().next().unwrap();
    let exposure: f64 = number.parse().unwrap();
    assert!(exposure <= MAX_EXPOSURE, "{exposure}: {text}");
}
