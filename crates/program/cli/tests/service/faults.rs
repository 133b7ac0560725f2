//! A full disk, and a GPU that is lost.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sweetspot_guard::{Refusal, SettingsReply};

use super::client::{Client, apply_cap, lease};
use super::served_host::{ALICE, BOB, ServedHost, wait_for};
use crate::common::text;

const POLICY: &str = "[[allow]]\neveryone = true\npower-cap = true\n";

/// A small file system, which is removed at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Self {
        std::fs::create_dir(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs"])
            .arg(at)
            .status()
            .unwrap();
        assert!(mounted.success(), "cannot mount a small file system");
        Self(at.to_owned())
    }

    /// Writes until nothing more fits.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 512]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
#[ignore = "needs root"]
fn without_space_for_the_journal_nothing_is_set() {
    let mut served = ServedHost::new("v100:2", POLICY);
    let disk = SmallDisk::mount(&served.path("journal"));
    served.start();
    let device = served.uuid(0);
    let mut alice = Client::start(&served, ALICE);
    let connection = alice.greet();
    alice.ask_allowed(connection, &lease(&device));
    disk.fill();
    let refusal = alice.ask_refused(connection, &apply_cap(&device, "160 W"));
    assert!(matches!(refusal, Refusal::Journal(_)), "{refusal:?}");
    assert!(refusal.to_string().contains("No space left"), "{refusal}");
    assert_eq!(served.host.writes(), "");
    // A command says so in one line, and does not run.
    let mut run = served.sweetspot_as(BOB);
    run.args(["run", "--device", "1", "--power-cap", "160"]);
    run.args(["--", "echo", "it ran"]);
    let output = run.output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("No space left"), "{message}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(served.host.writes(), "");
    assert_eq!(served.audited("refused").len(), 2);
    // With some space all is well again, and restoring needs none.
    disk.free();
    alice.ask_allowed(connection, &apply_cap(&device, "160 W"));
    assert_eq!(served.cap(0), 160.0);
    disk.fill();
    drop(alice);
    served.wait_for_cap(0, 300.0);
    assert!(served.stop().success());
}

#[test]
#[ignore = "needs root"]
fn without_space_for_the_audit_log_nothing_is_set() {
    let mut served = ServedHost::new("v100:2", POLICY);
    let disk = SmallDisk::mount(&served.path("log"));
    served.start();
    let device = served.uuid(0);
    let mut alice = Client::start(&served, ALICE);
    let connection = alice.lease_and_cap(&device, 160);
    disk.fill();
    // A few lines still fit into the last block of the log.
    let mut caps = [170, 160].into_iter().cycle();
    let mut before = served.host.writes();
    let mut next = || {
        let cap = format!("{} W", caps.next().unwrap());
        before = served.host.writes();
        alice.ask(connection, &apply_cap(&device, &cap))
    };
    let refusal = loop {
        if let SettingsReply::Refused(refusal) = next() {
            break refusal.to_string();
        }
    };
    assert!(
        refusal.contains("the audit log cannot be written, so nothing is changed"),
        "{refusal}"
    );
    assert_eq!(served.host.writes(), before);
    // Restoring does not depend on the log.
    let released = alice.ask_allowed(connection, &"release".into());
    assert_eq!(released, SettingsReply::Released { problems: vec![] });
    assert_eq!(served.cap(0), 300.0);
    disk.free();
    alice.ask_allowed(connection, &lease(&device));
    alice.ask_allowed(connection, &apply_cap(&device, "170 W"));
    assert_eq!(served.cap(0), 170.0);
    // No line was written in part.
    assert!(served.audited("applied").len() > 1);
    assert!(served.stop().success());
    assert_eq!(served.cap(0), 300.0);
}

#[test]
#[ignore = "needs root"]
fn a_lost_gpu_ends_its_lease_and_no_other() {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml"
    );
    let profile = std::fs::read_to_string(source)
        .unwrap()
        .replace("aliases = [\"v100\"]", "aliases = []");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gpu.toml");
    let fault = "[[fault]]\nkind = \"lost\"\nafter = \"10 s\"";
    std::fs::write(&file, format!("{profile}\n{fault}\n")).unwrap();
    let mut served = ServedHost::started(&format!("{},v100", file.display()), POLICY);
    let (first, second) = (served.uuid(0), served.uuid(1));
    let mut alice = Client::start(&served, ALICE);
    let of_alice = alice.lease_and_cap(&first, 160);
    let mut bob = Client::start(&served, BOB);
    let of_bob = bob.lease_and_cap(&second, 170);
    let ask = json!({"settings": {"device": first}});
    let mut refusals = Vec::new();
    wait_for("the loss of the GPU", || {
        if let SettingsReply::Refused(refusal) = alice.ask(of_alice, &ask) {
            refusals.push(refusal);
        }
        !refusals.is_empty()
    });
    // The first refusal may be older than the end of the lease.
    wait_for("the end of the lease", || {
        !served.audited("lease-ended").is_empty()
    });
    let ended: Value = served.audited("lease-ended").swap_remove(0);
    assert_eq!(ended["uid"], ALICE.uid, "{ended}");
    assert_eq!(ended["device"], first.as_str(), "{ended}");
    refusals.push(alice.ask_refused(of_alice, &ask));
    refusals.push(alice.ask_refused(of_alice, &apply_cap(&first, "170 W")));
    refusals.push(alice.ask_refused(of_alice, &lease(&first)));
    for refusal in &refusals {
        let message = refusal.to_string();
        println!("{message}");
        assert!(message.contains("fell off the bus"), "{message}");
        assert!(!message.contains("settings are restored"), "{message}");
    }
    // What could not be restored stays in the journal.
    assert!(served.path(&format!("journal/{first}.journal")).exists());
    // Bob's GPU works, and the service goes on.
    bob.ask_allowed(of_bob, &apply_cap(&second, "165 W"));
    assert_eq!(served.cap(1), 165.0);
    assert_eq!(served.audited("lease-ended").len(), 1);
    assert!(served.stop().success());
    assert_eq!(served.cap(1), 300.0);
    // It also starts while a GPU is lost.
    served.start();
    Client::start(&served, BOB).lease_and_cap(&second, 160);
}
