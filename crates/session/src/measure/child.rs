//! One run of the command, with everything that is heard of it meanwhile.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use signal_hook::iterator::Signals;
use sweetspot_device::{Clock, Moment};
use sweetspot_guard::{End, Ended};
use sweetspot_link::{Event, Mark, Reader};
use sweetspot_measure::Sampler;
use sweetspot_measure::math::Span;
use sweetspot_quantity::Watts;

use super::process::{Launch, Outlets, Output, Process, Starter, exit_code};
use super::progress::Said;
use super::{MeasureRequest, ProgressPattern, Watch, Window};
use crate::SessionError;
use crate::lease::{GRACE, noted, pass_signal};

/// What a run needs around it.
pub struct Surroundings<'a> {
    pub request: &'a MeasureRequest,
    pub sampler: &'a Sampler,
    pub clock: &'a dyn Clock,
    pub attention: Attention,
    pub watch: &'a mut dyn Watch,
}

/// How signals to this program are heard of.
pub enum Attention {
    /// They are caught here.
    Caught(Signals),
    /// Somebody else catches them and leaves a note.
    Noted(Arc<AtomicUsize>),
}

impl Attention {
    /// A signal that came since the last look.
    pub fn signal(&mut self) -> Option<i32> {
        match self {
            Self::Caught(signals) => signals.pending().last(),
            Self::Noted(flag) => noted(flag),
        }
    }
}

/// A run, as it happened.
pub struct ChildRun {
    /// From just before its start to just after its end.
    pub span: Span,
    pub ended: Ended,
    /// What came over the link.
    pub events: Vec<Event>,
    /// What its output said of progress.
    pub said: Vec<(Moment, Said)>,
    /// The end of its output, where that is kept.
    pub output: String,
    /// Whether processes of it are still there.
    pub left_processes: bool,
    /// A signal that this program got meanwhile.
    pub interrupted: Option<i32>,
    /// Whether it was ended for having taken too long.
    pub timed_out: bool,
}

impl ChildRun {
    /// As shells tell it.
    pub fn exit_code(&self) -> i32 {
        exit_code(self.ended)
    }
}

/// How often the link is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long the last output of a command is waited for, where a process it left may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How long a signal to a process group may take from one process of it to the next.
const SIGNAL_LAG: Duration = Duration::from_millis(50);

/// Lets time pass, unless a signal comes.
pub fn rest(until: Instant, mut signal: impl FnMut() -> Option<i32>) -> Result<(), SessionError> {
    loop {
        if let Some(signal) = signal() {
            return Err(SessionError::Interrupted(signal));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(LOOK));
    }
}

impl Surroundings<'_> {
    /// Lets time pass, unless a signal comes.
    pub fn rest(&mut self, time: Duration) -> Result<(), SessionError> {
        rest(Instant::now() + time, || self.attention.signal())
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
        if let Some(signal) = interrupted.or_else(|| self.attention.signal()) {
            Err(SessionError::Interrupted(signal))
        } else if status.success() {
            Ok(())
        } else {
            Err(SessionError::Prepare(status.to_string()))
        }
    }

    /// Runs the command from start to end.
    pub fn run(
        &mut self,
        starter: &mut dyn Starter,
        link: &mut Reader,
    ) -> Result<ChildRun, SessionError> {
        let launch = self.launch(link);
        let begin = self.sampler.mark();
        let (mut process, outlets) = starter.start(launch)?;
        let tail = Tail::default();
        let heard = self.listen(outlets, &tail);
        let mut run = Under {
            begin,
            events: Vec::new(),
            said: Vec::new(),
            interrupted: None,
            timed_out: false,
            items: 0,
            reports: 0,
        };
        let end = self.until_its_end(process.as_mut(), link, &heard, &mut run)?;
        let span = Span::new(begin, end.at.max(begin));
        // Rings end with the drain that finds them empty; a process left behind keeps its own open.
        for _ in 0..3 {
            run.events.extend(link.drain());
        }
        // What was printed is passed on to its end, and is of this run even if it was read after it.
        let patience = end.left.then_some(LAST_WORDS);
        run.said.extend(last_words(&heard, patience));
        for (at, _) in &mut run.said {
            *at = span.end.min(*at);
        }
        run.interrupted = run.interrupted.or_else(|| self.attention.signal());
        if end.left {
            // The signal that ended the command may be on its way to this process.
            if run.interrupted.is_none()
                && let Err(SessionError::Interrupted(signal)) = self.rest(SIGNAL_LAG)
            {
                run.interrupted = Some(signal);
            }
            if run.interrupted.is_some() {
                let _ = process.end();
            }
        }
        self.watch.clear();
        Ok(ChildRun {
            span,
            ended: end.ended,
            events: run.events,
            said: run.said,
            output: tail.text(),
            left_processes: end.left,
            interrupted: run.interrupted,
            timed_out: run.timed_out,
        })
    }

    pub fn launch(&self, link: &Reader) -> Launch<'_> {
        let request = self.request;
        let mut environment = request.environment.clone();
        let folder = link.folder().to_string_lossy().into_owned();
        environment.push((sweetspot_link::ENV.to_owned(), folder));
        let output = if request.progress.is_some() || request.quiet || request.keep_output {
            // Python would else hold lines back, as it writes to no terminal.
            environment.push(("PYTHONUNBUFFERED".to_owned(), "1".to_owned()));
            Output::Read
        } else if request.keep_stdout {
            Output::ToStandardError
        } else {
            Output::Inherited
        };
        Launch {
            words: &request.command,
            environment,
            output,
            no_input: request.quiet || request.keep_output,
            folder: request.folder.as_deref(),
        }
    }

    /// Reads what the command prints, and prints it, unless it is to be quiet.
    pub fn listen(&self, outlets: Option<Outlets>, tail: &Tail) -> Receiver<(Moment, Said)> {
        let (sender, heard) = channel();
        let Some(outlets) = outlets else {
            return heard;
        };
        let request = self.request;
        let to = |show: Show| match request.quiet {
            true => Show::Nowhere,
            false => show,
        };
        let of_output = match request.keep_stdout {
            true => Show::StandardError,
            false => Show::StandardOutput,
        };
        let listener = |show: Show| Listener {
            show: to(show),
            pattern: request.progress.clone(),
            tail: tail.clone(),
            tell: sender.clone(),
        };
        listener(of_output).listen(outlets.output);
        listener(Show::StandardError).listen(outlets.error);
        heard
    }

    fn until_its_end(
        &mut self,
        process: &mut dyn Process,
        link: &mut Reader,
        heard: &Receiver<(Moment, Said)>,
        run: &mut Under,
    ) -> Result<End, SessionError> {
        let begun = Instant::now();
        let mut give_up: Option<Instant> = None;
        loop {
            if let Some(end) = process.wait(LOOK)? {
                self.sampler.mark();
                return Ok(end);
            }
            if give_up.is_some_and(|at| Instant::now() > at) {
                process.end()?;
                return Ok(End {
                    ended: Ended::Signal(run.interrupted.unwrap_or(0)),
                    at: self.sampler.mark(),
                    left: true,
                });
            }
            if let Some(signal) = self.attention.signal()
                && run.interrupted != Some(signal)
            {
                run.interrupted = Some(signal);
                process.pass(signal);
                // Whoever does not heed it is ended.
                if let Attention::Noted(_) = self.attention {
                    give_up.get_or_insert(Instant::now() + GRACE);
                }
            }
            let limit = self.request.timeout;
            if limit.is_some_and(|limit| begun.elapsed() > limit) && !run.timed_out {
                run.timed_out = true;
                process.end()?;
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
    timed_out: bool,
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

/// Where a command's output is shown.
#[derive(Clone, Copy)]
enum Show {
    StandardOutput,
    StandardError,
    Nowhere,
}

/// The last that a command printed.
#[derive(Clone, Default)]
pub struct Tail(Arc<Mutex<Vec<u8>>>);

/// Enough for a stack trace.
const TAIL: usize = 1 << 14;

impl Tail {
    fn add(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(bytes);
        if tail.len() > 2 * TAIL {
            let begin = tail.len() - TAIL;
            tail.drain(..begin);
        }
    }

    fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = tail.len().saturating_sub(TAIL);
        String::from_utf8_lossy(&tail[begin..]).into_owned()
    }
}

/// Prints what comes, as it comes, and tells what it says of progress.
struct Listener {
    show: Show,
    pattern: Option<ProgressPattern>,
    tail: Tail,
    tell: Sender<(Moment, Said)>,
}

impl Listener {
    /// On a thread that ends with the pipe, which a process left behind may hold open.
    fn listen(self, mut from: impl Read + Send + 'static) {
        let read = move || {
            let mut lines = Lines::default();
            let mut chunk = [0; 1 << 14];
            let mut hear = |at: Moment, line: &[u8]| {
                let Some(pattern) = &self.pattern else { return };
                if let Some(said) = pattern.find(String::from_utf8_lossy(line).trim_end()) {
                    let _ = self.tell.send((at, said));
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
                self.tail.add(came);
                // A reader that went away is not this command's affair.
                let _ = match self.show {
                    Show::StandardError => std::io::stderr().write_all(came),
                    Show::StandardOutput => {
                        let mut out = std::io::stdout().lock();
                        out.write_all(came).and_then(|()| out.flush())
                    }
                    Show::Nowhere => Ok(()),
                };
                lines.feed(now, came, &mut hear);
            }
            lines.end(&mut hear);
        };
        let _ = std::thread::Builder::new().spawn(read);
    }
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
