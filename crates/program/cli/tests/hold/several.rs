//! `sweetspot hold` on several GPUs of one job: the cap is on the sum of their power.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sweetspot_sim_host::Host;

use super::common::{command, document, hold, json, number, serving, start_hold, stderr_text};
use crate::host::TestHost;

const H200: &str = include_str!("../../../../simulate/sim/profiles/gpus/nvidia_h200.toml");

fn device_caps(host: &TestHost) -> Vec<f64> {
    let shared = Host::open(host.folder()).unwrap();
    let gpus = shared.gpus().iter();
    gpus.filter_map(|gpu| gpu.with_gpu(|gpu| gpu.power_cap().get()).ok())
        .collect()
}

fn largest_mean(document: &Value) -> f64 {
    number(&document["largest_mean_w"])
}

#[test]
fn the_sum_of_two_gpus_is_kept_below_the_cap_and_both_are_restored() {
    let host = TestHost::new("nvidia_h200:2");
    host.set_cap(0, 600.0);
    let args = ["--below", "800W", "--device", "0,1", "--batches", "32,64"];
    let running = start_hold(&host, &args, &serving("8", &["--ranks", "2"]));
    std::thread::sleep(Duration::from_secs_f64(5.0));
    let set = host.sweetspot().args(["hold", "set", "700W"]).output();
    let set = set.unwrap();
    assert!(
        String::from_utf8_lossy(&set.stdout).contains("was 800.0 W and is now 700.0 W"),
        "{set:?}"
    );
    let output = running.wait_with_output().unwrap();
    let document = document(&output);
    assert!(largest_mean(&document) < 800.0, "{document}");
    let devices = document["devices"].as_array().unwrap();
    let energies = devices.iter().map(|one| number(&one["energy_j"]));
    let (energies, sum): (Vec<f64>, f64) = (energies.clone().collect(), energies.sum());
    assert_eq!(energies.len(), 2);
    assert!(energies.iter().all(|one| *one > 0.4 * sum), "{energies:?}");
    assert!((sum - number(&document["energy_j"])).abs() < 1e-6 * sum);
    let changes = document["caps_of_devices"].as_array().unwrap();
    for change in changes {
        let caps = change["caps_w"].as_array().unwrap();
        let sum: f64 = caps.iter().map(number).sum();
        assert!(sum <= 800.0 && caps.len() == 2, "{change}");
        assert!(number(&caps[0]) <= 600.0, "{change}");
    }
    assert_eq!(document["scope"], "each");
    assert_eq!(device_caps(&host), [600.0, 700.0], "{document}");
}

#[test]
fn a_lost_gpu_is_reported_and_the_others_are_restored_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let faulty = folder.path().join("faulty.toml");
    let fault = "\n[[fault]]\nkind = \"lost\"\nafter = \"5 s\"\n";
    std::fs::write(&faulty, format!("{H200}{fault}")).unwrap();
    let host = TestHost::new(&format!("nvidia_h200,{}", faulty.display()));
    host.set_cap(0, 650.0);
    let begun = Instant::now();
    // The server uses the first GPU alone, so that it goes on.
    let args = ["--below", "900W", "--device", "0,1", "--batches", "32,64"];
    let running = start_hold(&host, &args, &serving("8", &[]));
    std::thread::sleep(Duration::from_secs(2));
    assert!(device_caps(&host)[0] < 650.0, "{:?}", device_caps(&host));
    while device_caps(&host).first() != Some(&650.0) {
        assert!(begun.elapsed() < Duration::from_secs(8), "not restored");
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = running.wait_with_output().unwrap();
    let message = stderr_text(&output);
    assert!(message.contains("GPU 1 (NVIDIA H200)"), "{message}");
    assert!(
        message.contains("the other GPUs get their earlier settings"),
        "{message}"
    );
    assert_eq!(output.status.code(), Some(1), "{message}");
    let document = document(&output);
    assert!(document.get("met").is_none(), "{document}");
    assert!(
        document["met_reason"].as_str().unwrap().contains("GPU 1"),
        "{document}"
    );
    assert_eq!(document["lost"].as_array().unwrap().len(), 1, "{document}");
}

/// Two ranks that ask for their batch size and report their batches; the second one ends early.
const RANKS: &str = "
import os, subprocess, sys, time
import sweetspot as s
if 'RANK' not in os.environ:
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, RANK=str(rank))) for rank in (0, 1)]
    sys.exit(max(rank.wait() for rank in ranks))
rank = int(os.environ['RANK'])
for step in range(1000):
    if rank == 1 and step == 60 or rank == 0 and step == 370:
        os._exit(0)
    size = s.batch_size(default=16)
    time.sleep(0.02)
    s.batch(items=size, seconds=0.02)
";

#[test]
fn batches_of_ranks_are_joined_and_a_rank_that_ends_early_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("ranks.py");
    std::fs::write(&script, RANKS).unwrap();
    let host = TestHost::new("nvidia_h200:2");
    host.set_caps(500.0);
    let script = script.display().to_string();
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python/src");
    let args = ["--below", "900W", "--batches", "8", "--export-json", "-"];
    let output = command(&host, &args, &["--", "python3", &script])
        .env("PYTHONPATH", client)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let message = stderr_text(&output);
    assert!(message.contains("rank 1 of 2 has ended"), "{message}");
    assert_eq!(output.status.code(), Some(1), "{message}");
    let document = document(&output);
    // Both ranks together until the second one ends, then the first alone for 5 s.
    let items = number(&document["items"]);
    let average = number(&document["average_batch"]);
    assert!(average > 8.0 && average <= 16.0, "{average} of {items}");
    assert_eq!(device_caps(&host), [500.0, 500.0]);
}

#[test]
fn two_gpus_are_restored_after_a_kill_and_read_only_sets_nothing() {
    let host = TestHost::new("nvidia_h200:2");
    host.set_caps(600.0);
    let args = ["--below", "700W", "--device", "0,1", "--batches", "8,32"];
    let mut held = command(&host, &args, &serving("30", &["--ranks", "2"]));
    let mut held = held
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while device_caps(&host).contains(&600.0) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut kill = Command::new("kill");
    kill.args(["-KILL", &held.id().to_string()]);
    assert!(kill.status().unwrap().success());
    held.wait().unwrap();
    let killed = Instant::now();
    while device_caps(&host) != [600.0, 600.0] {
        assert!(killed.elapsed() < Duration::from_secs(2));
        std::thread::sleep(Duration::from_millis(10));
    }
    let before = host.writes();
    let args = [&args[..], &["--read-only"]].concat();
    let (document, output) = json(&host, &args, &serving("3", &["--ranks", "2"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert_eq!(document["knob"], "batch", "{document}");
    assert!(document.get("caps_of_devices").is_none(), "{document}");
    assert_eq!(host.writes(), before);
}

#[test]
fn bad_selections_are_refused_and_a_low_cap_is_explained() {
    let host = TestHost::new("nvidia_h200,v100");
    for (device, why) in [("0,2", "2"), ("0,0", "twice"), ("x", "x")] {
        let args = ["--below", "800W", "--device", device];
        let output = hold(&host, &args, &["--", "true"]);
        let message = stderr_text(&output);
        assert_eq!(output.status.code(), Some(125), "{device}: {message}");
        assert!(message.contains(why), "{device}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let args = ["--below", "210W", "--batches", "1,2"];
    let output = hold(&host, &args, &serving("1", &[]));
    let message = stderr_text(&output);
    assert!(
        message.contains("the lowest power caps of these 2 GPUs are"),
        "{message}"
    );
}

#[test]
fn unlike_gpus_get_caps_of_their_own_in_virtual_time() {
    let host = TestHost::new("v100");
    let run = |settings: &str| {
        let words = "hold --below 420W --simulate nvidia_h200,v100 --network resnet50 --export-json - --settings";
        let mut command = host.sweetspot();
        let output = command.args(words.split(' ')).arg(settings).output();
        document(&output.unwrap())
    };
    let (same, each) = (run("same"), run("each"));
    let rate = |document: &Value| number(&document["settled_items_per_s"]);
    assert!(rate(&each) > 1.03 * rate(&same), "{each}");
    let devices = each["devices"].as_array().unwrap();
    let cap = |gpu: usize| number(&devices[gpu]["power_cap_w"]);
    assert!(cap(1) > cap(0), "{each}");
    for held in [&same, &each] {
        assert!(number(&held["violation_share"]) < 0.01, "{held}");
    }
}
