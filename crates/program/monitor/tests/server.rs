//! The measuring process as its clients see it, over its link: a GPU that draws a constant power, processors whose readings
//! the test sends, and a wall clock that the test sets.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use sweetspot_device::{
    Actuator, Amount, AppliedSettings, Clock, Descriptor, Device, DeviceId, DeviceKind,
    DrainedSamples, HostDevice, Knob, Moment, MonotonicClock, OpenError, PowerLimits, ReadError,
    Reading, Scope, SensorDescriptor, SensorKind, Settings, WriteError,
};
use sweetspot_monitor::access::TcpRules;
use sweetspot_monitor::meter::Meter;
use sweetspot_monitor::server::Server;
use sweetspot_monitor::state::State;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_service::monitor_link::{
    MonitorMessage, ProcessorPart, ProcessorReading, link_pair, send_message,
};

/// The power of the GPU, and of the processors.
const GPU_WATTS: f64 = 100.0;
const PROCESSOR_WATTS: f64 = 40.0;

/// A GPU that draws a constant power, as the driver's buffer shows it.
struct ConstantGpu {
    descriptor: Descriptor,
    created: Moment,
    drained: u64,
    /// Whether the wall clock was set since the last time that the buffer was read.
    is_clock_set: Arc<AtomicBool>,
}

impl ConstantGpu {
    fn new(is_clock_set: &Arc<AtomicBool>) -> Self {
        let sensor = SensorDescriptor {
            kind: SensorKind::BufferedPower,
            scope: Scope::Device,
            source: "test".to_owned(),
            update_period: None,
            window: None,
        };
        Self {
            descriptor: Descriptor {
                id: DeviceId::new("GPU-1"),
                name: "a GPU".to_owned(),
                kind: DeviceKind::Gpu,
                backend: "test".to_owned(),
                parent: None,
                memory: None,
                sensors: vec![sensor],
                knobs: Vec::new(),
            },
            created: MonotonicClock.now(),
            drained: 0,
            is_clock_set: Arc::clone(is_clock_set),
        }
    }
}

impl Device for ConstantGpu {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        Err(ReadError::Unsupported(sensor))
    }

    fn drain(&mut self) -> Result<DrainedSamples, ReadError> {
        let newest = ((MonotonicClock.now() - self.created).get() / 0.02) as u64;
        let reading = |index| Reading {
            source: SensorKind::BufferedPower,
            at: self.created + Seconds::new(0.02 * index as f64),
            amount: Amount::Power(Watts::new(GPU_WATTS)),
        };
        let readings = (self.drained + 1..=newest).map(reading).collect();
        self.drained = newest;
        Ok(DrainedSamples {
            readings,
            clock_stepped: self.is_clock_set.swap(false, Ordering::AcqRel),
        })
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        Err(ReadError::Limits("none".to_owned()))
    }
}

impl Actuator for ConstantGpu {
    fn apply(&mut self, _: &Settings) -> Result<AppliedSettings, WriteError> {
        Ok(AppliedSettings::default())
    }

    fn reset(&mut self, _: Knob) -> Result<(), WriteError> {
        Ok(())
    }
}

impl HostDevice for ConstantGpu {
    fn index(&self) -> u32 {
        0
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn reopen(&self) -> Result<Box<dyn HostDevice>, OpenError> {
        Ok(Box::new(Self::new(&self.is_clock_set)))
    }

    fn architecture(&self) -> String {
        String::new()
    }

    fn processes(&self) -> Result<Vec<u32>, String> {
        Ok(Vec::new())
    }

    fn pci_address(&self) -> Option<String> {
        None
    }

    fn power_is_averaged(&self) -> bool {
        false
    }
}

/// The server, until its link is dropped.
struct TestServer {
    link: OwnedFd,
    is_clock_set: Arc<AtomicBool>,
}

impl TestServer {
    fn start() -> Self {
        let is_clock_set = Arc::new(AtomicBool::new(false));
        let gpu =
            || -> Vec<Box<dyn HostDevice>> { vec![Box::new(ConstantGpu::new(&is_clock_set))] };
        let (link, theirs) = link_pair().unwrap();
        let state = State::new(gpu(), Meter::start(gpu()).unwrap(), false);
        let mut server = Server::new(state, TcpRules::default(), Some(theirs), Vec::new());
        std::thread::spawn(move || server.serve().unwrap());
        Self { link, is_clock_set }
    }

    /// The answer to a request of this user, with its head.
    fn answer(&self, method: &str, target: &str, may_read_processors: bool) -> String {
        let (mut client, server) = UnixStream::pair().unwrap();
        let message = MonitorMessage::Client {
            may_read_processors,
        };
        let request = format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        send_message(
            &self.link,
            &message,
            request.as_bytes(),
            Some(server.as_fd()),
        )
        .unwrap();
        drop(server);
        client
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        client.flush().unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The document that answers a request.
    fn document(&self, method: &str, target: &str, may_read_processors: bool) -> Value {
        let answer = self.answer(method, target, may_read_processors);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).unwrap()
    }

    /// Sends readings of the processors once a second, for so many seconds.
    fn send_processors(&self, seconds: u32) {
        let link = self.link.try_clone().unwrap();
        std::thread::spawn(move || {
            for _ in 0..seconds {
                let at = MonotonicClock.now();
                let energy = Joules::new((at - Moment::default()).get() * PROCESSOR_WATTS);
                let part = ProcessorPart {
                    name: "package-0".to_owned(),
                    zone: "intel-rapl:0".to_owned(),
                    energy,
                };
                let parts = vec![part];
                let message = MonitorMessage::Processors(ProcessorReading { at, parts });
                if send_message(&link, &message, &[], None).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_secs(1));
            }
        });
    }
}

fn sleep(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds));
}

#[test]
fn processor_energy_reaches_clients_that_may_read_it() {
    let server = TestServer::start();
    // Where nothing is read, nothing is said, and nobody waits.
    server.document("POST", "/counters/early/start", true);
    let early = server.document("POST", "/counters/early/stop", true);
    assert!(early["processors"].is_null(), "{early}");
    assert!(
        !early["notes"].to_string().contains("processors"),
        "{early}"
    );
    server.send_processors(8);
    sleep(1.3);
    server.document("POST", "/counters/a/start", true);
    sleep(2.0);
    let allowed = server.document("POST", "/counters/a/stop", true);
    let part = &allowed["processors"][0];
    assert_eq!(part["name"], "package-0", "{allowed}");
    let truth = PROCESSOR_WATTS * allowed["time_s"].as_f64().unwrap();
    let energy = part["energy_j"].as_f64().unwrap();
    assert!((energy / truth - 1.0).abs() < 0.05, "{energy} {truth}");
    let bound = |place: usize| part["interval95_j"][place].as_f64().unwrap();
    assert!(bound(0) <= truth && truth <= bound(1), "{allowed} {truth}");
    // Each end lies within a second, or somewhat more where the machine is busy.
    assert!(bound(1) - bound(0) < 4.0 * PROCESSOR_WATTS, "{allowed}");
    // The energy of the GPUs is as before, and that of the processors no part of it.
    let gpus = allowed["energy_j"].as_f64().unwrap() / allowed["time_s"].as_f64().unwrap();
    assert!((gpus / GPU_WATTS - 1.0).abs() < 0.05, "{allowed}");
    // The same counter over a connection that may not read it, and everything else that is served.
    let refused = server.document("GET", "/counters/a", false);
    assert!(refused["processors"].is_null(), "{refused}");
    assert_eq!(refused["energy_j"], allowed["energy_j"]);
    for path in ["/live", "/metrics", "/energy"] {
        let answer = server.answer("GET", path, true);
        assert!(!answer.contains("package-0"), "{path}: {answer}");
    }
}

#[test]
fn a_counter_over_a_step_of_the_clock_is_right_and_says_so() {
    let server = TestServer::start();
    for name in ["over", "after"] {
        if name == "after" {
            sleep(1.0);
        }
        server.document("POST", &format!("/counters/{name}/start"), false);
        sleep(1.0);
        server.is_clock_set.store(name == "over", Ordering::Release);
        sleep(1.0);
        let stopped = server.document("POST", &format!("/counters/{name}/stop"), false);
        let power = stopped["average_power_w"].as_f64().unwrap();
        assert!((power / GPU_WATTS - 1.0).abs() < 0.05, "{stopped}");
        let is_noted = stopped["notes"].to_string().contains("clock was set");
        assert_eq!(is_noted, name == "over", "{stopped}");
    }
}

#[test]
fn samples_are_sent_in_chunks_and_their_times_follow_from_the_start() {
    let server = TestServer::start();
    let started = server.document("POST", "/counters/a/start", false);
    sleep(2.0);
    server.document("POST", "/counters/a/stop", false);
    let answer = server.answer("GET", "/counters/a/samples", false);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("Transfer-Encoding: chunked"), "{head}");
    assert!(body.ends_with("\r\n0\r\n\r\n"), "{body}");
    let rows: Vec<Vec<f64>> = body
        .lines()
        .filter(|line| line.split(',').count() == 5 && !line.starts_with("time_s"))
        .map(|line| {
            line.split(',')
                .map(|field| field.parse().unwrap())
                .collect()
        })
        .collect();
    assert!(rows.len() > 60, "{body}");
    let start = started["started_unix_s"].as_f64().unwrap();
    for row in rows {
        assert!((row[1] - start - row[0]).abs() < 2e-3, "{row:?}");
        assert_eq!((row[2], row[3]), (0.0, GPU_WATTS));
    }
}
