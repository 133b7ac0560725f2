//! The best setting while a training runs.
