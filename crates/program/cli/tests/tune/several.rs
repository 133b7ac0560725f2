//! `sweetspot tune` on several GPUs of one job: unlike GPUs, a GPU that is lost, a rank that dies.

use super::*;

/// Two ranks that report to the link; the second one has another batch and dies after a second.
const RANKS: &str = "
import os, subprocess, sys, time
import sweetspot as s
if 'RANK' not in os.environ:
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, RANK=str(rank))) for rank in (0, 1)]
    sys.exit(max(rank.wait() for rank in ranks))
rank = int(os.environ['RANK'])
for step in range(1000):
    if rank == 1 and step == 12 or rank == 0 and step == 95:
        os._exit(0)
    s.progress(items=64 if rank == 0 else 32)
    time.sleep(0.1)
";

#[test]
fn ranks_that_disagree_and_a_rank_that_dies_are_reported_and_gpus_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::new("v100:2");
    host.set_caps(250.0);
    let script = folder.path().join("ranks.py");
    std::fs::write(&script, RANKS).unwrap();
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python/src");
    let script = script.display().to_string();
    let args = [
        "--device",
        "0,1",
        "--export-json",
        "-",
        "--",
        "python3",
        &script,
    ];
    let output = tune(&host, folder.path(), &args)
        .env("PYTHONPATH", client)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let err = text(&output.stderr);
    assert!(
        err.contains("rank 0 reports 64 items in a batch and rank 1 32"),
        "{err}"
    );
    assert!(err.contains("rank 1 of 2 has ended"), "{err}");
    assert_eq!(output.status.code(), Some(1), "{err}");
    let document = json(&output);
    assert_eq!(document["status"], "gave-up", "{document}");
    assert_eq!(document["restored"], true, "{document}");
    assert_eq!(document["devices"].as_array().unwrap().len(), 2);
    assert!(
        document["devices"][1]["energy_j"].as_f64().unwrap() > 0.0,
        "{document}"
    );
    assert_eq!(caps(&host), [250.0, 250.0]);
}

#[test]
fn a_lost_gpu_is_reported_and_the_others_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let profile = gpu(folder.path(), &[]);
    let mut faulty = std::fs::read_to_string(&profile).unwrap();
    faulty += "\n[[fault]]\nkind = \"lost\"\nafter = \"9 s\"\n";
    let second = folder.path().join("faulty.toml");
    std::fs::write(&second, faulty).unwrap();
    let host = TestHost::new(&format!("{},{}", profile.display(), second.display()));
    let args = training("--fresh --", "14");
    let output = tune(&host, folder.path(), &args).output().unwrap();
    let err = text(&output.stderr);
    assert!(err.contains("GPU 1"), "{err}");
    assert!(
        err.contains("the other GPUs get their default settings"),
        "{err}"
    );
    assert_ne!(output.status.code(), Some(0), "{err}");
    let host = Host::open(host.folder()).unwrap();
    let first = host.gpus()[0]
        .with_gpu(|gpu| gpu.power_cap().get())
        .unwrap();
    assert_eq!(first, 300.0, "{err}");
}

#[test]
fn unlike_gpus_are_tuned_in_virtual_time_and_more_gpus_than_there_are_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let gpus = "tune --simulate titan_x_pascal,titan_x_maxwell --network resnet_im --items 300000";
    let run = |more: &str| {
        let line = format!("{gpus} --objective energy --export-json - {more}");
        json(&sweetspot(folder.path(), &words(line.trim())))
    };
    let each = run("");
    assert_eq!(each["settings"], "each", "{each}");
    assert_eq!(
        each["choice"]["each"].as_array().unwrap().len(),
        2,
        "{each}"
    );
    let same = run("--settings same");
    assert!(same["choice"]["power_cap_w"].as_f64().is_some(), "{same}");
    assert!(each["energy_j"].as_f64() < same["energy_j"].as_f64());
    let host = TestHost::new("v100:2");
    let args = ["--device", "0,2", "--", "true"];
    let output = tune(&host, folder.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let line = "tune --simulate v100:2 --network resnet50 --device 0,1,2";
    let output = sweetspot(folder.path(), &words(line));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("'--device "), "{output:?}");
    let output = sweetspot(
        folder.path(),
        &words("tune --simulate v100 --network resnet50 --settings all"),
    );
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("use same"), "{output:?}");
}
