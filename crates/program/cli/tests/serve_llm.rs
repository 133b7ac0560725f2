//! `sim-workload --serve-llm`: a simulated server of a language model, for clients, `measure` and `hold`.
//!
//! The tests run on busy machines, where a step of the server may begin late. So they only rely on what delays cannot
//! change: tokens take at least as long as on the simulated GPU.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sweetspot_link::{Event, LINK_VARIABLE, Mark, Reader, Record};
use sweetspot_metrics::{ModelMetrics, ServerMetrics};
use sweetspot_quantity::Megahertz;
use sweetspot_sim_host::Host;

use crate::common::text;
use crate::host::TestHost;

/// How long a test waits for something that takes a second on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs until the end of the test.
struct Server {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
    /// The host and port of the server.
    address: String,
}

impl Server {
    fn start(host: &TestHost, args: &[&str]) -> Self {
        Self::start_command(host.sweetspot(), args)
    }

    fn start_command(mut command: Command, args: &[&str]) -> Self {
        command.args(["sim-workload", "--serve-llm", "--port", "0"]);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = output.next().unwrap().unwrap();
        let address = first.split('/').nth(2).unwrap().to_owned();
        Self {
            child,
            output,
            address,
        }
    }

    fn metrics_url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Sends a request, and returns the whole response.
    fn exchange(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// What the server reports on its metrics page.
    fn metrics(&self) -> ModelMetrics {
        let response = self.exchange("GET", "/metrics", "");
        let page = response.split_once("\r\n\r\n").unwrap().1;
        let metrics = ServerMetrics::read(page, None).unwrap().unwrap();
        assert_eq!(metrics.server, "vLLM");
        metrics.models.into_values().next().unwrap()
    }

    /// The metrics as soon as they fulfil a condition.
    fn metrics_when(&self, is_met: impl Fn(&ModelMetrics) -> bool) -> ModelMetrics {
        let started = Instant::now();
        loop {
            let metrics = self.metrics();
            if is_met(&metrics) {
                return metrics;
            }
            assert!(started.elapsed() < PATIENCE, "{metrics:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The last line of the output, once the server has ended.
    fn last_line(mut self) -> String {
        let last = self.output.by_ref().map_while(Result::ok).last();
        assert!(self.child.wait().unwrap().success());
        last.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// The number after a word of the last line of a server.
fn number_after(line: &str, word: &str) -> f64 {
    let (_, rest) = line.split_once(word).unwrap_or_else(|| panic!("{line}"));
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
    rest[..end.unwrap_or(rest.len())].parse().unwrap()
}

#[test]
fn clients_get_streams_and_answers_and_errors() {
    let host = TestHost::new("nvidia_h200");
    let server = Server::start(&host, &["--seconds", "120"]);
    let ask = r#"{"prompt": "Once upon a time", "max_tokens": 5, "stream": true}"#;
    let stream = server.exchange("POST", "/v1/completions", ask);
    assert!(stream.starts_with("HTTP/1.1 200 OK\r\n"), "{stream}");
    assert_eq!(stream.matches("data: {").count(), 5, "{stream}");
    assert_eq!(stream.matches("\"finish_reason\":\"length\"").count(), 1);
    assert!(stream.contains("data: [DONE]\n\n"), "{stream}");
    let whole = server.exchange(
        "POST",
        "/v1/completions",
        r#"{"prompt": "a", "max_tokens": 3}"#,
    );
    assert!(whole.contains("\"completion_tokens\":3"), "{whole}");
    let models = server.exchange("GET", "/v1/models", "");
    assert!(models.contains("\"id\":\"simulated\""), "{models}");
    let bad = server.exchange("POST", "/v1/completions", "{\"prompt\":");
    assert!(bad.starts_with("HTTP/1.1 400 "), "{bad}");
    assert!(bad.contains("the body is not JSON"), "{bad}");
    for (method, path, status) in [("GET", "/v1/completions", 405), ("GET", "/", 404)] {
        let refused = server.exchange(method, path, "");
        assert!(
            refused.starts_with(&format!("HTTP/1.1 {status} ")),
            "{refused}"
        );
    }
    let metrics = server.metrics();
    assert_eq!(metrics.requests, Some(2.0));
    assert_eq!(metrics.generated_tokens, Some(8.0));
    assert_eq!(metrics.prompt_tokens, Some(5.0));
    // A client that goes away frees its place.
    let mut gone = TcpStream::connect(&server.address).unwrap();
    let long = r#"{"prompt": "a", "max_tokens": 20000, "stream": true}"#;
    let length = long.len();
    write!(
        gone,
        "POST /v1/completions HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{long}"
    )
    .unwrap();
    server.metrics_when(|metrics| metrics.running == Some(1.0));
    drop(gone);
    server.metrics_when(|metrics| metrics.running == Some(0.0));
}

#[test]
fn measure_reads_the_metrics_and_the_clock_changes_the_time_between_tokens() {
    let host = TestHost::new("nvidia_h200");
    let load = [
        "--arrivals",
        "closed",
        "--batch",
        "4",
        "--lengths",
        "100,60",
    ];
    let server = Server::start(&host, &load);
    let measure = host
        .sweetspot()
        .args([
            "measure",
            "--metrics",
            &server.metrics_url(),
            "--attach",
            &server.pid(),
        ])
        .args(["--duration", "2s", "--export-json", "-"])
        .output()
        .unwrap();
    let document = document(&measure);
    let serving = &document["serving"];
    assert_eq!(serving["server"], "vLLM", "{}", text(&measure.stderr));
    assert!(number(&serving["generated_tokens"]) > 20.0, "{serving}");
    assert!(
        number(&serving["energy_per_generated_token_j"]) > 0.0,
        "{serving}"
    );
    // At the default clock a step of four requests takes 5.5 ms, so some tokens come within 10 ms.
    let fast = server.metrics().inter_token.unwrap();
    assert!(fast.number_above(0.01).1 < fast.count(), "{fast:?}");
    let gpus = Host::open(host.folder()).unwrap();
    let clock = Megahertz::new(345.0);
    let set = gpus.gpus()[0].with_gpu(|gpu| gpu.lock_core_clock(Some((clock, clock))));
    set.unwrap().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    // Now a step takes 14 ms, however busy the machine is.
    let before = server.metrics_when(|metrics| metrics.running == Some(4.0));
    let after = server.metrics_when(|metrics| {
        metrics.generated_tokens.unwrap() > before.generated_tokens.unwrap() + 40.0
    });
    let (before, after) = (before.inter_token.unwrap(), after.inter_token.unwrap());
    let slow = after.since(&before).unwrap();
    assert_eq!(slow.number_above(0.01).0, slow.count(), "{slow:?}");
}

#[test]
fn the_link_limits_the_requests_that_run_and_hears_of_tokens() {
    let host = TestHost::new("nvidia_h200");
    let mut link = Reader::create().unwrap();
    link.control().set_batch_size(NonZeroU64::new(3));
    let mut command = host.sweetspot();
    command.env(LINK_VARIABLE, link.folder());
    let load = ["--arrivals", "closed", "--lengths", "50,400"];
    let server = Server::start_command(command, &load);
    server.metrics_when(|metrics| metrics.running == Some(3.0));
    link.control().set_batch_size(NonZeroU64::new(7));
    let metrics = server.metrics_when(|metrics| metrics.running == Some(7.0));
    let is_new = |metrics: &ModelMetrics| metrics.generated_tokens > Some(20.0);
    assert!(is_new(&server.metrics_when(is_new)), "{metrics:?}");
    let tokens: u64 = link.drain().iter().map(items).sum();
    let reported = server.metrics().generated_tokens.unwrap();
    assert!(
        (20.0..=reported).contains(&(tokens as f64)),
        "{tokens} of {reported}"
    );
}

/// The items that an event reports.
fn items(event: &Event) -> u64 {
    match event {
        Event::Record(Record {
            mark: Mark::Items(items),
            ..
        }) => *items,
        _ => 0,
    }
}

#[test]
fn requests_of_a_file_are_served_and_then_the_server_ends() {
    let host = TestHost::new("nvidia_h200");
    let write = |name: &str, content: &str| {
        let file = host.folder().join(name);
        std::fs::write(&file, content).unwrap();
        file.display().to_string()
    };
    let arrivals = format!("trace:{}", write("arrivals", "0\n0.1\n0.2\n"));
    let lengths = format!("file:{}", write("lengths", "100,20\n900,5\n50,1\n"));
    let server = Server::start(&host, &["--arrivals", &arrivals, "--lengths", &lengths]);
    let last = server.last_line();
    assert!(
        last.starts_with("done: 26 tokens of 3 requests in "),
        "{last}"
    );
    assert!(last.contains(" J, time to first token p99 "), "{last}");
}

#[test]
fn hold_lowers_the_clock_within_wide_bounds_and_restores_it() {
    let host = TestHost::new("nvidia_h200");
    let load = ["--arrivals", "poisson:4", "--lengths", "100,60"];
    let server = Server::start(&host, &load);
    let hold = host
        .sweetspot()
        .args(["hold", "--objective", "energy"])
        .args(["--slo", "ttft-p99=5s", "--slo", "itl-p95=500ms"])
        .args([
            "--metrics",
            &server.metrics_url(),
            "--attach",
            &server.pid(),
        ])
        .args(["--duration", "14s", "--export-json", "-"])
        .output()
        .unwrap();
    let document = document(&hold);
    let serving = &document["serving"];
    assert_eq!(serving["slos"].as_array().unwrap().len(), 2, "{serving}");
    let clocks = serving["clocks"].as_array().unwrap();
    let lowest = clocks.iter().map(|one| number(&one["core_clock_mhz"]));
    let lowest = lowest.fold(f64::INFINITY, f64::min);
    assert!(lowest < 1900.0, "{serving} {}", text(&hold.stderr));
    let gpus = Host::open(host.folder()).unwrap();
    let lock = gpus.gpus()[0].with_gpu(|gpu| gpu.core_lock()).unwrap();
    assert_eq!(lock, None, "{}", host.writes());
}

#[test]
fn requests_of_our_own_time_each_token() {
    let host = TestHost::new("nvidia_h200");
    let server = Server::start(&host, &["--arrivals", "poisson:2", "--lengths", "100,60"]);
    let url = server.metrics_url();
    let hold = host
        .sweetspot()
        .args(["hold", "--slo", "itl-p95=500ms", "--probe-request"])
        .args(["--metrics", &url, "--attach", &server.pid()])
        .args(["--duration", "8s", "--export-json", "-"])
        .output()
        .unwrap();
    let document = document(&hold);
    let probes = &document["serving"]["probes"];
    assert!(number(&probes["requests"]) >= 1.0, "{document}");
    // A step takes at least 5 ms. Tokens that the client reads late come together, so only their median is known.
    assert!(number(&probes["inter_token_p95_s"]) > 0.004, "{probes}");
}

#[test]
fn what_cannot_be_served_is_said_in_one_line() {
    let failed = |gpu: &str, args: &[&str]| {
        let host = TestHost::new(gpu);
        let mut command = host.sweetspot();
        command.args(["sim-workload", "--serve-llm"]).args(args);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        text(&output.stderr)
    };
    let message = failed("v100", &["--port", "0"]);
    assert!(
        message.contains("measured on an NVIDIA H200 alone"),
        "{message}"
    );
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let message = failed("nvidia_h200", &["--port", &port]);
    assert!(
        message.contains("choose another port with --port"),
        "{message}"
    );
    let message = failed("nvidia_h200", &["--lengths", "300"]);
    assert!(message.contains("invalid lengths `300`"), "{message}");
    let message = failed("nvidia_h200", &["--network", "resnet50"]);
    assert!(message.contains("--network"), "{message}");
}

/// The same three minutes with bursts at the highest clock and below latency bounds, side by side.
#[test]
fn three_minutes_in_real_time_take_less_energy_within_bounds() {
    let load = ["--arrivals", "bursts:2,8,40s", "--seconds", "180"];
    let hosts = [(); 2].map(|()| TestHost::new("nvidia_h200"));
    let [highest, held] = hosts.each_ref().map(|host| Server::start(host, &load));
    let hold = hosts[1]
        .sweetspot()
        .args(["hold", "--objective", "energy"])
        .args(["--slo", "ttft-p99=500ms", "--slo", "itl-p95=40ms"])
        .args(["--metrics", &held.metrics_url(), "--attach", &held.pid()])
        .args(["--export-json", "-"])
        .output()
        .unwrap();
    let lines = [highest, held].map(Server::last_line);
    println!("highest clock: {}\nhold --slo:    {}", lines[0], lines[1]);
    let document = document(&hold);
    let serving = &document["serving"];
    println!("{}", serving["slos"]);
    let [highest, held] = lines
        .each_ref()
        .map(|line| number_after(line, "tokens/sec: "));
    assert!((held / highest - 1.0).abs() < 0.05, "{lines:?}");
    let [highest, held] = lines.each_ref().map(|line| {
        let energy = line.split(", ").find(|part| part.ends_with(" J"));
        number_after(energy.unwrap(), "")
    });
    assert!(held < 0.9 * highest, "{lines:?}");
    // The true latencies, which the buckets of the metrics page do not tell.
    assert!(
        number_after(&lines[1], "first token p99 ") < 500.0,
        "{lines:?}"
    );
    assert!(
        number_after(&lines[1], "between tokens p95 ") < 40.0,
        "{lines:?}"
    );
}
