//! Lines that do not follow the protocol.

use serde_json::json;

use super::client::Client;
use super::refusals::Refusals;
use super::served_host::{ALICE, BOB, CAROL, ServedHost};

const POLICY: &str = "[[allow]]\neveryone = true\npower-cap = true\ncore-clock = true\n";

#[test]
#[ignore = "needs root"]
fn a_client_must_greet_first_and_cannot_name_its_owner() {
    let served = ServedHost::started("v100:2", POLICY);
    let device = served.uuid(0);
    let mut alice = Refusals::new(&served, ALICE);
    let lease = json!({"lease": {"devices": [device]}}).to_string();
    let before_hello = [
        lease.clone(),
        json!({"apply": {"device": device, "settings": {}}}).to_string(),
        json!({"settings": {"device": device}}).to_string(),
        json!({"restore": {"device": device}}).to_string(),
    ];
    for request in before_hello {
        alice.of_line(false, request.as_bytes(), "the first request must be hello");
    }
    for version in [0, 2, u32::MAX] {
        let hello = json!({"hello": {"version": version}}).to_string();
        let reason = format!("and this program version {version}");
        alice.of_line(false, hello.as_bytes(), &reason);
    }
    let malformed = [
        r#"{"hello": {}}"#,
        r#"{"hello": {"version": "1"}}"#,
        r#"{"hello": {"version": -1}}"#,
        r#"{"hello": {"version": 1.0}}"#,
        r#"{"hello": {"version": 4294967297}}"#,
        r#"{"hello": {"version": 1, "version": 1}}"#,
        r#"{"hello": 1}"#,
        r#"{"hello": {"version": 1, "uid": 0}}"#,
        r#"{"hello": {"version": 1, "owner": {"pid": 1, "uid": 0}}}"#,
        r#"{"hello": {"version": 1, "job": "7"}}"#,
        r#"{"hello": {"version": 1, "job": {"name": "7", "uid": 0, "pid": 1}}}"#,
    ];
    for hello in malformed {
        alice.of_line(false, hello.as_bytes(), "invalid request");
    }
    let only_root = "only root may lease devices for a job";
    for job in [
        json!({"name": "7", "uid": 0}),
        json!({"name": "7", "uid": ALICE.uid}),
        json!({"name": "", "uid": BOB.uid}),
    ] {
        let hello = json!({"hello": {"version": 1, "job": job}}).to_string();
        alice.of_line(false, hello.as_bytes(), only_root);
        // A connection that was greeted is no better.
        alice.of_line(true, hello.as_bytes(), only_root);
    }
    assert!(served.audited("lease").is_empty());
    println!("{} greetings were refused and logged", alice.count);
}

#[test]
#[ignore = "needs root"]
fn malformed_requests_are_refused_and_logged() {
    let served = ServedHost::started("v100:2", POLICY);
    let device = served.uuid(0);
    let mut alice = Refusals::new(&served, ALICE);
    let with_device = |text: &str| text.replace("GPU", &device);
    let malformed = [
        // Requests that do not exist.
        r#"{"shutdown": {}}"#,
        r#"{"run": {"command": ["id"]}}"#,
        r#""release-all""#,
        r#""lease""#,
        r#"{"release": {"device": "GPU"}}"#,
        r#"{"Lease": {"devices": ["GPU"]}}"#,
        r#"{"lease": {"devices": ["GPU"]}, "release": null}"#,
        // Keys that do not exist.
        r#"{"lease": {"devices": ["GPU"], "owner": {"pid": 1, "uid": 0}}}"#,
        r#"{"lease": {"devices": ["GPU"], "uid": 0}}"#,
        r#"{"apply": {"device": "GPU", "settings": {}, "owner": 1}}"#,
        r#"{"apply": {"device": "GPU", "settings": {"fan": "0 %"}}}"#,
        r#"{"apply": {"device": "GPU", "settings": {"power_cap": "160 W", "power_cap": "300 W"}}}"#,
        r#"{"restore": {"device": "GPU", "force": true}}"#,
        // Wrong types.
        r#"{"lease": {"devices": "GPU"}}"#,
        r#"{"lease": {"devices": [0]}}"#,
        r#"{"lease": {"devices": [["GPU"]]}}"#,
        r#"{"lease": {"devices": null}}"#,
        r#"{"lease": {}}"#,
        r#"{"lease": {"devices": ["GPU"], "kind": "root"}}"#,
        r#"{"apply": {"device": "GPU", "settings": [160]}}"#,
        r#"{"apply": {"device": ["GPU"], "settings": {}}}"#,
        r#"{"apply": {"device": "GPU"}}"#,
        // Not JSON, or not an object.
        "{",
        r#"{"lease": {"devices": ["GPU"]}"#,
        r#"{"lease": {"devices": ["GPU"]}}}"#,
        "",
        "[]",
        "null",
        "7",
        "ping",
        "GET / HTTP/1.1\r",
    ];
    for line in malformed {
        alice.of_line(true, with_device(line).as_bytes(), "invalid request");
    }
    let utf8 = [br#"{"restore": {"device": ""#.as_slice(), b"\xff\xfe\"}}"].concat();
    alice.of_line(true, &utf8, "invalid request");
    for depth in [200, 7000] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        alice.of_line(true, nested.as_bytes(), "invalid request");
        let nested = r#"{"lease":"#.repeat(depth.min(1500));
        alice.of_line(true, nested.as_bytes(), "invalid request");
    }
    let long = format!(
        r#"{{"lease": {{"devices": ["{}"]}}}}"#,
        "x".repeat(16 << 10)
    );
    alice.of_line(true, long.as_bytes(), "a request may have 16384 bytes");
    let endless = "{".repeat(100_000);
    alice.of_line(true, endless.as_bytes(), "a request may have 16384 bytes");
    assert!(served.audited("lease").is_empty());
    println!("{} malformed lines were refused and logged", alice.count);
}

#[test]
#[ignore = "needs root"]
fn impossible_values_are_refused_and_logged() {
    let served = ServedHost::started("v100:2", POLICY);
    let device = served.uuid(0);
    let mut alice = Refusals::new(&served, ALICE);
    let not_a_power = [
        r#""NaN W""#,
        r#""inf W""#,
        r#""-inf W""#,
        r#""1e999 W""#,
        r#""160""#,
        r#""160 MHz""#,
        r#""160 w""#,
        r#""W""#,
        r#""""#,
        r#""160 W 300 W""#,
        r#""0x0a W""#,
        "\"160 W\\u0000\"",
        "160",
        "160.0",
        "1e999",
        "NaN",
        "Infinity",
        "true",
        r#"["160 W"]"#,
        r#"{"W": 160}"#,
    ];
    for value in not_a_power {
        let line =
            format!(r#"{{"apply":{{"device":"{device}","settings":{{"power_cap":{value}}}}}}}"#);
        alice.of_line(true, line.as_bytes(), "invalid request");
    }
    let mut bob = Refusals::new(&served, BOB);
    let leased = [json!({"lease": {"devices": [device]}})];
    let of_cap = |cap: &str| json!({"apply": {"device": device, "settings": {"power_cap": cap}}});
    for cap in ["0 W", "-0 W", "-160 W", "1e-300 W", "1e300 W", "1 mW"] {
        bob.of(&leased, &of_cap(cap), "150 W to 300 W");
    }
    let of_clock =
        |clock: &str| json!({"apply": {"device": device, "settings": {"core_clock": clock}}});
    for clock in [
        "0 MHz",
        "-1005 MHz",
        "1e300 MHz",
        "134 MHz",
        "1531 MHz",
        "1 Hz",
    ] {
        bob.of(&leased, &of_clock(clock), "core clock");
    }
    let count = alice.count + bob.count;
    println!("{count} impossible values were refused and logged");
}

#[test]
#[ignore = "needs root"]
fn devices_that_do_not_exist_are_refused_and_logged() {
    let served = ServedHost::started("v100:2", POLICY);
    let device = served.uuid(0);
    let mut carol = Refusals::new(&served, CAROL);
    let nothing = json!({"lease": {"devices": []}});
    carol.of(&[], &nothing, "names no device");
    let short = &device[..12];
    let long = "G".repeat(10 << 10);
    let devices = [
        "",
        "0",
        "all",
        short,
        &device.to_lowercase(),
        "/etc/passwd",
        "../../../../etc/passwd",
        "GPU-\0",
        "GPU-\u{7}\u{1b}[2J",
        "GPU-\n",
        &format!("{device} "),
        &format!("{device}\0"),
        &long,
    ];
    for unknown in devices {
        let leases = json!({"lease": {"devices": [unknown]}});
        carol.of(&[], &leases, "there is no GPU");
        let leases = json!({"lease": {"devices": [device, unknown]}});
        carol.of(&[], &leases, "there is no GPU");
    }
    // No file has a name that a client chose.
    assert!(
        std::fs::read_dir(served.path("journal"))
            .unwrap()
            .next()
            .is_none()
    );
    println!("{} leases of devices were refused and logged", carol.count);
    // The service goes on.
    Client::start(&served, ALICE).lease_and_cap(&device, 160);
}
