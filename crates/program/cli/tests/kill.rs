//! `run` is killed at random moments: the settings are restored within a second, and no process of the workload is left.
//! `KILLS=200` runs the full number of kills (scripts/torture).

use std::process::Command;
use std::time::{Duration, Instant};

use crate::host::{TestHost, repeat_on_hosts};
use sweetspot_quantity::Watts;
use sweetspot_sim_host::Host;
use sweetspot_stats::Seed;

/// A workload of three processes, one of them in its own session, which are found by their marker.
fn workload(marker: u64) -> String {
    format!("sleep 7{marker} & setsid sleep 7{marker} & sleep 7{marker}")
}

fn is_running(marker: u64) -> bool {
    let wanted = format!("7{marker}");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&wanted)
    })
}

fn kill_once(host: &TestHost, number: u64) -> (u64, bool) {
    let shared = Host::open(host.folder()).unwrap();
    let gpu = &shared.gpus()[0];
    gpu.with_gpu(|gpu| gpu.set_power_cap(Watts::new(250.0)))
        .unwrap()
        .unwrap();
    let marker = 100_000_000 + u64::from(std::process::id()) * 1000 + number;
    let mut client = host
        .sweetspot()
        .args([
            "run",
            "--power-cap",
            "160",
            "--core-clock",
            "1200",
            "--",
            "sh",
            "-c",
            &workload(marker),
        ])
        .spawn()
        .unwrap();
    let seed = Seed::new(7).number(number);
    std::thread::sleep(Duration::from_secs_f64(
        0.35 * seed.label("moment").uniform().powi(2),
    ));
    let was_set = gpu.with_gpu(|gpu| gpu.power_cap().get()).unwrap() == 160.0;
    let signal = ["-KILL", "-TERM", "-INT"][(3.0 * seed.label("signal").uniform()) as usize];
    Command::new("kill")
        .args([signal, &client.id().to_string()])
        .status()
        .unwrap();
    let killed = Instant::now();
    let as_before = || {
        gpu.with_gpu(|gpu| gpu.power_cap().get() == 250.0 && gpu.core_lock().is_none())
            .unwrap()
    };
    // A guard that had not started yet may still start and must then end, so check until the second is over.
    let mut took = None;
    while killed.elapsed() < Duration::from_secs(1) {
        let good = as_before() && !is_running(marker);
        match (good, took) {
            (true, None) => took = Some(killed.elapsed()),
            (false, Some(_)) => took = None,
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    client.wait().unwrap();
    assert!(
        as_before(),
        "kill {number} with {signal}: the settings are not restored"
    );
    assert!(
        !is_running(marker),
        "kill {number} with {signal}: something still runs"
    );
    assert!(
        took.is_some(),
        "kill {number} with {signal}: it took more than a second"
    );
    (took.unwrap_or_default().as_millis() as u64, was_set)
}

#[test]
fn settings_are_restored_within_a_second_of_any_kill() {
    let results: Vec<(u64, bool)> = repeat_on_hosts(24, kill_once);
    let set = results.iter().filter(|(_, was_set)| *was_set).count();
    let slowest = results.iter().map(|(took, _)| *took).max().unwrap_or(0);
    println!(
        "{} kills, {set} of them while the setting was in force; the slowest restore took {slowest} ms",
        results.len()
    );
    assert!(set * 4 > results.len(), "only {set} kills fell into a run");
}
