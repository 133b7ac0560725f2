//! A stand-in server: it asks for its batch size before each batch and tells how each went.

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};

use sweetspot_link::Writer;
use sweetspot_quantity::{Bytes, Joules, Seconds};
use sweetspot_sim::{Job, JobError, Order, Phase, Variation, Work, Workload};
use sweetspot_sim_host::{Host, SharedGpu};

use super::arrivals::Arrivals;
use super::requests::Requests;
use super::{Amount, Finished, Rank, SimWorkloadRequest, Teller, nanos, out_of_memory};
use crate::SessionError;
use crate::virtual_time::{of_job, work_on};

/// How a stand-in serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Serving {
    /// How requests come.
    pub arrivals: Arrivals,
    /// Of what is random in them.
    pub seed: u64,
}

/// Batches that are granted together last about so long, as a program has some queued on its GPU.
const AHEAD: Seconds = Seconds::new(0.04);

/// Serves until the amount is done, or no more requests come.
pub fn serve(
    request: &SimWorkloadRequest,
    serving: &Serving,
    (host, gpu): (&Host, &SharedGpu),
    out: &mut impl Write,
) -> Result<Finished, SessionError> {
    let workload = super::workload_of(host, gpu, request)?;
    let work = work_on(&workload, gpu.name(), gpu.profile())?;
    let requests = Requests::of(&serving.arrivals, serving.seed)
        .map_err(|problem| SessionError::Definition(problem.to_string()))?;
    // One item must fit; what a batch takes comes with it.
    let first = SimWorkloadRequest {
        batch: Some(1),
        amount: Amount::Items(1),
        ..request.clone()
    };
    let rank = Rank::join(gpu, &workload, &first)?;
    let mut teller = Teller {
        out,
        begun: Instant::now(),
        done: (Instant::now(), 0),
        last: (Instant::now(), 0),
        told: 0,
        link: None,
        reported: 0,
    };
    let items = match request.amount {
        Amount::Items(items) => Some(items),
        Amount::For(_) => None,
        Amount::Study => Some(work.items()),
    };
    let mut server = Server {
        link: Writer::from_env()?,
        fixed: request.batch,
        rank: &rank,
        workload: &workload,
        work: &work,
        batches: HashMap::new(),
        refused: 0,
        begun: 0,
        each: Seconds::ZERO,
        items: 0,
        iterations: 0,
        energy: Joules::ZERO,
        latencies: Vec::new(),
    };
    server.start()?;
    let until = Until {
        items,
        time: match request.amount {
            Amount::For(time) => Some(time),
            _ => None,
        },
    };
    let end = match requests {
        None => server.closed(&until, &mut teller)?,
        Some(requests) => server.open(requests, &until, &mut teller)?,
    };
    Ok(Finished {
        items: server.items,
        time: nanos(end - server.begun),
        energy: server.energy,
        p99: server.p99(),
    })
}

/// When serving is over.
struct Until {
    items: Option<u64>,
    time: Option<Seconds>,
}

struct Server<'a> {
    link: Option<Writer>,
    fixed: Option<u64>,
    rank: &'a Rank<'a>,
    workload: &'a Workload,
    work: &'a Work,
    /// The phases of batches of each size.
    batches: HashMap<u64, Vec<Phase>>,
    /// The size that was last told to be too large.
    refused: u64,
    begun: u64,
    /// The time of a batch, as last seen.
    each: Seconds,
    items: u64,
    iterations: u64,
    energy: Joules,
    latencies: Vec<f64>,
}

impl Server<'_> {
    /// What comes before the first batch.
    fn start(&mut self) -> Result<(), SessionError> {
        let startup = self.rank.job.startup();
        if !startup.is_empty() {
            self.rank.grant(startup, 1)?;
            self.rank.await_iteration(Instant::now())?;
        }
        self.begun = self.rank.show()?.0;
        Ok(())
    }

    fn is_over(&self, now: u64, until: &Until) -> bool {
        let time = until
            .time
            .is_some_and(|time| nanos(now - self.begun) >= time);
        time || until.items.is_some_and(|items| self.items >= items)
    }

    /// The size of the next batch: the user's, or the tool's, or the study's, as far as it fits.
    fn size(&mut self, at_most: u64) -> Result<u64, SessionError> {
        let asked = self.link.as_ref().and_then(Writer::batch_size);
        let wanted = self.fixed.or(asked.map(|size| size.get()));
        let wanted = wanted.unwrap_or(self.workload.profile.batch).max(1);
        let mut size = wanted.min(at_most.max(1));
        loop {
            match self.prepare(size) {
                Ok(()) => return Ok(size),
                Err(SessionError::Job {
                    problem: JobError::OutOfMemory { .. },
                    ..
                }) if size > 1 => {
                    if self.refused != wanted {
                        self.refused = wanted;
                        eprintln!("sim-workload: CUDA out of memory: a batch of {size}");
                        if let Some(link) = &self.link {
                            link.out_of_memory(size);
                        }
                    }
                    size = size.div_ceil(2);
                }
                Err(problem) => return Err(problem),
            }
        }
    }

    /// Makes the phases of a batch of this size, and takes the memory that it needs.
    fn prepare(&mut self, size: u64) -> Result<(), SessionError> {
        if self.batches.contains_key(&size) {
            return Ok(());
        }
        let gpu = self.rank.gpu;
        let order = Order {
            batch: Some(size),
            items: Some(size),
        };
        let profile = &self.workload.profile;
        let job = Job::new(profile, self.work, gpu.profile(), order, Variation::NONE)
            .map_err(|problem| of_job(self.workload, problem))?;
        let need: Bytes = profile.memory.fixed + profile.memory.per_item * size as f64;
        let taken = gpu.look(|live| {
            let own = live.memory_of(self.rank.place)?;
            let free = gpu.profile().memory.capacity - live.memory_used() + own;
            if need > free {
                let problem = out_of_memory(gpu, size, need, free);
                return Err(of_job(self.workload, problem));
            }
            Ok(live.take_memory(self.rank.place, need.max(own))?)
        })?;
        taken?;
        self.batches.insert(size, job.iterations().0.to_vec());
        Ok(())
    }

    /// Does so many batches of a size, and says when they were done.
    fn work(&mut self, size: u64, count: u64) -> Result<(u64, Seconds), SessionError> {
        let expected = self.each.max(Seconds::ZERO) * (count as f64 * 0.97);
        let near = Instant::now() + Duration::from_secs_f64(expected.get());
        let phases = self.batches.get(&size).map_or(&[][..], Vec::as_slice);
        let begun = self.rank.grant(phases, count)?;
        let (at, progress) = self.rank.await_iteration(near)?;
        self.each = nanos(at.saturating_sub(begun)) / count as f64;
        self.items += size * count;
        self.iterations += count;
        self.energy = progress.energy;
        Ok((at, self.each))
    }

    fn tell(&mut self, size: u64, time: Seconds, latencies: &[f64]) {
        self.latencies.extend(latencies);
        let Some(link) = &self.link else { return };
        for latency in latencies {
            link.latency(Duration::from_secs_f64(latency.max(0.0)));
        }
        link.batch(size, Duration::from_secs_f64(time.get()));
    }

    /// The next request is there whenever the last is answered.
    fn closed(
        &mut self,
        until: &Until,
        teller: &mut Teller<'_, impl Write>,
    ) -> Result<u64, SessionError> {
        let mut now = self.begun;
        let mut last = 0;
        while !self.is_over(now, until) {
            let left = until.items.map_or(u64::MAX, |items| items - self.items);
            let size = self.size(left)?;
            let fit = (AHEAD / self.each.max(Seconds::new(1e-6))).get() as u64;
            let count = if size == last {
                fit.clamp(1, (left / size).max(1))
            } else {
                1
            };
            last = size;
            let (at, each) = self.work(size, count)?;
            now = at;
            for _ in 0..count {
                self.tell(size, each, &[each.get()]);
            }
            teller.tell(self.iterations, self.items)?;
        }
        Ok(now)
    }

    /// Requests come by themselves and wait.
    fn open(
        &mut self,
        mut requests: Requests,
        until: &Until,
        teller: &mut Teller<'_, impl Write>,
    ) -> Result<u64, SessionError> {
        let begun = self.begun;
        let mut now = begun;
        loop {
            now = now.max(self.rank.show()?.0);
            if self.is_over(now, until) {
                return Ok(now);
            }
            let since = nanos(now - begun);
            requests.come(since);
            if let (Some(queue), Some(link)) = (requests.queue(since), &self.link) {
                link.queue(queue.length);
                link.arrivals(queue.arrivals_per_s);
            }
            if requests.waiting() == 0 {
                let Some(next) = requests.next() else {
                    return Ok(now);
                };
                let wait = (next - since).get().clamp(50e-6, 0.02);
                std::thread::sleep(Duration::from_secs_f64(wait));
                continue;
            }
            let size = self.size(requests.waiting())?;
            let (at, each) = self.work(size, 1)?;
            now = at;
            let done = nanos(at.saturating_sub(begun));
            let taken = requests.take(size).into_iter();
            let latencies: Vec<f64> = taken.map(|came| (done - came).get().max(0.0)).collect();
            self.tell(size, each, &latencies);
            teller.tell(self.iterations, self.items)?;
        }
    }

    fn p99(&self) -> Option<Seconds> {
        let mut all = self.latencies.clone();
        all.sort_by(f64::total_cmp);
        let place = (all.len() as f64 * 0.99).ceil() as usize;
        all.get(place.checked_sub(1)?).copied().map(Seconds::new)
    }
}
