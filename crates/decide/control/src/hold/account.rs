//! What came of holding: pure sums over what happened.

use std::collections::VecDeque;

use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use super::event::{BatchDone, PowerReading};
use super::meter::Meter;

/// Windows without a change after which a holder has settled.
const QUIET: u64 = 3;
/// Windows after which it counts as settled even if it goes on changing.
const DEADLINE: u64 = 15;
/// Steps of a watt in the histogram of fine samples.
const BINS: usize = 4096;

/// Keeps the account of a holder: told what happened, asked for a [`Summary`].
///
/// A mean of power counts against the cap after settling: from the last change of a setting that follows the
/// begin, or a change of the cap, before three windows have gone by without one; and from fifteen windows
/// on in any case. It then counts for the time since the mean before it.
#[derive(Clone, Debug)]
pub struct Account {
    span: Seconds,
    cap: Watts,
    meter: Meter,
    begun: Option<f64>,
    now: f64,
    items: u64,
    batches: u64,
    energy: f64,
    last_to: Option<f64>,
    last_mean: Option<f64>,
    changes: u64,
    windows: u64,
    settling: Option<Settling>,
    settled: Option<(f64, u64)>,
    judged: f64,
    over: f64,
    pending: VecDeque<(f64, f64, bool)>,
    largest: Option<f64>,
    fine: Vec<u32>,
    fine_count: u64,
    fine_over: u64,
}

#[derive(Clone, Copy, Debug)]
struct Settling {
    from: f64,
    from_window: u64,
    last_change: f64,
    last_window: u64,
    /// It takes so long that means count all the same.
    overdue: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// From the first event to the last.
    pub time: Seconds,
    /// Items done.
    pub items: u64,
    /// Items a second, over the whole time.
    pub items_per_s: f64,
    /// Drawn, as far as readings cover it.
    pub energy: Joules,
    /// Energy for an item.
    pub energy_per_item: Option<Joules>,
    /// Share of the time after settling in which the mean power was above the cap.
    pub violation_share: Option<Ratio>,
    /// The same of the single samples, where they are finer than the mean.
    pub fine_share: Option<Ratio>,
    /// 99 of 100 of them are no higher.
    pub fine_p99: Option<Watts>,
    /// The highest mean after settling.
    pub largest_mean: Option<Watts>,
    /// Changes of a setting.
    pub changes: u64,
    /// From the begin, or the last change of the cap, to the last change of a setting that belongs to it;
    /// absent where it still changed at the end.
    pub settle_time: Option<Seconds>,
    /// The same in windows.
    pub settle_windows: Option<u64>,
    /// Items of a batch that ran, on average.
    pub average_batch: Option<f64>,
}

impl Account {
    /// Under this cap, judged over means of this span.
    pub fn new(cap: Watts, span: Seconds) -> Self {
        Self {
            span,
            cap,
            meter: Meter::new(span),
            begun: None,
            now: 0.0,
            items: 0,
            batches: 0,
            energy: 0.0,
            last_to: None,
            last_mean: None,
            changes: 0,
            windows: 0,
            settling: None,
            settled: None,
            judged: 0.0,
            over: 0.0,
            pending: VecDeque::new(),
            largest: None,
            fine: vec![0; BINS],
            fine_count: 0,
            fine_over: 0,
        }
    }

    /// The account begins.
    pub fn begin(&mut self, now: Seconds) {
        self.begun = Some(now.get());
        self.at(now.get());
        self.disturb(now);
    }

    /// A batch was done.
    pub fn batch(&mut self, now: Seconds, batch: &BatchDone) {
        self.at(now.get());
        self.items = self.items.saturating_add(batch.items);
        self.batches += 1;
    }

    /// Another cap holds.
    pub fn cap(&mut self, now: Seconds, cap: Watts) {
        self.close();
        self.cap = cap;
        self.disturb(now);
    }

    /// What is held has become another: it settles anew.
    pub fn disturb(&mut self, now: Seconds) {
        self.close();
        let now = now.get();
        self.at(now);
        self.settled = None;
        self.settling = Some(Settling {
            from: now,
            from_window: self.windows,
            last_change: now,
            last_window: self.windows,
            overdue: false,
        });
    }

    /// A setting was changed.
    pub fn changed(&mut self, now: Seconds) {
        let now = now.get();
        self.at(now);
        self.changes += 1;
        if let Some(settling) = &mut self.settling {
            settling.last_change = now;
            settling.last_window = self.windows;
            self.pending.clear();
        }
    }

    /// The holder has seen so many windows in all.
    pub fn windows(&mut self, windows: u64) {
        self.windows = windows;
        let Some(settling) = self.settling else {
            return;
        };
        let quiet = windows.saturating_sub(settling.last_window) >= QUIET;
        if quiet {
            self.settled = Some((
                settling.last_change - settling.from,
                settling.last_window - settling.from_window,
            ));
        }
        if quiet {
            self.close();
        } else if windows.saturating_sub(settling.from_window) >= DEADLINE {
            if let Some(settling) = &mut self.settling {
                settling.overdue = true;
            }
            self.flush();
        }
    }

    /// Power was read.
    pub fn power(&mut self, reading: &PowerReading) {
        let (from, to, power) = (reading.from.get(), reading.to.get(), reading.power.get());
        if !(power.is_finite() && to > from && self.last_to.is_none_or(|last| to > last)) {
            return;
        }
        let since = self.last_to.map_or(from, |last| last.max(from));
        self.energy += power * (to - since);
        self.last_to = Some(to);
        if reading.to - reading.from < self.span * 0.5 {
            let bin = (power.max(0.0) as usize).min(BINS - 1);
            self.fine[bin] = self.fine[bin].saturating_add(1);
            self.fine_count += 1;
            self.fine_over += u64::from(power > self.cap.get());
        }
        if let Some(mean) = self.meter.push(reading) {
            // After a gap in the readings a mean speaks for its own span and not for the gap.
            let since = self.last_mean.map_or(0.0, |last| mean.to - last);
            let length = since.min(self.span.get());
            self.last_mean = Some(mean.to);
            let is_over = mean.power > self.cap.get();
            let begins = mean.to - self.span.get();
            match self.settling {
                Some(settling) if !settling.overdue => {
                    if begins >= settling.last_change {
                        self.pending.push_back((length, mean.power, is_over));
                    }
                }
                _ => self.count(length, mean.power, is_over),
            }
        }
    }

    fn count(&mut self, length: f64, mean: f64, is_over: bool) {
        self.judged += length;
        if is_over {
            self.over += length;
        }
        self.largest = Some(self.largest.map_or(mean, |largest| largest.max(mean)));
    }

    /// What was put off counts from now on.
    fn close(&mut self) {
        self.settling = None;
        self.flush();
    }

    fn flush(&mut self) {
        while let Some((length, mean, is_over)) = self.pending.pop_front() {
            self.count(length, mean, is_over);
        }
    }

    fn at(&mut self, now: f64) {
        self.begun.get_or_insert(now);
        self.now = self.now.max(now);
    }

    /// Up to now.
    pub fn summary(&self) -> Summary {
        let mut last = self.clone();
        last.close();
        last.sum_up()
    }

    fn sum_up(&self) -> Summary {
        let time = self.now - self.begun.unwrap_or(self.now);
        let items = self.items as f64;
        let share = |over: f64, of: f64| (of > 0.0).then(|| Ratio::new(over / of));
        let fine = self.fine_count as f64;
        Summary {
            time: Seconds::new(time),
            items: self.items,
            items_per_s: if time > 0.0 { items / time } else { 0.0 },
            energy: Joules::new(self.energy),
            energy_per_item: (self.items > 0).then(|| Joules::new(self.energy / items)),
            violation_share: share(self.over, self.judged),
            fine_share: share(self.fine_over as f64, fine),
            fine_p99: self.fine_p99(),
            largest_mean: self.largest.map(Watts::new),
            changes: self.changes,
            settle_time: self.settled.map(|(time, _)| Seconds::new(time)),
            settle_windows: self.settled.map(|(_, windows)| windows),
            average_batch: (self.batches > 0).then(|| items / self.batches as f64),
        }
    }

    fn fine_p99(&self) -> Option<Watts> {
        let wanted = (self.fine_count * 99).div_ceil(100);
        let mut counted = 0;
        let bin = self.fine.iter().position(|count| {
            counted += u64::from(*count);
            counted >= wanted
        })?;
        (self.fine_count > 0).then(|| Watts::new(bin as f64 + 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        let mut account = Account::new(Watts::new(200.0), Seconds::new(1.0));
        account.begin(Seconds::ZERO);
        account.windows(QUIET);
        account
    }

    fn read(account: &mut Account, from: f64, to: f64, power: f64) {
        let (from, to) = (Seconds::new(from), Seconds::new(to));
        account.power(&PowerReading {
            from,
            to,
            power: Watts::new(power),
        });
    }

    #[test]
    fn a_mean_after_a_gap_does_not_stand_for_the_gap() {
        let mut account = account();
        let fine = |account: &mut Account, from: f64, count: u32, power: f64| {
            for index in 0..count {
                let from = from + f64::from(index) * 0.02;
                read(account, from, from + 0.02, power);
            }
        };
        fine(&mut account, 0.0, 3000, 150.0);
        // Nothing for 30 s, then two high samples, then as before.
        fine(&mut account, 90.0, 2, 400.0);
        fine(&mut account, 90.04, 3000, 150.0);
        let share = account.summary().violation_share.unwrap();
        assert!(share < Ratio::new(0.02), "{share:?}");
    }

    #[test]
    fn the_average_batch_is_of_items_that_ran() {
        let mut account = account();
        for items in [2, 4] {
            let done = BatchDone {
                size: 4096,
                items,
                duration: Seconds::new(0.01),
                latency: None,
            };
            account.batch(Seconds::new(1.0), &done);
        }
        assert_eq!(account.summary().average_batch, Some(3.0));
    }
}
