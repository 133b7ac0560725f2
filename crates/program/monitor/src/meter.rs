//! Reads all GPUs without pause, and knows the energy of each at every moment that was marked.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_device::{Clock, Device, HostDevice, Moment, MonotonicClock};
use sweetspot_measure::{MethodChoice, Sampler, SamplerError};
use sweetspot_quantity::{Seconds, Watts};

use crate::samples::Samples;
use crate::timeline::{Timeline, Total, samples_after};

/// The length of a segment while nobody asks.
const IDLE_PERIOD: Duration = Duration::from_secs(16);
/// The length of a segment while somebody looks.
const WATCHED_PERIOD: Duration = Duration::from_secs(2);
/// The time for which somebody who has asked counts as looking.
const WATCHED_FOR: Duration = Duration::from_secs(6);
/// The time for which marks are gathered before they are measured together.
const GATHERING_TIME: Duration = Duration::from_millis(40);
/// The longest time until marks are measured whose totals nobody waits for.
const MAX_MARK_AGE: Duration = Duration::from_secs(3);

/// A moment whose totals are to be measured.
#[derive(Debug)]
struct Mark {
    /// The GPUs whose totals are needed.
    gpus: BTreeSet<usize>,
    /// Whether a client waits for the totals.
    is_awaited: bool,
    marked: Instant,
}

/// The state that the reading thread shares with the one that serves clients.
#[derive(Debug, Default)]
struct Shared {
    /// The moments whose totals are to be measured.
    marks: BTreeMap<Moment, Mark>,
    /// The totals of each GPU at moments that were marked, until they are fetched.
    measured: Vec<(Moment, Vec<Total>)>,
    /// The totals of each GPU at the end of the last segment.
    totals: Vec<Total>,
    samples: Vec<Samples>,
    /// When somebody last asked what happens now.
    asked: Option<Instant>,
    /// When the last segment of each GPU was measured.
    measured_at: Vec<Option<Instant>>,
    is_ended: bool,
}

impl Shared {
    /// The GPUs that are to be measured now, by their places; `None` if there is nothing to do. A measurement takes a little
    /// time for each GPU, so where some are needed the others are left alone.
    fn due(&self) -> Option<BTreeSet<usize>> {
        let is_watched = self.asked.is_some_and(|at| at.elapsed() < WATCHED_FOR);
        let period = if is_watched {
            WATCHED_PERIOD
        } else {
            IDLE_PERIOD
        };
        let is_old = |at: &Option<Instant>| at.is_none_or(|at| at.elapsed() >= period);
        let places = self.measured_at.iter().enumerate();
        let old = places.filter(|(_, at)| is_old(at)).map(|(place, _)| place);
        let mut due: BTreeSet<usize> = old.collect();
        let is_late = |mark: &Mark| mark.is_awaited || mark.marked.elapsed() >= MAX_MARK_AGE;
        if due.is_empty() && !self.marks.values().any(is_late) {
            return None;
        }
        due.extend(self.marks.values().flat_map(|mark| &mark.gpus));
        Some(due)
    }

    /// Whether a client waits for totals.
    fn is_awaited(&self) -> bool {
        self.marks.values().any(|mark| mark.is_awaited)
    }
}

/// Reads all GPUs in threads of its own.
pub struct Meter {
    sampler: Arc<Sampler>,
    shared: Arc<(Mutex<Shared>, Condvar)>,
    /// Becomes readable when marked moments were measured.
    wake: UnixStream,
}

/// Why measuring cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    /// The sampler cannot read the GPUs.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The operating system refused something.
    #[error("cannot start measuring: {0}")]
    System(#[from] io::Error),
}

impl Meter {
    /// Begins to read these GPUs.
    pub fn start(gpus: Vec<Box<dyn HostDevice>>) -> Result<Self, MeterError> {
        let count = gpus.len();
        let devices: Vec<Box<dyn Device + Send>> = gpus
            .into_iter()
            .map(|gpu| gpu as Box<dyn Device + Send>)
            .collect();
        let clock = Arc::new(MonotonicClock);
        let sampler = Arc::new(Sampler::start(devices, MethodChoice::Auto, clock)?);
        let begin = sampler.mark();
        let shared = Shared {
            totals: vec![Total::default(); count],
            samples: (0..count).map(|_| Samples::default()).collect(),
            measured_at: vec![None; count],
            ..Shared::default()
        };
        let shared = Arc::new((Mutex::new(shared), Condvar::new()));
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let thread = {
            let (sampler, shared) = (Arc::clone(&sampler), Arc::clone(&shared));
            let timelines = vec![Timeline::new(begin); count];
            move || measure_until_ended(&sampler, &shared, timelines, &waker)
        };
        std::thread::Builder::new()
            .name("meter".to_owned())
            .spawn(thread)?;
        Ok(Self {
            sampler,
            shared,
            wake,
        })
    }

    /// Asks for the totals of these GPUs at a moment that is just now. If a client waits for them, they are known about
    /// 0.2 s later, otherwise some seconds later.
    pub fn request(&self, moment: Moment, gpus: &[usize], is_awaited: bool) {
        let mut shared = self.shared();
        let mark = shared.marks.entry(moment).or_insert_with(|| Mark {
            gpus: BTreeSet::new(),
            is_awaited: false,
            marked: Instant::now(),
        });
        mark.is_awaited |= is_awaited;
        let new = gpus.iter().copied().filter(|gpu| mark.gpus.insert(*gpu));
        self.sampler.mark_sharing_reads(moment, new);
        drop(shared);
        if is_awaited {
            self.shared.1.notify_one();
        }
    }

    /// The present moment.
    pub fn now(&self) -> Moment {
        MonotonicClock.now()
    }

    /// Says that somebody looks: segments are short for some seconds.
    pub fn watch(&self) {
        let mut shared = self.shared();
        let was_watched = shared.asked.replace(Instant::now());
        drop(shared);
        if was_watched.is_none_or(|at| at.elapsed() >= WATCHED_FOR) {
            self.shared.1.notify_one();
        }
    }

    /// The totals at moments that were marked and have been measured since the last call.
    pub fn take_measured(&self) -> Vec<(Moment, Vec<Total>)> {
        use std::io::Read;
        let mut bytes = [0; 64];
        while (&self.wake).read(&mut bytes).is_ok_and(|length| length > 0) {}
        std::mem::take(&mut self.shared().measured)
    }

    /// The totals of each GPU at the end of the last segment, at most some seconds ago.
    pub fn totals(&self) -> Vec<Total> {
        self.shared().totals.clone()
    }

    /// Calls a function with the samples of a GPU.
    pub fn with_samples<T>(&self, gpu: usize, work: impl FnOnce(&Samples) -> T) -> Option<T> {
        self.shared().samples.get(gpu).map(work)
    }

    /// The newest power reading of each GPU.
    pub fn power(&self) -> Vec<Option<Watts>> {
        self.sampler
            .latest()
            .into_iter()
            .map(|(_, power)| power)
            .collect()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Meter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.shared().is_ended = true;
        self.shared.1.notify_one();
    }
}

/// Measures segment after segment.
fn measure_until_ended(
    sampler: &Sampler,
    shared: &(Mutex<Shared>, Condvar),
    mut timelines: Vec<Timeline>,
    waker: &UnixStream,
) {
    use std::io::Write;
    let lock = || shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let mut state = lock();
        if state.due().is_none() && !state.is_ended {
            let waited = shared.1.wait_timeout(state, WATCHED_PERIOD);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.is_ended {
            return;
        }
        if state.is_awaited() {
            drop(state);
            std::thread::sleep(GATHERING_TIME);
            state = lock();
        }
        let Some(places) = state.due() else {
            continue;
        };
        let until = MonotonicClock.now();
        let later = state.marks.split_off(&(until + Seconds::new(1e-9)));
        let marks: Vec<(Moment, BTreeSet<usize>)> = std::mem::replace(&mut state.marks, later)
            .into_iter()
            .map(|(at, mark)| (at, mark.gpus))
            .collect();
        drop(state);
        sampler.mark_sharing_reads(until, places.iter().copied());
        let recordings = match sampler.collect_devices(places.iter().copied()) {
            Ok(recordings) => recordings,
            Err(error) => {
                tracing::error!(%error, "measuring ended");
                std::process::exit(1);
            }
        };
        // The totals of GPUs that nobody has asked for are not estimated.
        let mut totals: Vec<Vec<Total>> =
            vec![vec![Total::default(); timelines.len()]; marks.len()];
        for (place, recording) in places.iter().copied().zip(&recordings) {
            let Some(timeline) = timelines.get_mut(place) else {
                continue;
            };
            let needed = marks
                .iter()
                .enumerate()
                .filter(|(_, (_, gpus))| gpus.contains(&place));
            let (rows, moments): (Vec<usize>, Vec<Moment>) =
                needed.map(|(row, (at, _))| (row, *at)).unzip();
            let measured = timeline.advance(&recording.trace, &moments, until);
            for (row, total) in rows.into_iter().zip(measured) {
                totals[row][place] = total;
            }
        }
        let mut state = lock();
        for (place, recording) in places.iter().copied().zip(&recordings) {
            state.measured_at[place] = Some(Instant::now());
            let samples = &mut state.samples[place];
            let after = samples.newest().unwrap_or_default();
            for (at, power) in samples_after(&recording.trace, after) {
                samples.push(at, power);
            }
        }
        state.totals = timelines.iter().map(|one| *one.total()).collect();
        let moments = marks.into_iter().map(|(at, _)| at);
        state.measured.extend(moments.zip(totals));
        drop(state);
        // If the socket is full, it is readable already.
        let _ = (&*waker).write(&[0]);
    }
}
