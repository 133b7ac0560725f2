//! The energy and the progress of a job over time, and the measurement windows taken from them.

use sweetspot_decide::search::Noise;
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::load::Consumption;
use super::noise::NoiseEstimate;
use super::series::{CumulativeSeries, Growth};
use super::window::{TuneWindow, WindowPurpose};
use crate::limit::{EvidenceSeries, EvidenceSpan, LoadEvidence};

/// Collects readings of energy and reports of progress, and computes measurement windows from them.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadMonitor {
    /// The total energy of all devices over time, in joules.
    energy: CumulativeSeries,
    /// The energy of each device over time, in joules; empty if there is only one.
    energy_of_gpus: Vec<CumulativeSeries>,
    /// The total number of items over time.
    items: CumulativeSeries,
    /// What the counters of the devices tell about the load.
    limits: EvidenceSeries,
    power_noise: NoiseEstimate,
    rate_noise: NoiseEstimate,
}

/// A load is steady if the two halves of a time span differ by at most this share, or by no more than noise.
const STEADY_TOLERANCE: f64 = 0.02;
/// The shortest time span that can count as steady, in seconds.
const STEADY_TIME: f64 = 4.0;
/// The shortest time span that can count as steady, in mean times between progress reports.
const STEADY_REPORTS: f64 = 6.0;

impl LoadMonitor {
    /// Records the total energy of all devices at a time.
    pub(super) fn record_energy(&mut self, at: f64, total: f64) {
        self.energy.push(at, total);
    }

    /// Records the energy of each device at a time.
    pub(super) fn record_energy_of_gpus(&mut self, at: f64, totals: &[Joules]) {
        self.energy_of_gpus
            .resize_with(totals.len(), Default::default);
        for (series, total) in self.energy_of_gpus.iter_mut().zip(totals) {
            series.push(at, total.get());
        }
    }

    /// The mean power of a device between two times, in watts; `None` if it is unknown.
    pub(super) fn gpu_power(&self, gpu: usize, begin: Seconds, end: Seconds) -> Option<f64> {
        let growth = self
            .energy_of_gpus
            .get(gpu)?
            .growth(begin.get(), end.get())?;
        (growth.rate > 0.0).then_some(growth.rate)
    }

    /// Records a total of items; a repeated total does not count as progress.
    pub(super) fn record_progress(&mut self, at: f64, total: f64) {
        if self.items.last().is_none_or(|(_, last)| total > last) {
            self.items.push(at, total);
        }
    }

    /// The time of the latest progress report, in seconds since the start of the job.
    pub(super) fn last_report(&self) -> Option<f64> {
        self.items.last().map(|(at, _)| at)
    }

    /// The mean time between the latest reports of progress.
    pub(super) fn report_spacing(&self) -> f64 {
        let last = self.last_report().unwrap_or_default();
        self.items.spacing(last - 30.0).unwrap_or_default()
    }

    /// Drops readings and reports from before this time.
    pub(super) fn forget_before(&mut self, at: f64) {
        self.energy.forget_before(at);
        for series in &mut self.energy_of_gpus {
            series.forget_before(at);
        }
        self.items.forget_before(at);
        self.limits.forget_before(Seconds::new(at));
    }

    /// Records what the counters of the devices tell about a span of time.
    pub(super) fn record_limits(&mut self, span: EvidenceSpan) {
        self.limits.push(span);
    }

    /// What the counters of the devices tell about the load between two times.
    pub(super) fn limits_between(&self, begin: Seconds, end: Seconds) -> LoadEvidence {
        self.limits.between(begin, end)
    }

    /// The time, energy and items up to this time; only differences between two times matter.
    pub(super) fn consumption_at(&self, time: f64) -> Option<Consumption> {
        Some(Consumption {
            time,
            energy: self.energy.total_at(time)?,
            items: self.items.total_at(time).unwrap_or_default(),
        })
    }

    /// The time up to which the energy is known, and also the progress if `with_progress`.
    fn known_until(&self, with_progress: bool) -> Option<f64> {
        let energy = self.energy.last()?.0;
        match with_progress {
            true => Some(energy.min(self.items.last()?.0)),
            false => Some(energy),
        }
    }

    /// The start of the latest time span in which the load is steady, not before `since`.
    pub(super) fn steady_since(&self, since: f64, with_progress: bool) -> Option<f64> {
        let known = self.known_until(with_progress)?;
        let length = match with_progress {
            true => STEADY_TIME.max(STEADY_REPORTS * self.report_spacing()),
            false => STEADY_TIME,
        };
        let from = known - length;
        if from < since {
            return None;
        }
        let energy = match with_progress {
            true => self.energy.sampled_like(&self.items, from, known),
            false => self.energy.clone(),
        };
        let halves_agree = |series: &CumulativeSeries, noise: &NoiseEstimate| {
            let middle = from + length / 2.0;
            let (a, b) = (series.growth(from, middle)?, series.growth(middle, known)?);
            let mean = (a.rate + b.rate) / 2.0;
            let mut noise = noise.clone();
            noise.add(&a);
            noise.add(&b);
            let allowed = STEADY_TOLERANCE.max(3.0 * noise.deviation_over(length / 4.0));
            Some(mean > 0.0 && (a.rate - b.rate).abs() <= allowed * mean)
        };
        let is_steady = halves_agree(&energy, &self.power_noise)?
            && (!with_progress || halves_agree(&self.items, &self.rate_noise)?);
        is_steady.then_some(from)
    }

    /// Computes the measurement window that begins at a time, once it is long enough: at least `least` seconds, and
    /// up to `longest` if the load is noisy.
    pub(super) fn window(
        &self,
        purpose: WindowPurpose,
        point: usize,
        (from, least, longest): (f64, f64, f64),
        with_progress: bool,
    ) -> Option<(TuneWindow, Growth, Option<Growth>)> {
        let known = self.known_until(with_progress)?;
        let rate = self.items.growth(from, known);
        let rate = rate.filter(|rate| rate.rate > 0.0);
        if with_progress && rate.is_none() {
            return None;
        }
        let rate = rate.filter(|rate| with_progress || rate.parts.len() > 2);
        let power = match rate {
            Some(_) => self
                .energy
                .sampled_like(&self.items, from, known)
                .growth(from, known)?,
            None => self.energy.growth(from, known)?,
        };
        let length = power.to - power.from;
        // If progress reports are rare, a window has gaps at both ends.
        let least = least - self.report_spacing().min(least / 2.0);
        if length < least || power.rate <= 0.0 {
            return None;
        }
        let noise = self.noise(&power, rate.as_ref());
        let worst = noise.time.max(noise.energy);
        let is_enough = worst <= TARGET_NOISE
            || length >= longest && (worst <= MAX_NOISE || purpose == WindowPurpose::Hold)
            || length >= MAX_EXTENSION * longest;
        is_enough.then(|| {
            let window = TuneWindow {
                purpose,
                point,
                begin: Seconds::new(from),
                end: Seconds::new(known),
                power: Watts::new(power.rate),
                items_per_second: rate.as_ref().map(|rate| rate.rate),
                noise,
            };
            (window, power, rate)
        })
    }

    /// The relative noise of a measurement window with this power and rate of items.
    fn noise(&self, power: &Growth, rate: Option<&Growth>) -> Noise {
        let (mut power_noise, mut rate_noise) = (self.power_noise.clone(), self.rate_noise.clone());
        power_noise.add(power);
        let power_noise = SLOPE_FACTOR * power_noise.deviation_over(power.to - power.from);
        let rate_noise = rate.map_or(0.0, |rate| {
            rate_noise.add(rate);
            let step_error = rate.step_error.unwrap_or(0.0) / rate.rate;
            (SLOPE_FACTOR * rate_noise.deviation_over(rate.to - rate.from)).hypot(step_error)
        });
        Noise {
            time: rate_noise,
            energy: power_noise.hypot(rate_noise),
        }
    }

    /// Forgets the noise, because another load has another noise.
    pub(super) fn forget_noise(&mut self) {
        (self.power_noise, self.rate_noise) = Default::default();
    }

    /// Updates the estimated noise of the load with a measurement window.
    pub(super) fn learn_noise(&mut self, power: &Growth, rate: Option<&Growth>) {
        self.power_noise.add(power);
        if let Some(rate) = rate {
            self.rate_noise.add(rate);
        }
    }
}

/// The slope of a least-squares line through a random walk has a larger error than the line through its end points,
/// by the factor sqrt(6/5).
const SLOPE_FACTOR: f64 = 1.095;
/// A measurement window ends before its maximum length if its relative noise is at most this.
const TARGET_NOISE: f64 = 0.005;
/// A measurement window is extended beyond its maximum length if its relative noise is above this.
const MAX_NOISE: f64 = 0.03;
/// A noisy measurement window is extended up to this multiple of its maximum length.
const MAX_EXTENSION: f64 = 5.0;
