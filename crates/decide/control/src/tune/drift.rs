//! A chip warms up while its settings are compared, and leaks more when it is warm: what was measured early
//! looks better than it is.

use super::window::Window;

/// By how much an item takes less while the chip is cold, as a logarithm, and the standard deviation of that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) value: f64,
    pub(super) sigma: f64,
}

/// Of time and of energy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drift {
    since: f64,
    pub(super) time: Part,
    pub(super) energy: Part,
}

/// A chip and its cooler follow a change of power in 15 to 60 s.
const WARMING: f64 = 40.0;
/// What is usual of a chip that begins cold,
const COLD: (Part, Part) = (
    Part {
        value: 0.002,
        sigma: 0.004,
    },
    Part {
        value: 0.01,
        sigma: 0.01,
    },
);
/// and of one that was at work before.
const AT_WORK: (Part, Part) = (
    Part {
        value: 0.0,
        sigma: 0.003,
    },
    Part {
        value: 0.0,
        sigma: 0.006,
    },
);

impl Drift {
    /// What is usual since a time, and what windows of the same setting at several times say.
    pub(super) fn of(windows: &[&Window], since: f64, is_cold: bool) -> Self {
        let (time, energy) = if is_cold { COLD } else { AT_WORK };
        let own = |window: &Window| window.noise.time;
        let time_of = |window: &Window| Some(window.time_per_item()?.get());
        let energy_of = |window: &Window| Some(window.energy_per_item()?.get());
        Self {
            since,
            time: learn(time, windows, since, &time_of, &own),
            energy: learn(energy, windows, since, &energy_of, &|window| {
                window.noise.energy
            }),
        }
    }

    /// How much of the warming up is still to come in a window.
    pub(super) fn coldness(&self, window: &Window) -> f64 {
        coldness(window, self.since)
    }
}

fn coldness(window: &Window, since: f64) -> f64 {
    let middle = f64::midpoint(window.begin.get(), window.end.get());
    (-(middle - since).max(0.0) / WARMING).exp()
}

/// Least squares within each place: its windows differ by the drift and by noise alone.
fn learn(
    usual: Part,
    windows: &[&Window],
    since: f64,
    value: &dyn Fn(&Window) -> Option<f64>,
    noise: &dyn Fn(&Window) -> f64,
) -> Part {
    let weight = 1.0 / usual.sigma.powi(2);
    let (mut above, mut below) = (usual.value * weight, weight);
    let mut places: Vec<usize> = windows.iter().map(|window| window.place).collect();
    places.sort_unstable();
    places.dedup();
    for place in places {
        let own = windows.iter().filter(|window| window.place == place);
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
        let mean = |of: fn(&(f64, f64, f64)) -> f64| {
            points.iter().map(|point| of(point) * point.2).sum::<f64>() / all
        };
        let (cold, level) = (mean(|point| point.0), mean(|point| point.1));
        for (x, y, weight) in &points {
            above -= weight * (x - cold) * (y - level);
            below += weight * (x - cold).powi(2);
        }
    }
    Part {
        value: above / below,
        sigma: below.sqrt().recip(),
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_decide::search::Noise;
    use sweetspot_quantity::{Seconds, Watts};

    use super::super::window::Purpose;
    use super::*;

    fn window(place: usize, begin: f64, power: f64) -> Window {
        Window {
            purpose: Purpose::Explore,
            place,
            begin: Seconds::new(begin),
            end: Seconds::new(begin + 4.0),
            power: Watts::new(power),
            items_per_second: Some(100.0),
            noise: Noise::equal(0.001),
        }
    }

    #[test]
    fn windows_of_one_setting_show_the_drift_and_others_do_not() {
        let warming = |at: f64| 200.0 * (-0.03 * (-(at + 2.0) / WARMING).exp()).exp();
        let alone = [window(0, 0.0, warming(0.0)), window(1, 40.0, 120.0)];
        let alone: Vec<&Window> = alone.iter().collect();
        assert_eq!(Drift::of(&alone, 0.0, true).energy.value, COLD.1.value);
        let again = [window(0, 0.0, warming(0.0)), window(0, 50.0, warming(50.0))];
        let again: Vec<&Window> = again.iter().collect();
        let drift = Drift::of(&again, 0.0, true);
        assert!((drift.energy.value - 0.03).abs() < 0.002, "{drift:?}");
        assert!(drift.energy.sigma < COLD.1.sigma && drift.time.value.abs() < 0.001);
    }
}
