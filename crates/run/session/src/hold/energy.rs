//! The energy of a hold, measured in parts of ten minutes. The sampler stores the readings of one part only, so memory
//! stays bounded even if a server runs for weeks.

use sweetspot_device::Moment;
use sweetspot_measure::math::{EnergyEstimator, Span};
use sweetspot_measure::{DeviceRecording, Method, MethodChoice, Sampler};
use sweetspot_quantity::{Joules, Seconds};

use super::result::HoldEnergy;
use crate::SessionError;

/// The energy during `hold` is measured in parts of this length. At the end of each part, collecting the
/// readings blocks the control loop for a quarter of a second.
const PART_LENGTH: Seconds = Seconds::new(600.0);

/// The energy of the GPU during `hold`, measured part by part.
#[derive(Default)]
pub struct EnergyParts {
    /// The start of the current part; `None` before the first batch.
    begin: Option<Moment>,
    sum: Joules,
    interval95: (Joules, Joules),
    method: Option<Method>,
    /// Whether the energy of a part could not be measured; the sum is then incomplete.
    is_missing: bool,
}

impl EnergyParts {
    /// Adds the energy of the current part if the part is long enough. `first` is the start of the first
    /// batch.
    pub fn collect_due_part(
        &mut self,
        sampler: &Sampler,
        first: Moment,
        now: Moment,
    ) -> Result<(), SessionError> {
        let begin = *self.begin.get_or_insert(first);
        if now - begin >= PART_LENGTH {
            let end = sampler.mark();
            self.add(&sampler.collect()?, Span::new(begin, end));
            self.begin = Some(end);
        }
        Ok(())
    }

    /// Adds the energy of one part, which lasted from begin to end of `span`.
    fn add(&mut self, recorded: &[DeviceRecording], span: Span) {
        let measured = recorded.first().and_then(|one| {
            let energy = EnergyEstimator::new(&one.trace).energy(&span, MethodChoice::Auto);
            energy.ok()
        });
        // An energy that covers the span only partly would be too small.
        match measured.filter(|energy| energy.uncovered(&span).next().is_none()) {
            Some(energy) => {
                self.sum += energy.value;
                self.interval95.0 += energy.interval95.0;
                self.interval95.1 += energy.interval95.1;
                self.method = Some(energy.method);
            }
            None => self.is_missing = true,
        }
    }

    /// Adds the last part, up to the end of the last batch, and returns the energy of all parts.
    pub fn finish(mut self, recorded: &[DeviceRecording], last: Moment) -> Option<HoldEnergy> {
        let begin = self.begin?;
        if last > begin {
            self.add(recorded, Span::new(begin, last));
        }
        (!self.is_missing).then_some(HoldEnergy {
            value: self.sum,
            interval95: self.interval95,
            method: self.method?,
        })
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_device::DeviceId;
    use sweetspot_measure::math::{PowerSample, Trace};
    use sweetspot_quantity::Watts;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    /// A recording of 150 W between two times in seconds, in the driver's buffer.
    fn recorded(from: u64, to: u64) -> Vec<DeviceRecording> {
        let samples = (50 * from..50 * to).map(|index| PowerSample {
            at: Moment::from_nanos(index * 20_000_000),
            power: Watts::new(150.0),
        });
        vec![DeviceRecording {
            device: DeviceId::new("GPU-1"),
            trace: Trace {
                buffer: samples.collect(),
                ..Trace::default()
            },
            auxiliary: Vec::new(),
            limits: Vec::new(),
        }]
    }

    #[test]
    fn the_energy_is_the_sum_of_the_parts() {
        let mut parts = EnergyParts {
            begin: Some(at(2)),
            ..EnergyParts::default()
        };
        parts.add(&recorded(1, 6), Span::new(at(2), at(5)));
        parts.begin = Some(at(5));
        let energy = parts.finish(&recorded(4, 13), at(12)).unwrap();
        assert!((energy.value.get() - 1500.0).abs() < 1.0, "{energy:?}");
        let (low, high) = energy.interval95;
        assert!(low <= energy.value && energy.value <= high, "{energy:?}");
    }

    #[test]
    fn a_part_without_readings_makes_the_energy_unknown() {
        let mut parts = EnergyParts {
            begin: Some(at(2)),
            ..EnergyParts::default()
        };
        parts.add(&recorded(0, 0), Span::new(at(2), at(5)));
        assert_eq!(parts.finish(&recorded(4, 13), at(12)), None);
        assert_eq!(
            EnergyParts::default().finish(&recorded(4, 13), at(12)),
            None
        );
    }
}
