//! Simulated energy counters.

use std::collections::VecDeque;

use sweetspot_quantity::{Joules, Seconds};
use sweetspot_sim::{Stretch, StretchSink};

/// The update period of the counters, in seconds.
const COUNTER_PERIOD: f64 = 0.1;

/// The energy counters of all GPUs, which show a new value every 0.1 s.
pub struct EnergyCounter {
    ranks: Vec<GpuCounter>,
    delivered: u64,
}

/// The energy counter of one GPU, with its values that were not delivered yet.
#[derive(Clone, Default)]
struct GpuCounter {
    time: f64,
    energy: f64,
    updates: u64,
    shown: VecDeque<f64>,
}

impl EnergyCounter {
    /// Creates the counters of this many GPUs.
    pub fn new(ranks: usize) -> Self {
        Self {
            ranks: vec![GpuCounter::default(); ranks],
            delivered: 0,
        }
    }

    /// The true energy so far; the counters may still show less.
    pub fn total(&self) -> Joules {
        Joules::new(self.ranks.iter().map(|rank| rank.energy).sum())
    }

    /// The true energy of each GPU so far.
    pub fn totals(&self) -> Vec<Joules> {
        let totals = self.ranks.iter().map(|rank| Joules::new(rank.energy));
        totals.collect()
    }

    /// The new updates of the counters: the time of each, and the value of each counter. An update is returned
    /// once all counters have made it.
    pub fn new_values(&mut self) -> Vec<(Seconds, Vec<Joules>)> {
        let mut values = Vec::new();
        while self.ranks.iter().all(|rank| !rank.shown.is_empty()) {
            let shown = self
                .ranks
                .iter_mut()
                .filter_map(|rank| rank.shown.pop_front());
            let totals = shown.map(Joules::new).collect();
            self.delivered += 1;
            values.push((Seconds::new(self.delivered as f64 * COUNTER_PERIOD), totals));
        }
        values
    }
}

impl StretchSink for EnergyCounter {
    /// Adds the energy of a time of constant power on one GPU.
    fn record(&mut self, rank: usize, stretch: &Stretch) {
        let Some(counter) = self.ranks.get_mut(rank) else {
            return;
        };
        let (time, power) = (stretch.time.get(), stretch.power.get());
        loop {
            let update = (counter.updates + 1) as f64 * COUNTER_PERIOD;
            if update > counter.time + time {
                break;
            }
            counter.updates += 1;
            let energy = counter.energy + power * (update - counter.time);
            counter.shown.push_back(energy);
        }
        counter.time += time;
        counter.energy += power * time;
    }
}
