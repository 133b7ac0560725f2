//! A language model that serves requests with continuous batching.

mod engine;
mod lengths;
mod load;
mod model;
mod page;
mod trace;

pub use engine::{EngineLimits, GeneratedToken, LlmEngine, LlmRequest};
pub use lengths::{LengthError, TokenLengths};
pub use load::LlmLoad;
pub use model::LlmModel;
pub use page::LlmMetrics;
pub(crate) use trace::ShapedArrivals;
pub use trace::{LlmTrace, TraceShape};
