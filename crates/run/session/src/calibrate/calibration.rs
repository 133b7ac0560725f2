//! A calibration that was made before, and what it does to measured energies.

use sweetspot_device::DeviceId;
use sweetspot_measure::math::meter::CalibrationLine;
use sweetspot_measure::math::{Attribution, CheckedEnergy, Energy, PhaseEnergy};
use sweetspot_quantity::{Joules, Seconds, Watts};

use crate::measure::DeviceRun;

/// What the meter of a calibration measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeterScope {
    /// The whole machine, as at the wall socket.
    #[default]
    Machine,
    /// The calibrated device alone, as a probe on its supply wires.
    Device,
}

impl MeterScope {
    /// The name in files and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Device => "device",
        }
    }
}

impl std::str::FromStr for MeterScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Machine, Self::Device]
            .into_iter()
            .find(|scope| scope.name() == text)
            .ok_or_else(|| {
                format!("`{text}` is nothing that a meter measures: use machine or device")
            })
    }
}

/// The calibration of the sensor of a GPU, or of the counters of the host, by a meter.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The name by which it is applied.
    pub name: String,
    /// The calibrated GPU, or all parts of the host, whose sum was calibrated.
    pub devices: Vec<DeviceId>,
    /// The name of the device.
    pub device_name: String,
    /// The meter, as the user named it.
    pub meter: String,
    /// What the meter measured.
    pub scope: MeterScope,
    /// When it was made, in UTC: `2026-11-18 19:30`.
    pub date: String,
    /// The line from the sensor to the meter.
    pub line: CalibrationLine,
    /// The root mean square of what the line does not explain.
    pub residual: Watts,
}

/// The half width of a 95 % interval, in standard deviations.
const Z95: f64 = 1.96;

impl Calibration {
    /// The offset that is added to the power of a device. At the wall the offset is the rest of the machine, which is not
    /// the device's.
    pub fn applied_offset(&self) -> Option<Watts> {
        (self.scope == MeterScope::Device).then_some(self.line.offset)
    }

    /// Corrects an energy over some time, and its 95 % interval.
    fn correct(
        &self,
        value: Joules,
        interval: (Joules, Joules),
        time: Seconds,
    ) -> (Joules, (Joules, Joules)) {
        // The sum of the parts was calibrated: each gets its part of the offset, and errors that all parts have in common
        // count fully in the sum of independent ones.
        let parts = self.devices.len().max(1) as f64;
        let power = value / time;
        let (corrected, deviation) = match self.scope {
            MeterScope::Device if parts > 1.0 => {
                let of_gain = power * self.line.whole_gain_deviation();
                let of_level = self.line.mean_deviation / parts;
                let deviation = of_gain.get().hypot(of_level.get()) * parts.sqrt();
                (
                    power * self.line.gain + self.line.offset / parts,
                    Watts::new(deviation),
                )
            }
            MeterScope::Device => self.line.at(power),
            MeterScope::Machine => (
                power * self.line.gain,
                power * self.line.whole_gain_deviation() * parts.sqrt(),
            ),
        };
        let value_after = (corrected * time).max(Joules::ZERO);
        let half = |sensor: Joules| {
            let of_sensor = (sensor * self.line.gain).get();
            Joules::new(of_sensor.hypot(Z95 * (deviation * time).get()))
        };
        let low = (value_after - half(value - interval.0)).max(Joules::ZERO);
        (value_after, (low, value_after + half(interval.1 - value)))
    }

    /// Corrects the energy of a device.
    pub(crate) fn correct_energy(&self, energy: &mut Energy) {
        let time = energy.covered.length();
        if time > Seconds::ZERO {
            (energy.value, energy.interval95) = self.correct(energy.value, energy.interval95, time);
        }
    }

    /// Corrects the energy of a phase.
    fn correct_phase(&self, phase: &mut PhaseEnergy) {
        if phase.time > Seconds::ZERO {
            (phase.energy, phase.interval95) =
                self.correct(phase.energy, phase.interval95, phase.time);
            phase.power = phase.energy / phase.time;
            phase.power_interval95 = (
                phase.interval95.0 / phase.time,
                phase.interval95.1 / phase.time,
            );
        }
    }

    /// Corrects the energy by all methods.
    fn correct_checked(&self, measured: &mut CheckedEnergy) {
        self.correct_energy(&mut measured.energy);
        for check in &mut measured.checks {
            self.correct_energy(&mut check.energy);
        }
    }

    /// Corrects the energies of all phases.
    fn correct_phases(&self, attribution: &mut Attribution) {
        for phase in attribution
            .phases
            .iter_mut()
            .chain([&mut attribution.other])
        {
            self.correct_phase(phase);
        }
        self.correct_energy(&mut attribution.total);
    }
}

/// The calibration of a device; `None` if there is none.
pub(crate) fn calibration_of<'a>(
    calibrations: &'a [Calibration],
    device: &DeviceId,
) -> Option<&'a Calibration> {
    calibrations.iter().find(|one| one.devices.contains(device))
}

impl DeviceRun {
    /// Applies the calibration of the device, if there is one, to its energies.
    pub(crate) fn calibrated(mut self, calibrations: &[Calibration]) -> Self {
        let Some(calibration) = calibration_of(calibrations, &self.device.id) else {
            return self;
        };
        if let Ok(measured) = &mut self.energy {
            self.sensor_power = Some(measured.energy.power());
            calibration.correct_checked(measured);
        }
        if let Some(Ok(attribution)) = &mut self.phases {
            calibration.correct_phases(attribution);
        }
        self.calibration = Some(calibration.clone());
        self
    }
}

/// Warnings about devices whose power was outside the range in which they were calibrated.
pub(crate) fn range_warnings(devices: &[DeviceRun]) -> Vec<String> {
    let mut seen: Vec<&str> = Vec::new();
    let mut warnings = Vec::new();
    for calibration in devices
        .iter()
        .filter_map(|device| device.calibration.as_ref())
    {
        if seen.contains(&calibration.name.as_str()) {
            continue;
        }
        seen.push(&calibration.name);
        let own = devices
            .iter()
            .filter(|device| device.calibration.as_ref() == Some(calibration));
        let power: Option<Watts> = own.map(|device| device.sensor_power).sum();
        let line = &calibration.line;
        if let Some(power) = power.filter(|power| line.is_outside(*power)) {
            warnings.push(format!(
                "the calibration {} was made from {:.0} to {:.0}, and the sensor showed {power:.0} on average: its energy is extrapolated; calibrate again with a program that draws as much",
                calibration.name, line.range.0, line.range.1
            ));
        }
    }
    warnings
}
