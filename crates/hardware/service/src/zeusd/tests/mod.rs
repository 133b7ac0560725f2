//! Tests of the interface as a client sees it: from the bytes of a request to the bytes of its answer.

mod changes;
mod malformed;
mod properties;
mod reader;
mod readings;

use std::collections::HashMap;

use sweetspot_device::Knob;
use sweetspot_quantity::{Joules, Megahertz, Watts};

use super::{Answer, Backend, Failure, GpuSummary, Request, RequestReader, Response, answer};

/// A change that a backend was told to make.
#[derive(Clone, Debug, PartialEq)]
enum Write {
    PowerLimit(u32, Watts),
    Clock(u32, Knob, Option<Megahertz>),
    Persistence(u32, bool),
}

/// A backend with GPUs 0, 1 and 3 that records what it is told to set.
#[derive(Default)]
struct FakeBackend {
    /// The failures of calls, by GPU and the name of the method.
    failures: HashMap<(u32, &'static str), Failure>,
    /// What was set, in order. A call that fails is recorded too.
    writes: Vec<Write>,
}

impl FakeBackend {
    /// Makes calls of a method for a GPU fail.
    fn fail(mut self, gpu: u32, method: &'static str, failure: Failure) -> Self {
        self.failures.insert((gpu, method), failure);
        self
    }

    fn outcome<T>(&self, gpu: u32, method: &'static str, value: T) -> Result<T, Failure> {
        match self.failures.get(&(gpu, method)) {
            Some(failure) => Err(failure.clone()),
            None => Ok(value),
        }
    }
}

impl Backend for FakeBackend {
    fn gpus(&mut self) -> Vec<GpuSummary> {
        [0, 1, 3]
            .map(|id| GpuSummary {
                id,
                name: "NVIDIA H200".to_owned(),
                pci_address: (id != 3).then(|| format!("0000:0{id}:00.0")),
                has_energy_counter: id != 1,
            })
            .to_vec()
    }

    fn power(&mut self, gpu: u32) -> Result<Watts, Failure> {
        self.outcome(gpu, "power", Watts::new(75.0 + f64::from(gpu)))
    }

    fn energy(&mut self, gpu: u32) -> Result<Joules, Failure> {
        self.outcome(gpu, "energy", Joules::new(123.456 + f64::from(gpu)))
    }

    fn power_limit(&mut self, gpu: u32) -> Result<Watts, Failure> {
        self.outcome(gpu, "power_limit", Watts::new(700.0))
    }

    fn power_limit_range(&mut self, gpu: u32) -> Result<(Watts, Watts), Failure> {
        let range = (Watts::new(200.0), Watts::new(700.0));
        self.outcome(gpu, "power_limit_range", range)
    }

    fn persistence(&mut self, gpu: u32) -> Result<bool, Failure> {
        self.outcome(gpu, "persistence", gpu == 0)
    }

    fn set_power_limit(&mut self, gpu: u32, limit: Watts) -> Result<(), Failure> {
        self.writes.push(Write::PowerLimit(gpu, limit));
        self.outcome(gpu, "set_power_limit", ())
    }

    fn set_clock(
        &mut self,
        gpu: u32,
        clock: Knob,
        frequency: Option<Megahertz>,
    ) -> Result<(), Failure> {
        self.writes.push(Write::Clock(gpu, clock, frequency));
        let method = match clock {
            Knob::MemoryClock => "set_memory_clock",
            _ => "set_core_clock",
        };
        self.outcome(gpu, method, ())
    }

    fn set_persistence(&mut self, gpu: u32, enabled: bool) -> Result<(), Failure> {
        self.writes.push(Write::Persistence(gpu, enabled));
        self.outcome(gpu, "set_persistence", ())
    }

    fn unix_time_ms(&mut self) -> u64 {
        1_700_000_000_123
    }
}

/// The only request in these bytes.
fn parse(bytes: &str) -> Request {
    let mut reader = RequestReader::new();
    reader.push(bytes.as_bytes());
    let request = reader.next_request().unwrap().unwrap();
    assert_eq!(reader.next_request(), Ok(None));
    assert!(!reader.is_partial());
    request
}

/// The answer to a request such as `GET /time`, sent as httpx sends it.
fn ask(backend: &mut FakeBackend, request: &str) -> Answer {
    let request = parse(&format!(
        "{request} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n\
         Connection: keep-alive\r\nUser-Agent: python-httpx/0.28.1\r\nContent-Length: 0\r\n\r\n"
    ));
    answer(&request, backend)
}

/// The response to a request that is not a stream.
fn respond(backend: &mut FakeBackend, request: &str) -> Response {
    match ask(backend, request) {
        Answer::Once(response) => response,
        Answer::Stream { .. } => panic!("{request} is a stream"),
    }
}

/// The status and the body of a response from GPUs that work.
fn reply(request: &str) -> (u16, String) {
    let mut backend = FakeBackend::default();
    let response = respond(&mut backend, request);
    if !request.starts_with("POST ") {
        assert_eq!(backend.writes, [], "{request}");
    }
    (response.status, response.body)
}
