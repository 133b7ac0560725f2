//! Records a run as samples at equal intervals.

use sweetspot_quantity::Seconds;

use crate::run::{Stretch, StretchSink};

/// Mean power, clock and utilisation over equal intervals of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    period: f64,
    /// The samples of power (in watts), of the clock (relative to the default) and of the share of time in
    /// which kernels ran.
    means: [Vec<f32>; 3],
    filled: f64,
    sums: [f64; 3],
}

impl Trace {
    /// Creates an empty trace with this time between samples.
    pub fn every(period: Seconds) -> Self {
        Self {
            period: period.get(),
            means: [const { Vec::new() }; 3],
            filled: 0.0,
            sums: [0.0; 3],
        }
    }

    /// The samples of power in watts, oldest first, without the last, incomplete one.
    pub fn watts(&self) -> &[f32] {
        &self.means[0]
    }

    /// The samples of power (in watts), of the clock (relative to the default) and of the share of time in
    /// which kernels ran.
    pub fn into_parts(self) -> [Vec<f32>; 3] {
        self.means
    }

    /// Adds a time span of constant power and clock.
    fn add(&mut self, stretch: &Stretch) {
        let mut time = stretch.time.get();
        let busy = if stretch.busy { 1.0 } else { 0.0 };
        let values = [stretch.power.get(), stretch.clock.get(), busy];
        let room = self.period - self.filled;
        if time < room {
            self.filled += time;
            for (sum, value) in self.sums.iter_mut().zip(values) {
                *sum += value * time;
            }
            return;
        }
        time -= room;
        let whole = (time / self.period) as usize;
        self.filled = time - whole as f64 * self.period;
        let kinds = self.means.iter_mut().zip(&mut self.sums).zip(values);
        for ((means, sum), value) in kinds {
            means.push(((*sum + value * room) / self.period) as f32);
            means.extend(std::iter::repeat_n(value as f32, whole));
            *sum = value * self.filled;
        }
    }
}

/// Records the first GPU of the job; the others are ignored.
impl StretchSink for Trace {
    fn record(&mut self, rank: usize, stretch: &Stretch) {
        if rank == 0 {
            self.add(stretch);
        }
    }
}

/// Records each GPU in its own trace.
impl StretchSink for [Trace] {
    fn record(&mut self, rank: usize, stretch: &Stretch) {
        if let Some(trace) = self.get_mut(rank) {
            trace.add(stretch);
        }
    }
}
