//! Continuous batching: requests join the running batch as soon as there is room, and every step generates a token for each.

use std::collections::VecDeque;

use sweetspot_quantity::{Ratio, Seconds};

use super::model::LlmModel;
use crate::physics::Load;

/// A request to a language model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LlmRequest {
    /// A number that identifies the request.
    pub id: u64,
    /// When it arrived.
    pub arrival: Seconds,
    /// The number of tokens of its prompt.
    pub prompt: u64,
    /// The number of tokens to generate; at least one.
    pub output: u64,
}

/// Limits of a simulated engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineLimits {
    /// The most requests that run together.
    pub requests: usize,
    /// The most tokens of prompts that a step processes.
    pub prompt_tokens: u64,
    /// The most tokens that the cache holds.
    pub cached_tokens: u64,
    /// Whether requests that run are finished when [`EngineLimits::requests`] is lowered; otherwise those above it pause.
    pub finishes_running: bool,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            requests: 256,
            prompt_tokens: 512,
            cached_tokens: 600_000,
            finishes_running: false,
        }
    }
}

/// A token that was generated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeneratedToken {
    /// The request that it belongs to.
    pub request: LlmRequest,
    /// The time since the request arrived, for its first token; otherwise since its token before.
    pub latency: Seconds,
    /// Whether it is the first token.
    pub is_first: bool,
    /// Whether it is the last token.
    pub is_last: bool,
}

/// A request in the engine.
#[derive(Clone, Copy, Debug)]
struct Active {
    request: LlmRequest,
    /// The tokens of the prompt that were processed.
    prefilled: u64,
    generated: u64,
    last: Seconds,
}

/// The step that runs now.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    prompt_tokens: u64,
    /// The number of requests that get a token, the first ones of the batch.
    decoded: usize,
}

/// A language model that serves requests; the caller lets time pass.
#[derive(Clone, Debug)]
pub struct LlmEngine {
    model: LlmModel,
    /// The limits of the engine; the number of requests may be changed while it runs.
    pub limits: EngineLimits,
    waiting: VecDeque<LlmRequest>,
    /// Requests whose prompt is processed, in order; the first one is worked on.
    prefilling: VecDeque<Active>,
    running: Vec<Active>,
    step: Step,
}

impl LlmEngine {
    /// Creates an engine without requests.
    pub fn new(model: LlmModel, limits: EngineLimits) -> Self {
        Self {
            model,
            limits,
            waiting: VecDeque::new(),
            prefilling: VecDeque::new(),
            running: Vec::new(),
            step: Step::default(),
        }
    }

    /// Adds a request.
    pub fn add(&mut self, request: LlmRequest) {
        self.waiting.push_back(LlmRequest {
            prompt: request.prompt.max(1),
            output: request.output.max(1),
            ..request
        });
    }

    /// Removes a request whose client is gone; only between steps.
    pub fn cancel(&mut self, id: u64) {
        self.waiting.retain(|request| request.id != id);
        self.prefilling.retain(|active| active.request.id != id);
        self.running.retain(|active| active.request.id != id);
    }

    /// The number of requests that run, their prompt or their tokens.
    pub fn running(&self) -> usize {
        self.running.len() + self.prefilling.len()
    }

    /// The number of requests that get a token or have their prompt processed in the step that was begun.
    pub fn in_step(&self) -> usize {
        self.step.decoded + self.prefilling.len()
    }

    /// The number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The requests that wait for their first token, the oldest first.
    pub fn unanswered(&self) -> impl Iterator<Item = (LlmRequest, u64)> {
        let begun = self.prefilling.iter();
        let begun = begun.map(|active| (active.request, active.request.prompt - active.prefilled));
        let waiting = self.waiting.iter();
        begun.chain(waiting.map(|request| (*request, request.prompt)))
    }

    /// The tokens in the cache.
    pub fn cached_tokens(&self) -> u64 {
        let active = self.running.iter().chain(&self.prefilling);
        active.map(|one| one.prefilled + one.generated).sum()
    }

    /// Plans the next step: first prompts, then a token for each running request. Empty if there is nothing to do.
    pub fn begin_step(&mut self) -> Vec<Load> {
        self.admit();
        let mut loads = Vec::new();
        let left = self
            .prefilling
            .iter()
            .map(|active| active.request.prompt - active.prefilled);
        let prompt_tokens = left.sum::<u64>().min(self.limits.prompt_tokens);
        if prompt_tokens > 0 {
            loads.push(self.model.prefill(prompt_tokens));
        }
        let decoded = match self.limits.finishes_running {
            true => self.running.len(),
            false => self.running.len().min(self.limits.requests.max(1)),
        };
        if decoded > 0 {
            let cached = self.running[..decoded]
                .iter()
                .map(|one| one.prefilled + one.generated);
            loads.push(self.model.decode(decoded as u64, cached.sum()));
        }
        self.step = Step {
            prompt_tokens,
            decoded,
        };
        loads
    }

    /// Takes waiting requests into the batch while there is room.
    fn admit(&mut self) {
        let mut cached = self.cached_tokens();
        let left = self
            .prefilling
            .iter()
            .map(|active| active.request.prompt - active.prefilled);
        let mut prompt_tokens: u64 = left.sum();
        while self.running() < self.limits.requests.max(1)
            && prompt_tokens < self.limits.prompt_tokens
        {
            let Some(next) = self.waiting.front() else {
                return;
            };
            // The room for the answer is reserved too, so that no request has to be put back.
            let need = next.prompt + next.output;
            if cached + need > self.limits.cached_tokens && self.running() > 0 {
                return;
            }
            cached += need;
            prompt_tokens += next.prompt;
            if let Some(request) = self.waiting.pop_front() {
                self.prefilling.push_back(Active {
                    request,
                    prefilled: 0,
                    generated: 0,
                    last: request.arrival,
                });
            }
        }
    }

    /// The share of the cache that is in use.
    pub fn cache_usage(&self) -> Ratio {
        Ratio::new(self.cached_tokens() as f64 / (self.limits.cached_tokens as f64).max(1.0))
    }

    /// Ends the step that was begun, at this time; returns its tokens.
    pub fn end_step(&mut self, now: Seconds) -> Vec<GeneratedToken> {
        let step = std::mem::take(&mut self.step);
        let mut tokens = Vec::with_capacity(step.decoded + 4);
        for active in &mut self.running[..step.decoded] {
            tokens.push(active.generate(now));
        }
        self.running
            .retain(|active| active.generated < active.request.output);
        let mut left = step.prompt_tokens;
        while let Some(active) = self.prefilling.front_mut() {
            let part = left.min(active.request.prompt - active.prefilled);
            active.prefilled += part;
            left -= part;
            if active.prefilled < active.request.prompt {
                break;
            }
            if let Some(mut active) = self.prefilling.pop_front() {
                tokens.push(active.generate(now));
                if active.generated < active.request.output {
                    self.running.push(active);
                }
            }
        }
        tokens
    }
}

impl Active {
    /// Generates a token.
    fn generate(&mut self, now: Seconds) -> GeneratedToken {
        let latency = now - self.last;
        self.generated += 1;
        self.last = now;
        GeneratedToken {
            request: self.request,
            latency,
            is_first: self.generated == 1,
            is_last: self.generated == self.request.output,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_request_gets_no_more_tokens() {
        let limits = EngineLimits {
            requests: 1,
            ..EngineLimits::default()
        };
        let mut engine = LlmEngine::new(LlmModel::EIGHT_BILLION, limits);
        for id in 0..3 {
            engine.add(LlmRequest {
                id,
                arrival: Seconds::ZERO,
                prompt: 10,
                output: 5,
            });
        }
        engine.begin_step();
        engine.end_step(Seconds::new(1.0));
        engine.cancel(0);
        engine.cancel(1);
        engine.begin_step();
        let tokens = engine.end_step(Seconds::new(2.0));
        assert_eq!((tokens.len(), tokens[0].request.id), (1, 2));
        assert_eq!((engine.running(), engine.waiting()), (1, 0));
    }

    #[test]
    fn every_request_gets_its_tokens_in_order() {
        let mut engine = LlmEngine::new(
            LlmModel::EIGHT_BILLION,
            EngineLimits {
                requests: 3,
                ..EngineLimits::default()
            },
        );
        for id in 0..10 {
            engine.add(LlmRequest {
                id,
                arrival: Seconds::ZERO,
                prompt: 700,
                output: 5,
            });
        }
        let (mut now, mut counts, mut firsts, mut lasts) = (0.0, [0; 10], 0, 0);
        loop {
            let loads = engine.begin_step();
            if loads.is_empty() {
                break;
            }
            assert!(engine.running() <= 3 && loads.len() <= 2);
            now += 0.01;
            for token in engine.end_step(Seconds::new(now)) {
                counts[token.request.id as usize] += 1;
                firsts += u32::from(token.is_first);
                lasts += u32::from(token.is_last);
                assert!(token.latency > Seconds::ZERO);
            }
        }
        assert_eq!((counts, firsts, lasts), ([5; 10], 10, 10));
        assert_eq!(
            (engine.running(), engine.waiting(), engine.cached_tokens()),
            (0, 0, 0)
        );
    }
}
