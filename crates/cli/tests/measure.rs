//! `sweetspot measure` on simulated GPUs: what is told, what is saved, what is refused, and the exit code of each.

#[path = "common/host.rs"]
mod host;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use host::TestHost;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn measure(host: &TestHost, args: &[&str]) -> Output {
    command(host, args).output().unwrap()
}

fn command(host: &TestHost, args: &[&str]) -> Command {
    let mut command = host.sweetspot();
    command.arg("measure").args(args).stdin(Stdio::null());
    command
}

/// The document of a measurement, and how it ended.
fn json(host: &TestHost, args: &[&str]) -> (Value, Output) {
    let output = measure(host, &[&["--export-json", "-"], args].concat());
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (document, output)
}

fn shell(script: &str) -> [&str; 4] {
    ["--", "sh", "-c", script]
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is a number"))
}

fn warnings(document: &Value) -> Vec<String> {
    let all = document["warnings"].as_array().unwrap();
    all.iter()
        .map(|one| one.as_str().unwrap().to_owned())
        .collect()
}

fn workload(network: &str, seconds: &str) -> Vec<String> {
    let words = [
        "--",
        PROGRAM,
        "sim-workload",
        "--network",
        network,
        "--seconds",
        seconds,
    ];
    words.map(str::to_owned).to_vec()
}

fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

#[test]
fn the_commands_own_code_comes_back() {
    let host = TestHost::new("nvidia_h200");
    let ends = |args: &[&str], code: i32, expected: &str| {
        let output = measure(&host, args);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    ends(
        &["--", "no-such-command"],
        127,
        "sweetspot: cannot run no-such-command: No such file",
    );
    ends(
        &["--", "/etc/passwd"],
        126,
        "sweetspot: cannot run /etc/passwd: Permission denied",
    );
    ends(&shell("exit 7"), 7, "exit code 7");
    ends(&shell("kill -9 $$"), 128 + 9, "ended by signal 9");
    ends(&["--", "sleep", "0.01"], 0, "NVIDIA H200");
    let begun = Instant::now();
    // What it leaves may hold the pipe that is listened to, but not that of this test.
    let leaves = shell("sleep 9 >&- 2>&- & echo gone");
    ends(&leaves, 0, "left processes behind");
    let pattern = [
        "--progress",
        "gone",
        "--",
        "sh",
        "-c",
        "sleep 9 & echo gone",
    ];
    ends(&pattern, 0, "left processes behind");
    assert!(
        begun.elapsed() < Duration::from_secs(7),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn wrong_input_is_refused_in_one_line_before_the_command_runs() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let refused = |args: &[&str], expected: &str| {
        let output = measure(
            &host,
            &[args, &["--", "touch", ran.to_str().unwrap()]].concat(),
        );
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{args:?}: {message}");
        assert!(message.starts_with("sweetspot: "), "{message}");
        assert!(message.contains(expected), "{args:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert_eq!(text(&output.stdout), "");
        assert!(!ran.exists(), "{args:?}");
    };
    refused(
        &["--method", "guess"],
        "use auto, counter, buffer or poll:TIME",
    );
    refused(&["--method", "poll:0"], "method 'poll:0' is unknown");
    refused(&["--window", "phase:"], "use run, progress or phase:NAME");
    refused(
        &["--window", "run", "--iterations", "5"],
        "they cannot go with --window run",
    );
    refused(&["--progress", "("], "the pattern `(` cannot be used");
    refused(
        &["--progress", r"(\d+) of (\d+)"],
        "name the one that counts",
    );
    refused(&["--runs", "0"], "0 is not in 1..=10000");
    refused(
        &["--device", "7"],
        "--device 7: there is no GPU `7`; the GPUs here are 0 (GPU-",
    );
    refused(&["--device", "0,0"], "`0` is there twice");
    refused(
        &["--export-json", "/no/such/folder/x"],
        "cannot write /no/such/folder/x",
    );
    refused(&["--export-samples", "/"], "it is a folder");
    refused(
        &["--export-json", "-", "--export-csv", "-"],
        "two documents cannot go to standard output",
    );
    refused(
        &["--prepare", "exit 3"],
        "the command of --prepare failed (exit status: 3)",
    );
    let output = command(&host, &["--", "touch", ran.to_str().unwrap()])
        .env("SWEETSPOT_NVML", "/no/such/library")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
    assert!(!ran.exists());
}

#[test]
fn the_document_has_its_keys_and_standard_output_to_itself() {
    let host = TestHost::new("v100:2");
    let run = workload("resnet50", "1");
    let script = [&["--idle"], words(&run).as_slice()].concat();
    let (document, output) = json(&host, &script);
    assert!(text(&output.stderr).contains("done: "), "{output:?}");
    assert_eq!(document["schema"], "sweetspot.run/1");
    assert_eq!(document["exit_code"], 0);
    assert_eq!(document["command"][1], "sim-workload");
    assert_eq!(document["window"], "run");
    assert_eq!(document["machine"]["simulated"], true);
    for key in ["kernel", "driver", "sweetspot", "processors"] {
        assert!(!document["machine"][key].is_null(), "{key}: {document}");
    }
    let devices = document["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    for device in devices {
        let (low, high) = (&device["interval95_j"][0], &device["interval95_j"][1]);
        let energy = number(&device["energy_j"]);
        assert!(number(low) <= energy && energy <= number(high), "{device}");
        assert!(
            device["uuid"].as_str().unwrap().starts_with("GPU-"),
            "{device}"
        );
        assert!(
            device["method"].is_string() && device["checks"].is_array(),
            "{device}"
        );
        assert!(
            device.get("missing").is_none() && device.get("covered_s").is_none(),
            "{device}"
        );
    }
    let sum: f64 = devices
        .iter()
        .map(|device| number(&device["energy_j"]))
        .sum();
    assert!(
        (number(&document["energy_j"]) / sum - 1.0).abs() < 1e-9,
        "{document}"
    );
    // What an idle GPU draws is not part of what is above that.
    let idle = number(&document["idle"]["energy_j"]) / number(&document["idle"]["time_s"]);
    assert!((75.0..90.0).contains(&idle), "{idle} W");
    let above = sum - idle * number(&document["time_s"]);
    assert!(
        (number(&document["above_idle"]["energy_j"]) - above).abs() < 0.01 * sum,
        "{document}"
    );
    assert!(warnings(&document).is_empty(), "{document}");
}

/// What the workload says it drew, and what is drawn at rest in the rest of the window.
fn truth(said: &str, window: f64, idle: f64) -> f64 {
    let done = said
        .lines()
        .find(|line| line.starts_with("done: "))
        .unwrap();
    let before = |unit: &str| -> f64 {
        let words: Vec<&str> = done.split([' ', ',']).collect();
        let place = words.iter().position(|word| *word == unit).unwrap();
        words[place - 1].parse().unwrap()
    };
    before("J") + idle * (window - before("s"))
}

#[test]
fn energies_are_right_on_every_generation() {
    let generations = [
        ("titan_x_maxwell", "resnet_im", 16.0),
        ("tesla_p100", "resnet50", 26.0),
        ("v100", "resnet50", 40.0),
        ("gtx_2080ti", "resnet50", 15.0),
        ("nvidia_h200", "resnet50", 72.0),
    ];
    let errors: Vec<(String, f64, f64)> = std::thread::scope(|scope| {
        let one = |(gpu, network, idle): (&'static str, &'static str, f64)| {
            scope.spawn(move || {
                let host = TestHost::new(gpu);
                let (document, output) = json(&host, &words(&workload(network, "2.5")));
                let truth = truth(&text(&output.stderr), number(&document["time_s"]), idle);
                let device = &document["devices"][0];
                let half = number(&device["interval95_j"][1]) - number(&device["energy_j"]);
                let error = number(&device["energy_j"]) / truth - 1.0;
                (
                    format!("{gpu}: {error:+.4}, {document}"),
                    error,
                    half / truth,
                )
            })
        };
        let all: Vec<_> = generations.into_iter().map(one).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (what, error, half) in &errors {
        assert!(error.abs() < 0.02, "{what}");
        // A single try may be outside 95 %; none is far outside.
        assert!(error.abs() < 2.5 * half + 0.001, "{what}");
        assert!((0.0..0.1).contains(half), "{what}");
    }
}

#[test]
fn several_runs_until_one_fails() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count").to_string_lossy().into_owned();
    let script = format!("echo >> {count}; sleep 0.05; [ $(wc -l < {count}) -ne 4 ] || exit 5");
    let (document, output) = json(
        &host,
        &[&["--warmup", "1", "--runs", "5"], shell(&script).as_slice()].concat(),
    );
    assert_eq!(output.status.code(), Some(5));
    let runs = document["runs"].as_array().unwrap();
    let codes: Vec<f64> = runs.iter().map(|run| number(&run["exit_code"])).collect();
    assert_eq!(codes, [0.0, 0.0, 5.0]);
    // The mean is that of the runs that went well.
    let mean = (number(&runs[0]["time_s"]) + number(&runs[1]["time_s"])) / 2.0;
    assert!(
        (number(&document["summary"]["time_s"]["mean"]) - mean).abs() < 1e-9,
        "{document}"
    );
    // What comes before a run may fail: what was measured until then is told.
    let once = format!("rm {count}");
    let (document, output) = json(
        &host,
        &["--runs", "2", "--prepare", &once, "--", "sleep", "0.05"],
    );
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("--prepare failed"), "{message}");
    assert!(
        message.contains("the runs before that are shown"),
        "{message}"
    );
    assert!(number(&document["energy_j"]) > 0.0);
    assert!(
        document["stopped"].as_str().unwrap().contains("--prepare"),
        "{document}"
    );
}

fn begin(host: &TestHost, args: &[&str]) -> Child {
    let mut command = command(host, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn end(child: Child, signal: &str, after: Duration) -> (Output, Duration) {
    std::thread::sleep(after);
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args([signal, &pid])
            .status()
            .unwrap()
            .success()
    );
    let begun = Instant::now();
    (child.wait_with_output().unwrap(), begun.elapsed())
}

#[test]
fn a_signal_ends_it_and_what_was_measured_is_shown_and_saved() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let soon = Duration::from_millis(800);
    let (by_term, trapped, at_rest, preparing) = (file("1"), file("2"), file("3"), file("4"));
    let trap = "trap 'exit 0' TERM; sleep 9 >&- 2>&- & wait $!";
    let cases = [
        vec!["--export-json", &by_term, "--", "sleep", "20"],
        vec![
            "--runs",
            "3",
            "--export-json",
            &trapped,
            "--",
            "sh",
            "-c",
            trap,
        ],
        vec!["--idle", "--export-json", &at_rest, "--", "sleep", "20"],
        vec![
            "--prepare",
            "exec sleep 9",
            "--export-json",
            &preparing,
            "--",
            "sleep",
            "20",
        ],
    ];
    let children: Vec<Child> = cases.iter().map(|args| begin(&host, args)).collect();
    std::thread::sleep(soon);
    for (child, args) in children.into_iter().zip(&cases) {
        let (output, took) = end(child, "-TERM", Duration::ZERO);
        assert_eq!(output.status.code(), Some(128 + 15), "{args:?}: {output:?}");
        assert!(took < Duration::from_secs(4), "{args:?}: {took:?}");
        let measured = !matches!(args[0], "--idle" | "--prepare");
        let shown = text(&output.stdout);
        assert_eq!(shown.contains("NVIDIA H200"), measured, "{args:?}: {shown}");
        let nothing = text(&output.stderr).contains("nothing was measured");
        assert_eq!(nothing, !measured, "{args:?}: {output:?}");
    }
    for saved in [by_term, trapped] {
        let document: Value = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
        assert!(number(&document["energy_j"]) > 10.0, "{document}");
    }
    assert!(!Path::new(&at_rest).exists() && !Path::new(&preparing).exists());
    let (output, _) = end(begin(&host, &["--", "sleep", "20"]), "-INT", soon);
    assert_eq!(output.status.code(), Some(128 + 2), "{output:?}");
    assert!(
        text(&output.stdout).contains("ended by signal 2"),
        "{output:?}"
    );
}

#[test]
fn what_cannot_be_saved_is_told_and_the_rest_is_saved() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("a.csv").to_string_lossy().into_owned();
    let output = measure(
        &host,
        &[
            "--export-json",
            "/dev/full",
            "--export-csv",
            &csv,
            "--",
            "sleep",
            "0.05",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("NVIDIA H200"), "{output:?}");
    let message = text(&output.stderr);
    assert!(
        message.starts_with("sweetspot: cannot write /dev/full: No space left"),
        "{message}"
    );
    let lines = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(lines.lines().count(), 3, "{lines}");
    std::fs::remove_file(&csv).unwrap();
    // A reader that went away keeps nothing from being saved, nor the code from being passed on.
    let args = [&["--export-csv", &csv], shell("exit 5").as_slice()].concat();
    let mut child = begin(&host, &args);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert!(Path::new(&csv).exists());
}

#[test]
fn progress_is_found_in_what_is_printed_to_its_end() {
    let host = TestHost::new("nvidia_h200");
    let printed = |pattern: &str, more: &[&str], script: &str| {
        let args = [&["--progress", pattern], more, shell(script).as_slice()].concat();
        json(&host, &args)
    };
    // The last line counts, and a count that begins anew goes on.
    let epochs = "for e in 1 2; do for i in 10 20 30; do echo $i items; done; done";
    let (document, _) = printed(r"(\d+) items", &[], epochs);
    assert_eq!(number(&document["items"]), 60.0, "{document}");
    // A bar that never ends its line: each of its states has its own time.
    let bar = r"for i in 0 1 2 3 4 5; do printf '\r%d/5' $i; sleep 0.1; done";
    let (document, output) = printed(r"(\d+)/5", &["--window", "progress"], bar);
    assert_eq!(number(&document["items"]), 5.0, "{document}");
    assert!(
        (0.48..0.9).contains(&number(&document["time_s"])),
        "{document}"
    );
    assert_eq!(text(&output.stderr), "\r0/5\r1/5\r2/5\r3/5\r4/5\r5/5");
    // A rate is of the whole window.
    let (document, _) = printed(
        r"images/sec: ([\d.]+)",
        &[],
        "sleep 0.2; echo images/sec: 500",
    );
    let items = 500.0 * number(&document["time_s"]);
    assert!(
        (number(&document["items"]) - items).abs() < 1e-6,
        "{document}"
    );
    // Nothing is lost of much output.
    let output = measure(
        &host,
        &[&["--progress", r"^(\d+)$"], shell("seq 300000").as_slice()].concat(),
    );
    let shown = text(&output.stdout);
    assert_eq!(shown.lines().take(300_000).last(), Some("300000"));
    assert!(
        shown.contains("300000 items, "),
        "{}",
        &shown[shown.len() - 500..]
    );
    let (document, _) = printed("loss", &[], "echo nothing of the kind");
    assert!(document.get("items").is_none(), "{document}");
    assert!(
        warnings(&document)[0].contains("--progress found nothing"),
        "{document}"
    );
}

#[test]
fn a_window_that_is_not_there_is_told() {
    let host = TestHost::new("nvidia_h200");
    let missing = |args: &[&str], expected: &str| {
        let (document, output) = json(&host, args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            document["window_problem"]
                .as_str()
                .unwrap()
                .contains(expected),
            "{document}"
        );
        assert!(
            warnings(&document)[0].ends_with("the whole run is shown"),
            "{document}"
        );
        assert!(number(&document["energy_j"]) > 0.0);
    };
    missing(
        &["--window", "phase:x", "--", "sleep", "0.1"],
        "never marked a phase 'x'",
    );
    missing(
        &["--iterations", "5", "--", "sleep", "0.1"],
        "give --progress",
    );
    let most = u64::MAX.to_string();
    let few = [
        "--progress",
        "x",
        "--skip",
        &most,
        "--",
        "sh",
        "-c",
        "echo x; sleep 0.2; echo x",
    ];
    missing(&few, "progress was reported 2 times");
}

#[test]
fn the_command_is_left_as_it_is() {
    let host = TestHost::new("nvidia_h200");
    let mut child = command(&host, &["--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .env("SWEETSPOT_READ_ONLY", "1")
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"for the command\n").unwrap();
    let shown = text(&child.wait_with_output().unwrap().stdout);
    assert!(shown.starts_with("for the command\n\ncat: "), "{shown}");
    // No terminal: no line that is drawn again and again.
    let odd = [
        "--",
        "sh",
        "-c",
        "echo \"$1\"\n sleep 0.5",
        "sh",
        "ä 'b'  \"c\"",
    ];
    let output = measure(&host, &odd);
    let shown = text(&output.stdout);
    let expected = "ä 'b'  \"c\"\n\nsh -c 'echo \"$1\" sleep 0.5' sh 'ä '\\''b'\\'' \"c\"': ";
    assert!(shown.starts_with(expected), "{shown}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn devices_are_chosen_by_index_and_uuid() {
    let host = TestHost::new("v100,gtx_2080ti");
    let chosen = |device: &str| -> Vec<String> {
        let (document, _) = json(&host, &["--device", device, "--", "true"]);
        let devices = document["devices"].as_array().unwrap();
        devices
            .iter()
            .map(|one| one["uuid"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = chosen("all");
    assert_eq!(all.len(), 2);
    assert_eq!(chosen("1"), [all[1].as_str()]);
    assert_eq!(chosen(&all[0]), [all[0].as_str()]);
    assert_eq!(chosen(&format!("{},{}", all[1], all[0])).len(), 2);
}

/// A GPU with something wrong about it.
fn broken(folder: &Path, profile: &str, fault: &str) -> String {
    let path = folder.join("gpu.toml");
    std::fs::write(&path, format!("{profile}\n[[fault]]\n{fault}\n")).unwrap();
    path.to_string_lossy().into_owned()
}

const H200: &str = include_str!("../../sim/profiles/gpus/nvidia_h200.toml");
const MAXWELL: &str = include_str!("../../sim/profiles/gpus/titan_x_maxwell.toml");

#[test]
fn a_gpu_that_is_lost_gives_a_part_and_no_total() {
    let folder = tempfile::tempdir().unwrap();
    for profile in [H200, MAXWELL] {
        let gpu = broken(folder.path(), profile, "kind = \"lost\"\nafter = \"3 s\"");
        let host = TestHost::new(&gpu);
        let (document, output) = json(&host, &["--", "sleep", "4"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(document.get("energy_j").is_none(), "{document}");
        assert!(document.get("average_power_w").is_none(), "{document}");
        let device = &document["devices"][0];
        let (part, whole) = (number(&device["covered_s"]), number(&document["time_s"]));
        assert!((0.5..3.1).contains(&part), "{document}");
        let missing = &device["missing"][0];
        assert_eq!(missing["reason"], "the device was lost", "{document}");
        assert!(
            (number(&missing["time_s"]) + part - whole).abs() < 0.05,
            "{document}"
        );
        let told = warnings(&document);
        assert!(told[0].contains("the energy is that of"), "{told:?}");
        // What it drew while it was there is right.
        let power = number(&device["energy_j"]) / part;
        assert!(
            (power - number(&device["average_power_w"])).abs() < 1e-6,
            "{document}"
        );
        assert!(power > 10.0, "{document}");
    }
}

#[test]
fn a_counter_that_goes_back_is_no_loss() {
    let folder = tempfile::tempdir().unwrap();
    let gpu = broken(
        folder.path(),
        H200,
        "kind = \"counter-wraps\"\nat = \"500 J\"",
    );
    let host = TestHost::new(&gpu);
    let (document, output) = json(&host, &words(&workload("resnet50", "2")));
    let truth = truth(&text(&output.stderr), number(&document["time_s"]), 72.0);
    assert!(
        (number(&document["energy_j"]) / truth - 1.0).abs() < 0.02,
        "{truth} J: {document}"
    );
    let missing = &document["devices"][0]["missing"][0];
    assert_eq!(missing["sensor"], "energy counter", "{document}");
    assert_eq!(missing["reason"], "the counter was set back", "{document}");
}

#[test]
fn every_reading_is_in_the_samples() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples.parquet");
    let run = workload("resnet50", "1.5");
    let args = [
        &["--export-samples", path.to_str().unwrap()],
        words(&run).as_slice(),
    ]
    .concat();
    let output = measure(&host, &args);
    assert!(output.status.success(), "{output:?}");
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let names: Vec<&str> = schema
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    let expected = "time_s device source power_w energy_j utilisation core_clock_mhz memory_clock_mhz \
                    temperature_c throttle";
    assert_eq!(names.join(" "), expected);
    let (mut last, mut busy, mut sources) = (f64::MIN, 0, Vec::new());
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let time = row.get_double(0).unwrap();
        assert!(time >= last, "{row}");
        last = time;
        sources.push(row.get_string(2).unwrap().clone());
        if sources.last().unwrap() == "buffer" && row.get_double(3).unwrap() > 300.0 {
            busy += 1;
        }
    }
    for source in ["buffer", "counter", "beside"] {
        assert!(
            sources.iter().any(|one| one == source),
            "{source}: {sources:?}"
        );
    }
    // Some 20 ms apart.
    assert!((50..120).contains(&busy), "{busy} samples under load");
}

fn python(kind: &[&str]) -> Option<Vec<String>> {
    let there = Command::new("python3").arg("--version").output();
    if there.is_ok_and(|output| output.status.success()) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/link/marks.py");
        let words = [&["--", "python3", script], kind].concat();
        return Some(words.into_iter().map(str::to_owned).collect());
    }
    let all = std::env::var_os("SWEETSPOT_ALL_TESTS").is_some();
    assert!(!all, "no test may be left out, and there is no python3");
    eprintln!("SKIPPED: there is no python3");
    None
}

fn with_link(host: &TestHost, args: &[&str]) -> Value {
    let client = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/src"));
    let output = command(host, &[&["--export-json", "-"], args].concat())
        .env("PYTHONPATH", client)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn phases_add_up_and_tell_load_from_rest() {
    let Some(run) = python(&["training", PROGRAM]) else {
        return;
    };
    let host = TestHost::new("nvidia_h200");
    let document = with_link(&host, &words(&run));
    let phases = document["phases"]
        .as_object()
        .unwrap_or_else(|| panic!("{document}"));
    let sum: f64 = phases
        .values()
        .map(|phase| number(&phase["energy_j"]))
        .sum();
    assert!(
        (sum / number(&document["energy_j"]) - 1.0).abs() < 1e-6,
        "{document}"
    );
    let (busy, pause) = (&phases["busy"], &phases["pause"]);
    assert_eq!(
        (number(&busy["count"]), number(&pause["count"])),
        (4.0, 4.0)
    );
    assert!((1.2..1.5).contains(&number(&pause["time_s"])), "{document}");
    // A process starts within the phase, so that it is not all load.
    assert!(
        (400.0..620.0).contains(&number(&busy["power_w"])),
        "{document}"
    );
    assert!(
        (60.0..140.0).contains(&number(&pause["power_w"])),
        "{document}"
    );
    assert_eq!(number(&document["items"]), 512.0);
    assert_eq!(document["values"], serde_json::json!({"accuracy": 0.76}));
    assert_eq!(warnings(&document), ["value 'loss' is NaN: it is left out"]);
}

#[test]
fn a_window_of_a_phase_is_from_its_first_begin_to_its_last_end() {
    let Some(run) = python(&["workers"]) else {
        return;
    };
    let host = TestHost::new("nvidia_h200");
    let document = with_link(
        &host,
        &[&["--window", "phase:load"], words(&run).as_slice()].concat(),
    );
    assert_eq!(document["window"], "phase:load");
    let (window, run) = (number(&document["time_s"]), number(&document["run_time_s"]));
    assert!((0.08..run).contains(&window), "{document}");
    // Three forked workers with a ring each; too short to say more than that.
    assert!(document["phases"].is_object() || document["phases_refused"].is_string());
    assert!(warnings(&document).is_empty(), "{document}");
}

#[test]
fn marks_that_do_not_fit_are_told() {
    let Some(run) = python(&["irregular"]) else {
        return;
    };
    let host = TestHost::new("nvidia_h200");
    let told = warnings(&with_link(&host, &words(&run)));
    let expected = [
        "phase 'a' ended within phase 'b', which began later: both are counted",
        "phase 'c' ended without having begun: it is left out",
        "phase 'd' began and never ended: it is left out",
    ];
    assert_eq!(told, expected);
}

#[test]
fn ranks_with_phases_of_their_own_add_up() {
    let Some(run) = python(&["ranks"]) else {
        return;
    };
    let host = TestHost::new("v100:2");
    let document = with_link(&host, &words(&run));
    let phases = document["phases"]
        .as_object()
        .unwrap_or_else(|| panic!("{document}"));
    // Only one of them evaluates.
    assert_eq!(number(&phases["evaluate"]["count"]), 30.0, "{document}");
    assert_eq!(number(&phases["step"]["count"]), 30.0, "{document}");
    let sum: f64 = phases
        .values()
        .map(|phase| number(&phase["energy_j"]))
        .sum();
    assert!(
        (sum / number(&document["energy_j"]) - 1.0).abs() < 1e-6,
        "{document}"
    );
    assert_eq!(number(&document["items"]), 600.0);
}
