//! node_exporter, which shares no code with this program, reads the same tree.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Machine, MadeTree};

/// A running node_exporter.
struct Exporter(Child, u16);

impl Exporter {
    fn start(tree: &MadeTree) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = Command::new("prometheus-node-exporter")
            .arg(format!("--path.sysfs={}", tree.root().display()))
            .args(["--collector.disable-defaults", "--collector.rapl"])
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child, port)
    }

    /// The answer to a request for metrics, once it listens.
    fn metrics(&self) -> String {
        let begun = Instant::now();
        let mut stream = loop {
            match TcpStream::connect(("127.0.0.1", self.1)) {
                Ok(stream) => break stream,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(10), "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let request = "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs prometheus-node-exporter: run scripts/setup"]
fn node_exporter_agrees_to_the_digit() {
    let mut machine = Machine::new();
    machine.tree = MadeTree::empty();
    let tree = &machine.tree;
    let zones = [
        ("intel-rapl:0", "package-0", 123_456_789_012),
        ("intel-rapl:0:0", "core", 98_765_432_109),
        ("intel-rapl:0:1", "dram", 262_143_328_849),
        ("intel-rapl:1", "package-1", 7),
        ("intel-rapl:1:0", "dram", 1_000_001),
        ("intel-rapl:2", "psys", 250_000_000_003),
    ];
    for (zone, name, energy) in zones {
        tree.zone(zone, name, energy);
    }
    let exporter = Exporter::start(tree);
    let metrics = exporter.metrics();
    let listed = machine.output(&["devices", "--export-json", "-"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let mut compared = 0;
    for part in listed["host"].as_array().unwrap() {
        let path = tree.path(&format!("powercap/{}", part["zone"].as_str().unwrap()));
        let path = format!("path=\"{}\"", path.display());
        let line = metrics
            .lines()
            .find(|line| line.starts_with("node_rapl_") && line.contains(&path));
        let theirs = line.and_then(|line| line.rsplit(' ').next());
        let theirs: f64 = theirs
            .unwrap_or_else(|| panic!("{path} in {metrics}"))
            .parse()
            .unwrap();
        let ours = part["sensors"][0]["energy_j"].as_f64().unwrap();
        assert_eq!(
            ours.to_bits(),
            theirs.to_bits(),
            "{path}: {ours} and {theirs}"
        );
        compared += 1;
    }
    assert_eq!(compared, zones.len());
}
