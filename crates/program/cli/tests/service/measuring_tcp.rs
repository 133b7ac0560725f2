//! What the service answers over TCP: the live page, metrics, and refusals.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use serde_json::Value;

use super::client::Client;
use super::measuring::{measured, policy};
use super::served_host::{ALICE, ServedHost, wait_for};
use crate::schemas::problems;

/// An address that nobody listens on.
pub fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Sends bytes, and returns the whole answer.
pub fn send(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(super::served_host::PATIENCE))
        .unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub fn get(address: &str, path: &str) -> String {
    send(
        address,
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
    )
}

pub fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head").1
}

#[test]
#[ignore = "needs root"]
fn the_page_and_the_metrics_show_gpus_and_leases() {
    let address = free_address();
    let served = measured("v100:2", &["--listen", &address, "--dcgm-names"]);
    let page = get(&address, "/");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("Content-Security-Policy"),
        "{page}"
    );
    assert!(
        !page.contains("http://")
            || page.matches("http://").count() == page.matches("http://www.w3.org").count()
    );
    let mut alice = Client::start(&served, ALICE);
    alice.lease_and_cap(&served.uuid(1), 180);
    wait_for("the lease", || {
        get(&address, "/metrics").contains("sweetspot_gpu_lease_info")
    });
    let metrics = get(&address, "/metrics");
    for line in [
        "# TYPE sweetspot_gpu_energy_joules_total counter",
        "# TYPE sweetspot_gpu_power_watts gauge",
        "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let cap = metrics
        .lines()
        .find(|line| line.starts_with("sweetspot_gpu_power_cap_watts{gpu=\"1\""));
    assert!(cap.unwrap().ends_with(" 180"), "{cap:?}");
    // The owner of a lease is shown, and no command line.
    assert!(!metrics.contains("python"), "{metrics}");
    let live: Value = serde_json::from_str(body(&get(&address, "/live"))).unwrap();
    assert_eq!(live["leases"][0]["user"], ALICE.uid.to_string());
    assert_eq!(live["leases"][0]["settings"], "power cap 180 W");
    assert!(
        live["leases"][0]["left_s"].as_f64().unwrap() > 86_000.0,
        "{live}"
    );
    assert!(!live.to_string().contains("python"), "{live}");
    assert_eq!(live["gpus"][1]["cap_w"], 180.0);
    assert_eq!(problems("live", &[live]), [""]);
}

#[test]
#[ignore = "needs root"]
fn tcp_answers_get_of_our_names_alone() {
    let address = free_address();
    let _served = measured("v100", &["--listen", &address]);
    let with = |method: &str, path: &str, host: &str| {
        send(
            &address,
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        )
    };
    for (method, path, host, status) in [
        ("POST", "/job", address.as_str(), "405"),
        ("POST", "/counters/a/start", &address, "405"),
        ("GET", "/counters/a", &address, "403"),
        ("GET", "/live", "evil.example", "421"),
        ("GET", "/gpu/get_power", &address, "404"),
        ("PUT", "/", &address, "405"),
    ] {
        let answer = with(method, path, host);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{method} {path} {host}: {answer}"
        );
    }
}

#[test]
#[ignore = "needs root"]
fn addresses_that_cannot_be_served_are_one_sentence() {
    let served = ServedHost::new("v100", &policy());
    let refused = |arguments: &[&str]| {
        let mut serve = served.serve_and_measure();
        let output = serve.args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let text = refused(&["--listen", &address]);
    assert!(text.contains("is in use by another process"), "{text}");
    let text = refused(&["--listen", "nonsense"]);
    assert!(text.contains("invalid address"), "{text}");
    let text = refused(&["--listen", "0.0.0.0:9440"]);
    assert!(text.contains("--token-file"), "{text}");
    let token = served.path("token");
    std::fs::write(&token, "short\n").unwrap();
    let token = token.to_str().unwrap().to_owned();
    let text = refused(&["--listen", "0.0.0.0:0", "--token-file", &token]);
    assert!(text.contains("--insecure"), "{text}");
    let text = refused(&[
        "--listen",
        "0.0.0.0:0",
        "--token-file",
        &token,
        "--insecure",
    ]);
    assert!(text.contains("has no token"), "{text}");
}

/// An address that is not loopback, in a network of the test's own.
const OWN_ADDRESS: &str = "192.0.2.1";

/// Runs a test again in a network of its own, whose only address is [`OWN_ADDRESS`]. Returns true there.
fn is_in_own_network(test: &str) -> bool {
    const INSIDE: &str = "SWEETSPOT_TEST_NETWORK";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let script = format!("ip addr add {OWN_ADDRESS}/32 dev lo && ip link set lo up && exec \"$@\"");
    let status = Command::new("unshare")
        .args(["--net", "sh", "-c", &script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--include-ignored", "--nocapture"])
        .env(INSIDE, "1")
        .status();
    assert!(status.unwrap().success());
    false
}

#[test]
#[ignore = "needs root"]
fn other_addresses_need_the_token_of_the_file() {
    const TOKEN: &str = "0123456789abcdefghij";
    let test = "service::measuring_tcp::other_addresses_need_the_token_of_the_file";
    if !is_in_own_network(test) {
        return;
    }
    let listener = TcpListener::bind((OWN_ADDRESS, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let mut served = ServedHost::new("v100", &policy());
    let file = served.path("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let mut serve = served.serve_and_measure();
    serve.args(["--listen", &address, "--insecure", "--token-file"]);
    serve.arg(&file);
    served.start_with(&mut serve);
    let with = |method: &str, path: &str, token: Option<&str>| {
        let token = token.map_or_else(String::new, |token| {
            format!("Authorization: Bearer {token}\r\n")
        });
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{token}Connection: close\r\n\r\n"
        );
        send(&address, request.as_bytes())
    };
    wait_for("the measuring process", || {
        TcpStream::connect(&address).is_ok()
            && with("GET", "/clock", Some(TOKEN)).starts_with("HTTP/1.1 200")
    });
    let wrong = [
        "0123456789abcdefghik",
        "0123456789abcdefghi",
        "0123456789abcdefghijk",
    ];
    for path in ["/", "/live", "/metrics", "/energy", "/clock"] {
        assert!(
            with("GET", path, Some(TOKEN)).starts_with("HTTP/1.1 200"),
            "{path}"
        );
        for token in wrong.map(Some).into_iter().chain([None]) {
            let answer = with("GET", path, token);
            assert!(
                answer.starts_with("HTTP/1.1 401 "),
                "{path} {token:?}: {answer}"
            );
            assert!(
                !answer.contains(TOKEN) && !answer.contains("GPU"),
                "{answer}"
            );
        }
    }
    // The token lets nobody set or count anything.
    assert!(with("POST", "/counters/a/start", Some(TOKEN)).starts_with("HTTP/1.1 405"));
    assert!(with("GET", "/counters/a", Some(TOKEN)).starts_with("HTTP/1.1 403"));
}
