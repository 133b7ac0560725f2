//! Requests that the policy does not allow, and requests about GPUs that the caller has not leased.

use serde_json::{Value, json};
use sweetspot_guard::{Refusal, SettingsReply};

use super::client::{Client, apply, apply_cap, lease};
use super::refusals::Refusals;
use super::served_host::{ALICE, BOB, CAROL, CAROLS_GROUP, MALLORY, ServedHost};

/// Alice may set the cap of GPU 0 or its core clock, but not both; Carol's group has any cap of GPU 1; Bob any cap.
fn served() -> ServedHost {
    let served = ServedHost::new("v100:2", "");
    let (alice, bob, second) = (ALICE.uid, BOB.uid, served.uuid(1));
    served.write_policy(&format!(
        r#"
[[allow]]
users = [{alice}]
gpus = [0]
power-cap = "160..200 W"

[[allow]]
users = [{alice}]
gpus = [0]
core-clock = "900..1200 MHz"

[[allow]]
groups = [{CAROLS_GROUP}]
gpus = ["{second}"]
power-cap = true

[[allow]]
users = [{bob}]
power-cap = true
"#
    ));
    let mut served = served;
    served.start();
    served.host.set_caps(250.0);
    served
}

#[test]
#[ignore = "needs root"]
fn what_no_rule_allows_is_refused_and_logged() {
    let served = served();
    let (first, second) = (served.uuid(0), served.uuid(1));
    let [first, second] = [first.as_str(), second.as_str()];
    let no_rule = "no rule in";
    let mut mallory = Refusals::new(&served, MALLORY);
    mallory.of(&[], &lease(first), "applies to this user");
    mallory.of(&[], &lease(second), "applies to this user");
    mallory.of(
        &[],
        &json!({"lease": {"devices": [first], "kind": "ceiling"}}),
        no_rule,
    );

    let mut alice = Refusals::new(&served, ALICE);
    let other_gpu = "may not change settings of GPU 1";
    alice.of(&[], &lease(second), other_gpu);
    // All GPUs of a request are leased, or none.
    let both = json!({"lease": {"devices": [first, second]}});
    alice.of(&[], &both, other_gpu);
    let connection = alice.client.greet();
    alice.client.ask_refused(connection, &both);
    alice.refused_on(connection, &apply_cap(first, "180 W"), "was not reserved");
    alice.client.close(connection);

    let leased = [lease(first)];
    let cap = |watts: &str| apply_cap(first, watts);
    let core = |clock: &str| apply(first, json!({"core_clock": clock}));
    for watts in ["159 W", "159.999 W", "150 W", "0.1 kW"] {
        alice.of(&leased, &cap(watts), "160 W to 200 W");
    }
    for watts in ["201 W", "200.001 W", "300 W", "1e300 W"] {
        alice.of(&leased, &cap(watts), "160 W to 200 W");
    }
    alice.of(&leased, &core("1300 MHz"), "900 MHz to 1200 MHz");
    alice.of(&leased, &core("899 MHz"), "900 MHz to 1200 MHz");
    let memory = apply(first, json!({"memory_clock": "877 MHz"}));
    alice.of(&leased, &memory, "has the key `memory-clock`");
    let together = apply(
        first,
        json!({"power_cap": "180 W", "core_clock": "1005 MHz"}),
    );
    let not_together = "no single rule in";
    alice.of(&leased, &together, not_together);
    let earlier = [lease(first), cap("180 W")];
    alice.of(&earlier, &core("1005 MHz"), not_together);
    let earlier = [lease(first), core("1005 MHz")];
    alice.of(&earlier, &cap("180 W"), not_together);
    // After the first setting is taken back, the second one is allowed.
    let restore = json!({"restore": {"device": first}});
    let earlier = [lease(first), core("1005 MHz"), restore, cap("180 W")];
    alice.of(&earlier, &core("1005 MHz"), not_together);
    let ceiling = json!({"lease": {"devices": [first], "kind": "ceiling"}});
    alice.of(&[], &ceiling, "`ceiling = true`");
    alice.of(&leased, &ceiling, "`ceiling = true`");

    let mut carol = Refusals::new(&served, CAROL);
    carol.of(&[], &lease(first), "may not change settings of GPU 0");
    let leased = [lease(second)];
    let core = apply(second, json!({"core_clock": "1005 MHz"}));
    carol.of(&leased, &core, "has the key `core-clock`");
    // The policy allows any value, the GPU does not.
    for watts in ["149 W", "301 W", "0 W", "-160 W", "1e308 W", "-0 W"] {
        carol.of(&leased, &apply_cap(second, watts), "150 W to 300 W");
    }
    let refused = mallory.count + alice.count + carol.count;
    println!("{refused} requests outside the policy were refused and logged");
}

#[test]
#[ignore = "needs root"]
fn a_gpu_that_another_user_has_leased_is_out_of_reach() {
    let served = served();
    let (first, second) = (served.uuid(0), served.uuid(1));
    let [first, second] = [first.as_str(), second.as_str()];
    let mut bob = Client::start(&served, BOB);
    let lease_of_bob = bob.lease_and_cap(first, 170);
    let mut alice = Refusals::new(&served, ALICE);
    let in_use = format!("in use by process {}", bob.pid());
    alice.of(&[], &lease(first), &in_use);
    let ceiling = json!({"lease": {"devices": [first], "kind": "ceiling"}});
    alice.of(&[], &ceiling, "`ceiling = true`");
    let about = |device: &str| -> Vec<Value> {
        vec![
            apply_cap(device, "180 W"),
            apply(device, json!({})),
            json!({"restore": {"device": device}}),
            json!({"settings": {"device": device}}),
        ]
    };
    for device in [first, second, "GPU-0", "no GPU"] {
        for request in about(device) {
            alice.of(&[], &request, "was not reserved");
        }
    }
    // A release is for one's own leases: there are none, and Bob's stays.
    let connection = alice.client.greet();
    let released = alice.client.ask(connection, &"release".into());
    assert_eq!(released, SettingsReply::Released { problems: vec![] });
    assert_eq!(served.cap(0), 170.0);
    // The same user has no more rights in another process.
    let mut other = Refusals::new(&served, BOB);
    other.of(&[], &lease(first), &in_use);
    other.of(&[], &apply_cap(first, "180 W"), "was not reserved");
    let both = json!({"lease": {"devices": [second, first]}});
    other.of(&[], &both, &in_use);
    // Nothing is left of the lease that was refused in part.
    let mut carol = Client::start(&served, CAROL);
    carol.lease_and_cap(second, 160);
    let restored = bob.ask_allowed(lease_of_bob, &json!({"restore": {"device": first}}));
    assert_eq!(restored, SettingsReply::Restored);
    assert_eq!((served.cap(0), served.cap(1)), (250.0, 160.0));
}

#[test]
#[ignore = "needs root"]
fn a_lease_does_not_outlast_the_policy() {
    let served = ServedHost::started(
        "v100:2",
        "[[allow]]\neveryone = true\npower-cap = true\nlongest-lease = \"2s\"\n",
    );
    let device = served.uuid(0);
    let mut client = Client::start(&served, ALICE);
    let connection = client.lease_and_cap(&device, 160);
    served.wait_for_cap(0, 300.0);
    let before = served.host.writes();
    let refusal = client.ask_refused(connection, &apply_cap(&device, "170 W"));
    assert!(
        matches!(&refusal, Refusal::LeaseEnded { reason, .. } if reason.contains("2 s at most")),
        "{refusal}"
    );
    assert_eq!(served.host.writes(), before);
    let ended = served.audited("lease-ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["uid"], ALICE.uid);
    assert_eq!(served.audited("refused").len(), 1);
}

#[test]
#[ignore = "needs root"]
fn only_root_may_overclock_memory_by_an_offset() {
    let alice = ALICE.uid;
    let policy = format!("[[allow]]\nusers = [{alice}]\nmemory-clock = true\n");
    let served = ServedHost::started("gtx_2080ti", &policy);
    let run = |clock: &str| {
        let mut command = served.sweetspot_as(ALICE);
        command.args(["run", "--memory-clock", clock, "--", "true"]);
        command.output().unwrap()
    };
    let lower = run("5800MHz");
    let message = String::from_utf8_lossy(&lower.stderr).into_owned();
    assert!(lower.status.success(), "{message}");
    let higher = run("7300MHz");
    let message = String::from_utf8_lossy(&higher.stderr).into_owned();
    assert!(!higher.status.success());
    assert!(message.contains("which only root may do"), "{message}");
}
