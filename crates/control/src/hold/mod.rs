//! The most inference throughput under a power cap.
