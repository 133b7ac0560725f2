//! Behaves like vLLM with a language model of 8 billion parameters: batches requests continuously, and answers over HTTP.
//!
//! The steps of the engine run on the simulated GPU, whose settings change their time and power. A step begins when this
//! process notices the end of the one before, as on a real GPU; times are those of the simulated GPU.

mod completion;
mod http;
mod latencies;
mod shared;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sweetspot_link::Writer;
use sweetspot_quantity::{Bytes, Joules, Seconds};
use sweetspot_sim::{
    Arrivals, EngineLimits, LlmEngine, LlmLoad, LlmModel, Load, Phase, TokenLengths,
};

use super::gpu_job::{GpuJob, await_iterations};
use super::progress::ProgressPrinter;
use super::{Amount, StandInError, seconds};
use crate::SharedGpu;
use latencies::Latencies;
use shared::Shared;

/// A request to serve a simulated language model.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeLlmRequest {
    /// The port of this computer at which clients are served; 0 chooses a free one.
    pub port: u16,
    /// When requests arrive beside those of clients, if any do.
    pub arrivals: Option<Arrivals>,
    /// How many tokens those requests have.
    pub lengths: TokenLengths,
    /// The random seed of arrivals and lengths.
    pub seed: u64,
    /// The most requests that run together; as sweetspot sets it over the link if `None`.
    pub batch: Option<u64>,
    /// When the server ends; items are generated tokens. [`Amount::Study`] is when all requests of a file are answered.
    pub amount: Amount,
}

/// What a simulated language model has served.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedLlm {
    /// The number of generated tokens.
    pub tokens: u64,
    /// The number of requests that were answered.
    pub requests: u64,
    /// The time since the start.
    pub time: Seconds,
    /// The exact energy of the GPU in that time, without sensor errors.
    pub energy: Joules,
    /// The 99th percentile of the time to the first token; `None` without requests.
    pub first_p99: Option<Seconds>,
    /// The 95th percentile of the time between tokens; `None` without any.
    pub between_p95: Option<Seconds>,
}

/// The memory of the model's weights: 8.03 billion parameters of two bytes.
const WEIGHTS: Bytes = Bytes::new(16.06e9);
/// The memory of a token in the cache: key and value of 8 heads with 128 numbers of two bytes in 32 layers.
const CACHED_TOKEN: Bytes = Bytes::new(131_072.0);
/// The part of a GPU's name for which the model's times are known.
const MEASURED_GPU: &str = "H200";
/// The longest time without work after which the GPU is told that the process lives.
const LONGEST_WAIT: Seconds = Seconds::new(0.1);
/// The time between two reports of the queue over the link.
const QUEUE_PERIOD: Seconds = Seconds::new(0.05);

/// Serves until the requested amount is done.
pub fn serve(
    request: &ServeLlmRequest,
    gpu: &SharedGpu,
    out: &mut impl Write,
) -> Result<ServedLlm, StandInError> {
    let name = &gpu.profile().name;
    if !name.contains(MEASURED_GPU) {
        return Err(StandInError::UnknownLlmGpu(name.clone()));
    }
    let load = request.arrivals.as_ref();
    let load = load.map(|arrivals| LlmLoad::new(arrivals, request.lengths.clone(), request.seed));
    let load = load.transpose()?;
    let link = Writer::from_env()?;
    let (listener, address) = http::listen(request.port)?;
    let limits = EngineLimits::default();
    let need = WEIGHTS + CACHED_TOKEN * limits.cached_tokens as f64;
    let job = GpuJob::new(gpu, need)?.map_err(|free| StandInError::LlmMemory { need, free })?;
    let (started, energy) = gpu.with_gpu(|live| (live.now(), live.energy()))?;
    let engine = LlmEngine::new(LlmModel::EIGHT_BILLION, limits);
    let shared = Arc::new(Shared::new(engine, started));
    let acceptor = http::accept_connections(listener, Arc::clone(&shared));
    let acceptor = acceptor.map_err(|problem| StandInError::Port {
        port: address.port(),
        problem,
    })?;
    writeln!(
        out,
        "serving http://{address}/v1/completions, metrics on http://{address}/metrics"
    )
    .and_then(|()| out.flush())
    .map_err(StandInError::Print)?;
    let mut run = EngineRun {
        request,
        job,
        link,
        load,
        shared: &shared,
        started,
        slowdown: [1.0; 2],
        since_batch: Seconds::ZERO,
        queue_reported: Seconds::ZERO,
        steps: 0,
        tokens: 0,
        requests: 0,
        first: Latencies::default(),
        between: Latencies::default(),
    };
    let end = run.serve(&mut ProgressPrinter::for_tokens(out));
    shared.end();
    let _ = acceptor.join();
    let drawn = gpu.with_gpu(|live| live.energy())? - energy;
    Ok(ServedLlm {
        tokens: run.tokens,
        requests: run.requests,
        time: end?,
        energy: drawn,
        first_p99: run.first.quantile(0.99),
        between_p95: run.between.quantile(0.95),
    })
}

/// An engine that serves.
struct EngineRun<'a> {
    request: &'a ServeLlmRequest,
    job: GpuJob<'a>,
    link: Option<Writer>,
    load: Option<LlmLoad>,
    shared: &'a Shared,
    /// The start on the monotonic clock, in nanoseconds.
    started: u64,
    /// How many times as long the last step took as at the default clock, without and with prompts.
    slowdown: [f64; 2],
    /// The time of steps since a token was generated.
    since_batch: Seconds,
    queue_reported: Seconds,
    steps: u64,
    tokens: u64,
    requests: u64,
    first: Latencies,
    between: Latencies,
}

impl EngineRun<'_> {
    /// Serves until the requested amount is done; returns the time since the start.
    fn serve(
        &mut self,
        printer: &mut ProgressPrinter<'_, impl Write>,
    ) -> Result<Seconds, StandInError> {
        loop {
            let now = seconds(self.job.poll()?.0.saturating_sub(self.started));
            self.take_arrived(now);
            let is_over = match self.request.amount {
                Amount::For(time) => now >= time,
                Amount::Items(tokens) => self.tokens >= tokens,
                Amount::Study => self.has_answered_all(),
            };
            if is_over {
                return Ok(now);
            }
            let loads = self.shared.lock().engine.begin_step();
            if loads.is_empty() {
                self.wait(now);
                continue;
            }
            self.run_step(&loads)?;
            printer.update(self.steps, self.tokens)?;
        }
    }

    /// Passes the requests that have arrived and the limit of requests to the engine.
    fn take_arrived(&mut self, now: Seconds) {
        let asked = self.link.as_ref().and_then(Writer::batch_size);
        let limit = self.request.batch.or(asked.map(|size| size.get()));
        // No larger batch was measured.
        let most = EngineLimits::default().requests;
        let limit = limit.map_or(most, |limit| limit.min(most as u64) as usize);
        let mut state = self.shared.lock();
        state.engine.limits.requests = limit;
        if let Some(load) = &mut self.load {
            for request in load.take_arrived(now, state.active(), limit) {
                state.add(request);
            }
        }
        let waiting = state.engine.waiting() as u64;
        drop(state);
        if let Some(link) = &self.link
            && now - self.queue_reported >= QUEUE_PERIOD
        {
            self.queue_reported = now;
            link.queue(waiting);
        }
    }

    /// Whether all requests of a file are answered.
    fn has_answered_all(&mut self) -> bool {
        let has_ended = self.load.as_mut().is_some_and(LlmLoad::has_ended);
        has_ended && self.shared.lock().active() == 0
    }

    /// Waits for the next request.
    fn wait(&mut self, now: Seconds) {
        let next = self.load.as_mut().and_then(LlmLoad::next_arrival);
        let mut wait = next.map_or(LONGEST_WAIT, |next| next - now);
        if let Amount::For(time) = self.request.amount {
            wait = wait.min(time - now);
        }
        let wait = wait.get().clamp(50e-6, LONGEST_WAIT.get());
        self.shared.wait(Duration::from_secs_f64(wait));
    }

    /// Runs a step of the engine on the GPU.
    fn run_step(&mut self, loads: &[Load]) -> Result<(), StandInError> {
        let phases = loads.iter().enumerate();
        let phases: Vec<Phase> = phases
            .map(|(name, load)| Phase { name, load: *load })
            .collect();
        let kind = usize::from(loads.len() > 1);
        let expected = loads.iter().map(default_time).sum::<f64>();
        let begun = self.job.grant(&phases, 1)?;
        let near = expected * self.slowdown[kind] * 0.95;
        let near = Instant::now() + Duration::from_secs_f64(near);
        let (end, _) = await_iterations(near, || self.job.poll())?;
        let time = seconds(end.saturating_sub(begun));
        self.slowdown[kind] = time.get() / expected.max(1e-9);
        let tokens = {
            let mut state = self.shared.lock();
            state.end_step(seconds(end.saturating_sub(self.started)))
        };
        for token in &tokens {
            match token.is_first {
                true => self.first.add(token.latency),
                false => self.between.add(token.latency),
            }
            self.requests += u64::from(token.is_last);
        }
        self.steps += 1;
        self.since_batch += time;
        self.tokens += tokens.len() as u64;
        if !tokens.is_empty() {
            let time = std::mem::replace(&mut self.since_batch, Seconds::ZERO);
            if let Some(link) = &self.link {
                link.batch(tokens.len() as u64, Duration::from_secs_f64(time.get()));
            }
        }
        Ok(())
    }
}

/// How long a load takes at the default clocks, in seconds.
fn default_time(load: &Load) -> f64 {
    match load {
        Load::Kernels {
            launch,
            core,
            memory,
            ..
        } => (*launch + *core + *memory).get(),
        _ => 0.0,
    }
}
