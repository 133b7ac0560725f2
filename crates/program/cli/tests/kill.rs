//! `run` is killed at random moments, alone or together with its guard. The settings are restored within a second. If the
//! guard is dead too, `doctor` names the changed GPU and `restore` restores it: nothing is changed without a journal. No
//! process of the workload is left. `KILLS=1000` runs the full number of kills (scripts/torture).

use std::time::{Duration, Instant};

use crate::host::{TestHost, repeat_on_hosts};
use rustix::process::{Pid, Signal, kill_process};
use sweetspot_quantity::Watts;
use sweetspot_sim_host::Host;
use sweetspot_stats::Seed;

/// A workload of three processes, one of them in its own session, which are found by their marker.
fn workload(marker: u64) -> String {
    format!("sleep 7{marker} & setsid sleep 7{marker} & sleep 7{marker}")
}

/// The processes of a workload.
fn processes(marker: u64) -> Vec<u32> {
    let wanted = format!("7{marker}");
    crate::host::processes_with(|command, _| String::from_utf8_lossy(command).contains(&wanted))
}

fn is_running(marker: u64) -> bool {
    !processes(marker).is_empty()
}

fn kill(pid: u32, signal: Signal) {
    // It may have ended by itself.
    let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
}

/// What came of a kill.
struct Outcome {
    was_set: bool,
    /// The time until the settings were restored; `None` if `restore` had to do it.
    restored_after: Option<Duration>,
}

fn kill_once(host: &TestHost, number: u64) -> Outcome {
    let shared = Host::open(host.folder()).unwrap();
    let gpu = &shared.gpus()[0];
    gpu.with_gpu(|gpu| gpu.set_power_cap(Watts::new(250.0)))
        .unwrap()
        .unwrap();
    let as_before = || {
        gpu.with_gpu(|gpu| gpu.power_cap().get() == 250.0 && gpu.core_lock().is_none())
            .unwrap()
    };
    let marker = 100_000_000 + u64::from(std::process::id()) * 1000 + number;
    let mut client = host
        .sweetspot()
        .args(["run", "--power-cap", "160", "--core-clock", "1200"])
        .args(["--", "sh", "-c", &workload(marker)])
        .spawn()
        .unwrap();
    let seed = Seed::new(7).number(number);
    std::thread::sleep(Duration::from_secs_f64(
        0.35 * seed.label("moment").uniform().powi(2),
    ));
    let was_set = !as_before();
    let signal =
        [Signal::KILL, Signal::TERM, Signal::INT][(3.0 * seed.label("signal").uniform()) as usize];
    let guards = match seed.label("victims").uniform() < 0.5 {
        true => Vec::new(),
        false => host.guards(),
    };
    let what = format!(
        "kill {number} of the client with {signal:?}, of {} guards",
        guards.len()
    );
    let is_alone = guards.is_empty();
    kill(client.id(), if is_alone { signal } else { Signal::KILL });
    for guard in guards {
        kill(guard, Signal::KILL);
    }
    let restored_after = match is_alone {
        true => {
            let took = time_to_restore(&as_before, marker);
            client.wait().unwrap();
            assert!(as_before(), "{what}: the settings are not restored");
            assert!(!is_running(marker), "{what}: something still runs");
            assert!(took.is_some(), "{what}: it took more than a second");
            took
        }
        false => {
            client.wait().unwrap();
            // Nobody is left to end the workload.
            for process in processes(marker) {
                kill(process, Signal::KILL);
            }
            restore_by_command(host, &as_before, &what);
            None
        }
    };
    Outcome {
        was_set,
        restored_after,
    }
}

/// The time until the settings are restored and the workload has ended. A guard that had not started yet may still start
/// and must then end, so this looks until a second is over.
fn time_to_restore(as_before: &impl Fn() -> bool, marker: u64) -> Option<Duration> {
    let killed = Instant::now();
    let mut took = None;
    while killed.elapsed() < Duration::from_secs(1) {
        match (as_before() && !is_running(marker), took) {
            (true, None) => took = Some(killed.elapsed()),
            (false, Some(_)) => took = None,
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    took
}

/// Restores what a client and a guard that are both dead may have left changed. What is changed must be known.
fn restore_by_command(host: &TestHost, as_before: &impl Fn() -> bool, what: &str) {
    if !as_before() {
        let doctor = host.sweetspot().arg("doctor").output().unwrap();
        let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
        let is_known = found.contains("`sweetspot restore` restores them");
        assert!(is_known, "{what}: a false all-clear: {found}");
    }
    let restored = host.sweetspot().arg("restore").output().unwrap();
    assert!(restored.status.success(), "{what}: {restored:?}");
    assert!(as_before(), "{what}: {restored:?}");
}

#[test]
fn settings_are_restored_after_any_kill() {
    let outcomes = repeat_on_hosts(24, kill_once);
    let set = outcomes.iter().filter(|one| one.was_set).count();
    let times: Vec<Duration> = outcomes
        .iter()
        .filter_map(|one| one.restored_after)
        .collect();
    let slowest = times.iter().max().map_or(0, Duration::as_millis);
    println!(
        "{} kills, {set} of them while the setting was in force: {} clients, the slowest restore took {slowest} ms; \
         {} clients with their guards, restored by command",
        outcomes.len(),
        times.len(),
        outcomes.len() - times.len()
    );
    assert!(set * 4 > outcomes.len(), "only {set} kills fell into a run");
}
