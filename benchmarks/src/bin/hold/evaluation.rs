//! Compares holds with fixed batch sizes.

use std::time::Instant;

use anyhow::Result;
use sweetspot_control::hold::{HoldConfig, HoldMode, HoldNotice};
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, HoldOutcome};

/// A fixed size counts as respecting a cap if it draws at most this share of it. Whether a size nearer to the cap
/// respects it depends on chance.
const CLEAR_SHARE: f64 = 0.995;

/// The results of one fixed batch size.
pub struct FixedSize {
    /// Items per second.
    pub rate: f64,
    /// The highest mean power of a second, in watts; infinite for a size that does not fit into memory.
    pub max_power: f64,
}

/// Runs each batch size alone under a cap that it never reaches.
pub fn measure_fixed_sizes(server: &SimulatedServer, sizes: &[u64]) -> Result<Vec<FixedSize>> {
    let measure = |size: &u64| {
        let config = HoldConfig::robust(Watts::new(1000.0), vec![*size]);
        let held = server.hold(config, &Conditions::steady(Seconds::new(300.0), 1))?;
        let summary = held.summary;
        Ok(FixedSize {
            rate: summary.items_per_s,
            max_power: summary.largest_mean.map_or(f64::INFINITY, Watts::get),
        })
    };
    sizes.iter().map(measure).collect()
}

/// The worst results of many holds, and the number of holds that missed a target.
pub struct WorstResults {
    runs: u32,
    infeasible: u32,
    unsettled: u32,
    settle_windows: u64,
    late_changes: u64,
    violation_share: f64,
    above_cap: u32,
    relative_rate: f64,
    too_slow: u32,
    repeated_notices: u32,
}

impl WorstResults {
    pub fn new() -> Self {
        Self {
            runs: 0,
            infeasible: 0,
            unsettled: 0,
            settle_windows: 0,
            late_changes: 0,
            violation_share: 0.0,
            above_cap: 0,
            relative_rate: f64::INFINITY,
            too_slow: 0,
            repeated_notices: 0,
        }
    }

    /// Adds a hold, and returns the targets that it missed.
    pub fn add(
        &mut self,
        held: &HoldOutcome,
        fixed: &[FixedSize],
        cap: f64,
        mode: HoldMode,
    ) -> Option<String> {
        self.runs += 1;
        let mut problems = Vec::new();
        self.add_changes(held, &mut problems);
        let best = fixed
            .iter()
            .filter(|fixed| fixed.max_power <= CLEAR_SHARE * cap)
            .max_by(|a, b| a.rate.total_cmp(&b.rate));
        match best {
            Some(best) => self.compare(held, best, &mut problems),
            None if mode.is_batch_only() => self.infeasible += 1,
            None => {}
        }
        (!problems.is_empty()).then(|| problems.join(", "))
    }

    /// Checks how soon the hold settled, how often it changed its setting later, and its notices.
    fn add_changes(&mut self, held: &HoldOutcome, problems: &mut Vec<String>) {
        match held.summary.settle_windows {
            Some(windows) if windows <= 15 => {
                self.settle_windows = self.settle_windows.max(windows);
            }
            other => {
                self.unsettled += 1;
                problems.push(format!("settled after {other:?} windows"));
            }
        }
        let half = held.summary.time.get() / 2.0;
        let late = held.changes.iter().filter(|(at, ..)| at.get() > half);
        let late = late.count() as u64;
        self.late_changes = self.late_changes.max(late);
        if late > 4 {
            problems.push(format!("{late} changes in the last half"));
        }
        let is_infeasible =
            |notice: &&(Seconds, HoldNotice)| matches!(notice.1, HoldNotice::CapInfeasible { .. });
        if held.notices.iter().filter(is_infeasible).count() > 1 {
            self.repeated_notices += 1;
            problems.push("reported the cap as infeasible more than once".to_owned());
        }
    }

    /// Compares the hold with the best fixed size that respects the cap.
    fn compare(&mut self, held: &HoldOutcome, best: &FixedSize, problems: &mut Vec<String>) {
        let summary = &held.summary;
        let share = summary.violation_share.map_or(0.0, |share| share.get());
        self.violation_share = self.violation_share.max(share);
        if share >= 0.01 {
            self.above_cap += 1;
            problems.push(format!("{:.2} % above the cap", 100.0 * share));
        }
        let relative = summary.items_per_s / best.rate;
        self.relative_rate = self.relative_rate.min(relative);
        if relative < 0.97 {
            self.too_slow += 1;
            problems.push(format!(
                "{:.1} % of the best, which draws {:.1} W, at {:?}",
                100.0 * relative,
                best.max_power,
                held.last
            ));
        }
    }

    pub fn print(&self, title: &str, begun: Instant) {
        println!(
            "{title}: {} runs in {:.1} s, {} infeasible; settled within {} windows, {} later; changes in the last half at most {}; violation at most {:.2} %, {} at or above 1 %; throughput at least {:.1} % of the best fixed size, {} below 97 %; repeated notices in {}",
            self.runs,
            begun.elapsed().as_secs_f64(),
            self.infeasible,
            self.settle_windows,
            self.unsettled,
            self.late_changes,
            100.0 * self.violation_share,
            self.above_cap,
            100.0 * self.relative_rate,
            self.too_slow,
            self.repeated_notices,
        );
    }
}
