//! The totals of a timeline against the true energies of a simulated GPU, with marks as many clients make them: most of them
//! without reads of the energy counter.

#[path = "../../../hardware/measure/tests/simulated_gpu/mod.rs"]
mod simulated_gpu;

use simulated_gpu::{COUNTER_AND_BUFFER, LOAD_SHAPES, LoadShape, SimulatedGpu, marks};
use sweetspot_device::Moment;
use sweetspot_measure::MethodChoice;
use sweetspot_measure::math::Trace;
use sweetspot_monitor::timeline::{Timeline, Total};
use sweetspot_quantity::Seconds;
use sweetspot_sim::Generation;
use sweetspot_stats::Seed;

/// The time from a mark until the readings are collected, and the time for which they are kept.
const COLLECTED_AFTER: Seconds = Seconds::new(0.17);
const KEPT: Seconds = Seconds::new(13.0);
/// The time that a sample takes to appear in the driver's buffer.
const BUFFER_LAG: Seconds = Seconds::new(0.1);

/// The readings that are known at a moment and stored since the last collection.
fn known(trace: &Trace, from: Moment, at: Moment) -> Trace {
    let mut known = trace.clone();
    known
        .counter
        .retain(|one| one.call.end <= at && one.call.end >= from);
    known
        .buffer
        .retain(|one| one.at + BUFFER_LAG <= at && one.at >= from);
    for polled in [&mut known.average, &mut known.instant] {
        polled.retain(|one| one.appeared.end <= at && one.appeared.end >= from);
    }
    known
}

/// The totals at marks that are about `apart` seconds from each other, and the true energies there.
fn totals(shape: LoadShape, seed: Seed, apart: f64) -> Vec<(Total, f64)> {
    let load_steps = shape.load_steps(seed.label("load"));
    let mut gpu = SimulatedGpu::new(
        Generation::Hopper,
        COUNTER_AND_BUFFER,
        load_steps,
        Vec::new(),
        seed,
    );
    gpu.shares_reads = true;
    let marks = marks(seed.label("marks"), apart, 60.0);
    let recording = gpu.record(MethodChoice::Auto, 62.0, &marks);
    let mut timeline = Timeline::new(recording.marks[0]);
    let mut totals = Vec::new();
    let mut collected = recording.marks[0];
    for (mark, truth) in recording.marks.iter().zip(&recording.true_energies) {
        let now = *mark + COLLECTED_AFTER;
        let trace = known(&recording.trace, collected + -KEPT, now);
        let total = match *mark > recording.marks[0] {
            true => timeline.advance(&trace, &[*mark], *mark)[0],
            false => *timeline.total(),
        };
        totals.push((total, *truth));
        collected = now;
    }
    totals
}

#[test]
fn intervals_hold_where_marks_share_reads() {
    let mut results = Vec::new();
    // The number of marks in a window, and the largest mean square error of its energy.
    for (count, most) in [(1, 0.02), (2, 0.012), (10, 0.006), (40, 0.003)] {
        let (mut within, mut windows, mut squares) = (0, 0, 0.0);
        for (number, shape) in LOAD_SHAPES.iter().enumerate() {
            let totals = totals(*shape, Seed::new(number as u64), 0.5);
            for pair in totals.windows(count + 1) {
                let difference = pair[count].0.since(&pair[0].0);
                let truth = pair[count].1 - pair[0].1;
                let error = difference.energy.get() - truth;
                within += usize::from(error.abs() <= difference.half_width.get());
                windows += 1;
                squares += (error / truth).powi(2);
            }
        }
        let share = f64::from(within as u32) / f64::from(windows as u32);
        let error = (squares / f64::from(windows as u32)).sqrt();
        println!("{count} marks: {share:.3} of {windows} within, {error:.4}");
        results.push((count, share, error, most));
    }
    for (count, share, error, most) in results {
        assert!(
            share >= 0.9 && error <= most,
            "{count} marks: {share}, {error}"
        );
    }
}
