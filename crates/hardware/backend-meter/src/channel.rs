//! One channel of a meter: a thread that reads it for as long as it is open, and connects again when it is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sweetspot_device::{Clock, MeterGap, MeterProperties, MeterReading, MeterTrace, Moment};
use sweetspot_quantity::Seconds;

use crate::error::{MeterError, Problem};

/// What a meter is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To measure with it: it is set as the measurement needs.
    Measure,
    /// To look at it: none of its settings is changed.
    Observe,
}

/// A connection from which readings come.
pub(crate) trait Source: Send {
    /// Reads once. A meter that is followed in step with its updates waits here for the next one.
    fn read(&mut self, clock: &dyn Clock) -> Result<MeterReading, Problem>;

    /// The time between two reads; `None` if [`Source::read`] itself waits.
    fn interval(&self) -> Option<Seconds>;

    /// The properties of the meter, with what the connection has found out.
    fn properties(&self, known: MeterProperties, _is_accuracy_given: bool) -> MeterProperties {
        known
    }

    /// Why a reading without power and energy, or without power although the meter shows power, is invalid.
    fn invalid_reason(&self) -> &'static str {
        "the meter showed no value"
    }
}

/// Connects to a meter: returns the connection and the meter's model.
pub(crate) type Connect = Box<dyn Fn() -> Result<(Box<dyn Source>, String), Problem> + Send>;

/// The wait after the first failure, and the longest one; each is twice as long as the one before.
const RETRY_AFTER: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
/// The most readings that are kept: a day at 10 Hz. The oldest are dropped.
const MAX_READINGS: usize = 864_000;

/// The readings of a channel, without a thread or a clock of their own.
#[derive(Debug)]
pub(crate) struct Log {
    trace: MeterTrace,
    last: Moment,
    failing: Option<String>,
}

impl Log {
    pub fn new(name: &str, model: &str, properties: MeterProperties, now: Moment) -> Self {
        Self {
            trace: MeterTrace {
                name: name.to_owned(),
                model: model.to_owned(),
                properties,
                readings: Vec::new(),
                gaps: Vec::new(),
            },
            last: now,
            failing: None,
        }
    }

    /// Adds a reading. One that repeats an update of a meter that is followed in step is dropped.
    pub fn add(&mut self, reading: MeterReading, in_step: bool, invalid: &str) {
        let period = self.trace.properties.period;
        let newest = self.trace.readings.last().copied();
        let is_doubled = in_step
            && newest.is_some_and(|newest| {
                reading.at - newest.at < period * 0.3 && newest.power == reading.power
            });
        if is_doubled {
            return;
        }
        if reading.power.is_none() && (reading.energy.is_none() || in_step) {
            self.fail(invalid.to_owned());
        } else {
            self.close_gap(reading.at);
            // An update that was missed leaves a gap, which is known by its time alone.
            let late = newest
                .map(|newest| newest.at)
                .filter(|at| in_step && reading.at - *at > period * 1.6);
            if let Some(from) =
                late.filter(|from| self.trace.gaps.last().is_none_or(|gap| gap.to <= *from))
            {
                self.trace.gaps.push(MeterGap {
                    from,
                    to: reading.at,
                    reason: "an update was missed".to_owned(),
                });
            }
            self.last = reading.at;
        }
        if self.trace.readings.len() == MAX_READINGS {
            self.trace.readings.drain(..MAX_READINGS / 10);
        }
        self.trace.readings.push(reading);
    }

    /// Begins a gap in the readings, unless there is one already.
    pub fn fail(&mut self, reason: String) {
        if self.failing.is_none() {
            tracing::warn!(meter = self.trace.name, reason, "meter readings failed");
            self.failing = Some(reason);
        }
    }

    fn close_gap(&mut self, now: Moment) {
        if let Some(reason) = self.failing.take() {
            tracing::warn!(meter = self.trace.name, "meter readings resumed");
            self.trace.gaps.push(MeterGap {
                from: self.last,
                to: now,
                reason,
            });
        }
    }

    /// A copy of the readings; a gap that is still open ends now.
    pub fn snapshot(&self, now: Moment) -> MeterTrace {
        let mut trace = self.trace.clone();
        let open = self.failing.clone().map(|reason| MeterGap {
            from: self.last,
            to: now.max(self.last),
            reason,
        });
        trace.gaps.extend(open);
        trace
    }

    /// Removes the readings before a moment.
    fn forget_before(&mut self, moment: Moment) {
        self.trace.readings.retain(|reading| reading.at >= moment);
        self.trace.gaps.retain(|gap| gap.to >= moment);
    }
}

/// A channel that is being read. It is closed when it is dropped.
pub(crate) struct Channel {
    log: Arc<Mutex<Log>>,
    is_closed: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
}

impl Channel {
    /// Connects to a meter, reads it once, and starts the thread that reads it from then on. Returns the channel and
    /// the meter's model.
    pub fn open(
        name: &str,
        (known, is_accuracy_given): (MeterProperties, bool),
        connect: Connect,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, String), MeterError> {
        let (mut source, model) = connect().map_err(|problem| problem.of(name))?;
        let properties = source.properties(known, is_accuracy_given);
        let mut log = Log::new(name, &model, properties, clock.now());
        let first = source
            .read(clock.as_ref())
            .map_err(|problem| problem.of(name))?;
        log.add(first, source.interval().is_none(), source.invalid_reason());
        let channel = Self {
            log: Arc::new(Mutex::new(log)),
            is_closed: Arc::default(),
            clock: Arc::clone(&clock),
        };
        let (log, is_closed) = (Arc::clone(&channel.log), Arc::clone(&channel.is_closed));
        std::thread::Builder::new()
            .name("meter".to_owned())
            .spawn(move || read_until_closed(source, &connect, &log, &is_closed, clock.as_ref()))
            .map_err(|error| {
                Problem::Failed(format!("cannot start a thread to read it: {error}")).of(name)
            })?;
        Ok((channel, model))
    }

    /// Calls a function with the log.
    fn with_log<T>(&self, work: impl FnOnce(&mut Log) -> T) -> T {
        work(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The readings so far; those before `forget` are then removed.
    pub fn trace(&self, forget: Option<Moment>) -> MeterTrace {
        self.with_log(|log| {
            let trace = log.snapshot(self.clock.now());
            if let Some(moment) = forget {
                log.forget_before(moment);
            }
            trace
        })
    }

    /// The newest reading.
    pub fn newest(&self) -> Option<MeterReading> {
        self.with_log(|log| log.trace.readings.last().copied())
    }

    /// The properties of the meter, and the moment of the newest reading.
    pub fn newest_moment(&self) -> (MeterProperties, Option<Moment>) {
        self.with_log(|log| {
            let newest = log.trace.readings.last().map(|reading| reading.at);
            (log.trace.properties, newest)
        })
    }

    /// Why there are no readings at present.
    pub fn problem(&self) -> Option<String> {
        self.with_log(|log| log.failing.clone())
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // The thread may wait for an answer; it ends after that.
        self.is_closed.store(true, Ordering::Release);
    }
}

/// The loop of a reading thread.
fn read_until_closed(
    source: Box<dyn Source>,
    connect: &Connect,
    log: &Mutex<Log>,
    is_closed: &AtomicBool,
    clock: &dyn Clock,
) {
    let with_log = |work: &mut dyn FnMut(&mut Log)| {
        work(&mut log.lock().unwrap_or_else(PoisonError::into_inner))
    };
    let mut source = Some(source);
    let mut wait = RETRY_AFTER.0;
    while !is_closed.load(Ordering::Acquire) {
        let began = clock.now();
        let read = match &mut source {
            Some(source) => source.read(clock),
            None => {
                sleep_until_closed(wait, is_closed);
                wait = (wait * 2).min(RETRY_AFTER.1);
                match connect() {
                    Ok((connected, _)) => {
                        source = Some(connected);
                        continue;
                    }
                    Err(problem) => Err(problem),
                }
            }
        };
        match read {
            Ok(reading) => {
                wait = RETRY_AFTER.0;
                let interval = source.as_ref().and_then(|source| source.interval());
                let invalid = source.as_ref().map_or("", |source| source.invalid_reason());
                with_log(&mut |log| log.add(reading, interval.is_none(), invalid));
                if let Some(interval) = interval {
                    let left = interval - (clock.now() - began);
                    sleep_until_closed(Duration::from_secs_f64(left.get().max(0.0)), is_closed);
                }
            }
            Err(problem) => {
                source = None;
                with_log(&mut |log| log.fail(problem.text().to_owned()));
            }
        }
    }
}

/// Sleeps, but not for long after the channel was closed.
fn sleep_until_closed(time: Duration, is_closed: &AtomicBool) {
    const STEP: Duration = Duration::from_millis(50);
    let mut left = time;
    while !left.is_zero() && !is_closed.load(Ordering::Acquire) {
        let step = left.min(STEP);
        std::thread::sleep(step);
        left -= step;
    }
}
