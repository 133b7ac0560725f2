//! A language model that serves requests with continuous batching.

mod engine;
mod model;
mod page;
mod trace;

pub use engine::{EngineLimits, GeneratedToken, LlmEngine, LlmRequest};
pub use model::LlmModel;
pub use page::LlmMetrics;
pub use trace::{LlmTrace, TraceShape};
