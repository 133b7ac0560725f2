//! Reads the sensors and settings of a GPU.

use std::time::{SystemTime, UNIX_EPOCH};

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock as NvmlClock, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use sweetspot_device::{
    Amount, Clock, Descriptor, Device, DrainedSamples, Moment, MonotonicClock, PowerLimits,
    ReadError, Reading, SensorKind, Settings, Throttle, ThrottleTimes, UnitUseReading,
};
use sweetspot_quantity::{Celsius, Joules, Megahertz, Ratio, Watts};

use crate::NvmlGpu;
use crate::capabilities::{POWER_AVERAGE, POWER_INSTANT, can_lock_core_clock};
use crate::error::read_error;
use crate::limits::throttle_times;
use crate::memory_clock::MemoryClockControl;
use crate::raw::{MEMORY_SCOPE, power_field, power_samples};

/// If the wall clock shifts against the monotonic clock by more than this many nanoseconds, the wall clock
/// was set.
const CLOCK_STEP_NANOS: i128 = 20_000_000;

/// Converts milliwatts to a power.
fn watts(milliwatts: u32) -> Amount {
    Amount::Power(Watts::new(f64::from(milliwatts) / 1e3))
}

/// Converts a value of any NVML number type.
fn number(value: &SampleValue) -> f64 {
    match *value {
        SampleValue::F64(value) => value,
        SampleValue::U32(value) => f64::from(value),
        SampleValue::U64(value) => value as f64,
        SampleValue::I64(value) => value as f64,
    }
}

impl NvmlGpu {
    /// Reads a power field of NVML.
    fn field(&self, id: FieldId) -> Result<Amount, NvmlError> {
        let values = self.device.field_values_for(&[id])?;
        let sample = values.into_iter().next().ok_or(NvmlError::NotFound)??;
        Ok(watts(number(&sample.value?) as u32))
    }

    /// Reads a sensor that has a single value.
    fn amount(&self, sensor: SensorKind) -> Result<Amount, NvmlError> {
        let device = &self.device;
        let clock = |kind| {
            Ok(Amount::Frequency(Megahertz::new(f64::from(
                device.clock_info(kind)?,
            ))))
        };
        match sensor {
            SensorKind::EnergyCounter => {
                let millijoules = device.total_energy_consumption()?;
                Ok(Amount::Energy(Joules::new(millijoules as f64 / 1e3)))
            }
            SensorKind::AveragePower if self.power_is_averaged => Ok(watts(device.power_usage()?)),
            SensorKind::AveragePower => self.field(POWER_AVERAGE),
            SensorKind::InstantPower if self.power_is_averaged => self.field(POWER_INSTANT),
            SensorKind::InstantPower => Ok(watts(device.power_usage()?)),
            SensorKind::BufferedPower => {
                let samples = power_samples(self.nvml, device, 0)?;
                let (_, newest) = samples.last().ok_or(NvmlError::NotFound)?;
                Ok(watts(*newest))
            }
            SensorKind::MemoryPower => {
                let power = power_field(self.nvml, device, POWER_AVERAGE.0, MEMORY_SCOPE)?;
                Ok(watts(power))
            }
            SensorKind::Temperature => {
                let degrees = device.temperature(TemperatureSensor::Gpu)?;
                Ok(Amount::Temperature(Celsius::new(f64::from(degrees))))
            }
            SensorKind::CoreClock => clock(NvmlClock::SM),
            SensorKind::MemoryClock => clock(NvmlClock::Memory),
            SensorKind::Utilisation => {
                let percent = device.utilization_rates()?.gpu;
                Ok(Amount::Share(Ratio::new(f64::from(percent) / 100.0)))
            }
            SensorKind::ThrottleReasons => Ok(Amount::Throttle(throttle(
                device.current_throttle_reasons()?,
            ))),
        }
    }
}

/// Converts NVML's throttle reasons.
fn throttle(reasons: ThrottleReasons) -> Throttle {
    let any = |several: ThrottleReasons| reasons.intersects(several);
    Throttle {
        idle: any(ThrottleReasons::GPU_IDLE),
        power_cap: any(ThrottleReasons::SW_POWER_CAP),
        clock_setting: any(
            ThrottleReasons::APPLICATIONS_CLOCKS_SETTING | ThrottleReasons::DISPLAY_CLOCK_SETTING
        ),
        thermal: any(ThrottleReasons::SW_THERMAL_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN),
        hardware: any(ThrottleReasons::HW_SLOWDOWN
            | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN
            | ThrottleReasons::SYNC_BOOST),
    }
}

impl Device for NvmlGpu {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        if self.descriptor.sensor(sensor).is_none() {
            return Err(ReadError::Unsupported(sensor));
        }
        let amount = self
            .amount(sensor)
            .map_err(|error| read_error(sensor, error))?;
        Ok(Reading {
            source: sensor,
            at: MonotonicClock.now(),
            amount,
        })
    }

    fn drain(&mut self) -> Result<DrainedSamples, ReadError> {
        const SENSOR: SensorKind = SensorKind::BufferedPower;
        let samples = power_samples(self.nvml, &self.device, self.last_sample)
            .map_err(|error| read_error(SENSOR, error))?;
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let offset = i128::from(MonotonicClock.now().nanos()) - wall.as_nanos() as i128;
        let clock_stepped = self
            .wall_offset
            .is_some_and(|before| (before - offset).abs() > CLOCK_STEP_NANOS);
        self.wall_offset = Some(offset);
        let readings: Vec<Reading> = samples
            .iter()
            .filter_map(|(micros, milliwatts)| {
                let nanos = i128::from(*micros) * 1000 + offset;
                Some(Reading {
                    source: SENSOR,
                    at: Moment::from_nanos(u64::try_from(nanos).ok()?),
                    amount: watts(*milliwatts),
                })
            })
            .collect();
        let newest = samples.iter().map(|(micros, _)| *micros).max();
        self.last_sample = newest.unwrap_or(self.last_sample);
        Ok(DrainedSamples {
            readings,
            clock_stepped,
        })
    }

    fn throttle_times(&mut self) -> ThrottleTimes {
        throttle_times(self.nvml, &self.device, self.throttle_fields)
    }

    fn unit_use(&mut self) -> UnitUseReading {
        self.unit_monitor.read(self.nvml, &self.device)
    }

    fn persistence(&self) -> Option<bool> {
        self.device.is_in_persistent_mode().ok()
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        let watts = |result: Result<u32, NvmlError>| match result {
            Ok(milliwatts) => Ok(Watts::new(f64::from(milliwatts) / 1e3)),
            Err(NvmlError::GpuLost) => Err(ReadError::Lost),
            Err(error) => Err(ReadError::Limits(error.to_string())),
        };
        Ok(PowerLimits {
            requested: watts(self.device.power_management_limit())?,
            enforced: watts(self.device.enforced_power_limit())?,
            default: watts(self.device.power_management_limit_default())?,
        })
    }

    fn settings(&mut self) -> Result<Settings, ReadError> {
        let mut settings = Settings {
            power_cap: self.power_limits().ok().map(|limits| limits.requested),
            ..Settings::default()
        };
        // Application clocks and offsets can be read; those at their default count as not set.
        let application_clock = |kind| {
            let now = self.device.applications_clock(kind).ok()?;
            let default = self.device.default_applications_clock(kind).ok()?;
            (now != default).then(|| Megahertz::new(f64::from(now)))
        };
        if !can_lock_core_clock(&self.architecture) {
            settings.core_clock = application_clock(NvmlClock::Graphics);
        }
        settings.memory_clock = match &self.memory_control {
            Some(MemoryClockControl::ApplicationClocks) => application_clock(NvmlClock::Memory),
            Some(MemoryClockControl::Offset(range)) => self.memory_clock_by_offset(range)?,
            Some(MemoryClockControl::Lock) | None => None,
        };
        Ok(settings)
    }
}
