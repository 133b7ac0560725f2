//! Reads a command's output: shows it, stores its last lines and finds reports of progress in it.

use std::io::{ErrorKind, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_device::{Clock, Moment, MonotonicClock};

use crate::WorkloadError;
use crate::command::{CommandSpec, OutputTarget};
use crate::pattern::{OutputReport, ProgressPattern};
use crate::recognition::{RecognisedFormat, Recogniser};
use crate::source::ProgressSource;
use crate::status_line::show_output;
use crate::streams::OutputEnds;
use crate::terminal::TerminalWindow;

/// A report of progress in the output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OutputProgress {
    pub at: Moment,
    pub report: OutputReport,
    /// The number of the bar or counter that reports; 0 for a pattern.
    pub source: u32,
}

/// The maximum number of reports that wait for [`OutputReader::poll`], which is called many times a second; a command
/// that reports faster waits.
const MAX_WAITING_REPORTS: usize = 1 << 16;

/// Reads a command's output in separate threads, which end when the streams are closed.
pub(crate) struct OutputReader {
    reports: Receiver<OutputProgress>,
    tail: Tail,
    search: Search,
    windows: Vec<TerminalWindow>,
}

impl OutputReader {
    /// Starts a thread for each stream; without streams, nothing is read.
    pub fn start(command: &CommandSpec, ends: Option<OutputEnds>) -> Result<Self, WorkloadError> {
        let (sender, reports) = sync_channel(MAX_WAITING_REPORTS);
        let mut reader = Self {
            reports,
            tail: Tail::default(),
            search: Search::new(&command.progress),
            windows: Vec::new(),
        };
        let Some(ends) = ends else {
            return Ok(reader);
        };
        reader.windows = ends.windows;
        let read_stream = |target, stream| {
            let thread = OutputThread {
                target,
                search: reader.search.clone(),
                tail: reader.tail.clone(),
                reports: sender.clone(),
            };
            thread.start(stream)
        };
        let error_target = match command.output {
            OutputTarget::Hidden => OutputTarget::Hidden,
            _ => OutputTarget::StandardError,
        };
        let failed = WorkloadError::system("cannot start a thread to read the command's output");
        if let Some(output) = ends.output {
            read_stream(command.output, output).map_err(failed)?;
        }
        if let Some(error) = ends.error {
            read_stream(error_target, error).map_err(failed)?;
        }
        Ok(reader)
    }

    /// The progress reports in the output since the last call.
    pub fn poll(&mut self) -> Vec<OutputProgress> {
        self.windows.iter_mut().for_each(TerminalWindow::update);
        self.reports.try_iter().take(MAX_WAITING_REPORTS).collect()
    }

    /// The remaining progress reports, until the output ends or `at_most` has passed: a process that the
    /// command has left running may never close the streams.
    pub fn finish(&self, at_most: Option<Duration>) -> Vec<OutputProgress> {
        let mut reports: Vec<OutputProgress> = match at_most {
            None => self.reports.iter().collect(),
            Some(at_most) => {
                let until = Instant::now() + at_most;
                let next = || {
                    let left = until.saturating_duration_since(Instant::now());
                    self.reports.recv_timeout(left).ok()
                };
                std::iter::from_fn(next).collect()
            }
        };
        if let Search::Recognise(recogniser) = &self.search {
            let mut recogniser = recogniser.lock().unwrap_or_else(PoisonError::into_inner);
            reports.extend(recogniser.finish());
        }
        reports
    }

    /// The format of progress that was recognised, if any.
    pub fn recognised(&self) -> Option<RecognisedFormat> {
        let Search::Recognise(recogniser) = &self.search else {
            return None;
        };
        let recogniser = recogniser.lock().unwrap_or_else(PoisonError::into_inner);
        recogniser.recognised()
    }

    /// The end of the command's output; empty if it is not stored.
    pub fn last_lines(&self) -> String {
        self.tail.text()
    }
}

/// How progress is found in the output.
#[derive(Clone)]
enum Search {
    Off,
    Pattern(ProgressPattern),
    /// The threads share a recogniser, because a program may print one bar to each stream.
    Recognise(Arc<Mutex<Recogniser>>),
}

impl Search {
    fn new(source: &ProgressSource) -> Self {
        let recognise = |format| Self::Recognise(Arc::new(Mutex::new(Recogniser::new(format))));
        match source {
            ProgressSource::Off => Self::Off,
            ProgressSource::Pattern(pattern) => Self::Pattern(pattern.clone()),
            ProgressSource::Automatic => recognise(None),
            ProgressSource::Format(format) => recognise(Some(*format)),
        }
    }

    /// The progress reports that a line completes.
    fn find(&self, at: Moment, line: &[u8]) -> Vec<OutputProgress> {
        match self {
            Self::Off => Vec::new(),
            Self::Pattern(pattern) => {
                let report = pattern.find(String::from_utf8_lossy(line).trim_end());
                let report = report.map(|report| OutputProgress {
                    at,
                    report,
                    source: 0,
                });
                report.into_iter().collect()
            }
            Self::Recognise(recogniser) => {
                let mut recogniser = recogniser.lock().unwrap_or_else(PoisonError::into_inner);
                recogniser.take_line(at, line)
            }
        }
    }
}

/// The last part of a command's output, shared between the threads that read it.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<Vec<u8>>>);

/// The maximum number of stored bytes of a command's output: enough for a stack trace.
const TAIL_BYTES: usize = 1 << 14;

impl Tail {
    /// Appends output, and drops the oldest bytes if there are too many.
    fn add(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(bytes);
        if tail.len() > 2 * TAIL_BYTES {
            let begin = tail.len() - TAIL_BYTES;
            tail.drain(..begin);
        }
    }

    /// The stored output as text.
    fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = tail.len().saturating_sub(TAIL_BYTES);
        String::from_utf8_lossy(&tail[begin..]).into_owned()
    }
}

/// A thread that shows the output of one stream and finds progress in it.
struct OutputThread {
    target: OutputTarget,
    search: Search,
    tail: Tail,
    reports: SyncSender<OutputProgress>,
}

impl OutputThread {
    /// Starts the thread that reads the stream.
    fn start(self, stream: Box<dyn Read + Send>) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name("output".to_owned());
        thread.spawn(move || self.read_until_end(stream)).map(drop)
    }

    /// Shows, stores and searches the output until the stream is closed; a pseudo-terminal then reports an error.
    fn read_until_end(self, mut stream: Box<dyn Read + Send>) {
        let mut lines = Lines::default();
        let mut chunk = [0; 1 << 14];
        loop {
            let bytes = match stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => &chunk[..length],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let now = MonotonicClock.now();
            self.tail.add(bytes);
            show_output(self.target, bytes);
            lines.feed(now, bytes, &mut |at, line| self.send_reports(at, line));
        }
        lines.end(&mut |at, line| self.send_reports(at, line));
    }

    /// Sends the progress reports that a line completes.
    fn send_reports(&self, at: Moment, line: &[u8]) {
        for report in self.search.find(at, line) {
            let _ = self.reports.send(report);
        }
    }
}

/// The maximum number of bytes of a line that are searched; of a longer line only the end is searched.
const MAX_LINE_BYTES: usize = 1 << 16;

/// Splits output into lines, each with the time at which its last text arrived. The time of the line break
/// does not count: a progress bar prints `\r` only when its next state is due. Some bars go back by backspaces.
#[derive(Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
    at: Moment,
}

impl Lines {
    /// Adds output, and calls `take` with each line that is complete.
    pub(crate) fn feed(&mut self, now: Moment, bytes: &[u8], take: &mut impl FnMut(Moment, &[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r' | b'\x08'))
        {
            self.add(now, &rest[..end]);
            self.end(take);
            rest = &rest[end + 1..];
        }
        self.add(now, rest);
    }

    /// Appends output to the current line; of a very long line, only the end is stored.
    fn add(&mut self, now: Moment, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.at = now;
            self.line.extend_from_slice(bytes);
        }
        if self.line.len() > 2 * MAX_LINE_BYTES {
            self.line.drain(..self.line.len() - MAX_LINE_BYTES);
        }
    }

    /// Ends the current line, and calls `take` with it unless it is empty.
    pub(crate) fn end(&mut self, take: &mut impl FnMut(Moment, &[u8])) {
        if !self.line.is_empty() {
            take(self.at, &self.line);
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_moment_at_which_its_last_part_arrived() {
        let at = Moment::from_nanos;
        let mut found = Vec::new();
        let mut take = |at: Moment, line: &[u8]| {
            found.push((at.nanos(), String::from_utf8_lossy(line).into_owned()));
        };
        let mut lines = Lines::default();
        lines.feed(at(1), b"\r1/3", &mut take);
        lines.feed(at(2), b"\r2", &mut take);
        lines.feed(at(3), b"/3", &mut take);
        lines.feed(at(4), b"\r3/3\r\ndone\n", &mut take);
        lines.feed(at(5), &[b'x'; 3 * MAX_LINE_BYTES], &mut take);
        lines.end(&mut take);
        let (longest, short) = found.split_last().unwrap();
        let short: Vec<(u64, &str)> = short.iter().map(|(at, line)| (*at, &**line)).collect();
        assert_eq!(short, [(1, "1/3"), (3, "2/3"), (4, "3/3"), (4, "done")]);
        assert_eq!((longest.0, longest.1.len()), (5, MAX_LINE_BYTES));
    }
}
