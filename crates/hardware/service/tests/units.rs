//! The systemd units are valid and as restrictive as they can be.

use std::process::{Command, Output};

use sweetspot_service::install::{Installation, MONITOR_UNIT, PROGRAM, UNIT, install};

/// The largest exposure that `systemd-analyze security` may report. What is left belongs to a service that
/// runs as root with CAP_SYS_ADMIN, the driver's devices and a Unix socket, and that sees all processes.
const MAX_EXPOSURE: f64 = 1.5;

/// The same for the measuring process, which has no rights but may listen on loopback.
const MAX_MONITOR_EXPOSURE: f64 = 1.5;

/// The units, in the order in which they depend on each other.
const UNITS: [&str; 3] = [
    "sweetspot.service",
    "sweetspot-monitor.service",
    "sweetspot-monitor.socket",
];

/// The text of a unit, as packages have it.
fn text_of(unit: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../packaging/systemd");
    std::fs::read_to_string(format!("{folder}/{unit}")).unwrap()
}

/// The text of the unit of the privileged service.
fn unit() -> String {
    text_of("sweetspot.service")
}

/// Runs systemd-analyze on a unit with this text; the others are as packages have them.
fn analyze(arguments: &[&str], name: &str, text: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    for unit in UNITS {
        let text = match unit == name {
            true => text.to_owned(),
            false => text_of(unit),
        };
        // The program is not installed here.
        let text = text.replace(&format!("ExecStart={PROGRAM}"), "ExecStart=/bin/true");
        std::fs::write(folder.path().join(unit), text).unwrap();
    }
    let mut command = Command::new("systemd-analyze");
    let path = folder.path().join(name);
    command.args(arguments).arg(path).output().unwrap()
}

/// What systemd-analyze says about a unit whose program exists.
fn verify(name: &str, text: &str) -> String {
    let output = analyze(&["verify", "--man=no"], name, text);
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).unwrap()
}

/// The exposure of a unit, from 0 to 10.
fn exposure(name: &str) -> (f64, String) {
    let arguments = ["security", "--offline=true", "--no-pager"];
    let output = analyze(&arguments, name, &text_of(name));
    let text = String::from_utf8(output.stdout).unwrap();
    let overall = text
        .lines()
        .find_map(|line| line.split_once(&format!("Overall exposure level for {name}: ")))
        .unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    let number = overall.1.split_whitespace().next().unwrap();
    (number.parse().unwrap(), text)
}

#[test]
#[ignore = "needs systemd-analyze"]
fn systemd_finds_no_mistake() {
    for name in UNITS {
        assert_eq!(verify(name, &text_of(name)), "", "{name}");
    }
    // A mistake would be found.
    let wrong = unit().replace("ProtectHome=yes", "ProtectHomes=yes");
    let said = verify("sweetspot.service", &wrong);
    assert!(said.contains("ProtectHomes"), "{said}");
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
    for (name, path) in [
        ("sweetspot.service", UNIT),
        ("sweetspot-monitor.service", MONITOR_UNIT),
    ] {
        let installed = root.path().join(path.trim_start_matches('/'));
        let text = std::fs::read_to_string(installed).unwrap();
        assert!(text.contains("--nvml /etc/passwd"));
        assert_eq!(verify(name, &text), "");
    }
}

#[test]
#[ignore = "needs systemd-analyze"]
fn the_exposure_is_low() {
    let (service, text) = exposure("sweetspot.service");
    assert!(service <= MAX_EXPOSURE, "{service}: {text}");
    let (monitor, text) = exposure("sweetspot-monitor.service");
    assert!(monitor <= MAX_MONITOR_EXPOSURE, "{monitor}: {text}");
}
