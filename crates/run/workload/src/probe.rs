//! A small request of our own now and then, whose tokens are timed one by one: histograms of servers are coarse.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use sweetspot_device::{Clock, Moment, MonotonicClock};
use sweetspot_http::{HttpError, Url, post};
use sweetspot_quantity::Seconds;

/// The time from the begin of a request to that of the next one.
const INTERVAL: Duration = Duration::from_secs(5);
/// The longest time that an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The number of tokens that a request asks for.
const TOKENS: u32 = 32;
/// The largest size of an answer: a token is an event of some hundred bytes.
const MAX_BYTES: usize = 1 << 20;
/// The path of completions in OpenAI's API.
const PATH: &str = "/v1/completions";

/// The latencies of a request of our own.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeTimes {
    /// When the request was sent.
    pub sent: Moment,
    /// When its last token came.
    pub answered: Moment,
    /// The time to the first token.
    pub first_token: Seconds,
    /// The times between its tokens.
    pub inter_token: Vec<Seconds>,
}

/// Reads the moments of tokens from a stream of server-sent events.
#[derive(Debug, Default)]
struct TokenStream {
    line: Vec<u8>,
    tokens: Vec<Moment>,
}

impl TokenStream {
    /// Takes a part of the stream, which came at this moment.
    fn take(&mut self, now: Moment, content: &[u8]) {
        for byte in content {
            match byte {
                b'\n' => {
                    if has_token(&self.line) {
                        self.tokens.push(now);
                    }
                    self.line.clear();
                }
                byte => self.line.push(*byte),
            }
        }
    }

    /// The latencies; `None` if no token came.
    fn times(&self, sent: Moment) -> Option<ProbeTimes> {
        let (first, last) = (self.tokens.first()?, self.tokens.last()?);
        let pairs = self.tokens.windows(2);
        Some(ProbeTimes {
            sent,
            answered: *last,
            first_token: *first - sent,
            inter_token: pairs.map(|pair| pair[1] - pair[0]).collect(),
        })
    }
}

/// Whether a line is an event with a token.
fn has_token(line: &[u8]) -> bool {
    let Some(data) = line.strip_prefix(b"data:") else {
        return false;
    };
    let Ok(event) = serde_json::from_slice::<serde_json::Value>(data) else {
        return false;
    };
    event["choices"][0]["text"]
        .as_str()
        .is_some_and(|text| !text.is_empty())
}

/// Sends one request and times its tokens.
fn probe(url: &Url, model: &str) -> Result<Option<ProbeTimes>, HttpError> {
    let request = serde_json::json!({
        "model": model,
        "prompt": "Count from one to one hundred:",
        "max_tokens": TOKENS,
        "temperature": 0,
        "stream": true,
    });
    let mut stream = TokenStream::default();
    let sent = MonotonicClock.now();
    post(url, &request.to_string(), TIMEOUT, MAX_BYTES, &mut |part| {
        stream.take(MonotonicClock.now(), part);
    })?;
    Ok(stream.times(sent))
}

/// Sends requests to the server of a metrics page in equal intervals, until it is told to stop. The reader gets each
/// result, or why there is none.
pub(crate) fn send_probes(
    metrics: &Url,
    model: &str,
    results: &SyncSender<Result<ProbeTimes, String>>,
    stop: &Arc<AtomicBool>,
) {
    let url = metrics.with_path(PATH);
    while !stop.load(Ordering::Relaxed) {
        let next = Instant::now() + INTERVAL;
        let result = match probe(&url, model) {
            Ok(Some(times)) => Ok(times),
            Ok(None) => Err(format!("{url} streamed no token")),
            Err(error) => Err(error.to_string()),
        };
        let _ = results.try_send(result);
        while !stop.load(Ordering::Relaxed) && Instant::now() < next {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn tokens_are_timed_however_the_stream_is_cut() {
        let mut stream = TokenStream::default();
        let event = "data: {\"choices\": [{\"text\": \" a\"}]}\n\n";
        let (begin, end) = event.split_at(12);
        stream.take(at(100), event.as_bytes());
        stream.take(at(105), begin.as_bytes());
        stream.take(at(112), end.as_bytes());
        stream.take(at(125), event.as_bytes());
        // The end of the stream and an event without text are no tokens.
        stream.take(at(130), b"data: {\"choices\": [{\"text\": \"\"}]}\n\n");
        stream.take(at(131), b"data: [DONE]\n\n");
        let times = stream.times(at(60)).unwrap();
        assert_eq!(times.first_token, Seconds::new(0.04));
        let millis = times
            .inter_token
            .iter()
            .map(|time| (1e3 * time.get()).round());
        assert_eq!(millis.collect::<Vec<_>>(), [12.0, 13.0]);
        assert_eq!(times.answered, at(125));
        assert_eq!(TokenStream::default().times(at(0)), None);
    }
}
