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

/// The energy of the GPUs during `hold`, measured part by part.
#[derive(Default)]
pub struct EnergyParts {
    /// The start of the current part; `None` before the first batch.
    begin: Option<Moment>,
    gpus: Vec<GpuEnergy>,
}

/// The energy of one GPU, measured part by part.
#[derive(Clone, Copy, Default)]
struct GpuEnergy {
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
        self.gpus.resize(recorded.len(), GpuEnergy::default());
        for (own, one) in self.gpus.iter_mut().zip(recorded) {
            own.add(one, &span);
        }
    }

    /// Adds the last part, up to the end of the last batch, and returns the energy of all parts of each GPU.
    pub fn finish(mut self, recorded: &[DeviceRecording], last: Moment) -> Vec<Option<HoldEnergy>> {
        if let Some(begin) = self.begin.filter(|begin| last > *begin) {
            self.add(recorded, Span::new(begin, last));
        }
        self.gpus.iter().map(GpuEnergy::total).collect()
    }
}

impl GpuEnergy {
    /// Adds the energy of one part.
    fn add(&mut self, recorded: &DeviceRecording, span: &Span) {
        let measured = EnergyEstimator::new(&recorded.trace).energy(span, MethodChoice::Auto);
        // An energy that covers the span only partly would be too small.
        match measured
            .ok()
            .filter(|energy| energy.uncovered(span).next().is_none())
        {
            Some(energy) => {
                self.sum += energy.value;
                self.interval95.0 += energy.interval95.0;
                self.interval95.1 += energy.interval95.1;
                self.method = Some(energy.method);
            }
            None => self.is_missing = true,
        }
    }

    /// The energy of all parts; `None` if a part could not be measured.
    fn total(&self) -> Option<HoldEnergy> {
        self.method
            .filter(|_| !self.is_missing)
            .map(|method| HoldEnergy {
                value: self.sum,
                interval95: self.interval95,
                method,
            })
    }
}

/// The energy of all GPUs together; `None` if that of one is unknown. The ends of the intervals are added up, as if all
/// errors had the same sign: GPUs of one model have the same errors.
pub fn total_energy(gpus: &[Option<HoldEnergy>]) -> Option<HoldEnergy> {
    let all: Option<Vec<HoldEnergy>> = gpus.iter().copied().collect();
    all?.into_iter().reduce(|sum, one| HoldEnergy {
        value: sum.value + one.value,
        interval95: (
            sum.interval95.0 + one.interval95.0,
            sum.interval95.1 + one.interval95.1,
        ),
        method: sum.method,
    })
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
        let energy = total_energy(&parts.finish(&recorded(4, 13), at(12))).unwrap();
        assert!((energy.value.get() - 1500.0).abs() < 1.0, "{energy:?}");
        let (low, high) = energy.interval95;
        assert!(low <= energy.value && energy.value <= high, "{energy:?}");
    }

    #[test]
    fn the_energy_of_several_gpus_is_known_if_that_of_each_is() {
        let energy = |begin: Option<Moment>, second: Vec<DeviceRecording>| {
            let mut recordings = recorded(1, 6);
            recordings.extend(second);
            let parts = EnergyParts {
                begin,
                ..EnergyParts::default()
            };
            total_energy(&parts.finish(&recordings, at(5)))
        };
        let both = energy(Some(at(2)), recorded(1, 6)).unwrap();
        assert!((both.value.get() - 900.0).abs() < 1.0, "{both:?}");
        assert_eq!(energy(Some(at(2)), recorded(1, 3)), None);
    }

    #[test]
    fn a_part_without_readings_makes_the_energy_unknown() {
        let mut parts = EnergyParts {
            begin: Some(at(2)),
            ..EnergyParts::default()
        };
        parts.add(&recorded(0, 0), Span::new(at(2), at(5)));
        assert_eq!(parts.finish(&recorded(4, 13), at(12)), [None]);
        let none = EnergyParts::default().finish(&recorded(4, 13), at(12));
        assert_eq!(total_energy(&none), None);
    }
}
