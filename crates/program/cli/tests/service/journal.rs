//! The journal of the service: shared with the guards of root, damaged, or from before a reboot.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{Client, lease};
use super::served_host::{ALICE, BOB, KilledAtEnd, ServedHost, send_signal, wait_for};
use crate::common::text;

const POLICY: &str = "[[allow]]\neveryone = true\npower-cap = true\n";

/// The command `sweetspot run` of root, without the service.
fn run_of_root(served: &ServedHost, gpu: &str) -> Command {
    let mut run = served.host.sweetspot();
    run.args(["run", "--device", gpu, "--power-cap", "160"])
        .args(["--", "sh", "-c", "read line || true"])
        .stdin(Stdio::piped());
    run
}

/// The processes that a process has started.
fn children_of(parent: &Child) -> Vec<u32> {
    let pid = parent.id();
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    list.split_whitespace()
        .map(|child| child.parse().unwrap())
        .collect()
}

#[test]
#[ignore = "needs root"]
fn the_service_and_the_guards_of_root_respect_each_other() {
    let mut served = ServedHost::new("v100:2", POLICY);
    // On a machine both use the same folder.
    served.journal = served.host.folder().join("guard");
    served.start();
    served.host.set_caps(250.0);
    let (first, second) = (served.uuid(0), served.uuid(1));
    let mut root = KilledAtEnd(run_of_root(&served, "0").spawn().unwrap());
    served.wait_for_cap(0, 160.0);
    let mut alice = Client::start(&served, ALICE);
    let connection = alice.lease_and_cap(&second, 170);
    let refusal = alice.ask_refused(connection, &lease(&first)).to_string();
    let in_use = format!("in use by process {}", root.0.id());
    assert!(refusal.contains(&in_use), "{refusal}");
    let output = run_of_root(&served, "1").output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    let in_use = format!("in use by process {}", alice.pid());
    assert!(message.contains(&in_use), "{message}");
    // A service that is started anew takes up its own leases and leaves those of root alone.
    let before = served.host.writes();
    served.signal_service(Signal::KILL);
    served.wait_for_service();
    served.start();
    alice.close(connection);
    let connection = alice.greet();
    alice.ask_allowed(connection, &json!({"settings": {"device": second}}));
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(served.host.writes(), before);
    assert_eq!((served.cap(0), served.cap(1)), (160.0, 170.0));
    // What a killed guard of root has left, the service restores some time later.
    for guard in children_of(&root.0) {
        send_signal(guard, Signal::KILL);
    }
    root.0.kill().unwrap();
    root.0.wait().unwrap();
    served.wait_for_cap(0, 250.0);
    wait_for("a line in the log", || {
        !served.audited("restored-left-changed").is_empty()
    });
    assert_eq!(served.cap(1), 170.0);
    alice.ask_allowed(connection, &lease(&first));
}

/// Leaves a journal behind, as a service that was killed together with its client does, and returns its content.
fn leave_journal(served: &mut ServedHost) -> Value {
    served.start();
    let device = served.uuid(0);
    let mut client = Client::start(served, ALICE);
    client.lease_and_cap(&device, 160);
    served.signal_service(Signal::KILL);
    served.wait_for_service();
    drop(client);
    let text = std::fs::read(served.journal.join(format!("{device}.journal"))).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
#[ignore = "needs root"]
fn a_damaged_journal_is_reported_and_nothing_is_written() {
    let mut served = ServedHost::new("v100:2", POLICY);
    let left = leave_journal(&mut served);
    served.host.set_cap(1, 250.0);
    let (first, second) = (served.uuid(0), served.uuid(1));
    let file = served.journal.join(format!("{first}.journal"));
    let change = |key: &str, value: Value| {
        let mut changed = left.clone();
        changed[key] = value;
        changed.to_string()
    };
    let damaged = [
        String::new(),
        "{".to_owned(),
        "null".to_owned(),
        left.to_string()[..100].to_owned(),
        change("version", 3.into()),
        change("device", second.as_str().into()),
        change("saved", json!({"power_cap": "many W"})),
        change("fan", 1.into()),
    ];
    for text in &damaged {
        std::fs::write(&file, text).unwrap();
        let before = served.host.writes();
        served.start();
        let mut alice = Client::start(&served, ALICE);
        let connection = alice.greet();
        let refusal = alice.ask_refused(connection, &lease(&first)).to_string();
        assert!(refusal.contains("is damaged"), "{text}: {refusal}");
        assert_eq!(served.host.writes(), before, "{text}");
        assert_eq!(served.cap(0), 160.0, "{text}");
        assert!(file.exists(), "{text}");
        // The other GPU can be used.
        let mut bob = Client::start(&served, BOB);
        bob.lease_and_cap(&second, 170);
        drop(bob);
        served.wait_for_cap(1, 250.0);
        assert!(served.stop().success());
    }
    // The undamaged journal is used.
    std::fs::write(&file, left.to_string()).unwrap();
    served.start();
    served.wait_for_cap(0, 300.0);
    wait_for("the journal to be removed", || !file.exists());
}

#[test]
#[ignore = "needs root"]
fn a_journal_from_before_a_reboot_is_not_written() {
    let mut served = ServedHost::new("v100:2", POLICY);
    let mut left = leave_journal(&mut served);
    let file = served.journal.join(format!("{}.journal", served.uuid(0)));
    // Since the reboot somebody else has set another cap.
    served.host.set_cap(0, 222.0);
    left["owner"]["boot_id"] = "another boot".into();
    for lease in left["leases"].as_array_mut().unwrap() {
        lease["owner"]["boot_id"] = "another boot".into();
    }
    std::fs::write(&file, left.to_string()).unwrap();
    let before = served.host.writes();
    served.start();
    wait_for("the journal to be removed", || !file.exists());
    assert_eq!(served.host.writes(), before);
    assert_eq!(served.cap(0), 222.0);
    wait_for("a line in the log", || {
        !served.audited("restored-left-changed").is_empty()
    });
    let reported = served.audited("restored-left-changed");
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0]["outcome"]
            .as_str()
            .unwrap()
            .contains("last reboot"),
        "{reported:?}"
    );
}
