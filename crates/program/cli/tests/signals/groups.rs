//! Signals to the whole process group of the tool, as a scheduler sends them, and a guard that does not answer: no process
//! of the workload is left, not even a grandchild in its own session, and the settings are restored. `KILLS=500` runs many
//! trials (scripts/torture).

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::host::TestHost;
use sweetspot_sim_host::Host;

fn kill(signal: &str, target: &str) {
    let status = Command::new("kill").args([signal, "--", target]).status();
    assert!(status.unwrap().success());
}

/// The ids of the `sleep` processes with this marker.
fn sleepers(marker: &str) -> Vec<String> {
    let wanted = format!("sleep\0{marker}\0").into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|it| it == wanted))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn running(marker: &str) -> usize {
    sleepers(marker).len()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn wait_for_exit(mut client: Child, limit: Duration) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        if let Some(status) = client.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = client.kill();
    panic!("the tool does not end");
}

static NEXT: AtomicU64 = AtomicU64::new(0);

fn new_marker() -> String {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("8{}{number:05}", std::process::id())
}

/// Starts the tool in its own process group, and waits until both processes of its workload run.
fn start(host: &TestHost, args: &[&str], marker: &str) -> Child {
    let script = format!("setsid sh -c 'sleep {marker}; true' & sleep {marker}; true");
    let client = host
        .sweetspot()
        .args(args)
        .args(["--", "sh", "-c", &script])
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the workload runs", || running(marker) == 2);
    client
}

/// Sends signals to the group in many trials, and returns the trials that left a process.
fn trials(args: &[&str]) -> Vec<u64> {
    let kills: u64 = std::env::var("KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(12);
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let work = || {
            let host = TestHost::new("v100");
            let mut bad = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= kills {
                    return bad;
                }
                let marker = new_marker();
                let client = start(&host, args, &marker);
                let signal = ["-TERM", "-INT", "-HUP"][(number % 3) as usize];
                kill(signal, &format!("-{}", client.id()));
                wait_for_exit(client, Duration::from_secs(15));
                // A killed process may take a moment to disappear.
                std::thread::sleep(Duration::from_millis(50));
                for left in sleepers(&marker) {
                    bad.push(number);
                    kill("-KILL", &left);
                }
            }
        };
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    })
}

#[test]
fn nothing_is_left_of_a_guarded_workload() {
    let bad = trials(&["run", "--power-cap", "160"]);
    assert!(bad.is_empty(), "something still ran in {bad:?}");
}

#[test]
fn nothing_is_left_of_a_measured_workload() {
    let bad = trials(&["measure"]);
    assert!(bad.is_empty(), "something still ran in {bad:?}");
}

#[test]
fn nothing_is_left_of_a_tuned_workload() {
    let bad = trials(&["tune", "--fresh"]);
    assert!(bad.is_empty(), "something still ran in {bad:?}");
}

#[test]
fn nothing_is_left_of_a_held_workload() {
    let bad = trials(&["hold", "--below", "200W"]);
    assert!(bad.is_empty(), "something still ran in {bad:?}");
}

/// Starts a run at 160 W on a GPU with 250 W, stops its guard, and sends SIGTERM to the tool.
fn with_stopped_guard(host: &TestHost) -> (Child, String) {
    host.set_cap(0, 250.0);
    let marker = new_marker();
    let client = start(host, &["run", "--power-cap", "160"], &marker);
    let children = format!("/proc/{0}/task/{0}/children", client.id());
    let guard = std::fs::read_to_string(children).unwrap();
    kill("-STOP", guard.trim());
    kill("-TERM", &client.id().to_string());
    (client, marker)
}

#[test]
fn the_tool_ends_even_if_its_guard_is_stopped() {
    let host = TestHost::new("v100");
    let (client, marker) = with_stopped_guard(&host);
    let code = wait_for_exit(client, Duration::from_secs(15));
    assert_eq!(code, Some(128 + 15));
    let shared = Host::open(host.folder()).unwrap();
    let cap = shared.gpus()[0]
        .with_gpu(|gpu| gpu.power_cap().get())
        .unwrap();
    assert_eq!(cap, 250.0);
    wait_until("everything has ended", || running(&marker) == 0);
}

#[test]
fn a_second_signal_does_not_wait_for_a_stopped_guard() {
    let host = TestHost::new("v100");
    let (client, marker) = with_stopped_guard(&host);
    std::thread::sleep(Duration::from_millis(700));
    kill("-TERM", &client.id().to_string());
    assert_eq!(
        wait_for_exit(client, Duration::from_secs(3)),
        Some(128 + 15)
    );
    wait_until("everything has ended", || running(&marker) == 0);
    let shared = Host::open(host.folder()).unwrap();
    let cap = || shared.gpus()[0].with_gpu(|gpu| gpu.power_cap().get());
    wait_until("the cap is restored", || cap().unwrap() == 250.0);
}
