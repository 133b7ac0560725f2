//! What limited the load on a device in a measurement window.

use sweetspot_control::limit::{LoadEvidence, LoadLimit};
use sweetspot_measure::math::{CheckedEnergy, Span};
use sweetspot_measure::{DeviceRecording, WindowLimits};
use sweetspot_quantity::Ratio;

/// Utilisation is read every few seconds; fewer values than this say little about a window.
const MIN_UTILISATION_READS: usize = 3;

/// Decides what limited a device from its readings and its energy in the window.
pub fn load_limit(
    recorded: &DeviceRecording,
    energy: &Result<CheckedEnergy, String>,
    window: &Span,
) -> LoadLimit {
    let counters = WindowLimits::of(&recorded.limits, window);
    LoadLimit::decide(&LoadEvidence {
        power: energy.as_ref().ok().map(|one| one.energy.power()),
        power_cap: counters.power_cap,
        throttled_by_cap: counters.throttled_by_cap,
        throttled_by_heat: counters.throttled_by_heat,
        throttled_by_brake: counters.throttled_by_brake,
        utilisation: utilisation(recorded, window),
        units: counters.units,
    })
}

/// The mean utilisation of a device in a window; `None` if it was not read often enough in it.
fn utilisation(recorded: &DeviceRecording, window: &Span) -> Option<Ratio> {
    let rows = recorded.auxiliary.iter();
    let rows = rows.filter(|row| window.begin <= row.at && row.at <= window.end);
    let shares: Vec<f64> = rows
        .filter_map(|row| Some(row.utilisation?.get()))
        .collect();
    let count = shares.len();
    (count >= MIN_UTILISATION_READS).then(|| Ratio::new(shares.iter().sum::<f64>() / count as f64))
}
