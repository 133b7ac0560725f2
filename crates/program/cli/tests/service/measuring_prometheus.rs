//! A real Prometheus scrapes the service, and every query of the Grafana dashboard returns data.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::client::Client;
use super::measuring::measured;
use super::measuring_tcp::{body, free_address, get};
use super::served_host::{ALICE, KilledAtEnd, wait_for};

const DASHBOARD: &str = include_str!("../../../../../packaging/grafana/sweetspot.json");

/// The queries of the dashboard.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap().to_owned());
    queries.collect()
}

#[test]
#[ignore = "needs root and Prometheus"]
fn every_query_of_the_dashboard_returns_data() {
    let address = free_address();
    let served = measured("v100", &["--listen", &address]);
    let mut alice = Client::start(&served, ALICE);
    alice.lease_and_cap(&served.uuid(0), 180);
    let job = r#"{"verb":"tune","elapsed_s":5,"items_per_s":300,"energy_per_item_j":0.5,"saved_energy_j":100}"#;
    let mut report = || {
        let length = job.len();
        let head = format!(
            "POST /job HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        let answer = alice.http((head + job).as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    report();
    wait_for("the lease", || {
        get(&address, "/metrics").contains("sweetspot_job_energy_joules_total")
    });
    // promtool finds nothing to object to.
    let mut check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    check
        .stdin
        .take()
        .unwrap()
        .write_all(body(&get(&address, "/metrics")).as_bytes())
        .unwrap();
    assert!(check.wait().unwrap().success());
    let (folder, web) = (served.path("prometheus"), free_address());
    std::fs::create_dir(&folder).unwrap();
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: sweetspot\n    static_configs:\n      - targets: [\"{address}\"]\n"
    );
    std::fs::write(folder.join("config.yml"), config).unwrap();
    let prometheus = Command::new("prometheus")
        .arg(format!(
            "--config.file={}",
            folder.join("config.yml").display()
        ))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address={web}"))
        .stderr(Stdio::null())
        .spawn();
    let _prometheus = KilledAtEnd(prometheus.unwrap());
    wait_for("Prometheus", || std::net::TcpStream::connect(&web).is_ok());
    for query in queries() {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut last = String::new();
        wait_for(&query, || {
            report();
            last = get(&web, &format!("/api/v1/query?query={escaped}"));
            last.contains("\"value\":[")
        });
    }
}
