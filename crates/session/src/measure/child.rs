//! One run of the command, with everything that is heard of it meanwhile.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use signal_hook::iterator::Signals;
use sweetspot_device::{Clock, Moment};
use sweetspot_guard::has_descendants;
use sweetspot_link::{Event, Mark, Reader};
use sweetspot_measure::Sampler;
use sweetspot_measure::math::Span;
use sweetspot_quantity::Watts;

use super::progress::Said;
use super::{MeasureRequest, ProgressPattern, Watch, Window};
use crate::SessionError;
use crate::run::pass_signal;

/// What a run needs around it.
pub struct Surroundings<'a> {
    pub request: &'a MeasureRequest,
    pub sampler: &'a Sampler,
    pub clock: &'a dyn Clock,
    pub signals: Signals,
    pub watch: &'a mut dyn Watch,
}

/// A run, as it happened.
pub struct ChildRun {
    /// From just before its start to just after its end.
    pub span: Span,
    pub status: ExitStatus,
    /// What came over the link.
    pub events: Vec<Event>,
    /// What its output said of progress.
    pub said: Vec<(Moment, Said)>,
    /// Whether processes of it are still there.
    pub left_processes: bool,
    /// A signal that this program got meanwhile.
    pub interrupted: Option<i32>,
}

impl ChildRun {
    /// As shells tell it.
    pub fn exit_code(&self) -> i32 {
        let by_signal = || 128 + self.status.signal().unwrap_or(0);
        self.status.code().unwrap_or_else(by_signal)
    }
}

/// How often the link is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long the last output of a command is waited for, where a process it left may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(100);

impl Surroundings<'_> {
    /// A signal that this program got since it last looked.
    fn signal(&mut self) -> Option<i32> {
        self.signals.pending().last()
    }

    /// Lets time pass, unless a signal comes.
    pub fn rest(&mut self, time: Duration) -> Result<(), SessionError> {
        let until = std::time::Instant::now() + time;
        loop {
            if let Some(signal) = self.signal() {
                return Err(SessionError::Interrupted(signal));
            }
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Runs the command that comes before each run. It reads nothing: the input is the command's.
    pub fn prepare(&mut self) -> Result<(), SessionError> {
        let Some(prepare) = &self.request.prepare else {
            return Ok(());
        };
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(prepare)
            .stdin(Stdio::null())
            .stdout(Stdio::from(std::io::stderr()));
        let system = |problem| SessionError::System {
            what: "the command of --prepare cannot be run",
            problem,
        };
        let mut child = command.spawn().map_err(system)?;
        let mut interrupted = None;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(system)? {
                break status;
            }
            if let Err(SessionError::Interrupted(signal)) = self.rest(Duration::from_millis(5)) {
                interrupted = Some(signal);
                pass_signal(Pid::from_child(&child), signal);
            }
        };
        if let Some(signal) = interrupted.or_else(|| self.signal()) {
            Err(SessionError::Interrupted(signal))
        } else if status.success() {
            Ok(())
        } else {
            Err(SessionError::Prepare(status.to_string()))
        }
    }

    /// Runs the command from start to end.
    pub fn run(&mut self, link: &mut Reader) -> Result<ChildRun, SessionError> {
        let mut command = self.command(link);
        let begin = self.sampler.mark();
        let mut child = command
            .spawn()
            .map_err(|problem| SessionError::NotStarted {
                program: command.get_program().to_string_lossy().into_owned(),
                problem,
            })?;
        let heard = self.listen(&mut child);
        let mut run = Under {
            begin,
            events: Vec::new(),
            said: Vec::new(),
            interrupted: None,
            items: 0,
            reports: 0,
        };
        let end = self.until_its_end(&child, link, &heard, &mut run);
        let status = child.wait().map_err(|problem| SessionError::System {
            what: "the command's end cannot be told",
            problem,
        })?;
        let left_processes = has_descendants();
        // Rings end with the drain that finds them empty; a process left behind keeps its own open.
        for _ in 0..3 {
            run.events.extend(link.drain());
        }
        // What was printed is passed on to its end, and is of this run even if it was read after it.
        let patience = left_processes.then_some(LAST_WORDS);
        run.said.extend(last_words(&heard, patience));
        for (at, _) in &mut run.said {
            *at = end.min(*at);
        }
        run.interrupted = run.interrupted.or_else(|| self.signal());
        self.watch.clear();
        Ok(ChildRun {
            span: Span::new(begin, end),
            status,
            events: run.events,
            said: run.said,
            left_processes,
            interrupted: run.interrupted,
        })
    }

    fn command(&self, link: &Reader) -> Command {
        let words = &self.request.command;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env(sweetspot_link::ENV, link.folder());
        if self.request.progress.is_some() {
            // Python would else hold lines back, as it writes to no terminal.
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .env("PYTHONUNBUFFERED", "1");
        } else if self.request.keep_stdout {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        command
    }

    /// Reads what the command prints, and prints it.
    fn listen(&self, child: &mut Child) -> Receiver<(Moment, Said)> {
        let (sender, heard) = channel();
        if let Some(pattern) = &self.request.progress {
            if let Some(out) = child.stdout.take() {
                let to_stderr = self.request.keep_stdout;
                pass_on(out, to_stderr, pattern.clone(), sender.clone());
            }
            if let Some(err) = child.stderr.take() {
                pass_on(err, true, pattern.clone(), sender);
            }
        }
        heard
    }

    fn until_its_end(
        &mut self,
        child: &Child,
        link: &mut Reader,
        heard: &Receiver<(Moment, Said)>,
        run: &mut Under,
    ) -> Moment {
        let pid = Pid::from_child(child);
        let ended = pidfd_open(pid, PidfdFlags::empty());
        loop {
            let is_over = match &ended {
                Ok(ended) => {
                    let mut wait = [PollFd::new(ended, PollFlags::IN)];
                    let limit = rustix::time::Timespec {
                        tv_sec: 0,
                        tv_nsec: LOOK.subsec_nanos().into(),
                    };
                    matches!(poll(&mut wait, Some(&limit)), Ok(ready) if ready > 0)
                }
                Err(Errno::SRCH) => true,
                Err(_) => {
                    std::thread::sleep(LOOK);
                    std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
                        .map_or(true, |stat| stat.contains(") Z "))
                }
            };
            if is_over {
                return self.sampler.mark();
            }
            for signal in self.signals.pending() {
                run.interrupted = Some(signal);
                pass_signal(pid, signal);
            }
            let events = link.drain();
            let before = run.reports;
            run.items += items(&events);
            run.reports += reports(&events);
            let is_edge = marks_a_phase(&self.request.window, &events);
            run.events.extend(events);
            for said in heard.try_iter() {
                run.said.push(said);
                run.reports += 1;
                match said.1 {
                    Said::Items(items) => run.items = items as u64,
                    Said::More(items) => run.items += items as u64,
                    Said::Rate(_) | Said::Iteration => {}
                }
            }
            if is_edge || self.request.window.has_edge(before, run.reports) {
                self.sampler.mark();
            }
            let latest = self.sampler.latest();
            let power: Option<Watts> = latest
                .iter()
                .map(|(_, power)| *power)
                .sum::<Option<Watts>>();
            let elapsed = self.clock.now() - run.begin;
            self.watch.tick(elapsed, power, run.items);
        }
    }
}

/// What was heard of a run that is under way.
struct Under {
    begin: Moment,
    events: Vec<Event>,
    said: Vec<(Moment, Said)>,
    interrupted: Option<i32>,
    items: u64,
    reports: u64,
}

/// What is heard until the output ends, or for so long.
fn last_words(heard: &Receiver<(Moment, Said)>, patience: Option<Duration>) -> Vec<(Moment, Said)> {
    let Some(patience) = patience else {
        return heard.iter().collect();
    };
    let until = std::time::Instant::now() + patience;
    let left = || until.saturating_duration_since(std::time::Instant::now());
    std::iter::from_fn(|| heard.recv_timeout(left()).ok()).collect()
}

/// How often progress was reported.
fn reports(events: &[Event]) -> u64 {
    let on_link = events.iter().filter(|event| match event {
        Event::Record(record) => matches!(record.mark, Mark::Items(_)),
        _ => false,
    });
    on_link.count() as u64
}

/// Whether the phase that is the window begins or ends: the counters are then read soon after.
fn marks_a_phase(window: &Window, events: &[Event]) -> bool {
    let Window::Phase(wanted) = window else {
        return false;
    };
    events.iter().any(|event| match event {
        Event::Record(record) => match &record.mark {
            Mark::Begin(name) | Mark::End(name) => **name == **wanted,
            _ => false,
        },
        _ => false,
    })
}

fn items(events: &[Event]) -> u64 {
    let items = events.iter().filter_map(|event| match event {
        Event::Record(record) => match record.mark {
            Mark::Items(items) => Some(items),
            _ => None,
        },
        _ => None,
    });
    items.sum()
}

/// Prints what comes, as it comes, and tells what it says of progress. The thread ends with the pipe, which a
/// process left behind may hold open.
fn pass_on(
    mut from: impl Read + Send + 'static,
    to_stderr: bool,
    pattern: ProgressPattern,
    tell: Sender<(Moment, Said)>,
) {
    let read = move || {
        let mut lines = Lines::default();
        let mut chunk = [0; 1 << 14];
        let mut hear = |at: Moment, line: &[u8]| {
            if let Some(said) = pattern.find(String::from_utf8_lossy(line).trim_end()) {
                let _ = tell.send((at, said));
            }
        };
        loop {
            let came = match from.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => &chunk[..length],
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let now = sweetspot_device::MonotonicClock.now();
            // A reader that went away is not this command's affair.
            let _ = if to_stderr {
                std::io::stderr().write_all(came)
            } else {
                let mut out = std::io::stdout().lock();
                out.write_all(came).and_then(|()| out.flush())
            };
            lines.feed(now, came, &mut hear);
        }
        lines.end(&mut hear);
    };
    let _ = std::thread::Builder::new().spawn(read);
}

/// Of a longer line the end is looked at.
const LONGEST_LINE: usize = 1 << 16;

/// Output cut into lines, each with the moment at which the last of it came. Progress bars end a line by
/// going back to its begin, and do so when the next one is there: that is not the moment that counts.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    at: Moment,
}

impl Lines {
    fn feed(&mut self, now: Moment, bytes: &[u8], hear: &mut impl FnMut(Moment, &[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.add(now, &rest[..end]);
            self.end(hear);
            rest = &rest[end + 1..];
        }
        self.add(now, rest);
    }

    fn add(&mut self, now: Moment, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.at = now;
            self.line.extend_from_slice(bytes);
        }
        if self.line.len() > 2 * LONGEST_LINE {
            self.line.drain(..self.line.len() - LONGEST_LINE);
        }
    }

    fn end(&mut self, hear: &mut impl FnMut(Moment, &[u8])) {
        if !self.line.is_empty() {
            hear(self.at, &self.line);
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_came_when_its_last_part_came() {
        let at = Moment::from_nanos;
        let mut heard = Vec::new();
        let mut hear = |at: Moment, line: &[u8]| {
            heard.push((at.nanos(), String::from_utf8_lossy(line).into_owned()));
        };
        let mut lines = Lines::default();
        lines.feed(at(1), b"\r1/3", &mut hear);
        lines.feed(at(2), b"\r2", &mut hear);
        lines.feed(at(3), b"/3", &mut hear);
        lines.feed(at(4), b"\r3/3\r\ndone\n", &mut hear);
        lines.feed(at(5), &[b'x'; 3 * LONGEST_LINE], &mut hear);
        lines.end(&mut hear);
        let (longest, short) = heard.split_last().unwrap();
        let short: Vec<(u64, &str)> = short.iter().map(|(at, line)| (*at, &**line)).collect();
        assert_eq!(short, [(1, "1/3"), (3, "2/3"), (4, "3/3"), (4, "done")]);
        assert_eq!((longest.0, longest.1.len()), (5, LONGEST_LINE));
    }
}
