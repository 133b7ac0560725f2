//! Reads a command's output: shows it, stores its last lines and finds reports of progress in it.

use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_device::{Clock, Moment, MonotonicClock};

use crate::WorkloadError;
use crate::command::{CommandSpec, OutputTarget};
use crate::pattern::{OutputReport, ProgressPattern};

/// The pipes of a command's standard output and standard error.
pub(crate) struct OutputPipes {
    pub output: Box<dyn Read + Send>,
    pub error: Box<dyn Read + Send>,
}

/// Reads a command's output in separate threads, which end when the pipes are closed.
pub(crate) struct OutputReader {
    reports: Receiver<(Moment, OutputReport)>,
    tail: Tail,
}

impl OutputReader {
    /// Starts a thread for each pipe; without pipes, nothing is read.
    pub fn start(command: &CommandSpec, pipes: Option<OutputPipes>) -> Result<Self, WorkloadError> {
        let (sender, reports) = channel();
        let reader = Self {
            reports,
            tail: Tail::default(),
        };
        let Some(pipes) = pipes else {
            return Ok(reader);
        };
        let read_pipe = |target, pipe| {
            let thread = PipeThread {
                target,
                pattern: command.progress.clone(),
                tail: reader.tail.clone(),
                reports: sender.clone(),
            };
            thread.start(pipe)
        };
        let error_target = match command.output {
            OutputTarget::Hidden => OutputTarget::Hidden,
            _ => OutputTarget::StandardError,
        };
        let failed = WorkloadError::system("cannot start a thread to read the command's output");
        read_pipe(command.output, pipes.output).map_err(failed)?;
        read_pipe(error_target, pipes.error).map_err(failed)?;
        Ok(reader)
    }

    /// The progress reports in the output since the last call.
    pub fn poll(&self) -> Vec<(Moment, OutputReport)> {
        self.reports.try_iter().collect()
    }

    /// The remaining progress reports, until the output ends or `at_most` has passed: a process that the
    /// command has left running may never close the pipes.
    pub fn finish(&self, at_most: Option<Duration>) -> Vec<(Moment, OutputReport)> {
        let Some(at_most) = at_most else {
            return self.reports.iter().collect();
        };
        let until = Instant::now() + at_most;
        let next = || {
            let left = until.saturating_duration_since(Instant::now());
            self.reports.recv_timeout(left).ok()
        };
        std::iter::from_fn(next).collect()
    }

    /// The end of the command's output; empty if it is not stored.
    pub fn last_lines(&self) -> String {
        self.tail.text()
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

/// A thread that shows the output of one pipe and finds progress in it.
struct PipeThread {
    target: OutputTarget,
    pattern: Option<ProgressPattern>,
    tail: Tail,
    reports: Sender<(Moment, OutputReport)>,
}

impl PipeThread {
    /// Starts the thread that reads the pipe.
    fn start(self, pipe: Box<dyn Read + Send>) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name("output".to_owned());
        thread.spawn(move || self.read_until_end(pipe)).map(drop)
    }

    /// Shows, stores and searches the output until the pipe is closed.
    fn read_until_end(self, mut pipe: Box<dyn Read + Send>) {
        let mut lines = Lines::default();
        let mut chunk = [0; 1 << 14];
        loop {
            let bytes = match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => &chunk[..length],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let now = MonotonicClock.now();
            self.tail.add(bytes);
            self.show(bytes);
            lines.feed(now, bytes, &mut |at, line| self.send_report(at, line));
        }
        lines.end(&mut |at, line| self.send_report(at, line));
    }

    /// Shows the output. Errors are ignored: if this program's own output is closed, the command goes on.
    fn show(&self, bytes: &[u8]) {
        let _ = match self.target {
            OutputTarget::StandardError => std::io::stderr().write_all(bytes),
            OutputTarget::StandardOutput => {
                let mut out = std::io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            OutputTarget::Hidden => Ok(()),
        };
    }

    /// Sends the progress report that a line contains, if there is one.
    fn send_report(&self, at: Moment, line: &[u8]) {
        let Some(pattern) = &self.pattern else { return };
        if let Some(report) = pattern.find(String::from_utf8_lossy(line).trim_end()) {
            let _ = self.reports.send((at, report));
        }
    }
}

/// The maximum number of bytes of a line that are searched; of a longer line only the end is searched.
const MAX_LINE_BYTES: usize = 1 << 16;

/// Splits output into lines, each with the time at which its last text arrived. The time of the line break
/// does not count: a progress bar prints `\r` only when its next state is due.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    at: Moment,
}

impl Lines {
    /// Adds output, and calls `take` with each line that is complete.
    fn feed(&mut self, now: Moment, bytes: &[u8], take: &mut impl FnMut(Moment, &[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
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
    fn end(&mut self, take: &mut impl FnMut(Moment, &[u8])) {
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
