//! HTTP requests, as the clients of Zeus make them, that are refused.

use super::client::Client;
use super::refusals::Refusals;
use super::served_host::{ALICE, BOB, ServedHost};

/// Alice may set a low cap of GPU 0, Bob any cap and clock of both.
fn served() -> ServedHost {
    let (alice, bob) = (ALICE.uid, BOB.uid);
    ServedHost::started(
        "v100:2",
        &format!(
            "[[allow]]\nusers = [{alice}]\ngpus = [0]\npower-cap = \"160..200 W\"\n\n\
             [[allow]]\nusers = [{bob}]\npower-cap = true\ncore-clock = true\n"
        ),
    )
}

fn request(method: &str, target: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

fn post(target: &str) -> String {
    request("POST", target)
}

#[test]
#[ignore = "needs root"]
fn settings_outside_the_policy_are_refused_and_logged() {
    let served = served();
    let mut alice = Refusals::new(&served, ALICE);
    let cap = |gpu: &str, milliwatts: &str| {
        post(&format!(
            "/gpu/set_power_limit?gpu_ids={gpu}&power_limit_mw={milliwatts}&block=true"
        ))
    };
    for milliwatts in ["159999", "200001", "300000", "0", "4294967295"] {
        alice.of_http(&cap("0", milliwatts), 403, "160 W to 200 W");
    }
    let other_gpu = "may not change settings of GPU 1";
    alice.of_http(&cap("1", "180000"), 403, other_gpu);
    let persistence = |enabled: bool| {
        post(&format!(
            "/gpu/set_persistence_mode?gpu_ids=0&enabled={enabled}&block=true"
        ))
    };
    let clocks = |what: &str, gpu: u32, clock: u32| {
        post(&format!(
            "/gpu/set_{what}_locked_clocks?gpu_ids={gpu}&min_clock_mhz={clock}&max_clock_mhz={clock}&block=true"
        ))
    };
    alice.of_http(&clocks("gpu", 0, 1005), 403, "has the key `core-clock`");
    alice.of_http(&clocks("mem", 0, 877), 403, "has the key `memory-clock`");
    alice.of_http(&clocks("gpu", 1, 1005), 403, other_gpu);
    let is_on = Client::start(&served, ALICE)
        .http(request("GET", "/gpu/get_persistence_mode").as_bytes())
        .contains("\"0\":{\"enabled\":true}");
    alice.of_http(&persistence(!is_on), 403, "`persistence = true`");
    // Values that the policy allows and the GPU does not.
    let mut bob = Refusals::new(&served, BOB);
    for milliwatts in ["0", "149999", "300001", "4294967295"] {
        bob.of_http(&cap("0", milliwatts), 400, "150 W to 300 W");
    }
    bob.of_http(&clocks("gpu", 0, 5000), 400, "core clock");
    let no_rule = "`persistence = true`";
    bob.of_http(&persistence(!is_on), 403, no_rule);
    assert_eq!(
        (served.settings(0), served.settings(1)),
        ((300.0, None), (300.0, None))
    );
    // What is allowed is set, and restored when the client ends.
    let mut client = Client::start(&served, BOB);
    drop(bob);
    let response = client.http(cap("0,1", "180000").as_bytes());
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert_eq!((served.cap(0), served.cap(1)), (180.0, 180.0));
    let in_use = format!("in use by process {}", client.pid());
    alice.of_http(&cap("0", "170000"), 403, &in_use);
    drop(client);
    served.wait_for_cap(0, 300.0);
    served.wait_for_cap(1, 300.0);
}

#[test]
#[ignore = "needs root"]
fn requests_that_do_not_exist_are_refused_and_logged() {
    let served = served();
    let mut bob = Refusals::new(&served, BOB);
    let unknown = [
        "/",
        "/gpu",
        "/gpu/",
        "/gpu/set_everything",
        "/GPU/set_power_limit",
        "//gpu/set_power_limit",
        "/gpu/set_power_limit/",
        "/gpu/../gpu/set_power_limit",
        "/../../etc/passwd",
        "/%67pu/set_power_limit",
        "/cpu/set_power_limit",
        "/auth/whoami",
    ];
    for path in unknown {
        bob.of_http(&post(path), 404, path);
    }
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "post", "HEAD"] {
        let target = "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=180000&block=true";
        bob.of_http(&request(method, target), 405, "/gpu/set_power_limit");
    }
    for path in ["/discover", "/time", "/gpu/get_power", "/gpu/stream_power"] {
        bob.of_http(&post(path), 405, path);
    }
    let count = bob.count;
    println!("{count} paths and methods were refused and logged");
}

#[test]
#[ignore = "needs root"]
fn bad_parameters_are_refused_and_logged() {
    let served = served();
    let mut bob = Refusals::new(&served, BOB);
    let parameters = [
        "",
        "gpu_ids=0&power_limit_mw=180000",
        "gpu_ids=0&block=true",
        "power_limit_mw=180000&block=true",
        "gpu_ids=&power_limit_mw=180000&block=true",
        "gpu_ids=2&power_limit_mw=180000&block=true",
        "gpu_ids=-1&power_limit_mw=180000&block=true",
        "gpu_ids=0,2&power_limit_mw=180000&block=true",
        "gpu_ids=4294967296&power_limit_mw=180000&block=true",
        "gpu_ids=all&power_limit_mw=180000&block=true",
        "gpu_ids=0%00&power_limit_mw=180000&block=true",
        "gpu_ids=../0&power_limit_mw=180000&block=true",
        "gpu_ids=0&gpu_ids=1&power_limit_mw=180000&block=true",
        "gpu_ids=0&power_limit_mw=180000&power_limit_mw=300000&block=true",
        "gpu_ids=0&power_limit_mw=-1&block=true",
        "gpu_ids=0&power_limit_mw=NaN&block=true",
        "gpu_ids=0&power_limit_mw=inf&block=true",
        "gpu_ids=0&power_limit_mw=1e5&block=true",
        "gpu_ids=0&power_limit_mw=180000.5&block=true",
        "gpu_ids=0&power_limit_mw=4294967296&block=true",
        "gpu_ids=0&power_limit_mw=180W&block=true",
        "gpu_ids=0&power_limit_mw=&block=true",
        "gpu_ids=0&power_limit_mw=180000&block=perhaps",
        "gpu_ids=0&power_limit_mw=180000&block=true&owner=0",
        "gpu_ids=0&power_limit_mw=180000&block=true&uid=0",
        "gpu_ids=0&power_limit_mw=%ff&block=true",
        "gpu_ids=0&power_limit_mw=%zz&block=true",
    ];
    for query in parameters {
        let target = format!("/gpu/set_power_limit?{query}");
        bob.of_http(&post(&target), 400, "");
    }
    let clocks = "/gpu/set_gpu_locked_clocks?gpu_ids=0&block=true";
    for range in ["min_clock_mhz=900&max_clock_mhz=1200", "min_clock_mhz=900"] {
        bob.of_http(&post(&format!("{clocks}&{range}")), 400, "");
    }
    let enabled = "/gpu/set_persistence_mode?gpu_ids=0&block=true&enabled=maybe";
    bob.of_http(&post(enabled), 400, "");
    let count = bob.count;
    println!("{count} requests with bad parameters were refused and logged");
}

#[test]
#[ignore = "needs root"]
fn what_is_not_http_is_refused_and_logged() {
    let served = served();
    let mut bob = Refusals::new(&served, BOB);
    let target = "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=180000&block=true";
    let head = format!("POST {target} HTTP/1.1\r\n");
    let long = "x".repeat(64 << 10);
    let cases = [
        // No host, two hosts, and bodies whose length is open to doubt.
        (format!("{head}\r\n"), 400),
        (format!("{head}Host: a\r\nHost: b\r\n\r\n"), 400),
        (
            format!("{head}Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
            400,
        ),
        (format!("{head}Host: a\r\nContent-Length: -1\r\n\r\n"), 400),
        (
            format!("{head}Host: a\r\nContent-Length: 99999999\r\n\r\n"),
            413,
        ),
        (
            format!("{head}Host: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
            501,
        ),
        // Heads that are too long.
        (format!("{head}Host: a\r\nX: {long}\r\n\r\n"), 431),
        (format!("POST /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 431),
        (
            format!("{head}Host: a\r\n{}\r\n", "X: y\r\n".repeat(2000)),
            431,
        ),
        // Other protocols.
        (format!("POST {target} HTTP/1.1\nHost: a\n\n"), 400),
        (format!("POST {target} HTTP/3.0\r\nHost: a\r\n\r\n"), 400),
        (
            format!("POST http://a{target} HTTP/1.1\r\nHost: a\r\n\r\n"),
            400,
        ),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 400),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n".to_owned(), 400),
        (r#""ping""#.to_owned() + "\r\n\r\n", 400),
        (
            r#"[{"lease": {"devices": []}}]"#.to_owned() + "\r\n\r\n",
            400,
        ),
        ("\r\n\r\n\r\n\u{0}\r\n\r\n".to_owned(), 400),
    ];
    for (bytes, status) in &cases {
        bob.of_http(bytes, *status, "");
    }
    println!(
        "{} requests that are not HTTP were refused and logged",
        bob.count
    );
}
