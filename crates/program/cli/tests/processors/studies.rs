//! Studies and tuning by the processors' power cap.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Machine, MadeTree, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// Advances the counters of a tree while a closure runs: a package draws 80 % of its cap, its memory 10 W.
fn with_power<T>(tree: &MadeTree, work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut last, mut energies) = (Instant::now(), [0.0_f64; 4]);
            let mut limits = [0.0_f64; 2];
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
                let now = Instant::now();
                let passed = (now - last).as_secs_f64();
                last = now;
                for package in 0..2 {
                    let zone = format!("intel-rapl:{package}");
                    let limit = tree.read(&format!("powercap/{zone}/constraint_0_power_limit_uw"));
                    // The file is empty for a moment while it is written: the limit from before holds.
                    limits[package] = limit.parse().unwrap_or(limits[package]);
                    energies[2 * package] += 0.8 * limits[package] * passed;
                    energies[2 * package + 1] += 10e6 * passed;
                    replace(tree, &zone, energies[2 * package]);
                    replace(tree, &format!("{zone}:1"), energies[2 * package + 1]);
                }
            }
        });
        let done = work();
        stop.store(true, Ordering::Relaxed);
        done
    })
}

/// Replaces a counter's file at once, as the kernel never shows half a number.
fn replace(tree: &MadeTree, zone: &str, energy_uj: f64) {
    let path = tree.path(&format!("powercap/{zone}/energy_uj"));
    let next = path.with_extension("next");
    std::fs::write(&next, format!("{}\n", energy_uj as u64)).unwrap();
    std::fs::rename(next, path).unwrap();
}

#[test]
fn a_sweep_finds_the_energy_of_the_node_at_each_cap() {
    let machine = Machine::new();
    let folder = machine.tree.root().join("study");
    let folder = folder.to_str().unwrap();
    let done = with_power(&machine.tree, || {
        let flags = "sweep --cpu-power-cap 100,200 --energy-of node --repeat 2";
        let mut args: Vec<&str> = flags.split(' ').collect();
        args.extend(["--export-json", "-", "--study", folder, "--"]);
        args.extend([PROGRAM, "sim-workload", "--network", "resnet50"]);
        args.extend(["--items", "500"]);
        machine.output(&args)
    });
    assert!(done.status.success(), "{}", text(&done.stderr));
    let study: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(study["energy_of"], "node");
    let points = study["points"].as_array().unwrap();
    for (point, cap) in points.iter().zip([100.0, 200.0]) {
        assert_eq!(point["settings"]["cpu_power_cap_w"], cap);
        let devices = point["energy_by_device_j"].as_object().unwrap().iter();
        let gpu = devices.filter(|(id, _)| id.starts_with("GPU"));
        let gpu: f64 = gpu.map(|(_, energy)| energy.as_f64().unwrap()).sum();
        let time = point["time_s"]["mean"].as_f64().unwrap();
        let found = point["energy_j"]["mean"].as_f64().unwrap() - gpu;
        let expected = (2.0 * 0.8 * cap + 20.0) * time;
        // The made counters advance in steps, and another program may delay one of them.
        assert!(
            (found / expected - 1.0).abs() < 0.05,
            "{cap} W: {found} J, not {expected} J"
        );
    }
    assert_eq!(study["reference"]["settings"]["cpu_power_cap_w"], 205.0);
    assert_eq!(machine.limits(), (205.0, 205.0));
    let limit = machine.tree.path(super::LIMIT).display().to_string();
    let run = machine.output(&[
        "run",
        "--from",
        folder,
        "--objective",
        "energy",
        "--",
        "cat",
        &limit,
    ]);
    assert!(
        text(&run.stdout).contains("100000000"),
        "{}",
        text(&run.stderr)
    );
    assert_eq!(machine.limits(), (205.0, 205.0));
}

#[test]
fn tuning_sets_the_processors_and_counts_their_energy() {
    let machine = Machine::new();
    let done = with_power(&machine.tree, || {
        let flags = "tune --knob cpu-power-cap --objective energy --fresh --export-json - --";
        let mut args: Vec<&str> = flags.split(' ').collect();
        args.extend([
            PROGRAM,
            "sim-workload",
            "--network",
            "resnet50",
            "--items",
            "5000",
        ]);
        machine.output(&args)
    });
    let tuned: serde_json::Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", text(&done.stderr)));
    assert_eq!(tuned["knob"], "cpu-power-cap");
    assert_eq!(tuned["reference"]["cpu_power_cap_w"], 205.0);
    assert_eq!(tuned["devices"].as_array().unwrap().len(), 5);
    assert_eq!(tuned["devices"][1]["reference"]["power_cap_w"], 205.0);
    assert!(
        tuned["devices"][0]["reference"]
            .get("power_cap_w")
            .is_none()
    );
    assert_eq!(machine.limits(), (205.0, 205.0));
    // Power was drawn at other caps than the reference.
    assert!(
        machine.host.writes().is_empty(),
        "{}",
        machine.host.writes()
    );
}

#[test]
fn measuring_reports_what_it_costs() {
    let machine = Machine::new();
    let done = machine.output(&["measure", "--export-json", "-", "--", "sleep", "0.5"]);
    let run: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let observer = &run["observer"];
    let (cpu, time) = (&observer["cpu_time_s"], &observer["time_s"]);
    assert!(
        cpu.as_f64().unwrap() > 0.0 && time.as_f64().unwrap() > 0.5,
        "{observer}"
    );
    assert!(cpu.as_f64() < time.as_f64(), "{observer}");
    assert!(observer["gpu_power"].get("power_w").is_none());
    assert!(
        observer["host_power"]["unknown"]
            .as_str()
            .unwrap()
            .contains("--idle")
    );
}

#[test]
fn the_power_of_measuring_is_measured_on_an_idle_machine() {
    let machine = Machine::new();
    let done = with_power(&machine.tree, || {
        machine.output(&["measure", "--idle", "--export-json", "-", "--", "true"])
    });
    let run: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    // The made counters do not know of this program.
    for part in ["gpu_power", "host_power"] {
        let power = &run["observer"][part];
        let watts = power["power_w"].as_f64().unwrap_or(f64::NAN);
        let resolution = power["resolution_w"].as_f64().unwrap();
        assert!(watts.abs() < 0.05 * 350.0 + resolution, "{part}: {power}");
    }
}
