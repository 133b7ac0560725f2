//! The algorithms of the BatchSizer paper on the simulated P40: they decide by the highest power reading, and power falls
//! between batches while the host prepares the next one.

use sweetspot_control::hold::{CapOn, DeviceKnob, HoldConfig, HoldMode};
use sweetspot_quantity::{Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::Variant;
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, HoldOutcome, Sensor};

const SIZES: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

fn server(network: &str, dataset: &str) -> SimulatedServer {
    let variant = Variant {
        dataset: Some(dataset.to_owned()),
        ..Variant::default()
    };
    SimulatedServer::new("tesla_p40", network, &variant).unwrap()
}

fn run(server: &SimulatedServer, config: HoldConfig, sensor: Sensor) -> HoldOutcome {
    let conditions = Conditions {
        sensor,
        keep_readings: true,
        ..Conditions::steady(Seconds::new(200.0), 1)
    };
    server.hold(config, &conditions).unwrap()
}

fn over_batches(mode: HoldMode, cap: f64, sizes: &[u64]) -> HoldConfig {
    HoldConfig::new(mode, Watts::new(cap), sizes.to_vec(), DeviceKnob::None)
}

/// The readings from a time on, in watts.
fn readings_from(outcome: &HoldOutcome, from: f64) -> Vec<f64> {
    let later = outcome
        .readings
        .iter()
        .filter(|read| read.from.get() >= from);
    later.map(|read| read.power.get()).collect()
}

fn highest(readings: &[f64]) -> f64 {
    readings.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Figure 2 of the paper: Inception on Caltech with batches of 32, 128 and 512. Power is low while a batch is prepared,
/// and the spikes are higher the larger the batch.
#[test]
fn readings_fall_between_batches_and_spikes_grow_with_the_batch() {
    let server = server("inception_v3", "caltech");
    let mut spikes = Vec::new();
    for size in [32, 128, 512] {
        let config = over_batches(HoldMode::Windowed, 1000.0, &[size]);
        let readings = readings_from(&run(&server, config, Sensor::Instant), 2.0);
        let spike = highest(&readings);
        let lowest = readings.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(
            lowest < 51.0,
            "batch {size}: {lowest} W, with a model loaded the card draws 50 W"
        );
        let share = |from: f64, to: f64| {
            let within = readings.iter().filter(|power| (from..to).contains(*power));
            within.count() as f64 / readings.len() as f64
        };
        assert!(
            share(0.0, 55.0) > 0.1,
            "batch {size}: gaps of {}",
            share(0.0, 55.0)
        );
        assert!(share(0.9 * spike, 1.1 * spike) > 0.3, "batch {size}");
        spikes.push(spike);
    }
    assert!(
        spikes.is_sorted_by(|less, more| less + 3.0 < *more),
        "{spikes:?}"
    );
}

/// Job 5 of the paper: MobileNet v2 on ImageNet below 84 W. The GPU waits for its host most of the time, so that the mean
/// power of every batch size is below the cap, while batches of 8 and more have spikes above it.
#[test]
fn the_paper_s_algorithm_keeps_the_spikes_below_the_cap() {
    let server = server("mobilenet_v2", "imagenet");
    for mode in [HoldMode::Text, HoldMode::Windowed] {
        let outcome = run(&server, over_batches(mode, 84.0, &SIZES), Sensor::Instant);
        let last = outcome.last.batch;
        assert!((2..=4).contains(&last), "{mode} ends at {last}");
        let changed = outcome.changes.last().map_or(0.0, |(at, ..)| at.get());
        let spike = highest(&readings_from(&outcome, changed + 1.0));
        assert!((0.8 * 84.0..=84.0).contains(&spike), "{mode}: {spike} W");
        // A batch of the previous size may still run for a moment.
        let share = outcome.summary.violation_share.unwrap();
        assert!(share < Ratio::new(0.001), "{mode}: {share:?}");
    }
    let largest = run(
        &server,
        over_batches(HoldMode::Windowed, 1000.0, &[256]),
        Sensor::Instant,
    );
    let readings = readings_from(&largest, 2.0);
    let mean = readings.iter().sum::<f64>() / readings.len() as f64;
    assert!(mean < 84.0 && highest(&readings) > 140.0, "{mean} W");
}

/// The cap of the default algorithm binds the mean: it uses the largest batch in the same job.
#[test]
fn the_default_algorithm_keeps_the_mean_below_the_cap() {
    let server = server("mobilenet_v2", "imagenet");
    let config = over_batches(HoldMode::Robust, 84.0, &SIZES);
    assert_eq!(config.cap_on, CapOn::default());
    let outcome = run(&server, config, Sensor::Averaged);
    assert!(outcome.last.batch >= 128, "{:?}", outcome.last);
    assert!(outcome.summary.fine_share > Some(Ratio::new(0.05)));
}

/// Algorithm 1 as printed never clears its readings: one spike above the cap makes the batch collapse to 1.
#[test]
fn the_printed_algorithm_collapses_after_one_spike() {
    let server = server("mobilenet_v2", "imagenet");
    let config = over_batches(HoldMode::Paper, 84.0, &SIZES);
    let outcome = run(&server, config, Sensor::Instant);
    let sizes: Vec<u64> = outcome.changes.iter().map(|(.., to)| to.batch).collect();
    assert_eq!(sizes, [16, 4, 2, 1]);
}

/// The clock search decides by readings too, and a sensor that shows only means gives it lower powers.
#[test]
fn the_clock_search_decides_by_the_readings_of_its_sensor() {
    let server = server("mobilenet_v1", "caltech");
    let clocks = [544.0, 835.0, 1063.0, 1303.0, 1531.0].map(Megahertz::new);
    let knob = DeviceKnob::CoreClock(clocks.to_vec());
    let clock_with = |sensor: Sensor| {
        let cap = Watts::new(98.0);
        let config = HoldConfig::new(HoldMode::Dvfs, cap, SIZES.to_vec(), knob.clone());
        let outcome = run(&server, config, sensor);
        outcome.last.core_clock.unwrap().get()
    };
    let (fast, slow) = (clock_with(Sensor::Instant), clock_with(Sensor::Averaged));
    assert!(fast < slow, "{fast} and {slow} MHz");
}
