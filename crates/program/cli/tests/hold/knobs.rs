//! Every knob respects the cap.

use super::common::{PROGRAM, caps, hold, json, last_batch, number, serving, stderr_text};
use crate::host::TestHost;

#[test]
fn the_batch_size_holds_the_cap_without_device_writes() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "360W", "--read-only", "--batches", "16,32,64"];
    let (document, output) = json(&host, &args, &serving("7", &[]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert_eq!(document["schema"], "sweetspot.hold/1");
    assert_eq!(last_batch(&document), 32.0, "{document}");
    assert_eq!(number(&document["violation_share"]), 0.0, "{document}");
    assert_eq!(caps(&document), [360.0]);
    assert_eq!(
        (&document["knob"], &document["met"]),
        (&"batch".into(), &true.into())
    );
    // Near the throughput and power of this batch size alone.
    let rate = number(&document["settled_items_per_s"]);
    assert!((4800.0..6800.0).contains(&rate), "{document}");
    assert!(
        (250.0..345.0).contains(&number(&document["largest_mean_w"])),
        "{document}"
    );
    let (energy, items) = (number(&document["energy_j"]), number(&document["items"]));
    assert!((energy / items - number(&document["energy_per_item_j"])).abs() < 1e-9);
    let slices = document["over_time"].as_array().unwrap();
    assert!(slices.len() > 24 && slices.iter().any(|slice| number(&slice["batch"]) == 32.0));
    assert_eq!(host.writes(), "");
}

#[test]
fn the_device_keeps_the_cap_where_it_may_be_set() {
    let host = TestHost::new("nvidia_h200");
    host.set_cap(0, 650.0);
    let args = ["--below", "400W", "--batches", "16,32,64,128,256"];
    let (document, output) = json(&host, &args, &serving("12", &[]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert_eq!(document["knob"], "auto");
    // By the batch size alone no more than 32 is possible below this cap, with half of the throughput.
    assert!(last_batch(&document) >= 128.0, "{document}");
    let rate = number(&document["settled_items_per_s"]);
    assert!(rate > 11_000.0, "{document}");
    assert!(number(&document["violation_share"]) < 0.01, "{document}");
    assert!(
        host.writes().contains("power_cap 398000 mW"),
        "{}",
        host.writes()
    );
    assert!(
        host.writes().ends_with("gpu0 power_cap 650000 mW\n"),
        "{}",
        host.writes()
    );
}

#[test]
fn averaging_sensors_hold_the_cap_too() {
    std::thread::scope(|scope| {
        for sensor in ["average", "instant"] {
            scope.spawn(move || {
                let host = TestHost::new("nvidia_h200");
                let args = [
                    "--below",
                    "360W",
                    "--batches",
                    "16,32,64",
                    "--knob",
                    "batch",
                    "--sensor",
                    sensor,
                ];
                let (document, output) = json(&host, &args, &serving("8", &[]));
                let shown = (last_batch(&document), number(&document["violation_share"]));
                assert_eq!(
                    shown,
                    (32.0, 0.0),
                    "{sensor}: {} {document}",
                    stderr_text(&output)
                );
            });
        }
    });
    let host = TestHost::new("v100");
    let args = ["--below", "360W", "--sensor", "average"];
    let missing = hold(&host, &args, &["--", "true"]);
    assert!(
        stderr_text(&missing).contains("this GPU has no averaged power"),
        "{missing:?}"
    );
}

/// Job 5 of batch_sizer_2021: the GPU waits for its host most of the time, so that the mean power of every batch size is
/// below the cap, while batches of 8 and more have spikes above it. The paper's algorithm reads the spikes.
#[test]
fn the_paper_s_algorithm_keeps_the_spikes_below_the_cap() {
    let host = TestHost::new("tesla_p40");
    let args = ["--below", "84W", "--mode", "windowed"];
    let program = [
        "--",
        PROGRAM,
        "sim-workload",
        "--network",
        "mobilenet_v2",
        "--dataset",
        "imagenet",
        "--infer",
        "--serve",
        "--seconds",
        "8",
    ];
    let (document, output) = json(&host, &args, &program);
    assert_eq!(document["cap_on"], "reading");
    let last = last_batch(&document);
    let shown = format!("{} {document}", stderr_text(&output));
    assert!((1.0..=4.0).contains(&last), "ends at {last}: {shown}");
    assert!(number(&document["violation_share"]) < 0.01, "{shown}");
}

fn latency_bound_with_a_queue() {
    let host = TestHost::new("nvidia_h200");
    let args = [
        "--below",
        "650W",
        "--latency-p99",
        "60ms",
        "--batches",
        "32,256",
    ];
    let (document, output) = json(&host, &args, &serving("4", &["--arrivals", "poisson:300"]));
    assert_eq!(
        output.status.code(),
        Some(0),
        "{} {document}",
        stderr_text(&output)
    );
    assert_eq!(last_batch(&document), 32.0, "{document}");
    assert!(number(&document["latency_p99_s"]) < 0.06, "{document}");
    assert!(
        (250.0..350.0).contains(&number(&document["items_per_s"])),
        "{document}"
    );
}

fn assert_set_and_restored(knob: &str) {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "300W", "--knob", knob, "--batches", "8,32"];
    let (document, output) = json(&host, &args, &serving("4", &[]));
    assert_ne!(output.status.code(), Some(125), "{}", stderr_text(&output));
    assert_eq!(document["restored"], true, "{document}");
    let written = host.writes();
    assert!(!written.is_empty(), "{knob}: {}", stderr_text(&output));
    let shared = sweetspot_sim_host::Host::open(host.folder()).unwrap();
    let set = shared.gpus()[0].with_gpu(|gpu| (gpu.power_cap().get(), gpu.core_lock()));
    assert_eq!(set.unwrap(), (700.0, None), "{knob}: {written}");
    let settings = document["settings"].as_array().unwrap();
    let name = if knob == "power-cap" {
        "power_cap_w"
    } else {
        "core_clock_mhz"
    };
    assert!(
        settings.iter().any(|one| one.get(name).is_some()),
        "{document}"
    );
}

#[test]
fn clocks_and_caps_are_set_and_restored() {
    std::thread::scope(|scope| {
        scope.spawn(|| assert_set_and_restored("power-cap"));
        scope.spawn(|| assert_set_and_restored("joint"));
    });
}

fn summary_for_people() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "1000W", "--batches", "32"];
    let output = hold(&host, &args, &serving("3.2", &[]));
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "NVIDIA H200, held below 1000.0 W",
        "items a second",
        "energy per item",
        "1 s mean above the cap",
        "average batch",
        "batch 32",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        output.status.code(),
        Some(0),
        "{text} {}",
        stderr_text(&output)
    );
}

#[test]
fn a_stand_in_server_follows_the_arrivals() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trace"), "0.05\n0.05\n0.2\n0.4\n").unwrap();
    let serve = |arrivals: &str| {
        let serving = serving("1", &["--batch", "8", "--arrivals", arrivals]);
        let mut command = host.sweetspot();
        command.args(&serving[2..]).current_dir(folder.path());
        let output = command.output().unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), output)
    };
    let (text, output) = serve("trace:trace");
    assert!(text.contains("done: 4 items in 0.4"), "{output:?}");
    assert!(text.contains("p99 latency"), "{output:?}");
    let (_, bad) = serve("trace:missing");
    assert!(
        stderr_text(&bad).contains("cannot read the arrivals"),
        "{bad:?}"
    );
    let (_, bad) = serve("often");
    assert!(
        stderr_text(&bad).contains("unknown arrivals `often`"),
        "{bad:?}"
    );
}

#[test]
fn latency_bounds_and_the_summary_work() {
    std::thread::scope(|scope| {
        scope.spawn(summary_for_people);
        scope.spawn(latency_bound_with_a_queue);
    });
}
