//! The stand-ins in real time: the sysfs tree, power caps, and energies that agree with the simulated truth.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sweetspot_quantity::{Bytes, Seconds};
use sweetspot_sim::{Load, Phase};
use sweetspot_sim_host::{Host, HostParts, TemporaryHost};
use sweetspot_sim_meters::{MeterList, OfferError, OfferedMeters};

/// A node with two packages, whose counters restart every 40 J.
const NODE: &str = r#"
name = "A made node"
gpus = "tesla_v100_sxm2_16gb:2"
[host]
idle = "180 W"
per_gpu = "40 W"
[supply]
capacity = "2000 W"
efficiency = ["82 %", "87 %", "90 %", "87 %"]
[all_reduce]
bandwidth = "10 GB/s"
latency = "20 us"
overlap = "30 %"
[meter]
period = "100 ms"
accuracy = "0.5 %"
[processors]
name = "A made processor"
packages = 2
idle = "30 W"
cap = "100 W"
dram = "10 W"
counter_range = "40 J"
"#;

struct TestNode {
    // The meters end before the folder is removed.
    meters: OfferedMeters,
    host: TemporaryHost,
    _profile: tempfile::TempDir,
}

impl TestNode {
    fn new(meters: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let path = profile.path().join("made.toml");
        std::fs::write(&path, NODE).unwrap();
        let parts = HostParts::new(None, path.to_str()).unwrap();
        let host = TemporaryHost::new(parts, b"", 1).unwrap();
        let list: MeterList = meters.parse().unwrap();
        Self {
            meters: OfferedMeters::start(host.folder(), &list, &[], 1).unwrap(),
            host,
            _profile: profile,
        }
    }

    fn package(&self, index: usize) -> PathBuf {
        let name = format!("class/powercap/intel-rapl:{index}");
        self.meters.sysfs().join(name)
    }

    /// Starts a job on the first GPU that does nothing but host work, in iterations of 20 ms; returns a reader of the
    /// number of iterations done.
    fn host_job(&self) -> impl FnMut() -> u64 + use<> {
        let host = Host::open(self.host.folder()).unwrap();
        let phase = Phase {
            name: 0,
            load: Load::Waiting {
                host: Seconds::new(0.02),
            },
        };
        let job = host.gpus()[0]
            .with_gpu(|live| {
                let job = live.add_job(std::process::id(), Bytes::new(1e9)).unwrap();
                live.grant_iterations(job, &[phase], 1_000_000).unwrap();
                job
            })
            .unwrap();
        move || {
            let progress = host.gpus()[0].with_gpu(|live| live.poll_job(job).unwrap());
            progress.unwrap().done
        }
    }
}

fn number(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    text.trim_end_matches('\n').parse().unwrap()
}

/// The mean power in watts that an energy counter shows over half a second, read every millisecond.
fn counter_power(path: &Path, range: u64) -> f64 {
    let started = Instant::now();
    let mut last = number(path);
    let (mut total, mut longest) = (0, 0);
    while started.elapsed() < Duration::from_millis(500) {
        std::thread::sleep(Duration::from_millis(1));
        let now = number(path);
        let step = if now < last {
            now + range - last
        } else {
            now - last
        };
        (total, longest, last) = (total + step, longest.max(step), now);
    }
    assert!(longest < 20_000_000, "a step of {longest} uJ");
    total as f64 * 1e-6 / started.elapsed().as_secs_f64()
}

#[test]
fn a_power_cap_lowers_power_and_slows_the_host() {
    let node = TestNode::new("wt310");
    let mut iterations = node.host_job();
    let (package, other) = (node.package(0), node.package(1));
    let range = number(&package.join("max_energy_range_uj"));
    assert_eq!(range, 40_000_000);
    let mut observe = || {
        std::thread::sleep(Duration::from_millis(100));
        let (before, started) = (iterations(), Instant::now());
        let power = counter_power(&package.join("energy_uj"), range);
        let done = iterations() - before;
        (power, done as f64 / started.elapsed().as_secs_f64())
    };
    let (power, speed) = observe();
    assert!((power - 70.0).abs() < 3.0, "{power}");
    assert!((speed - 50.0).abs() < 4.0, "{speed}");
    // 30 W idle and 40 W of work: a cap of 35 W leaves an eighth of the work's power, and half of the speed.
    let limit = package.join("constraint_0_power_limit_uw");
    std::fs::write(&limit, "35000000\n").unwrap();
    let (power, speed) = observe();
    assert!((power - 35.0).abs() < 2.0, "{power}");
    assert!((speed - 25.0).abs() < 3.0, "{speed}");
    let idle = counter_power(&other.join("energy_uj"), range);
    assert!((idle - 30.0).abs() < 2.0, "{idle}");
    // What the kernel would have refused is replaced, and has no effect.
    std::fs::write(&limit, "much\n").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(number(&limit), 35_000_000);
    std::fs::write(package.join("enabled"), "0\n").unwrap();
    let (power, _) = observe();
    assert!((power - 70.0).abs() < 3.0, "{power}");
}

#[test]
fn the_truth_is_the_sum_of_its_parts() {
    let node = TestNode::new("shelly,tasmota");
    let _job = node.host_job();
    std::thread::sleep(Duration::from_millis(1500));
    let truth = std::fs::read_to_string(node.host.folder().join("truth.csv")).unwrap();
    let rows: Vec<Vec<f64>> = truth
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').map(|cell| cell.parse().ok()).collect())
        .filter(|row: &Vec<f64>| row.len() == 5)
        .collect();
    let (first, last) = (&rows[3], &rows[rows.len() - 1]);
    let time = (last[0] - first[0]) * 1e-9;
    let power = |column: usize| (last[column] - first[column]) / time;
    let (wall, gpus, packages, memory) = (power(1), power(2), power(3), power(4));
    assert!((packages - 100.0).abs() < 2.0, "{packages}");
    assert!((memory - 20.0).abs() < 0.5, "{memory}");
    // The efficiency between 82 % at 200 W and 87 % at 400 W.
    let inside = 180.0 + 40.0 + gpus;
    let efficiency = 0.82 + 0.05 * (inside - 200.0) / 200.0;
    assert!((wall - inside / efficiency).abs() < 3.0, "{wall} {inside}");
    // The sensor of the board shows the mean of a second.
    let average = node
        .meters
        .sysfs()
        .join("class/hwmon/hwmon0/power1_average");
    let shown = number(&average) as f64 * 1e-6;
    assert!((shown / wall - 1.0).abs() < 0.2, "{shown} {wall}");
}

#[test]
fn meters_need_a_node() {
    let parts = HostParts::new(Some("v100"), None).unwrap();
    let host = TemporaryHost::new(parts, b"", 1).unwrap();
    let error = OfferedMeters::start(host.folder(), &MeterList::all(), &[], 1).unwrap_err();
    assert!(matches!(error, OfferError::NoNode), "{error}");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let node = TestNode::new("wt310");
    let list: MeterList = format!("shelly:{port}").parse().unwrap();
    let error = OfferedMeters::start(node.host.folder(), &list, &[], 1).unwrap_err();
    let expected = format!("cannot offer the meter shelly on port {port}: ");
    assert!(error.to_string().starts_with(&expected), "{error}");
}
