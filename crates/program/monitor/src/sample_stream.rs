//! The power samples of a counter as CSV, sent page by page: however many samples there are and however slowly a client
//! reads them, only a page is stored for it.

use std::fmt::Write;

use sweetspot_device::Moment;

use crate::state::State;

/// The most samples of a page.
const MAX_PAGE: usize = 1000;
/// The first line of the CSV.
const HEADER: &str = "time_s,unix_s,gpu,power_w,mean_over_s\n";

/// The samples of a counter that are still to be sent.
#[derive(Debug)]
pub struct SampleStream {
    /// The places of the GPUs whose samples are not sent completely.
    gpus: Vec<usize>,
    begin: Moment,
    begin_unix_s: f64,
    end: Moment,
    /// The moment from which the samples of the first GPU are not sent yet.
    next: Moment,
    /// Whether pages are chunks of HTTP/1.1, so that the client can tell the end from a lost connection.
    is_chunked: bool,
    is_ended: bool,
}

impl SampleStream {
    /// The samples of some GPUs between two moments, of which the first has this wall-clock time.
    pub fn new(
        gpus: &[usize],
        (begin, end): (Moment, Moment),
        begin_unix_s: f64,
        is_chunked: bool,
    ) -> Self {
        Self {
            gpus: gpus.to_vec(),
            begin,
            begin_unix_s,
            end,
            next: begin,
            is_chunked,
            is_ended: false,
        }
    }

    /// The head of the response and the first line of the CSV. The connection is closed after the stream.
    pub fn head(&self) -> Vec<u8> {
        let coding = match self.is_chunked {
            true => "Transfer-Encoding: chunked\r\n",
            false => "",
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/csv; charset=utf-8\r\n{coding}Connection: close\r\n\r\n"
        );
        (head + &self.page(HEADER)).into_bytes()
    }

    /// The next page; `None` after the last one.
    pub fn next_page(&mut self, state: &State) -> Option<Vec<u8>> {
        if self.is_ended {
            return None;
        }
        while let Some(gpu) = self.gpus.first().copied() {
            let samples = state
                .meter
                .with_samples(gpu, |samples| samples.page(self.next, self.end, MAX_PAGE));
            let samples = samples.unwrap_or_default();
            let Some(last) = samples.last() else {
                self.gpus.remove(0);
                self.next = self.begin;
                continue;
            };
            self.next = Moment::from_nanos(last.at.nanos() + 1);
            let index = state.names.get(gpu).map_or(0, |gpu| gpu.index);
            let mut rows = String::with_capacity(samples.len() * 40);
            for sample in &samples {
                let time_s = (sample.at - self.begin).get();
                let unix_s = self.begin_unix_s + time_s;
                let _ = writeln!(
                    rows,
                    "{time_s:.4},{unix_s:.3},{index},{:.2},{}",
                    sample.power_w, sample.mean_over_s
                );
            }
            return Some(self.page(&rows).into_bytes());
        }
        self.is_ended = true;
        self.is_chunked.then(|| b"0\r\n\r\n".to_vec())
    }

    /// Rows as they are sent.
    fn page(&self, rows: &str) -> String {
        match self.is_chunked {
            true => format!("{:X}\r\n{rows}\r\n", rows.len()),
            false => rows.to_owned(),
        }
    }
}
