//! The sensors and knobs that a GPU supports.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::DeviceArchitecture;
use nvml_wrapper::structs::device::FieldId;
use sweetspot_device::{Domain, KnobDescriptor, KnobRange, Scope, SensorDescriptor, SensorKind};
use sweetspot_quantity::{Megahertz, Seconds, Watts};

use crate::memory_clock::MemoryClockControl;
use crate::raw::{MEMORY_SCOPE, graphics_clocks, power_field, power_samples};

/// The id of the NVML field for power averaged over a second.
pub(crate) const POWER_AVERAGE: FieldId = FieldId(185);
/// The id of the NVML field for instantaneous power.
pub(crate) const POWER_INSTANT: FieldId = FieldId(186);

/// The time over which the averaged power is a mean.
const AVERAGING_WINDOW: Seconds = Seconds::new(1.0);

/// Whether the GPU's architecture is older than Ampere.
pub(crate) fn is_before_ampere(architecture: &DeviceArchitecture) -> bool {
    use DeviceArchitecture::{Kepler, Maxwell, Pascal, Turing, Volta};
    matches!(architecture, Kepler | Maxwell | Pascal | Volta | Turing)
}

/// Whether the GPU can lock its core clock. GPUs before Volta cannot; they have application clocks instead.
pub(crate) fn can_lock_core_clock(architecture: &DeviceArchitecture) -> bool {
    use DeviceArchitecture::{Kepler, Maxwell, Pascal};
    !matches!(architecture, Kepler | Maxwell | Pascal)
}

/// The update period and averaging time of [`SensorKind::InstantPower`], from published studies and
/// measurements of an H200.
pub(crate) fn short_window(
    architecture: &DeviceArchitecture,
    is_ga100: bool,
) -> Option<(Seconds, Seconds)> {
    use DeviceArchitecture::{Ada, Ampere, Hopper, Maxwell, Pascal, Turing, Volta};
    let (period, window) = match architecture {
        Maxwell | Pascal | Volta => (0.020, 0.010),
        Ampere if is_ga100 => (0.100, 0.025),
        Hopper => (0.100, 0.025),
        Turing | Ampere | Ada => (0.100, 0.100),
        _ => return None,
    };
    Some((Seconds::new(period), Seconds::new(window)))
}

/// Finds the sensors of a device by trying to read each one.
pub(crate) fn sensors(
    nvml: &nvml_wrapper::Nvml,
    device: &Device<'_>,
    power_is_averaged: bool,
    short_window: Option<(Seconds, Seconds)>,
) -> Vec<SensorDescriptor> {
    let mut sensors = Vec::new();
    if device.total_energy_consumption().is_ok() {
        let source = "nvmlDeviceGetTotalEnergyConsumption";
        sensors.push(sensor(SensorKind::EnergyCounter, source));
    }
    sensors.extend(power_sensors(device, power_is_averaged, short_window));
    if power_samples(nvml, device, 0).is_ok() {
        let source = "nvmlDeviceGetSamples(NVML_TOTAL_POWER_SAMPLES)";
        sensors.push(sensor(SensorKind::BufferedPower, source));
    }
    if power_field(nvml, device, POWER_AVERAGE.0, MEMORY_SCOPE).is_ok() {
        let source = "NVML_FI_DEV_POWER_AVERAGE, memory scope";
        sensors.push(SensorDescriptor {
            scope: Scope::Memory,
            window: Some(AVERAGING_WINDOW),
            ..sensor(SensorKind::MemoryPower, source)
        });
    }
    let others = [
        (
            device.temperature(TemperatureSensor::Gpu).is_ok(),
            SensorKind::Temperature,
            "nvmlDeviceGetTemperature",
        ),
        (
            device.clock_info(Clock::SM).is_ok(),
            SensorKind::CoreClock,
            "nvmlDeviceGetClockInfo(SM)",
        ),
        (
            device.clock_info(Clock::Memory).is_ok(),
            SensorKind::MemoryClock,
            "nvmlDeviceGetClockInfo(MEM)",
        ),
        (
            device.utilization_rates().is_ok(),
            SensorKind::Utilisation,
            "nvmlDeviceGetUtilizationRates",
        ),
        (
            device.current_throttle_reasons().is_ok(),
            SensorKind::ThrottleReasons,
            "nvmlDeviceGetCurrentClocksThrottleReasons",
        ),
    ];
    let others = others
        .into_iter()
        .filter(|(is_supported, ..)| *is_supported);
    sensors.extend(others.map(|(_, kind, source)| sensor(kind, source)));
    sensors
}

/// Finds the sensors for averaged and for instantaneous power. It depends on the GPU's generation which of the
/// two `nvmlDeviceGetPowerUsage` reads; the other is read as an NVML field.
fn power_sensors(
    device: &Device<'_>,
    power_is_averaged: bool,
    short_window: Option<(Seconds, Seconds)>,
) -> Vec<SensorDescriptor> {
    let has_usage = device.power_usage().is_ok();
    let usage = "nvmlDeviceGetPowerUsage";
    let average = |source| SensorDescriptor {
        window: Some(AVERAGING_WINDOW),
        ..sensor(SensorKind::AveragePower, source)
    };
    let instant = |source| SensorDescriptor {
        update_period: short_window.map(|(period, _)| period),
        window: short_window.map(|(_, window)| window),
        ..sensor(SensorKind::InstantPower, source)
    };
    let sensors = if power_is_averaged {
        [
            has_usage.then(|| average(usage)),
            has_field(device, POWER_INSTANT).then(|| instant("NVML_FI_DEV_POWER_INSTANT")),
        ]
    } else {
        [
            has_usage.then(|| instant(usage)),
            has_field(device, POWER_AVERAGE).then(|| average("NVML_FI_DEV_POWER_AVERAGE")),
        ]
    };
    sensors.into_iter().flatten().collect()
}

/// Describes a sensor of the whole device; its update period and averaging time are unknown.
fn sensor(kind: SensorKind, source: &str) -> SensorDescriptor {
    SensorDescriptor {
        kind,
        scope: Scope::Device,
        source: source.to_owned(),
        update_period: None,
        window: None,
    }
}

/// Whether the device supports an NVML field.
fn has_field(device: &Device<'_>, id: FieldId) -> bool {
    let values = device.field_values_for(&[id]);
    values.is_ok_and(|values| {
        let value = values.into_iter().next();
        value.is_some_and(|value| value.is_ok_and(|sample| sample.value.is_ok()))
    })
}

/// Converts clocks in MHz, without duplicates and in ascending order.
fn ascending(clocks: Vec<u32>) -> Vec<Megahertz> {
    let mut clocks: Vec<f64> = clocks.into_iter().map(f64::from).collect();
    clocks.sort_by(f64::total_cmp);
    clocks.dedup();
    clocks.into_iter().map(Megahertz::new).collect()
}

/// The memory clocks that the driver lists for a device, in ascending order; none if it lists none.
pub(crate) fn listed_memory_clocks(device: &Device<'_>) -> Vec<Megahertz> {
    let clocks = device.supported_memory_clocks();
    clocks.map(ascending).unwrap_or_default()
}

/// Finds the knobs of a device and their supported values; `memory_control` says how its memory clock is set.
pub(crate) fn knobs(
    nvml: &nvml_wrapper::Nvml,
    device: &Device<'_>,
    architecture: &DeviceArchitecture,
    memory_control: Option<MemoryClockControl>,
    memory_clocks: Vec<Megahertz>,
) -> Vec<KnobDescriptor> {
    let mut knobs = Vec::new();
    let watts = |milliwatts: u32| Watts::new(f64::from(milliwatts) / 1e3);
    if let (Ok(limits), Ok(default)) = (
        device.power_management_limit_constraints(),
        device.power_management_limit_default(),
    ) {
        knobs.push(KnobDescriptor::PowerCap(KnobRange {
            domain: Domain::Range {
                min: watts(limits.min_limit),
                max: watts(limits.max_limit),
            },
            default: watts(default),
            readable: true,
        }));
    }
    let Some(fastest) = memory_clocks.last().copied() else {
        return knobs;
    };
    let cores = ascending(graphics_clocks(nvml, device, fastest.get() as u32));
    if let Some(highest) = cores.last().copied() {
        knobs.push(KnobDescriptor::CoreClock(KnobRange {
            domain: Domain::Levels(cores),
            default: highest,
            readable: !can_lock_core_clock(architecture),
        }));
    }
    let memory = memory_control.and_then(|control| control.knob_range(memory_clocks));
    knobs.extend(memory.map(KnobDescriptor::MemoryClock));
    knobs
}
