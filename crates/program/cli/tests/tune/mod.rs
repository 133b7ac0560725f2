//! `sweetspot tune` with commands on simulated hosts in real time, and bad input.

mod bad_input;
mod counter_faults;
mod knob;
mod several;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{sweetspot, text, words};
use crate::host::TestHost;
use serde_json::Value;
use sweetspot_sim_host::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// Writes a GPU profile with some lines changed.
fn gpu(folder: &Path, changes: &[(&str, &str)]) -> PathBuf {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml"
    );
    let mut profile = std::fs::read_to_string(source).unwrap();
    profile = profile.replace("aliases = [\"v100\"]", "aliases = []");
    for (from, to) in changes {
        assert!(profile.contains(from), "{from}");
        profile = profile.replace(from, to);
    }
    let file = folder.join("gpu.toml");
    std::fs::write(&file, profile).unwrap();
    file
}

/// A range of four caps that all limit the job, so that an exhaustive search is short.
const FOUR_CAPS: [(&str, &str); 1] = [(
    "min = \"150 W\"\nmax = \"300 W\"\ndefault = \"300 W\"",
    "min = \"150 W\"\nmax = \"165 W\"\ndefault = \"165 W\"",
)];

fn tune(host: &TestHost, folder: &Path, args: &[&str]) -> Command {
    let mut command = host.sweetspot();
    command
        .arg("tune")
        .args(args)
        .env("XDG_STATE_HOME", folder.join("state"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Flags that end in `--`, followed by a stand-in training of some seconds.
fn training<'a>(flags: &'a str, seconds: &'a str) -> Vec<&'a str> {
    let program = [PROGRAM, "sim-workload", "--network", "resnet50"];
    [&words(flags)[..], &program, &["--seconds", seconds]].concat()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn caps(host: &TestHost) -> Vec<f64> {
    let host = Host::open(host.folder()).unwrap();
    let gpus = host.gpus().iter();
    gpus.map(|gpu| gpu.with_gpu(|gpu| gpu.power_cap().get()).unwrap())
        .collect()
}

#[test]
fn a_training_is_tuned_on_every_gpu_and_settings_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let profile = gpu(folder.path(), &FOUR_CAPS);
    let host = TestHost::new(&format!("{}:2", profile.display()));
    host.set_caps(155.0);
    let flags =
        "--objective energy --strategy exhaustive --export-json - --export-svg power.svg --";
    let args = [&training(flags, "45")[..], &["--ranks", "2"]].concat();
    let output = tune(&host, folder.path(), &args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document = json(&output);
    assert_eq!(document["schema"], "sweetspot.tune/1");
    assert_eq!(document["status"], "settled", "{document}");
    assert_eq!(document["reference"]["power_cap_w"], 165.0);
    let choice = document["choice"]["power_cap_w"].as_f64().unwrap();
    assert!(choice < 165.0, "{document}");
    let saved = &document["against_reference"]["energy_saved"];
    assert!(saved["value"].as_f64().unwrap() > 0.0, "{document}");
    assert!(document["windows"].as_array().unwrap().len() >= 3);
    assert_eq!(caps(&host), [155.0, 155.0]);
    let picture = std::fs::read_to_string(folder.path().join("power.svg")).unwrap();
    assert!(
        picture.starts_with("<svg") || picture.starts_with("<?xml"),
        "{picture:.60}"
    );
    let kept = std::fs::read_dir(folder.path().join("state/sweetspot/choices")).unwrap();
    assert_eq!(kept.count(), 1);
}

#[test]
fn a_python_program_on_the_link_may_end_early() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::new("v100");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tune/train.py");
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python/src");
    let args = [
        "--export-json",
        "tune.json",
        "--",
        "python3",
        script,
        PROGRAM,
        "11",
    ];
    let output = tune(&host, folder.path(), &args)
        .env("PYTHONPATH", client)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let out = text(&output.stdout);
    assert!(out.contains("tuning: exploring"), "{out}");
    assert!(out.contains("ended before a setting was found"), "{out}");
    let document = std::fs::read(folder.path().join("tune.json")).unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(document["status"], "ended-early");
    assert!(document["items"].as_f64().unwrap() > 1000.0, "{document}");
    assert_eq!(document["windows"][0]["purpose"], "reference");
    assert_eq!(caps(&host), [300.0]);
    assert!(!folder.path().join("state").exists());
}

#[test]
fn a_cap_set_by_another_program_is_noticed_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::new("v100");
    let args = training("--export-json - --", "11");
    let child = tune(&host, folder.path(), &args).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(5));
    host.set_caps(222.0);
    std::thread::sleep(Duration::from_secs(4));
    let meanwhile = caps(&host);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let document = json(&output);
    assert_eq!(document["status"], "gave-up", "{document}");
    let reason = document["reason"].as_str().unwrap();
    assert!(
        reason.contains("another program changed the power cap"),
        "{reason}"
    );
    // What another program has set is left alone, while the job runs and after it.
    assert_eq!(meanwhile, [222.0]);
    assert_eq!(caps(&host), [222.0]);
}

#[test]
fn a_signal_to_the_tool_ends_the_job_and_restores_settings() {
    let folder = tempfile::tempdir().unwrap();
    let profile = gpu(folder.path(), &FOUR_CAPS);
    let host = TestHost::new(&profile.display().to_string());
    host.set_caps(155.0);
    let args = training("--export-json tune.json --", "60");
    let began = Instant::now();
    let child = tune(&host, folder.path(), &args).spawn().unwrap();
    // The reference is the default cap, which differs from the cap that was set before.
    while caps(&host) != [165.0] {
        assert!(began.elapsed() < Duration::from_secs(10), "nothing was set");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(1));
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    assert!(began.elapsed() < Duration::from_secs(20), "{output:?}");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(caps(&host), [155.0]);
    assert!(
        !folder.path().join("state").exists(),
        "nothing is remembered"
    );
}

#[test]
fn a_rejected_clock_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let fault = "leakage_per_degree = \"0.5 %\"";
    let denied = format!("{fault}\n\n[[fault]]\nkind = \"write-denied\"\nknob = \"core-clock\"");
    let profile = gpu(folder.path(), &[(fault, &denied)]);
    let host = TestHost::new(&profile.display().to_string());
    let args = training("--knob core-clock --", "14");
    let output = tune(&host, folder.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let out = text(&output.stdout);
    assert!(
        out.contains("Not tuned: the device rejected several settings"),
        "{out}"
    );
    assert_eq!(caps(&host), [300.0]);
}

#[test]
fn progress_may_restart_and_the_cap_may_not_bind() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::new("v100");
    let script = "for n in 1 2 3; do echo items $n; sleep 0.2; done; for n in $(seq 1 90); do echo items $n; sleep 0.2; done; exit 3";
    let args = ["--progress", r"items (\d+)", "--", "sh", "-c", script];
    let output = tune(&host, folder.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains(" for 93 items"), "{out}");
    assert!(out.contains("the cap does not bind"), "{out}\n{err}");
    assert!(out.contains("the knob core-clock"), "{out}");
}

#[test]
fn a_training_that_nobody_changed_is_tuned() {
    let folder = tempfile::tempdir().unwrap();
    let profile = gpu(folder.path(), &FOUR_CAPS);
    let host = TestHost::new(&profile.display().to_string());
    let flags = "--objective energy --strategy exhaustive --export-json - -- env -u SWEETSPOT_LINK";
    let output = tune(&host, folder.path(), &training(flags, "60"))
        .output()
        .unwrap();
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    let document = json(&output);
    assert_eq!(document["status"], "settled", "{document}");
    assert!(document["items"].as_f64().unwrap() > 0.0, "{document}");
    let found = "progress was found in the command's output: steps, counted in `step`";
    assert_eq!(err.matches(found).count(), 1, "{err}");
}

#[test]
fn a_job_without_progress_gets_one_message() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::new("v100");
    let args = ["--", "sh", "-c", "echo works; sleep 14; echo done"];
    let output = tune(&host, folder.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.starts_with("works\ndone\n"), "{out}");
    assert_eq!(
        err.matches("no progress was found in the first 10 s")
            .count(),
        1,
        "{err}"
    );
    for form in ["--progress 'step ([0-9]+)'", "sweetspot.progress(items=N)"] {
        assert!(err.contains(form), "{err}");
    }
    assert!(out.contains("Not tuned: no progress was found"), "{out}");
}

#[test]
fn the_command_works_on_the_gpu_that_is_tuned() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::new("v100:2");
    let args = [
        "--device",
        "1",
        "--",
        "sh",
        "-c",
        "echo sees $CUDA_VISIBLE_DEVICES",
    ];
    let output = tune(&host, folder.path(), &args).output().unwrap();
    let out = text(&output.stdout);
    assert!(out.contains("sees 1\n"), "{out}");
    // Here only the limit needs progress.
    let args = ["--objective", "power", "--limit", "time<=+5%", "--", "true"];
    let output = tune(&host, folder.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let out = text(&output.stdout);
    assert!(out.contains("and the limit time<=+5% needs it"), "{out}");
}

#[test]
fn the_interval_of_the_total_saving_contains_the_true_value_after_a_load_change() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let all = [args, &["--export-json", "-"]].concat();
        let output = sweetspot(folder.path(), &all);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (mut time, mut energy) = (0.0, 0.0);
    for network in ["resnet50", "alexnet"] {
        let caps = ["--power-cap", "250,300", "--no-study"];
        let sweep = ["sweep", "--simulate", "v100", "--network", network];
        let study = run(&[&sweep[..], &caps].concat());
        time += study["reference"]["time_s"]["mean"].as_f64().unwrap();
        energy += study["reference"]["energy_j"]["mean"].as_f64().unwrap();
    }
    let tuned = run(&[
        "tune",
        "--simulate",
        "v100",
        "--network",
        "resnet50",
        "--network",
        "alexnet",
    ]);
    let number = |value: &Value| value.as_f64().unwrap();
    let holds = |share: &Value, truth: f64| {
        let (low, high) = (number(&share["ci95"][0]), number(&share["ci95"][1]));
        assert!(low <= truth && truth <= high, "{truth}: {share}");
    };
    let whole = &tuned["whole"];
    holds(
        &whole["energy_saved"],
        1.0 - number(&tuned["energy_j"]) / energy,
    );
    holds(&whole["time_lost"], number(&tuned["time_s"]) / time - 1.0);
}

/// The energy counter of the simulated driver blocks while this lock is held.
#[test]
fn a_driver_that_stalls_at_the_end_leaves_the_energy_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::new("v100");
    let args = training("--fresh --export-json tuned.json --", "30");
    let child = tune(&host, folder.path(), &args).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let lock = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(host.folder().join("gpu0.slow"))
        .unwrap();
    lock.lock().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let pid = child.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    let begun = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20), "{output:?}");
    let message = text(&output.stderr);
    assert!(message.contains("its energy is unknown"), "{message}");
    let tuned = std::fs::read_to_string(folder.path().join("tuned.json")).unwrap();
    let tuned: Value = serde_json::from_str(&tuned).unwrap();
    assert!(tuned.get("energy_j").is_none(), "{tuned}");
}

#[test]
fn the_end_says_what_was_saved_and_how_to_keep_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &str| {
        let output = sweetspot(folder.path(), &words(args));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let tuned = run("tune --simulate v100 --network resnet50 --price-per-kwh 0.5");
    assert!(
        tuned.contains("tuned for edp, time<=+5% by guided"),
        "{tuned}"
    );
    let line = |start: &str| {
        let mut lines = tuned.lines();
        let line = lines.find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("{start}: {tuned}"))
            .to_owned()
    };
    let number = |text: &str, unit: &str| -> f64 {
        let before = text.split(unit).next().unwrap().trim();
        before.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let day = line("Work that takes a day at 300 W: ");
    // A V100 draws some 255 W, 6.1 kWh in a day, of which a tenth is saved.
    let saved = number(&day, "kWh");
    assert!((0.4..0.9).contains(&saved), "{day}");
    assert!((number(&day, "EUR") - 0.5 * saved).abs() < 1e-3, "{day}");
    assert!(day.ends_with(" more time."), "{day}");
    assert!(line("Compared with 300 W, exploring included: ").contains("EUR less money"));
    let free = run("tune --simulate v100 --network resnet50 --limit none");
    assert!(free.contains("tuned for edp by guided"), "{free}");
}
