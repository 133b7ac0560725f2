//! `hold`: inference under a power cap, in virtual time on simulated GPUs.
