//! What reading a metrics page five times a second costs: the processor time of the thread that fetches, parses and compares
//! pages, against the time that passed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use sweetspot_http::{Url, get};
use sweetspot_metrics::{MetricsTracker, ServerMetrics};

/// A page of vLLM with one model.
const PAGE: &str = include_str!("../../../../crates/foundation/metrics/pages/vllm_v1.txt");
const INTERVAL: Duration = Duration::from_millis(200);
const PAGES: u32 = 100;
const MAX_BYTES: usize = 8 << 20;

/// Measures with a usual page and with a page of many models, and prints.
pub fn print() {
    println!("page             size     models  processor time a page    of a core at 5 Hz");
    measure("one model", PAGE);
    let many: String = (0..400)
        .map(|number| PAGE.replace("model_name=\"", &format!("model_name=\"{number}-")))
        .collect();
    measure("many models", &many);
}

/// Reads the page for some time.
fn measure(name: &str, page: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}",
        page.len()
    );
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            serve(stream, &answer);
        }
    });
    let url: Url = format!("http://{address}/metrics").parse().expect("a URL");
    let mut tracker = MetricsTracker::default();
    let mut models = 0;
    let begun = Instant::now();
    let before = own_processor_time();
    for number in 1..=PAGES {
        let bytes = get(&url, Duration::from_secs(2), MAX_BYTES).expect("a page");
        let text = String::from_utf8_lossy(&bytes);
        let metrics = ServerMetrics::read(&text, None)
            .expect("a page")
            .expect("metrics");
        models = metrics.models.len();
        tracker.take(metrics);
        let next = begun + INTERVAL * number;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let (spent, passed) = (own_processor_time() - before, begun.elapsed());
    println!(
        "{name:<12} {:>8} KiB {models:>8} {:>17.3} ms {:>18.3} %   ({:.1} s)",
        page.len() / 1024,
        1e3 * spent.as_secs_f64() / f64::from(PAGES),
        100.0 * spent.as_secs_f64() / passed.as_secs_f64(),
        passed.as_secs_f64(),
    );
}

fn serve(mut stream: TcpStream, answer: &str) {
    let mut buffer = [0; 4096];
    let _ = stream.read(&mut buffer);
    let _ = stream.write_all(answer.as_bytes());
}

/// The processor time of this thread.
fn own_processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text.split_whitespace().next().expect("a number");
    Duration::from_nanos(first.parse().expect("a number"))
}
