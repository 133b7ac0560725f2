//! The drift of a warming chip: a warm chip has more leakage power, so settings that were measured early look too
//! good.

use super::window::TuneWindow;

/// An estimate and its standard deviation: by how much less time or energy an item takes on a cold chip than on a warm
/// one, as a natural logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DriftEstimate {
    pub(super) value: f64,
    pub(super) sigma: f64,
}

/// How the time and the energy of an item drift while the chip warms up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drift {
    /// The time at which warming began, in seconds since the start of the job.
    since: f64,
    pub(super) time: DriftEstimate,
    pub(super) energy: DriftEstimate,
}

/// The time constant with which a chip warms up, in seconds: a chip and its cooler follow a change of power in 15 to 60
/// s.
const WARMING_TIME: f64 = 40.0;
/// The assumed drift of time and of energy, before any measurement, of a chip that starts cold.
const COLD_START: (DriftEstimate, DriftEstimate) = (
    DriftEstimate {
        value: 0.002,
        sigma: 0.004,
    },
    DriftEstimate {
        value: 0.01,
        sigma: 0.01,
    },
);
/// The assumed drift of time and of energy, before any measurement, of a chip that was busy before.
const WARM_START: (DriftEstimate, DriftEstimate) = (
    DriftEstimate {
        value: 0.0,
        sigma: 0.003,
    },
    DriftEstimate {
        value: 0.0,
        sigma: 0.006,
    },
);

impl Drift {
    /// Estimates the drift from the prior and from measurement windows of the same setting at different times.
    pub(super) fn estimate(windows: &[&TuneWindow], since: f64, is_cold: bool) -> Self {
        let (time, energy) = if is_cold { COLD_START } else { WARM_START };
        let own = |window: &TuneWindow| window.noise.time;
        let time_of = |window: &TuneWindow| Some(window.time_per_item()?.get());
        let energy_of = |window: &TuneWindow| Some(window.energy_per_item()?.get());
        Self {
            since,
            time: fit(time, windows, since, &time_of, &own),
            energy: fit(energy, windows, since, &energy_of, &|window| {
                window.noise.energy
            }),
        }
    }

    /// How cold the chip was in the middle of a measurement window: 1 when warming began, falling to 0 on a warm chip.
    pub(super) fn coldness(&self, window: &TuneWindow) -> f64 {
        coldness(window, self.since)
    }
}

/// How cold the chip was in the middle of a measurement window, if warming began at `since`.
fn coldness(window: &TuneWindow, since: f64) -> f64 {
    let middle = f64::midpoint(window.begin.get(), window.end.get());
    (-(middle - since).max(0.0) / WARMING_TIME).exp()
}

/// Fits the drift by least squares to windows of the same point, which differ only by drift and noise. `usual` is the
/// assumed drift without measurements.
fn fit(
    usual: DriftEstimate,
    windows: &[&TuneWindow],
    since: f64,
    value: &dyn Fn(&TuneWindow) -> Option<f64>,
    noise: &dyn Fn(&TuneWindow) -> f64,
) -> DriftEstimate {
    let weight = 1.0 / usual.sigma.powi(2);
    let (mut above, mut below) = (usual.value * weight, weight);
    let mut points: Vec<usize> = windows.iter().map(|window| window.point).collect();
    points.sort_unstable();
    points.dedup();
    for point in points {
        let own = windows.iter().filter(|window| window.point == point);
        let points: Vec<(f64, f64, f64)> = own
            .filter_map(|window| {
                let weight = 1.0 / noise(window).max(1e-4).powi(2);
                Some((coldness(window, since), value(window)?.ln(), weight))
            })
            .collect();
        let all: f64 = points.iter().map(|point| point.2).sum();
        if points.len() < 2 {
            continue;
        }
        let mean = |value: fn(&(f64, f64, f64)) -> f64| {
            points
                .iter()
                .map(|point| value(point) * point.2)
                .sum::<f64>()
                / all
        };
        let (cold, level) = (mean(|point| point.0), mean(|point| point.1));
        for (x, y, weight) in &points {
            above -= weight * (x - cold) * (y - level);
            below += weight * (x - cold).powi(2);
        }
    }
    DriftEstimate {
        value: above / below,
        sigma: below.sqrt().recip(),
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_decide::search::Noise;
    use sweetspot_quantity::{Seconds, Watts};

    use super::super::window::WindowPurpose;
    use super::*;

    fn window(point: usize, begin: f64, power: f64) -> TuneWindow {
        TuneWindow {
            purpose: WindowPurpose::Explore,
            point,
            begin: Seconds::new(begin),
            end: Seconds::new(begin + 4.0),
            power: Watts::new(power),
            items_per_second: Some(100.0),
            noise: Noise::equal(0.001),
        }
    }

    #[test]
    fn only_windows_of_one_setting_show_the_drift() {
        let warming = |at: f64| 200.0 * (-0.03 * (-(at + 2.0) / WARMING_TIME).exp()).exp();
        let alone = [window(0, 0.0, warming(0.0)), window(1, 40.0, 120.0)];
        let alone: Vec<&TuneWindow> = alone.iter().collect();
        assert_eq!(
            Drift::estimate(&alone, 0.0, true).energy.value,
            COLD_START.1.value
        );
        let again = [window(0, 0.0, warming(0.0)), window(0, 50.0, warming(50.0))];
        let again: Vec<&TuneWindow> = again.iter().collect();
        let drift = Drift::estimate(&again, 0.0, true);
        assert!((drift.energy.value - 0.03).abs() < 0.002, "{drift:?}");
        assert!(drift.energy.sigma < COLD_START.1.sigma && drift.time.value.abs() < 0.001);
    }
}
