//! The names of values that a serving program tells, and what they mean.

/// The batch size that the program took from the tool; told by the client itself, once for each size.
pub const BATCH_SIZE: &str = "batch_size";
/// Seconds that a batch took.
pub const BATCH_TIME: &str = "batch_s";
/// Seconds from a request's arrival to its answer.
pub const LATENCY: &str = "latency_s";
/// Requests that wait.
pub const QUEUE_LENGTH: &str = "queue_length";
/// Requests that come each second.
pub const ARRIVALS: &str = "arrivals_per_s";
/// The size of a batch for which there was no memory.
pub const OUT_OF_MEMORY: &str = "out_of_memory";
