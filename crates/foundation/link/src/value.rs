//! The names of the values that a serving program reports, and their meaning.

/// The batch size that the program took from the tool; the client reports it once for each size.
pub const BATCH_SIZE: &str = "batch_size";
/// The seconds that a batch took.
pub const BATCH_TIME: &str = "batch_s";
/// The seconds from a request's arrival to its answer.
pub const LATENCY: &str = "latency_s";
/// The number of waiting requests.
pub const QUEUE_LENGTH: &str = "queue_length";
/// The number of requests that arrive per second.
pub const ARRIVALS: &str = "arrivals_per_s";
/// The size of a batch that did not fit into memory.
pub const OUT_OF_MEMORY: &str = "out_of_memory";
