//! Measures how fast networks are read and counted: `cargo run --release -p sweetspot-benchmarks --bin network`.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use std::time::Instant;

use anyhow::Result;
use sweetspot_network::{Convention, Cost, NAMES, OnnxOptions, Precision, built_in, read_onnx};

/// The target time for a thousand layers, in seconds.
const TARGET_S: f64 = 1.0;

fn main() -> Result<()> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/foundation/network/tests/onnx/thousand_layers.onnx"
    );
    let begun = Instant::now();
    let network = read_onnx(path, &OnnxOptions::default())?;
    let cost = Cost::of(&network, Convention::Usual, Precision::Fp32, 1, false);
    let macs = cost.total().operations.macs;
    let time = begun.elapsed().as_secs_f64();
    println!(
        "{} layers of an ONNX file read and counted ({macs} MACs) in {:.4} s, target {TARGET_S} s",
        network.layers.len(),
        time
    );
    let begun = Instant::now();
    let mut layers = 0;
    for name in NAMES {
        layers += built_in(name)?.layers.len();
    }
    let all = begun.elapsed().as_secs_f64();
    println!(
        "{} built-in networks, {layers} layers, in {all:.4} s",
        NAMES.len()
    );
    Ok(())
}
