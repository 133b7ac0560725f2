//! A budget is kept while it changes and while programs end, and everything is restored, whatever ends it.

use std::time::Duration;

use super::common::{
    EARLIER_CAP, caps, document, signal, start_budget, start_training, stderr_text, wait_for_caps,
};
use crate::host::TestHost;

/// Whether the sum of caps is within a budget, apart from rounding.
fn within(caps: &[f64], budget: f64) -> bool {
    caps.iter().sum::<f64>() <= budget + 0.5
}

#[test]
fn a_budget_is_halved_while_three_programs_run_and_one_is_killed() {
    let host = TestHost::new("tesla_v100_pcie_16gb:8");
    host.set_caps(240.0);
    let mut programs = [("0", "1"), ("1,2", "2"), ("3", "1")]
        .map(|(gpus, ranks)| start_training(&host, gpus, ranks));
    std::thread::sleep(Duration::from_secs(1));
    let budget = start_budget(&host, &["--below", "1800W"]);
    wait_for_caps(&host, "1800 W", |caps| {
        caps.len() == 8 && within(caps, 1800.0)
    });
    let set = host.sweetspot().args(["budget", "set", "0.9kW"]).output();
    assert!(set.unwrap().status.success());
    wait_for_caps(&host, "900 W", |caps| within(caps, 900.0));
    signal("-KILL", &programs[2], true);
    for _ in 0..30 {
        std::thread::sleep(Duration::from_millis(100));
        assert!(within(&caps(&host), 900.0), "{:?}", caps(&host));
    }
    signal("-TERM", &budget, false);
    let output = budget.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(128 + 15),
        "{}",
        stderr_text(&output)
    );
    assert_eq!(caps(&host), vec![240.0; 8]);
    let document = document(&output);
    assert_eq!(document["restored"], true);
    assert_eq!(document["budgets"].as_array().unwrap().len(), 2);
    assert!(document["devices"][0]["items"].as_f64().unwrap() > 0.0);
    // The power itself follows: what was drawn before the change is in the mean of a second for a second.
    let samples = document["over_time"].as_array().unwrap().iter();
    let mut halved = samples.filter(|sample| sample["budget_w"] == 900.0);
    let value = |sample: &serde_json::Value, key: &str| sample[key].as_f64().unwrap();
    let changed = value(halved.next().unwrap(), "at_s");
    let later: Vec<f64> = halved
        .filter(|sample| value(sample, "at_s") > changed + 2.0)
        .map(|sample| value(sample, "power_w"))
        .collect();
    assert!(!later.is_empty(), "{document}");
    assert!(later.iter().all(|power| *power <= 900.0), "{later:?}");
    for program in &mut programs {
        let _ = program.kill();
        program.wait().unwrap();
    }
}

#[test]
fn caps_are_restored_after_a_kill() {
    let host = TestHost::new("v100:2");
    host.set_caps(EARLIER_CAP);
    for name in ["-KILL", "-TERM", "-HUP"] {
        let mut budget = start_budget(&host, &["--below", "350W"]);
        wait_for_caps(&host, "350 W", |caps| within(caps, 350.0));
        signal(name, &budget, false);
        wait_for_caps(&host, name, |caps| caps == [EARLIER_CAP; 2]);
        budget.wait().unwrap();
    }
}

/// A hold that chooses batch sizes alone gets a lower limit while the budget lasts, and then its own again.
#[test]
fn a_running_hold_is_limited_and_has_its_cap_back() {
    let host = TestHost::new("tesla_p40:2");
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("hold.json");
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let hold = host
        .sweetspot()
        .args([
            "hold", "--below", "200W", "--knob", "batch", "--device", "0",
        ])
        .arg("--export-json")
        .arg(&document)
        .args(["--", program, "sim-workload", "--serve", "--infer"])
        .args(["--network", "resnet50", "--seconds", "9"])
        .env("CUDA_VISIBLE_DEVICES", "0")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let budget = start_budget(&host, &["--below", "290W", "--for", "4s"]);
    let output = budget.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    let held = hold.wait_with_output().unwrap();
    let text = std::fs::read(&document);
    let text = text.unwrap_or_else(|error| panic!("{error}: {}", stderr_text(&held)));
    let held: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let caps = held["caps"].as_array().unwrap().iter();
    let caps: Vec<f64> = caps.map(|cap| cap["cap_w"].as_f64().unwrap()).collect();
    assert!(caps.len() >= 3, "{caps:?}");
    assert_eq!((caps[0], caps[caps.len() - 1]), (200.0, 200.0), "{caps:?}");
    assert!(caps.iter().any(|cap| *cap < 190.0), "{caps:?}");
}
