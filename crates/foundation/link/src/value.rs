//! The names of the values that an inference server reports with [`crate::Writer::value`].

/// The name of the value: the batch size that the workload now uses at sweetspot's request; reported after each change.
pub const BATCH_SIZE: &str = "batch_size";
/// The name of the value: the duration of a batch, in seconds.
pub const BATCH_TIME: &str = "batch_s";
/// The name of the value: the time from a request's arrival to its response, in seconds.
pub const LATENCY: &str = "latency_s";
/// The name of the value: the number of waiting requests.
pub const QUEUE_LENGTH: &str = "queue_length";
/// The name of the value: the rate at which requests arrive, per second.
pub const ARRIVALS: &str = "arrivals_per_s";
/// The name of the value: the size of a batch that did not fit into memory.
pub const OUT_OF_MEMORY: &str = "out_of_memory";
