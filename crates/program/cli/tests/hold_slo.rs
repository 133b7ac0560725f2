//! `hold --slo` with pages of made-up servers: what it refuses, what it says, and its exit codes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::text;
use crate::host::TestHost;

/// A server whose pages a test makes, and a process to attach to.
struct MadeUpServer {
    address: String,
    process: Child,
    is_gone: Arc<AtomicBool>,
}

impl MadeUpServer {
    /// Answers with the page that the closure makes of the time since the start; `None` answers only when the test is over.
    fn start(page: impl Fn(Duration) -> Option<String> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let is_gone = Arc::new(AtomicBool::new(false));
        let stop = is_gone.clone();
        let started = Instant::now();
        std::thread::spawn(move || {
            // Connections that get no answer stay open.
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                match page(started.elapsed()) {
                    Some(page) => answer(&mut stream, &page),
                    None => open.push(stream),
                }
            }
        });
        let process = Command::new("sleep").arg("300").spawn().unwrap();
        Self {
            address,
            process,
            is_gone,
        }
    }

    /// Runs `hold --slo` attached to the process.
    fn hold(&self, host: &TestHost, args: &[&str]) -> Output {
        host.sweetspot()
            .args(["hold", "--slo", "itl-p95=40ms"])
            .args(["--metrics", &format!("http://{}/metrics", self.address)])
            .args(["--attach", &self.process.id().to_string()])
            .args(args)
            .output()
            .unwrap()
    }
}

impl Drop for MadeUpServer {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn answer(stream: &mut TcpStream, page: &str) {
    let mut buffer = [0; 1024];
    let _ = stream.read(&mut buffer);
    let length = page.len();
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{page}"
    );
}

/// A page of vLLM after this time: 500 tokens a second, 5 ms each, so that every clock keeps a bound of 40 ms.
fn light_page(time: Duration) -> String {
    let tokens = (500.0 * time.as_secs_f64()).round();
    let sum = 0.005 * tokens;
    format!(
        "vllm:num_requests_running{{model_name=\"m\"}} 3\n\
         vllm:num_requests_waiting{{model_name=\"m\"}} 0\n\
         vllm:generation_tokens_total{{model_name=\"m\"}} {tokens}\n\
         vllm:inter_token_latency_seconds_bucket{{le=\"0.01\",model_name=\"m\"}} {tokens}\n\
         vllm:inter_token_latency_seconds_bucket{{le=\"+Inf\",model_name=\"m\"}} {tokens}\n\
         vllm:inter_token_latency_seconds_sum{{model_name=\"m\"}} {sum}\n\
         vllm:inter_token_latency_seconds_count{{model_name=\"m\"}} {tokens}\n"
    )
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn clocks(document: &Value) -> Vec<f64> {
    let clocks = document["serving"]["clocks"].as_array().unwrap();
    let clocks = clocks.iter().map(|one| one["core_clock_mhz"].as_f64());
    clocks.map(Option::unwrap).collect()
}

#[test]
fn flags_that_mean_nothing_with_slo_are_refused() {
    let host = TestHost::new("nvidia_h200");
    for flags in [
        ["--objective", "throughput"],
        ["--cap-on", "reading"],
        ["--settings", "same"],
        ["--alpha", "0.5"],
        ["--window", "5"],
        ["--settle", "1s"],
        ["--expiry", "1s"],
        ["--probe", "1s"],
        ["--patience", "1s"],
        ["--sensor", "instant"],
    ] {
        let output = host
            .sweetspot()
            .args(["hold", "--slo", "itl-p95=40ms", "--attach", "1"])
            .args(["--metrics", "http://127.0.0.1:9/metrics"])
            .args(flags)
            .output()
            .unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {message}");
        assert!(message.contains(flags[0]), "{message}");
    }
    let output = host
        .sweetspot()
        .args(["hold", "--below", "300W", "--attach", "1"])
        .args(["--metrics", "http://127.0.0.1:9/metrics"])
        .output()
        .unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("give --slo, such as"), "{message}");
}

#[test]
fn what_is_no_metrics_page_is_said_before_anything_is_set() {
    let host = TestHost::new("nvidia_h200");
    let server = MadeUpServer::start(|_| Some("<html><body>hello</body></html>\n".to_owned()));
    let output = server.hold(&host, &["--duration", "5s"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("not a metrics page"), "{message}");
    assert!(!host.writes().contains("clock"), "{}", host.writes());
}

#[test]
fn power_that_is_not_kept_is_told_and_is_the_exit_code() {
    let host = TestHost::new("nvidia_h200");
    let server = MadeUpServer::start(|time| Some(light_page(time)));
    // The GPU draws more without work.
    let flags = ["--below", "60W", "--duration", "14s", "--export-json", "-"];
    let output = server.hold(&host, &flags);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("even at the lowest core clock"),
        "{message}"
    );
    let document = document(&output);
    let power = &document["serving"]["power"];
    assert_eq!(power["below_w"], 60.0, "{document}");
    assert_eq!(power["kept"], false, "{document}");
    assert!(clocks(&document).len() <= 4, "{document}");
}

#[test]
fn a_server_that_stops_answering_gets_the_highest_clock() {
    let host = TestHost::new("nvidia_h200");
    let answers = Duration::from_secs(8);
    let server = MadeUpServer::start(move |time| (time < answers).then(|| light_page(time)));
    let flags = ["--below", "900W", "--duration", "12s", "--export-json", "-"];
    let output = server.hold(&host, &flags);
    let document = document(&output);
    let clocks = clocks(&document);
    let lowest = clocks.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(lowest < 1900.0, "{document} {}", text(&output.stderr));
    assert_eq!(clocks.last(), Some(&1980.0), "{document}");
    assert_eq!(document["serving"]["power"]["kept"], true, "{document}");
}
