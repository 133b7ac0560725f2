//! What is known of a load as it runs: totals over time, and windows cut from them.

use sweetspot_decide::search::Noise;
use sweetspot_quantity::{Seconds, Watts};

use super::load::Sum;
use super::noise::Spread;
use super::series::{Growth, Series};
use super::window::{Purpose, Window};

/// Energy and progress over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    energy: Series,
    items: Series,
    of_power: Spread,
    of_rate: Spread,
}

/// Two halves of a steady span differ by no more than this, or than noise explains.
const STEADY_WITHIN: f64 = 0.02;
/// A steady span is as long as this, and as so many reports of progress.
const STEADY: f64 = 4.0;
const REPORTS: f64 = 6.0;

impl Watch {
    pub(super) fn drew(&mut self, at: f64, total: f64) {
        self.energy.push(at, total);
    }

    /// Takes a total of items. The same total again is no progress.
    pub(super) fn did(&mut self, at: f64, total: f64) {
        if self.items.last().is_none_or(|(_, last)| total > last) {
            self.items.push(at, total);
        }
    }

    pub(super) fn last_report(&self) -> Option<f64> {
        self.items.last().map(|(at, _)| at)
    }

    /// The time between reports of progress, as they came lately.
    pub(super) fn spacing(&self) -> f64 {
        let last = self.last_report().unwrap_or_default();
        self.items.spacing(last - 30.0).unwrap_or_default()
    }

    pub(super) fn forget_before(&mut self, at: f64) {
        self.energy.forget_before(at);
        self.items.forget_before(at);
    }

    /// What was spent up to a time, since any origin.
    pub(super) fn sum_at(&self, time: f64) -> Option<Sum> {
        Some(Sum {
            time,
            energy: self.energy.at(time)?,
            items: self.items.at(time).unwrap_or_default(),
        })
    }

    /// Up to when everything is known that counts.
    fn known(&self, with_progress: bool) -> Option<f64> {
        let energy = self.energy.last()?.0;
        match with_progress {
            true => Some(energy.min(self.items.last()?.0)),
            false => Some(energy),
        }
    }

    /// The begin of the newest span in which the load was steady, no earlier than a time.
    pub(super) fn steady_since(&self, since: f64, with_progress: bool) -> Option<f64> {
        let known = self.known(with_progress)?;
        let length = match with_progress {
            true => STEADY.max(REPORTS * self.spacing()),
            false => STEADY,
        };
        let from = known - length;
        if from < since {
            return None;
        }
        let energy = match with_progress {
            true => self.energy.when(&self.items, from, known),
            false => self.energy.clone(),
        };
        let steady = |series: &Series, spread: &Spread| {
            let middle = from + length / 2.0;
            let (a, b) = (series.growth(from, middle)?, series.growth(middle, known)?);
            let mean = (a.rate + b.rate) / 2.0;
            let mut seen = spread.clone();
            seen.see(&a);
            seen.see(&b);
            let allowed = STEADY_WITHIN.max(3.0 * seen.over(length / 4.0));
            Some(mean > 0.0 && (a.rate - b.rate).abs() <= allowed * mean)
        };
        let is_steady = steady(&energy, &self.of_power)?
            && (!with_progress || steady(&self.items, &self.of_rate)?);
        is_steady.then_some(from)
    }

    /// A window from a time on, if there is enough to tell its values: `least` long, and longer where they
    /// are noisy, up to `longest`.
    pub(super) fn window(
        &self,
        purpose: Purpose,
        place: usize,
        (from, least, longest): (f64, f64, f64),
        with_progress: bool,
    ) -> Option<(Window, Growth, Option<Growth>)> {
        let known = self.known(with_progress)?;
        let rate = self.items.growth(from, known);
        let rate = rate.filter(|rate| rate.rate > 0.0);
        if with_progress && rate.is_none() {
            return None;
        }
        let rate = rate.filter(|rate| with_progress || rate.parts.len() > 2);
        let power = match rate {
            Some(_) => self
                .energy
                .when(&self.items, from, known)
                .growth(from, known)?,
            None => self.energy.growth(from, known)?,
        };
        let length = power.to - power.from;
        // Reports that come seldom leave their own gaps at both ends of a window.
        let least = least - self.spacing().min(least / 2.0);
        if length < least || power.rate <= 0.0 {
            return None;
        }
        let noise = self.noise(&power, rate.as_ref());
        let worst = noise.time.max(noise.energy);
        let is_enough = worst <= TARGET
            || length >= longest && (worst <= COARSE || purpose == Purpose::Hold)
            || length >= MOST_LONGER * longest;
        is_enough.then(|| {
            let window = Window {
                purpose,
                place,
                begin: Seconds::new(from),
                end: Seconds::new(known),
                power: Watts::new(power.rate),
                items_per_second: rate.as_ref().map(|rate| rate.rate),
                noise,
            };
            (window, power, rate)
        })
    }

    fn noise(&self, power: &Growth, rate: Option<&Growth>) -> Noise {
        let (mut of_power, mut of_rate) = (self.of_power.clone(), self.of_rate.clone());
        of_power.see(power);
        let of_power = BY_SLOPE * of_power.over(power.to - power.from);
        let of_rate = rate.map_or(0.0, |rate| {
            of_rate.see(rate);
            let by_steps = rate.by_steps.unwrap_or(0.0) / rate.rate;
            (BY_SLOPE * of_rate.over(rate.to - rate.from)).hypot(by_steps)
        });
        Noise {
            time: of_rate,
            energy: of_power.hypot(of_rate),
        }
    }

    /// Another load is noisy in another way.
    pub(super) fn forget_noise(&mut self) {
        (self.of_power, self.of_rate) = Default::default();
    }

    /// Learns from a window how noisy the load is.
    pub(super) fn learn(&mut self, power: &Growth, rate: Option<&Growth>) {
        self.of_power.see(power);
        if let Some(rate) = rate {
            self.of_rate.see(rate);
        }
    }
}

/// A line by least squares through a total that wanders is less sure than its ends: the root of 6/5.
const BY_SLOPE: f64 = 1.095;
/// Good enough to tell settings apart.
const TARGET: f64 = 0.005;
/// Not good enough: a window goes on, up to so many times its length.
const COARSE: f64 = 0.03;
const MOST_LONGER: f64 = 5.0;
