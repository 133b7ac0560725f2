//! Settings while a command runs, and bad input.

use super::{cap, run, text};
use crate::common::program;
use crate::host::TestHost;
use sweetspot_sim_host::Host;

#[test]
fn device_writes_of_a_run_match_snapshot() {
    let host = TestHost::new("v100:2");
    host.set_cap(0, 250.0);
    let output = run(
        &host,
        &[
            "--power-cap",
            "180W",
            "--core-clock",
            "1200MHz",
            "--",
            "true",
        ],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    snapbox::assert_data_eq!(
        host.writes(),
        snapbox::file!["../snapshots/run-writes.txt"].raw()
    );
    assert_eq!(cap(&host), 250.0);
    let journals = std::fs::read_dir(host.folder().join("guard")).unwrap();
    let left = journals.filter(|file| {
        file.as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|e| e != "lock")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn the_command_runs_at_the_setting_and_its_exit_code_is_returned() {
    let host = TestHost::new("v100");
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let script = format!("{program} devices --export-json -; exit 7");
    let output = run(&host, &["--power-cap", "190", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(7));
    let devices: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(devices["devices"][0]["power_cap_w"]["requested"], 190.0);
    assert_eq!(devices["devices"][0]["power_cap_w"]["default"], 300.0);
    assert_eq!(cap(&host), 300.0);
    let output = run(
        &host,
        &["--power-cap", "190", "--", "sh", "-c", "kill -9 $$"],
    );
    assert_eq!(output.status.code(), Some(128 + 9));
}

#[test]
fn a_command_that_ends_at_once_keeps_its_exit_code() {
    let host = TestHost::new("v100");
    for number in 0..40 {
        let output = run(&host, &["--power-cap", "190", "--", "false"]);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{number}: {}",
            text(&output.stderr)
        );
    }
    assert_eq!(cap(&host), 300.0);
}

#[test]
fn bad_input_is_rejected_before_any_write() {
    let host = TestHost::new("v100");
    let expect_rejection = |args: &[&str], code: i32, expected: &str| {
        let output = run(&host, args);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(expected), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    };
    expect_rejection(
        &["--power-cap", "90", "--", "true"],
        125,
        "power cap 90 W is not supported: choose 150 W to 300 W",
    );
    expect_rejection(
        &["--core-clock", "100", "--", "true"],
        125,
        "core clock 100 MHz is not supported: the nearest value is 135 MHz",
    );
    expect_rejection(
        &["--memory-clock", "877", "--", "true"],
        125,
        "this GPU has no memory clock that can be set",
    );
    expect_rejection(
        &["--device", "3", "--power-cap", "200", "--", "true"],
        125,
        "there is no GPU `3`; the GPUs here are 0 (GPU-",
    );
    expect_rejection(&["--", "true"], 125, "no setting to change was given");
    expect_rejection(
        &["--read-only", "--power-cap", "200", "--", "true"],
        125,
        "read-only",
    );
    expect_rejection(
        &["--power-cap", "200J", "--", "true"],
        125,
        "`200J` is not a power",
    );
    expect_rejection(
        &["--power-cap", "200", "--", "/no/such/program"],
        127,
        "cannot run /no/such/program",
    );
    assert_eq!(cap(&host), 300.0);
    let caps: Vec<String> = host.writes().lines().map(str::to_owned).collect();
    // Only the last one started a guard, which restored the cap.
    assert_eq!(
        caps,
        ["gpu0 power_cap 200000 mW", "gpu0 power_cap 300000 mW"]
    );
}

#[test]
fn a_missing_library_or_driver_is_reported() {
    let run = |library: &str| {
        program()
            .args(["run", "--power-cap", "200", "--", "true"])
            .env("SWEETSPOT_NVML", library)
            .env_remove("SWEETSPOT_SIM")
            .output()
            .unwrap()
    };
    let missing = run("/no/such/lib.so");
    assert_eq!(missing.status.code(), Some(125));
    let message = text(&missing.stderr);
    assert!(
        message.contains("cannot load NVIDIA's management library /no/such/lib.so: cannot open"),
        "{message}"
    );
    // What the user typed, on a simulated GPU.
    assert!(
        message.ends_with("is the driver installed? without a GPU, use a simulated one: `sweetspot simulate --gpu v100 -- sweetspot run --power-cap 200 -- true`\n"),
        "{message}"
    );
    let broken = run("/etc/hostname");
    assert_eq!(broken.status.code(), Some(125));
    let host = TestHost::new("v100");
    let no_driver = host
        .sweetspot()
        .args(["devices"])
        .env_remove("SWEETSPOT_SIM")
        .output()
        .unwrap();
    assert_eq!(no_driver.status.code(), Some(2));
    let message = text(&no_driver.stderr);
    for part in ["driver is not loaded", "-- sweetspot devices`"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn only_the_chosen_devices_are_set() {
    let host = TestHost::new("v100:3");
    let uuids: Vec<String> = Host::open(host.folder())
        .unwrap()
        .gpus()
        .iter()
        .map(|gpu| gpu.uuid())
        .collect();
    let set = |device: Option<&str>, visible: Option<&str>| {
        let mut command = host.sweetspot();
        command.args(["run", "--power-cap", "200"]);
        device.map(|device| command.args(["--device", device]));
        visible.map(|visible| command.env("CUDA_VISIBLE_DEVICES", visible));
        let before = host.writes().len();
        let output = command.args(["--", "true"]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let log = host.writes()[before..].to_owned();
        let set = log.lines().filter(|line| line.contains("200000"));
        set.map(|line| line[..4].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(set(None, None), ["gpu0", "gpu1", "gpu2"]);
    assert_eq!(set(Some("1"), None), ["gpu1"]);
    assert_eq!(set(Some("2,0"), None), ["gpu2", "gpu0"]);
    assert_eq!(set(Some(&uuids[1]), Some("0")), ["gpu1"]);
    assert_eq!(set(None, Some("2")), ["gpu2"]);
    assert_eq!(set(None, Some(&uuids[0][..12])), ["gpu0"]);
    // CUDA ends the list at the first unknown device.
    assert_eq!(set(None, Some("1,9,0")), ["gpu1"]);
    assert_eq!(set(Some("all"), Some("1")), ["gpu0", "gpu1", "gpu2"]);
}

#[test]
fn a_second_writer_is_rejected_and_names_the_first() {
    let host = TestHost::new("v100");
    let mut first = host
        .sweetspot()
        .args(["run", "--power-cap", "200", "--", "sleep", "20"])
        .spawn()
        .unwrap();
    while cap(&host) != 200.0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = run(&host, &["--power-cap", "250", "--", "true"]);
    assert_eq!(second.status.code(), Some(125));
    let message = text(&second.stderr);
    assert!(
        message.contains(&format!("is in use by process {}", first.id())),
        "{message}"
    );
    assert!(
        message.contains("run --power-cap 200 -- sleep 20"),
        "{message}"
    );
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_clock_between_two_levels_becomes_the_nearest_and_is_said() {
    let host = TestHost::new("v100");
    let output = host
        .sweetspot()
        .args(["run", "--core-clock", "1000", "--", "true"])
        .output()
        .unwrap();
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert!(
        message.contains("the core clock is set to 997 MHz, the nearest to 1000 MHz"),
        "{message}"
    );
    assert!(host.writes().contains("997"), "{}", host.writes());
}
