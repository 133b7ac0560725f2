//! Missing trees, rubbish in files, caps out of range, energies that cannot see the processors.

use super::{LIMIT, Machine, text};

/// Runs the program, which must refuse with one sentence, and returns that.
fn refused(machine: &Machine, args: &[&str]) -> String {
    let done = machine.output(args);
    assert_eq!(done.status.code(), Some(125), "{}", text(&done.stderr));
    let message = text(&done.stderr);
    assert_eq!(message.trim().lines().count(), 1, "{message}");
    assert_eq!(machine.host.writes(), "");
    message
}

#[test]
fn caps_that_cannot_be_set_are_refused_with_one_sentence() {
    let machine = Machine::new();
    let run = |cap| refused(&machine, &["run", "--cpu-power-cap", cap, "--", "true"]);
    assert!(run("300W").contains("choose 20.5 W to 205 W"));
    assert!(run("0").contains("choose 20.5 W to 205 W"));
    let read_only = ["run", "--read-only", "--cpu-power-cap", "100", "--", "true"];
    assert!(refused(&machine, &read_only).contains("read-only"));
    assert_eq!(machine.limits(), (205.0, 205.0));
    machine.tree.write(LIMIT, "rubbish");
    let message = run("100");
    assert!(message.contains("has no number: `rubbish`"), "{message}");
    assert_eq!(machine.tree.read(LIMIT), "rubbish");
    std::fs::remove_dir_all(machine.tree.path("powercap")).unwrap();
    let message = run("100");
    assert!(message.contains("shows no processor package"), "{message}");
    let node = ["sweep", "--host", "--energy-of", "node", "--", "true"];
    let message = refused(&machine, &node);
    assert!(
        message.contains("the energy of the processors is unknown"),
        "{message}"
    );
}

#[test]
fn a_zone_that_vanishes_during_a_run_loses_nothing_else() {
    let machine = Machine::new();
    let zone = machine
        .tree
        .path("powercap/intel-rapl:0")
        .display()
        .to_string();
    let done = machine.output(&["run", "--cpu-power-cap", "100", "--", "rm", "-r", &zone]);
    let message = text(&done.stderr);
    assert!(message.contains("processor package 0"), "{message}");
    let watts = machine.tree.read(super::OTHER_LIMIT);
    assert_eq!(watts, "205000000");
    assert_eq!(done.status.code(), Some(1));
}

#[test]
fn an_energy_that_cannot_see_the_processors_is_refused() {
    let machine = Machine::new();
    let sweep = ["sweep", "--cpu-power-cap", "100,150"];
    let without = [&sweep[..], &["--", "true"]].concat();
    let message = refused(&machine, &without);
    assert!(message.contains("energy-of node"), "{message}");
    let polled = [
        &sweep[..],
        &["--energy-of", "node", "--method", "buffer", "--", "true"],
    ]
    .concat();
    assert!(refused(&machine, &polled).contains("counter"));
    let read_only = [
        &sweep[..],
        &["--energy-of", "node", "--read-only", "--", "true"],
    ]
    .concat();
    assert!(refused(&machine, &read_only).contains("read-only"));
    let range = [
        "sweep",
        "--cpu-power-cap",
        "100..300:50",
        "--energy-of",
        "node",
        "--",
        "true",
    ];
    assert!(refused(&machine, &range).contains("choose 20.5 W to 205 W"));
    std::fs::remove_file(machine.tree.path("powercap/intel-rapl:1:1/energy_uj")).unwrap();
    machine.tree.write("powercap/intel-rapl:0/energy_uj", "x");
    for begin in [
        &["tune", "--knob", "cpu-power-cap"][..],
        &["sweep", "--host", "--energy-of", "node"],
    ] {
        let message = refused(&machine, &[begin, &["--", "true"]].concat());
        assert!(
            message.contains("processor package 0: its energy cannot be read"),
            "{message}"
        );
    }
    let simulated = machine.output(&[
        "tune",
        "--knob",
        "cpu-power-cap",
        "--simulate",
        "v100",
        "--network",
        "resnet50",
    ]);
    assert_eq!(simulated.status.code(), Some(2));
}
