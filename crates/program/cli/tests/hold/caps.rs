//! Caps that change while a hold runs: cap file, `hold set`, limit of the device.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::time::{Duration, Instant};

use sweetspot_quantity::Watts;

use super::common::{caps, document, last_batch, serving, start_hold, stderr_text};
use crate::host::TestHost;

fn after(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds));
}

fn set(host: &TestHost, args: &[&str]) -> Output {
    host.sweetspot()
        .args(["hold", "set"])
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn a_cap_file_is_followed_and_bad_content_is_reported_once() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cap");
    std::fs::write(&file, "600W\n").unwrap();
    let path = file.to_str().unwrap();
    let args = ["--cap-file", path, "--batches", "16,32", "--knob", "batch"];
    let running = start_hold(&host, &args, &serving("6.5", &[]));
    after(2.0);
    std::fs::write(&file, "250 W").unwrap();
    after(2.0);
    std::fs::write(&file, "lots").unwrap();
    after(0.5);
    std::fs::remove_file(&file).unwrap();
    let output = running.wait_with_output().unwrap();
    let document = document(&output);
    assert_eq!(caps(&document), [600.0, 250.0], "{document}");
    assert_eq!(last_batch(&document), 16.0, "{document}");
    let message = stderr_text(&output);
    for (words, times) in [
        ("the power cap is now 250.0 W (set by the cap file)", 1),
        ("invalid power cap `lots`", 1),
        ("No such file or directory", 1),
        ("the power cap stays at 250.0 W", 2),
    ] {
        assert_eq!(message.matches(words).count(), times, "{words}: {message}");
    }
}

#[test]
fn the_owner_can_set_the_cap_of_a_running_hold() {
    let host = TestHost::new("nvidia_h200");
    let none = set(&host, &["140W"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(
        stderr_text(&none).contains("you have no running hold"),
        "{}",
        stderr_text(&none)
    );
    let args = ["--below", "600W", "--batches", "16,32", "--knob", "batch"];
    let first = start_hold(&host, &args, &serving("5.5", &[]));
    let sockets = || {
        let folders = std::fs::read_dir(host.folder()).unwrap().flatten();
        let folders = folders.filter(|one| one.file_name().to_string_lossy().starts_with("hold-"));
        let inside = folders.flat_map(|one| std::fs::read_dir(one.path()).unwrap().flatten());
        inside.map(|one| one.path()).collect::<Vec<_>>()
    };
    let begun = Instant::now();
    while sockets().is_empty() && begun.elapsed() < Duration::from_secs(5) {
        after(0.05);
    }
    let mode = sockets()[0].metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    after(1.5);
    let done = set(&host, &["250W"]);
    assert!(done.status.success(), "{}", stderr_text(&done));
    let shown = String::from_utf8_lossy(&done.stdout).into_owned();
    let answer = "the power cap was 600.0 W and is now 250.0 W\n";
    assert!(shown.starts_with(answer), "{shown}");
    let bad = set(&host, &["soon"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(
        stderr_text(&bad).contains("invalid power cap `soon`"),
        "{}",
        stderr_text(&bad)
    );
    // With several holds, one must be named.
    let second = start_hold(&host, &args, &["--", "sleep", "2"]);
    let begun = Instant::now();
    while sockets().len() < 2 && begun.elapsed() < Duration::from_secs(5) {
        after(0.05);
    }
    let several = set(&host, &["300W"]);
    assert!(
        stderr_text(&several).contains("name one with --pid"),
        "{}",
        stderr_text(&several)
    );
    let pid = second.id().to_string();
    assert!(set(&host, &["300W", "--pid", &pid]).status.success());
    let missing = set(&host, &["300W", "--pid", "1"]);
    assert!(
        stderr_text(&missing).contains("none of your running holds has the pid 1"),
        "{}",
        stderr_text(&missing)
    );
    let (first, second) = (
        first.wait_with_output().unwrap(),
        second.wait_with_output().unwrap(),
    );
    assert_eq!(caps(&document(&first)), [600.0, 250.0]);
    assert_eq!(last_batch(&document(&first)), 16.0);
    assert_eq!(caps(&document(&second)), [600.0, 300.0]);
    assert!(sockets().is_empty());
}

#[test]
fn the_limit_of_the_device_is_followed() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "device", "--batches", "16,32"];
    let running = start_hold(&host, &args, &serving("5", &[]));
    after(2.0);
    let refused = set(&host, &["140W"]);
    assert!(
        stderr_text(&refused).contains("follows the device's own power limit"),
        "{}",
        stderr_text(&refused)
    );
    let shared = sweetspot_sim_host::Host::open(host.folder()).unwrap();
    let lower = shared.gpus()[0].with_gpu(|gpu| gpu.set_power_cap(Watts::new(250.0)));
    lower.unwrap().unwrap();
    let document = document(&running.wait_with_output().unwrap());
    assert_eq!(caps(&document), [700.0, 250.0], "{document}");
    let limit = shared.gpus()[0]
        .with_gpu(|gpu| gpu.power_cap().get())
        .unwrap();
    assert_eq!(limit, 250.0, "the limit set by another program is kept");
}

#[test]
fn a_stopped_hold_takes_its_cap_later() {
    let host = TestHost::new("nvidia_h200");
    let running = start_hold(&host, &["--below", "600W"], &["--", "sleep", "8"]);
    after(1.0);
    let signal = |name: &str| {
        let pid = running.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([name, &pid])
            .status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    let stopped = set(&host, &["250W"]);
    signal("-CONT");
    let text = stderr_text(&stopped);
    assert_eq!(stopped.status.code(), Some(1), "{text}");
    assert!(
        text.contains("has not replied: it is stopped or busy"),
        "{text}"
    );
    let document = document(&running.wait_with_output().unwrap());
    assert_eq!(caps(&document), [600.0, 250.0], "{document}");
}
