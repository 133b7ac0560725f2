//! What the devices' counters tell about a tuned job, from one reading of them to the next.

use sweetspot_control::limit::{EvidenceSpan, LoadEvidence};
use sweetspot_device::Moment;
use sweetspot_measure::{DeviceRecording, LimitReadings, WindowLimits};

/// Makes spans of evidence from the readings of all devices.
#[derive(Default)]
pub struct EvidenceReader {
    /// The moment of each device's reading at which the last span ended.
    last_ends: Vec<Moment>,
}

impl EvidenceReader {
    /// What the readings since the last call tell; `None` until every device has a new one. Times count from `began`.
    pub fn next_span(
        &mut self,
        recorded: &[DeviceRecording],
        began: Moment,
    ) -> Option<EvidenceSpan> {
        let rows: Vec<&[LimitReadings]> = recorded
            .iter()
            .enumerate()
            .map(|(index, one)| {
                let end = self.last_ends.get(index);
                let first = one.limits.iter().position(|row| Some(&row.at) == end);
                // Without the last reading, the oldest of those that are stored begins the span.
                &one.limits[first.unwrap_or(0)..]
            })
            .collect();
        if rows.is_empty() || rows.iter().any(|rows| rows.len() < 2) {
            return None;
        }
        let ends = rows.iter().filter_map(|rows| rows.last());
        self.last_ends = ends.map(|row| row.at).collect();
        let devices: Vec<LoadEvidence> = recorded
            .iter()
            .zip(&rows)
            .map(|(one, rows)| evidence(one, rows))
            .collect();
        let (first, last) = rows[0].first().zip(rows[0].last())?;
        Some(EvidenceSpan {
            begin: first.at - began,
            end: last.at - began,
            evidence: LoadEvidence::mean_of_devices(&devices),
        })
    }
}

/// What the readings of one device tell; its power is measured elsewhere.
fn evidence(recorded: &DeviceRecording, rows: &[LimitReadings]) -> LoadEvidence {
    let counters = WindowLimits::over(rows);
    let auxiliary = recorded.auxiliary.last();
    LoadEvidence {
        power: None,
        power_cap: counters.power_cap,
        throttled_by_cap: counters.throttled_by_cap,
        throttled_by_heat: counters.throttled_by_heat,
        throttled_by_brake: counters.throttled_by_brake,
        utilisation: auxiliary.and_then(|row| row.utilisation),
        units: counters.units,
    }
}
