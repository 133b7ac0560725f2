//! Named counters: who has which, when they started and stopped. Pure: moments and totals are values.

use std::collections::{BTreeMap, VecDeque};

use sweetspot_device::Moment;
use sweetspot_document::counter::{Counter as Document, CounterState};
use sweetspot_quantity::Seconds;

use self::document::document;
use crate::processors::{ProcessorMark, Processors};
use crate::timeline::Total;

mod document;

/// The most counters of one user.
pub const MAX_COUNTERS_OF_A_USER: usize = 2048;
/// The most counters of all users.
pub const MAX_COUNTERS: usize = 8192;
/// The most letters of a counter's name.
pub const MAX_NAME: usize = 64;
/// The time after which a stopped counter is forgotten.
const KEPT_AFTER_STOP: Seconds = Seconds::new(3600.0);

/// Why a request about a counter is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CounterError {
    /// The name has letters that are not allowed, or too many of them.
    #[error("invalid counter name `{0}`: use 1 to {MAX_NAME} letters, digits, `.`, `-` and `_`")]
    Name(String),
    /// The user has no such counter. Whether another user has one is not said.
    #[error(
        "you have no counter `{0}`: start it first (a restart of the service forgets all counters)"
    )]
    Unknown(String),
    /// The counter runs already.
    #[error("the counter `{0}` runs already: stop it first, or choose another name")]
    Running(String),
    /// The counter was stopped already.
    #[error("the counter `{0}` was stopped already: read it, or start it again")]
    Stopped(String),
    /// The user has too many counters.
    #[error(
        "you have {MAX_COUNTERS_OF_A_USER} counters, which is the most that a user may have: delete some"
    )]
    TooMany,
    /// All users together have too many counters.
    #[error("all users together have {MAX_COUNTERS} counters, which is the most: delete some")]
    Full,
    /// There is no such GPU.
    #[error("there is no GPU `{0}`: use indices such as 0,1 or UUIDs")]
    Gpu(String),
}

impl CounterError {
    /// The HTTP status of the refusal.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Name(_) | Self::Gpu(_) => 400,
            Self::Unknown(_) => 404,
            Self::Running(_) | Self::Stopped(_) => 409,
            Self::TooMany | Self::Full => 429,
        }
    }
}

/// A moment that was marked, and what is known about the energies at it.
#[derive(Clone, Debug)]
struct End {
    at: Moment,
    /// The totals of the counter's GPUs, once they are measured.
    totals: Option<Vec<Total>>,
    /// The energies of the processors, once they are read.
    processors: Option<ProcessorMark>,
}

impl End {
    /// A moment at which nothing is known yet.
    const fn new(at: Moment) -> Self {
        Self {
            at,
            totals: None,
            processors: None,
        }
    }
}

/// A named counter.
#[derive(Clone, Debug)]
pub struct Counter {
    /// The places of its GPUs in the list of all GPUs.
    pub gpus: Vec<usize>,
    started_unix_s: f64,
    start: End,
    stop: Option<End>,
}

impl Counter {
    /// The moments at which it was started and stopped.
    pub fn span(&self) -> (Moment, Option<Moment>) {
        (self.start.at, self.stop.as_ref().map(|stop| stop.at))
    }

    /// The wall-clock time at which it was started, in seconds since 1970.
    pub const fn started_unix_s(&self) -> f64 {
        self.started_unix_s
    }
}

/// A GPU as documents name it.
#[derive(Clone, Debug)]
pub struct GpuName {
    /// The index of the GPU.
    pub index: u32,
    /// The UUID of the GPU.
    pub uuid: String,
}

/// The counters of all users.
#[derive(Debug, Default)]
pub struct Counters {
    counters: BTreeMap<(u32, String), Counter>,
    /// The stopped counters with the moments of their stops, oldest first.
    stopped: VecDeque<(Moment, u32, String)>,
}

impl Counters {
    /// Starts a counter at a moment that was marked.
    pub fn start(
        &mut self,
        uid: u32,
        name: &str,
        gpus: Vec<usize>,
        at: Moment,
        unix_s: f64,
    ) -> Result<(), CounterError> {
        check_name(name)?;
        self.forget_before(at + -KEPT_AFTER_STOP);
        let key = (uid, name.to_owned());
        match self.counters.get(&key) {
            Some(known) if known.stop.is_none() => {
                return Err(CounterError::Running(name.to_owned()));
            }
            Some(_) => {}
            None if self.names(uid).count() >= MAX_COUNTERS_OF_A_USER => {
                return Err(CounterError::TooMany);
            }
            None if self.counters.len() >= MAX_COUNTERS => return Err(CounterError::Full),
            None => {}
        }
        let counter = Counter {
            gpus,
            started_unix_s: unix_s,
            start: End::new(at),
            stop: None,
        };
        self.counters.insert(key, counter);
        Ok(())
    }

    /// Stops a counter at a moment that was marked.
    pub fn stop(&mut self, uid: u32, name: &str, at: Moment) -> Result<(), CounterError> {
        let counter = self.find_mut(uid, name)?;
        if counter.stop.is_some() {
            return Err(CounterError::Stopped(name.to_owned()));
        }
        counter.stop = Some(End::new(at));
        self.stopped.push_back((at, uid, name.to_owned()));
        if self.stopped.len() > 2 * MAX_COUNTERS {
            // A counter that is started again and again leaves entries behind.
            let counters = &self.counters;
            self.stopped.retain(|(at, uid, name)| {
                let counter = counters.get(&(*uid, name.clone()));
                let stop = counter.and_then(|counter| counter.stop.as_ref());
                stop.is_some_and(|stop| stop.at == *at)
            });
        }
        Ok(())
    }

    /// Deletes a counter.
    pub fn delete(&mut self, uid: u32, name: &str) -> Result<(), CounterError> {
        self.find(uid, name)?;
        self.counters.remove(&(uid, name.to_owned()));
        Ok(())
    }

    /// A counter of a user. Those of other users are unknown to them.
    pub fn find(&self, uid: u32, name: &str) -> Result<&Counter, CounterError> {
        check_name(name)?;
        let found = self.counters.get(&(uid, name.to_owned()));
        found.ok_or_else(|| CounterError::Unknown(name.to_owned()))
    }

    fn find_mut(&mut self, uid: u32, name: &str) -> Result<&mut Counter, CounterError> {
        check_name(name)?;
        let found = self.counters.get_mut(&(uid, name.to_owned()));
        found.ok_or_else(|| CounterError::Unknown(name.to_owned()))
    }

    /// The names of a user's counters, with whether each runs.
    pub fn names(&self, uid: u32) -> impl Iterator<Item = (&str, bool)> {
        let own = self.counters.range((uid, String::new())..);
        let own = own.take_while(move |((owner, _), _)| *owner == uid);
        own.map(|((_, name), counter)| (name.as_str(), counter.stop.is_none()))
    }

    /// The number of all counters.
    pub fn len(&self) -> usize {
        self.counters.len()
    }

    /// Whether there is no counter.
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// Stores the totals of all GPUs at a marked moment in the counters that start or stop there.
    pub fn resolve(&mut self, at: Moment, totals: &[Total]) {
        for counter in self.counters.values_mut() {
            let own = |gpus: &[usize]| {
                gpus.iter()
                    .filter_map(|gpu| totals.get(*gpu))
                    .copied()
                    .collect()
            };
            if counter.start.at == at {
                counter.start.totals = Some(own(&counter.gpus));
            }
            if let Some(stop) = counter.stop.as_mut().filter(|stop| stop.at == at) {
                stop.totals = Some(own(&counter.gpus));
            }
        }
    }

    /// Stores the energies of the processors in the counters that started or stopped since the readings before.
    pub fn resolve_processors(&mut self, processors: &Processors) {
        for counter in self.counters.values_mut() {
            for end in [Some(&mut counter.start), counter.stop.as_mut()] {
                if let Some(end) = end.filter(|end| end.processors.is_none()) {
                    end.processors = processors.at(end.at);
                }
            }
        }
    }

    /// Removes counters that were stopped before a moment.
    fn forget_before(&mut self, moment: Moment) {
        while let Some((at, uid, name)) = self.stopped.pop_front() {
            if at >= moment {
                self.stopped.push_front((at, uid, name));
                return;
            }
            let key = (uid, name);
            let stop = self.counters.get(&key).and_then(|one| one.stop.as_ref());
            // A counter of the same name may have been started since.
            if stop.is_some_and(|stop| stop.at == at) {
                self.counters.remove(&key);
            }
        }
    }

    /// The document of a counter. For one that runs, `now` is a moment with the totals of all GPUs at it. `processors` are
    /// for users who may read them.
    pub fn document(
        &self,
        uid: u32,
        name: &str,
        gpus: &[GpuName],
        now: Option<(Moment, &[Total])>,
        processors: Option<&Processors>,
    ) -> Result<Document, CounterError> {
        let counter = self.find(uid, name)?;
        let end = match (&counter.stop, now) {
            (Some(stop), _) => stop.totals.clone().map(|totals| (stop.at, totals)),
            (None, Some((at, totals))) => {
                let own = counter.gpus.iter().filter_map(|gpu| totals.get(*gpu));
                Some((at, own.copied().collect()))
            }
            (None, None) => None,
        };
        let measured = counter.start.totals.as_ref().zip(end);
        let measured = measured.map(|(start, (at, end))| {
            let differences = end.iter().zip(start).map(|(end, start)| end.since(start));
            (at, differences.collect::<Vec<_>>())
        });
        let state = match counter.stop {
            Some(_) => CounterState::Stopped,
            None => CounterState::Running,
        };
        let mut document = document(name, counter, state, gpus, measured);
        let is_known = document.energy_j.is_some();
        if let Some(processors) = processors.filter(|known| is_known && !known.names().is_empty()) {
            let end = match (&counter.stop, now) {
                (Some(stop), _) => stop.processors.clone(),
                (None, now) => now.and_then(|(at, _)| processors.at(at)),
            };
            let start = counter.start.processors.as_ref();
            document::add_processors(&mut document, processors, start, end);
        }
        Ok(document)
    }
}

impl Counters {
    /// The document of a counter that was started just now, whose energy is zero.
    pub fn started(
        &self,
        uid: u32,
        name: &str,
        gpus: &[GpuName],
    ) -> Result<Document, CounterError> {
        let counter = self.find(uid, name)?;
        let nothing = vec![Total::default().since(&Total::default()); counter.gpus.len()];
        let measured = Some((counter.start.at, nothing));
        Ok(document(
            name,
            counter,
            CounterState::Running,
            gpus,
            measured,
        ))
    }
}

/// Checks the name of a counter.
fn check_name(name: &str) -> Result<(), CounterError> {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    match !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_allowed) {
        true => Ok(()),
        false => Err(CounterError::Name(name.chars().take(MAX_NAME).collect())),
    }
}

#[cfg(test)]
mod tests;
