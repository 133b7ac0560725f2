//! When a load became another one: somewhere within the first window that was off.

use super::window::Window;

/// Power and items a second.
pub(super) type Level = (f64, Option<f64>);

fn level(window: &Window) -> Level {
    (window.power.get(), window.items_per_second)
}

/// The time at which a load went from one level to that of the window after the mixed one. What differs most
/// tells it best.
pub(super) fn changed_at(usual: Level, mixed: &Window, after: &Window) -> f64 {
    let (mixed_level, new) = (level(mixed), level(after));
    let of_power = share(usual.0, mixed_level.0, new.0);
    let of_rate = match (usual.1, mixed_level.1, new.1) {
        (Some(usual), Some(mixed), Some(new)) => share(usual, mixed, new),
        _ => None,
    };
    let best = [of_power, of_rate].into_iter().flatten();
    let best = best.max_by(|a, b| a.1.total_cmp(&b.1));
    let new_share = best.map_or(1.0, |(share, _)| share);
    mixed.end.get() - new_share * mixed.time().get()
}

/// How much of a mixed window was of the new level, and how far the levels differ.
fn share(usual: f64, mixed: f64, new: f64) -> Option<(f64, f64)> {
    let share = (mixed - usual) / (new - usual);
    let differ = (new / usual).ln().abs();
    (share.is_finite() && differ.is_finite()).then_some((share.clamp(0.0, 1.0), differ))
}

#[cfg(test)]
mod tests {
    use sweetspot_decide::search::Noise;
    use sweetspot_quantity::{Seconds, Watts};

    use super::super::window::Purpose;
    use super::*;

    fn window(begin: f64, power: f64, rate: f64) -> Window {
        Window {
            purpose: Purpose::Hold,
            place: 3,
            begin: Seconds::new(begin),
            end: Seconds::new(begin + 2.5),
            power: Watts::new(power),
            items_per_second: Some(rate),
            noise: Noise::NONE,
        }
    }

    #[test]
    fn the_change_is_found_within_the_window() {
        // 40 % of it at 300 items a second, the rest at 2000.
        let mixed = window(100.0, 201.0, 0.4 * 300.0 + 0.6 * 2000.0);
        let at = changed_at((200.0, Some(300.0)), &mixed, &window(102.5, 202.0, 2000.0));
        assert!((at - 101.0).abs() < 1e-9, "{at}");
        let same = window(100.0, 200.0, 300.0);
        assert_eq!(changed_at((200.0, Some(300.0)), &same, &same), 100.0);
    }
}
