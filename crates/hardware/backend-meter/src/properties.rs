//! What is known about each kind of meter before it is read.

use sweetspot_device::MeterProperties;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::config::MeterSettings;
use crate::spec::{HttpKind, Spec};

/// Joules in a watt-hour.
const WATT_HOUR: f64 = 3600.0;
/// The longest time over which controllers of servers are known to average: a minute (Dell).
const LONGEST_AVERAGE: Seconds = Seconds::new(60.0);

/// The properties of a kind of meter, replaced by those that the user has configured. The accuracies are assumptions.
pub(crate) fn properties(spec: &Spec, settings: &MeterSettings) -> MeterProperties {
    let new = |period: f64, max_delay: f64, resolution: f64, energy: Option<f64>, accuracy: f64| {
        MeterProperties {
            period: Seconds::new(period),
            window: None,
            max_window: Seconds::ZERO,
            max_delay: Seconds::new(max_delay),
            resolution: Watts::new(resolution),
            energy_resolution: energy.map(Joules::new),
            accuracy: Ratio::new(accuracy),
            accuracy_offset: Watts::ZERO,
        }
    };
    let mut known = match spec {
        // The maker of the WT310E states 0.1 % of the reading and 0.05 % of the range: together 0.2 % of a reading that
        // is half the range, which is assumed where the ranges follow the reading. Values come at the end of an update, over
        // which they are averaged.
        Spec::Wt310(_) => {
            let period = crate::wt310::update_period(settings.interval);
            MeterProperties {
                window: Some(period),
                ..new(period.get(), 0.05, 0.01, Some(WATT_HOUR * 1e-5), 0.002)
            }
        }
        Spec::Http(HttpKind::Shelly, _) => new(1.0, 2.0, 0.1, Some(WATT_HOUR * 1e-3), 0.01),
        Spec::Http(HttpKind::Tasmota, _) => new(1.0, 3.0, 1.0, Some(WATT_HOUR), 0.01),
        // Dell's controllers average a minute; others a few seconds.
        Spec::Http(HttpKind::Redfish, _) => MeterProperties {
            max_window: LONGEST_AVERAGE,
            ..new(1.0, 10.0, 1.0, Some(WATT_HOUR), 0.02)
        },
        // A metric or a line may come from such a controller.
        Spec::Http(HttpKind::Prometheus, _) => MeterProperties {
            max_window: LONGEST_AVERAGE,
            ..new(1.0, 15.0, 0.1, Some(1.0), 0.02)
        },
        // Its energies belong to moments that it states. The accuracy is that of the GPUs' own sensors against each other,
        // as `measure` reports it.
        Spec::Http(HttpKind::Sweetspot, _) => {
            let period = settings.interval.unwrap_or(Seconds::new(1.0));
            MeterProperties {
                window: Some(period),
                ..new(period.get(), 0.0, 0.001, None, 0.003)
            }
        }
        // A probe measures about ten times a second or more often; the meter of a board's firmware states its interval.
        Spec::Hwmon(_) => new(0.1, 0.3, 0.001, Some(1e-6), 0.01),
        Spec::Line(_) => MeterProperties {
            max_window: LONGEST_AVERAGE,
            ..new(1.0, 3.0, 0.1, Some(1.0), 0.01)
        },
    };
    if let Some(interval) = settings.interval
        && !matches!(spec, Spec::Wt310(_))
    {
        known.period = interval;
    }
    known.window = settings.window.or(known.window);
    known.accuracy = settings.accuracy.unwrap_or(known.accuracy);
    known
}
