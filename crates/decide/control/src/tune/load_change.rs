//! Estimates the time at which a load changed, within the first measurement window that differs.

use super::window::TuneWindow;

/// The power of a load in watts, and its items per second if known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LoadLevel {
    pub(super) power: f64,
    pub(super) rate: Option<f64>,
}

impl LoadLevel {
    /// The mean power and rate of items in a measurement window.
    pub(super) fn from_window(window: &TuneWindow) -> Self {
        Self {
            power: window.power.get(),
            rate: window.items_per_second,
        }
    }
}

/// The time within the window `mixed` at which a load changed from its usual level to that of the window `after`. It
/// is computed from power or items per second, whichever changed more.
pub(super) fn change_time(usual: LoadLevel, mixed: &TuneWindow, after: &TuneWindow) -> f64 {
    let (mixed_level, new) = (LoadLevel::from_window(mixed), LoadLevel::from_window(after));
    let by_power = new_share(usual.power, mixed_level.power, new.power);
    let by_rate = match (usual.rate, mixed_level.rate, new.rate) {
        (Some(usual), Some(mixed), Some(new)) => new_share(usual, mixed, new),
        _ => None,
    };
    let best = [by_power, by_rate].into_iter().flatten();
    let best = best.max_by(|a, b| a.1.total_cmp(&b.1));
    let share = best.map_or(1.0, |(share, _)| share);
    mixed.end.get() - share * mixed.time().get()
}

/// The share of the window `mixed` that was spent at the new level, and the distance between the usual and the new
/// level as a logarithm.
fn new_share(usual: f64, mixed: f64, new: f64) -> Option<(f64, f64)> {
    let share = (mixed - usual) / (new - usual);
    let distance = (new / usual).ln().abs();
    (share.is_finite() && distance.is_finite()).then_some((share.clamp(0.0, 1.0), distance))
}

#[cfg(test)]
mod tests {
    use sweetspot_decide::search::Noise;
    use sweetspot_quantity::{Seconds, Watts};

    use super::super::window::WindowPurpose;
    use super::*;

    fn window(begin: f64, power: f64, rate: f64) -> TuneWindow {
        TuneWindow {
            purpose: WindowPurpose::Hold,
            point: 3,
            begin: Seconds::new(begin),
            end: Seconds::new(begin + 2.5),
            power: Watts::new(power),
            items_per_second: Some(rate),
            noise: Noise::NONE,
        }
    }

    #[test]
    fn the_change_is_found_within_the_window() {
        // The load runs at 300 items a second for 40 % of the window and then at 2000.
        let mixed = window(100.0, 201.0, 0.4 * 300.0 + 0.6 * 2000.0);
        let usual = LoadLevel {
            power: 200.0,
            rate: Some(300.0),
        };
        let at = change_time(usual, &mixed, &window(102.5, 202.0, 2000.0));
        assert!((at - 101.0).abs() < 1e-9, "{at}");
        let same = window(100.0, 200.0, 300.0);
        assert_eq!(change_time(usual, &same, &same), 100.0);
    }
}
