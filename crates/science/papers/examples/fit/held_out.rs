//! Fits without each row or group of rows of a study.
use std::error::Error;
pub fn run(_study: &str, _rounds: usize) -> Result<(), Box<dyn Error>> { Ok(()) }
