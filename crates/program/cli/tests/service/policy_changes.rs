//! Signals to the service in the foreground: SIGTERM and SIGINT end it, SIGHUP makes it read its policy again.

use std::os::unix::fs::chown;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use sweetspot_guard::{Refusal, SettingsReply};

use super::client::{Client, apply_cap, lease};
use super::served_host::{ALICE, BOB, ServedHost, wait_for, wait_for_exit};

const POLICY: &str = "[[allow]]\neveryone = true\npower-cap = true\n";

/// A policy with one rule for one user.
fn only(uid: u32, caps: &str) -> String {
    format!("[[allow]]\nusers = [{uid}]\npower-cap = {caps}\n")
}

/// The journal's files that say what is to be restored.
fn journals(served: &ServedHost) -> usize {
    let files = std::fs::read_dir(served.path("journal")).unwrap();
    let is_journal = |file: &std::fs::DirEntry| file.path().extension() == Some("journal".as_ref());
    files.flatten().filter(is_journal).count()
}

#[test]
#[ignore = "needs root"]
fn the_end_of_the_service_restores_everything_and_removes_the_socket() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut served = ServedHost::started("v100:2", POLICY);
        served.host.set_caps(250.0);
        let mut alice = Client::start(&served, ALICE);
        alice.lease_and_cap(&served.uuid(0), 160);
        let mut run = served
            .sweetspot_as(BOB)
            .args(["run", "--device", "1", "--power-cap", "170"])
            .args(["--", "sh", "-c", "read line; echo ended"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        served.wait_for_cap(1, 170.0);
        assert_eq!(journals(&served), 2);
        served.signal_service(signal);
        let status = served.wait_for_service();
        assert_eq!(status.code(), Some(0));
        assert_eq!((served.cap(0), served.cap(1)), (250.0, 250.0));
        assert_eq!(journals(&served), 0);
        assert!(!served.socket().exists());
        assert_eq!(served.audited("service-stopped").len(), 2);
        assert_eq!(served.messages(), "");
        // Bob's command runs on, and afterwards Bob learns that the service is gone.
        drop(run.stdin.take());
        let status = wait_for_exit(&mut run);
        let shown = std::io::read_to_string(run.stdout.take().unwrap()).unwrap();
        let message = std::io::read_to_string(run.stderr.take().unwrap()).unwrap();
        println!("{status}: {message}");
        assert_eq!(shown, "ended\n");
        assert!(message.contains("service"), "{message}");
        // The next service begins anew.
        served.start();
        Client::start(&served, ALICE).lease_and_cap(&served.uuid(1), 180);
    }
}

#[test]
#[ignore = "needs root"]
fn a_lease_that_a_new_policy_forbids_ends() {
    let served = ServedHost::started("v100:2", POLICY);
    let (first, second) = (served.uuid(0), served.uuid(1));
    let mut alice = Client::start(&served, ALICE);
    let of_alice = alice.lease_and_cap(&first, 160);
    let mut bob = Client::start(&served, BOB);
    let of_bob = bob.lease_and_cap(&second, 170);
    // Bob may have less than he has now.
    let rules = only(ALICE.uid, "true") + &only(BOB.uid, "\"180..200 W\"");
    served.write_policy(&rules);
    served.signal_service(Signal::HUP);
    served.wait_for_cap(1, 300.0);
    let before = served.host.writes();
    let refusal = bob.ask_refused(of_bob, &apply_cap(&second, "170 W"));
    assert!(
        matches!(&refusal, Refusal::LeaseEnded { reason, .. } if reason.contains("180 W to 200 W")),
        "{refusal}"
    );
    let refusal = bob.ask_refused(of_bob, &apply_cap(&second, "190 W"));
    assert!(matches!(refusal, Refusal::LeaseEnded { .. }), "{refusal}");
    assert_eq!(served.host.writes(), before);
    // A new lease has what the new policy allows; Alice's goes on.
    bob.ask_allowed(of_bob, &lease(&second));
    bob.ask_allowed(of_bob, &apply_cap(&second, "190 W"));
    assert_eq!((served.cap(0), served.cap(1)), (160.0, 190.0));
    let ended = served.audited("lease-ended");
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0]["uid"], BOB.uid);
    // Nobody may do anything.
    served.write_policy("");
    served.signal_service(Signal::HUP);
    served.wait_for_cap(0, 300.0);
    served.wait_for_cap(1, 300.0);
    let refusal = alice.ask_refused(of_alice, &lease(&first));
    assert!(matches!(refusal, Refusal::NotAllowed(_)), "{refusal}");
    assert_eq!(served.messages(), "");
}

#[test]
#[ignore = "needs root"]
fn a_new_policy_that_cannot_be_used_changes_nothing() {
    let served = ServedHost::started("v100:2", &only(ALICE.uid, "true"));
    let first = served.uuid(0);
    let mut alice = Client::start(&served, ALICE);
    let of_alice = alice.lease_and_cap(&first, 160);
    let policy = served.path("policy.toml");
    let mut messages = 0;
    let mut reload = |why: &str| {
        served.signal_service(Signal::HUP);
        wait_for("a message", || served.messages().lines().count() > messages);
        let shown = served.messages();
        let new: Vec<&str> = shown.lines().skip(messages).collect();
        messages += new.len();
        assert_eq!(new.len(), 1, "{new:?}");
        assert!(new[0].contains(why), "{new:?}");
        assert!(new[0].contains("the policy stays as it was"), "{new:?}");
    };
    served.write_policy("[[allow]]\neveryone = true\npower-cap = true\nfan = true\n");
    reload("policy.toml:4");
    // Anybody could have written this one.
    served.write_policy(POLICY);
    chown(&policy, Some(BOB.uid), None).unwrap();
    reload("belongs to user 64002");
    // Two checks later Alice still has what she had, and Bob nothing.
    std::thread::sleep(Duration::from_millis(2200));
    assert_eq!(served.cap(0), 160.0);
    alice.ask_allowed(of_alice, &apply_cap(&first, "170 W"));
    let mut bob = Client::start(&served, BOB);
    let of_bob = bob.greet();
    let refusal = bob.ask_refused(of_bob, &lease(&served.uuid(1)));
    assert!(matches!(refusal, Refusal::NotAllowed(_)), "{refusal}");
    // The corrected policy holds at once.
    chown(&policy, Some(0), None).unwrap();
    served.signal_service(Signal::HUP);
    wait_for("the new policy", || {
        let reply = bob.ask(of_bob, &lease(&served.uuid(1)));
        matches!(reply, SettingsReply::Leased { .. })
    });
    assert_eq!(served.cap(0), 170.0);
}
