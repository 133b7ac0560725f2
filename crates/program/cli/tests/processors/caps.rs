//! A cap that is set is restored as it was.

use super::{ENABLED, LIMIT, Machine, text};

#[test]
fn a_cap_holds_while_the_command_runs() {
    let machine = Machine::new();
    let limit = machine.tree.path(LIMIT).display().to_string();
    let done = machine.output(&["run", "--cpu-power-cap", "150W", "--", "cat", &limit]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(text(&done.stdout).trim(), "150000000");
    assert_eq!(machine.limits(), (205.0, 205.0));
    // GPUs are neither needed nor set.
    assert_eq!(machine.host.writes(), "");
}

#[test]
fn gpus_and_processors_are_set_together() {
    let machine = Machine::new();
    machine.host.set_cap(0, 250.0);
    let limit = machine.tree.path(LIMIT).display().to_string();
    let both = [
        "run",
        "--cpu-power-cap",
        "99.5",
        "--power-cap",
        "160",
        "--measure",
        "--",
    ];
    let done = machine.output(&[&both[..], &["cat", &limit]].concat());
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("99500000"));
    assert!(
        machine.host.writes().contains("160"),
        "{}",
        machine.host.writes()
    );
    assert_eq!(machine.limits(), (205.0, 205.0));
}

#[test]
fn every_end_of_the_command_restores_the_cap() {
    let machine = Machine::new();
    for (command, code) in [
        (vec!["sh", "-c", "exit 3"], 3),
        (vec!["sh", "-c", "kill -9 $$"], 137),
        (vec!["/nonexistent/program"], 127),
    ] {
        let begin = ["run", "--cpu-power-cap", "100", "--"];
        let done = machine.output(&[&begin[..], &command].concat());
        assert_eq!(done.status.code(), Some(code), "{}", text(&done.stderr));
        assert_eq!(machine.limits(), (205.0, 205.0));
    }
}

#[test]
fn a_limit_that_was_off_or_above_the_range_returns() {
    let machine = Machine::new();
    machine.tree.write(ENABLED, 0);
    machine.tree.write(LIMIT, 4_095_875_000_u64);
    let script = format!(
        "cat {} {}",
        machine.tree.path(ENABLED).display(),
        machine.tree.path(LIMIT).display()
    );
    let done = machine.output(&["run", "--cpu-power-cap", "100", "--", "sh", "-c", &script]);
    assert_eq!(
        text(&done.stdout),
        "1\n100000000\n",
        "{}",
        text(&done.stderr)
    );
    assert_eq!(machine.tree.read(ENABLED), "0");
    assert_eq!(machine.tree.read(LIMIT), "4095875000");
    // A limit that is switched off does not count as set already.
    machine.tree.write(LIMIT, 100_000_000);
    let done = machine.output(&["run", "--cpu-power-cap", "100", "--", "sh", "-c", &script]);
    assert_eq!(
        text(&done.stdout),
        "1\n100000000\n",
        "{}",
        text(&done.stderr)
    );
    assert_eq!(machine.tree.read(ENABLED), "0");
}

#[test]
fn what_another_program_set_meanwhile_stays() {
    let machine = Machine::new();
    let script = format!("echo 120000000 > {}", machine.tree.path(LIMIT).display());
    let done = machine.output(&["run", "--cpu-power-cap", "100", "--", "sh", "-c", &script]);
    assert_eq!(machine.limits(), (120.0, 205.0));
    let message = text(&done.stderr);
    assert!(message.contains("processor package 0"), "{message}");
}

#[test]
fn a_second_run_is_refused_while_the_first_lasts() {
    let machine = Machine::new();
    let mut first = machine.sweetspot();
    let mut first = first
        .args(["run", "--cpu-power-cap", "100", "--", "sleep", "20"])
        .spawn()
        .unwrap();
    while machine.limits().1 != 100.0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = machine.output(&["run", "--cpu-power-cap", "150", "--", "true"]);
    assert_eq!(second.status.code(), Some(125));
    assert!(
        text(&second.stderr).contains(&first.id().to_string()),
        "{}",
        text(&second.stderr)
    );
    std::process::Command::new("kill")
        .arg(first.id().to_string())
        .status()
        .unwrap();
    first.wait().unwrap();
    assert_eq!(machine.limits(), (205.0, 205.0));
}

#[test]
fn devices_and_doctor_list_packages_and_zones() {
    let machine = Machine::new();
    machine.tree.zone("intel-rapl:2", "psys", 9_000_000);
    let listed = machine.output(&["devices", "--export-json", "-"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let host = listed["host"].as_array().unwrap();
    let counted = host.iter().filter(|part| part["is_host_energy"] == true);
    let counted: Vec<&str> = counted.filter_map(|part| part["name"].as_str()).collect();
    assert_eq!(
        counted,
        [
            "processor package 0",
            "memory of processor package 0",
            "processor package 1",
            "memory of processor package 1"
        ]
    );
    assert_eq!(host[0]["power_cap_w"]["max"], 205.0);
    assert_eq!(host[0]["sensors"][0]["energy_j"], 1.0);
    assert_eq!(host[6]["kind"], "platform");
    let doctor = text(&machine.output(&["doctor"]).stdout);
    assert!(doctor.contains("processor package 1 power cap"), "{doctor}");
    assert!(text(&machine.output(&["devices"]).stdout).contains("platform (psys)"));
}
