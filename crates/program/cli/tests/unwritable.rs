//! If a document cannot be written, the others are still written, and the exit code is the same for every command.
//! `/dev/full` can be opened but not written, like a disk that fills up during the work.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{program, sweetspot, text, words};
use crate::host::TestHost;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// Commands in virtual time that write documents: their flags, and a second document besides the one that fails.
const VIRTUAL: [(&str, &str); 2] = [
    ("tune --simulate v100 --network resnet50", "--export-md"),
    (
        "sweep --simulate v100 --network resnet50 --power-cap 150,300 --repeat 1 --no-study",
        "--export-md",
    ),
];

/// Commands that write documents and run a command of the user's, which comes after `--`.
const REAL: [(&str, &str); 5] = [
    ("measure", "--export-md"),
    ("run --power-cap 200W", "--export-md"),
    ("run --measure --power-cap 200W", "--export-csv"),
    ("tune --fresh --strategy linear", "--export-md"),
    ("hold --below 250W", "--export-svg"),
];

const SWEEP: &str = "sweep --power-cap 200,300 --repeat 1 --study kept";

/// The program on a host, in a folder.
fn sweetspot_on_host(host: &TestHost, folder: &Path, args: &[&str]) -> Command {
    let mut command = host.sweetspot();
    command
        .args(args)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .stdin(std::process::Stdio::null());
    command
}

/// The error messages about documents.
fn write_failures(output: &Output) -> Vec<String> {
    let message = text(&output.stderr);
    let lines = message.lines().filter(|line| line.contains("cannot write"));
    lines.map(str::to_owned).collect()
}

fn assert_one_failed(output: &Output, other: &Path, what: &str) {
    assert_eq!(
        write_failures(output),
        ["sweetspot: cannot write /dev/full: No space left on device (os error 28)"],
        "{what}: {output:?}"
    );
    let written = std::fs::read_to_string(other).unwrap_or_default();
    assert!(!written.is_empty(), "{what}: no {}", other.display());
}

#[test]
fn other_documents_are_written_in_virtual_time() {
    for (line, flag) in VIRTUAL {
        let folder = tempfile::tempdir().unwrap();
        let exports = ["--export-json", "/dev/full", flag, "other"];
        let output = sweetspot(folder.path(), &[&words(line)[..], &exports].concat());
        assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
        assert!(!output.stdout.is_empty(), "{line}: the text is shown");
        assert_one_failed(&output, &folder.path().join("other"), line);
    }
}

#[test]
fn other_documents_are_written_with_a_command() {
    let (host, server) = (TestHost::new("v100"), TestHost::new("nvidia_h200"));
    let workload = [PROGRAM, "sim-workload", "--network", "resnet50"];
    let training = [&workload[..], &["--seconds", "2"]].concat();
    let serving = [&workload[..], &["--infer", "--serve", "--seconds", "2"]].concat();
    let swept = (SWEEP, "--export-md");
    for (line, flag) in REAL.into_iter().chain([swept]) {
        let folder = tempfile::tempdir().unwrap();
        let exports = ["--export-json", "/dev/full", flag, "other", "--"];
        let (host, job) = match line.starts_with("hold") {
            true => (&server, &serving),
            false => (&host, &training),
        };
        let args = [&words(line)[..], &exports, job].concat();
        let output = sweetspot_on_host(host, folder.path(), &args)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
        assert!(!output.stdout.is_empty(), "{line}: the text is shown");
        assert_one_failed(&output, &folder.path().join("other"), line);
    }
    let last = host.writes();
    assert!(last.lines().last().unwrap().contains("300"), "{last}");
}

#[test]
fn the_exit_code_of_the_command_has_priority() {
    let host = TestHost::new("v100");
    for (line, flag) in REAL {
        for (script, code) in [("exit 5", 5), ("kill -9 $$", 128 + 9)] {
            let folder = tempfile::tempdir().unwrap();
            let exports = ["--export-json", "/dev/full", flag, "other"];
            let command = ["--", "sh", "-c", script];
            let args = [&words(line)[..], &exports, &command].concat();
            let output = sweetspot_on_host(&host, folder.path(), &args)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
            // The figure of a job that ends at once is not written, without an error.
            assert_eq!(write_failures(&output).len(), 1, "{line}: {output:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        for (program, code) in [("no-such-program", 127), ("/", 126)] {
            let exports = ["--export-json", "/dev/full", "--", program];
            let args = [&words(line)[..], &exports].concat();
            let output = sweetspot_on_host(&host, folder.path(), &args)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
            let message = text(&output.stderr);
            assert_eq!(message.lines().count(), 1, "{line}: {message}");
            assert!(
                message.starts_with("sweetspot: cannot run "),
                "{line}: {message}"
            );
        }
    }
}

#[test]
fn a_bad_path_is_rejected_before_the_command_runs() {
    let host = TestHost::new("v100");
    let swept = (SWEEP, "--export-md");
    for (line, flag) in REAL.into_iter().chain([swept]) {
        let folder = tempfile::tempdir().unwrap();
        let command = ["--", "sh", "-c", "touch ran"];
        for (exports, expected) in [
            (
                ["--export-json", "no/x", flag, "other"],
                "the folder does not exist",
            ),
            (["--export-json", "same", flag, "./same"], "two documents"),
        ] {
            let args = [&words(line)[..], &exports, &command].concat();
            let output = sweetspot_on_host(&host, folder.path(), &args)
                .output()
                .unwrap();
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(125), "{line}: {output:?}");
            assert!(message.contains(expected), "{line}: {message}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
    for (line, _) in VIRTUAL {
        let folder = tempfile::tempdir().unwrap();
        let args = [&words(line)[..], &["--export-json", "no/x"]].concat();
        assert_eq!(sweetspot(folder.path(), &args).status.code(), Some(2));
    }
}

/// A folder with two studies.
fn studies() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        let line = "sweep --simulate v100 --network resnet50 --power-cap 150..300:50 --repeat 1";
        let args = [&words(line)[..], &["--study", name]].concat();
        assert!(sweetspot(folder.path(), &args).status.success());
    }
    folder
}

#[test]
fn commands_without_a_workload_report_write_errors_too() {
    let folder = studies();
    for (line, flag) in [
        ("report one", "--export-html"),
        ("compare one two", "--export-csv"),
        ("study export one", "--export-html"),
        ("network alexnet", "--export-md"),
        ("replay --study one", "--export-csv"),
        ("reproduce power-capping-2022", "--export-csv"),
        ("fit one", "-o"),
    ] {
        let other = folder.path().join("other.toml");
        let exports = ["--export-json", "/dev/full", flag, "other.toml"];
        let output = sweetspot(folder.path(), &[&words(line)[..], &exports].concat());
        assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
        assert_one_failed(&output, &other, line);
        std::fs::remove_file(&other).unwrap();
        let full = program()
            .args(words(line))
            .current_dir(folder.path())
            .stdout(File::create("/dev/full").unwrap())
            .output()
            .unwrap();
        assert_eq!(full.status.code(), Some(1), "{line}: {full:?}");
        let message = write_failures(&full);
        assert_eq!(message.len(), 1, "{line}: {full:?}");
        assert!(
            message[0].contains("standard output: No space"),
            "{message:?}"
        );
    }
}

#[test]
fn a_figure_folder_is_checked_before_the_work() {
    let folder = studies();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for figures in ["file", "file/figures"] {
        for line in ["report one", "compare one two", "replay --study one"] {
            let args = [&words(line)[..], &["--export-figures", figures]].concat();
            let output = sweetspot(folder.path(), &args);
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}: {message}");
            assert_eq!(text(&output.stdout), "", "{line}");
            assert!(
                message.contains("file is not a folder"),
                "{line}: {message}"
            );
        }
    }
}

/// Runs a command whose standard error is full, and checks its exit code and its document.
fn check_full_errors(line: &str) {
    let workload = [PROGRAM, "sim-workload", "--network", "resnet50"];
    let (gpu, job): (_, &[&str]) = match line.starts_with("hold") {
        true => ("nvidia_h200", &["--infer", "--serve", "--seconds", "2"]),
        false => ("v100", &["--seconds", "1"]),
    };
    let (host, folder) = (TestHost::new(gpu), tempfile::tempdir().unwrap());
    let exports = ["--export-json", "document", "--"];
    let args = [&words(line)[..], &exports, &workload, job].concat();
    let mut command = sweetspot_on_host(&host, folder.path(), &args);
    let full = File::options().write(true).open("/dev/full").unwrap();
    command.stdout(std::process::Stdio::null()).stderr(full);
    let code = command.status().unwrap().code();
    assert!(matches!(code, Some(0 | 1)), "{line}: {code:?}");
    let document = std::fs::read(folder.path().join("document")).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    assert!(document["schema"].is_string(), "{line}");
}

#[test]
fn streams_that_cannot_be_written_lose_no_document() {
    std::thread::scope(|scope| {
        for (line, _) in REAL.into_iter().chain([(SWEEP, "")]) {
            scope.spawn(move || check_full_errors(line));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    for (line, _) in VIRTUAL {
        let mut command = program();
        let full = || File::options().write(true).open("/dev/full").unwrap();
        command.args(words(line)).current_dir(folder.path());
        let status = command.stdout(full()).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(1), "{line}");
    }
}
