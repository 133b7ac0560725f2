//! The measuring service of one simulated host as a meter of another.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::Value;
use sweetspot_sim_host::Host;

use super::measuring::measured;
use super::measuring_tcp::{body, free_address, get};
use super::served_host::{ALICE, ServedHost};
use crate::host::TestHost;

/// What the clock of the other machine shows more, in seconds.
const OFFSET: f64 = 54_321.5;

/// Answers as the service does, with the clock of another machine; returns the address.
fn on_another_machine(service: &str) -> String {
    let (service, listener) = (
        service.to_owned(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..length]);
            let path = request.split(' ').nth(1).unwrap_or("/");
            let Ok(answer) = std::panic::catch_unwind(|| get(&service, path)) else {
                continue;
            };
            let mut document: Value = serde_json::from_str(body(&answer)).unwrap();
            for key in ["received_s", "at_s", "answered_s"] {
                document[key] = (document[key].as_f64().unwrap() + OFFSET).into();
            }
            let text = document.to_string();
            let length = text.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
            );
        }
    });
    address
}

/// The command that measures with this meter for some seconds on a host of its own.
fn measure(host: &TestHost, meter: &str, seconds: &str) -> Command {
    let mut measure = host.sweetspot();
    measure.args(["measure", "--meter", meter, "--export-json", "-"]);
    measure.args(["--", "sleep", seconds]);
    measure
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// The energy that a GPU of the other host has drawn, in joules.
fn drawn(served: &ServedHost, gpu: usize) -> f64 {
    let host = Host::open(served.host.folder()).unwrap();
    host.gpus()[gpu].with_gpu(|gpu| gpu.energy().get()).unwrap()
}

#[test]
#[ignore = "needs root"]
fn a_service_on_another_machine_is_a_meter() {
    let address = free_address();
    let served = measured("v100:2", &["--listen", &address]);
    let _workload = served.use_gpu(ALICE);
    let other = on_another_machine(&address);
    let host = TestHost::new("v100");
    for (gpu, meter) in [
        (0, format!("sweetspot://{other}/0")),
        (1, format!("sweetspot://{other}/{}", served.uuid(1))),
    ] {
        let (before, begun) = (drawn(&served, gpu), std::time::Instant::now());
        let output = measure(&host, &meter, "6").output().unwrap();
        let truth = (drawn(&served, gpu) - before) / begun.elapsed().as_secs_f64();
        assert!(output.status.success(), "{output:?}");
        let document = document(&output);
        let found = &document["node"]["meters"][0];
        let time = document["time_s"].as_f64().unwrap();
        let energy = found["energy_j"].as_f64();
        let power = energy.unwrap_or_else(|| panic!("{document}")) / time;
        assert!(
            (power / truth - 1.0).abs() < 0.03,
            "{power} {truth}: {found}"
        );
        let interval = &found["interval95_j"];
        let width = interval[1].as_f64().unwrap() - interval[0].as_f64().unwrap();
        assert!(width / time < 0.1 * power, "{found}");
    }
}

#[test]
#[ignore = "needs root"]
fn a_service_that_stops_leaves_a_gap_that_is_named() {
    let address = free_address();
    let mut served = measured("v100", &["--listen", &address]);
    let host = TestHost::new("v100");
    let meter = format!("sweetspot://{address}");
    let running = measure(&host, &meter, "7")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(4));
    served.signal_service(Signal::KILL);
    served.wait_for_service();
    let output = running.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    let document = document(&output).to_string();
    assert!(
        format!("{shown}{document}").contains("refuses the connection")
            || format!("{shown}{document}").contains("cannot be read"),
        "{shown} {document}"
    );
    // Without the service there is nothing to measure with, which is said before the command starts.
    let output = measure(&host, &meter, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("refuses the connection"), "{text}");
}

#[test]
#[ignore = "needs root"]
fn wrong_devices_and_pages_are_one_sentence() {
    let address = free_address();
    let _served = measured("v100", &["--listen", &address]);
    let host = TestHost::new("v100");
    for (meter, said) in [
        (format!("sweetspot://{address}/7"), "it has no GPU 7"),
        (
            "sweetspot://localhost.invalid:9440".to_owned(),
            "address is unknown",
        ),
        ("sweetspot:node7".to_owned(), "must begin with http://"),
    ] {
        let output = measure(&host, &meter, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && text.contains(said),
            "{meter}: {text}"
        );
    }
}
