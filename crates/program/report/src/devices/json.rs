//! The document of devices, `sweetspot.devices/1`.

use sweetspot_device::{
    Amount, Descriptor, DeviceKind, Domain, Knob, KnobDescriptor, PowerLimits, SensorKind,
};
use sweetspot_document::common::SchemaName;
use sweetspot_document::devices as document;
use sweetspot_session::{DeviceReport, HostPartReport, MeterReport, SensorReport};

/// Makes the document of devices.
pub fn devices_json(
    driver: Option<&str>,
    reports: &[DeviceReport],
    host: &[HostPartReport],
    meters: &[MeterReport],
) -> document::Devices {
    document::Devices {
        schema: SchemaName::DEVICES,
        driver: driver.map(str::to_owned),
        devices: reports.iter().map(device).collect(),
        host: host.iter().map(host_part).collect(),
        meters: meters.iter().map(super::meters::meter_json).collect(),
    }
}

/// Makes the entry of a part of the host.
fn host_part(report: &HostPartReport) -> document::HostPart {
    let descriptor = &report.descriptor;
    let sensors = report.sensors.iter();
    document::HostPart {
        id: descriptor.id.to_string(),
        name: descriptor.name.clone(),
        kind: match descriptor.kind {
            DeviceKind::CpuPackage => document::HostPartKind::CpuPackage,
            DeviceKind::Dram => document::HostPartKind::Dram,
            DeviceKind::Platform => document::HostPartKind::Platform,
            DeviceKind::Probe => document::HostPartKind::Probe,
            DeviceKind::CpuPart | DeviceKind::Gpu | DeviceKind::Node => {
                document::HostPartKind::CpuPart
            }
        },
        zone: report.zone.clone(),
        meter: report.meter.clone(),
        parent: descriptor.parent.as_ref().map(ToString::to_string),
        is_host_energy: descriptor.kind.is_host_energy(),
        sensors: sensors
            .map(|(kind, now)| document::HostSensor {
                kind: sensor_kind(*kind),
                reading: reading(now),
            })
            .collect(),
        remedy: report.remedy,
        power_cap_w: report
            .limits
            .as_ref()
            .map(|limits| power_caps(limits, descriptor)),
        power_cap_enabled: report.cap_is_enabled,
        power_cap_remedy: report.cap_remedy,
    }
}

/// Makes the entry of one device.
fn device(report: &DeviceReport) -> document::Device {
    let descriptor = &report.descriptor;
    document::Device {
        index: report.index,
        uuid: descriptor.id.to_string(),
        name: descriptor.name.clone(),
        architecture: report.architecture.clone(),
        parent: descriptor.parent.as_ref().map(ToString::to_string),
        memory_bytes: descriptor.memory.map(|memory| memory.get() as u64),
        power_cap_w: power_caps(&report.limits, descriptor),
        core_clocks_mhz: clocks(descriptor, Knob::CoreClock),
        memory_clocks_mhz: clocks(descriptor, Knob::MemoryClock),
        memory_clock_range_mhz: memory_clock_range(descriptor),
        sensors: report.sensors.iter().map(sensor).collect(),
    }
}

/// Makes the entry of a device's power caps.
fn power_caps(
    limits: &Result<PowerLimits, String>,
    descriptor: &Descriptor,
) -> document::PowerCaps {
    let limits = limits.as_ref().ok();
    let range = match descriptor.knob(Knob::PowerCap) {
        Some(KnobDescriptor::PowerCap(range)) => match &range.domain {
            Domain::Range { min, max } => Some((min.get(), max.get())),
            Domain::Levels(_) => None,
        },
        _ => None,
    };
    document::PowerCaps {
        requested: limits.map(|limits| limits.requested.get()),
        enforced: limits.map(|limits| limits.enforced.get()),
        default: limits.map(|limits| limits.default.get()),
        min: range.map(|(min, _)| min),
        max: range.map(|(_, max)| max),
    }
}

/// The range of memory clocks of a device; `None` if it has single clocks, or none.
fn memory_clock_range(descriptor: &Descriptor) -> Option<document::ClockRange> {
    match descriptor.knob(Knob::MemoryClock)? {
        KnobDescriptor::MemoryClock(range) => match &range.domain {
            Domain::Range { min, max } => Some(document::ClockRange {
                min: min.get(),
                max: max.get(),
                default: range.default.get(),
            }),
            Domain::Levels(_) => None,
        },
        _ => None,
    }
}

/// The clocks that a device supports, in MHz; `None` if they are unknown.
fn clocks(descriptor: &Descriptor, knob: Knob) -> Option<Vec<f64>> {
    match descriptor.knob(knob)? {
        KnobDescriptor::CoreClock(range) | KnobDescriptor::MemoryClock(range) => {
            match &range.domain {
                Domain::Levels(levels) => Some(levels.iter().map(|level| level.get()).collect()),
                Domain::Range { .. } => None,
            }
        }
        KnobDescriptor::PowerCap(_) => None,
    }
}

/// Makes the entry of one sensor.
fn sensor(sensor: &SensorReport) -> document::Sensor {
    document::Sensor {
        kind: sensor_kind(sensor.kind),
        source: sensor.source.clone(),
        update_period_s: sensor.update_period.map(|period| period.get()),
        reading: reading(&sensor.now),
    }
}

/// Converts the kind of a sensor.
fn sensor_kind(kind: SensorKind) -> document::SensorKind {
    match kind {
        SensorKind::EnergyCounter => document::SensorKind::EnergyCounter,
        SensorKind::AveragePower => document::SensorKind::AveragePower,
        SensorKind::InstantPower => document::SensorKind::InstantPower,
        SensorKind::BufferedPower => document::SensorKind::BufferedPower,
        SensorKind::MemoryPower => document::SensorKind::MemoryPower,
        SensorKind::Temperature => document::SensorKind::Temperature,
        SensorKind::CoreClock => document::SensorKind::CoreClock,
        SensorKind::MemoryClock => document::SensorKind::MemoryClock,
        SensorKind::Utilisation => document::SensorKind::Utilisation,
        SensorKind::ThrottleReasons => document::SensorKind::ThrottleReasons,
    }
}

/// Makes the entry of a sensor's present value.
fn reading(now: &Result<Amount, String>) -> document::Reading {
    let mut reading = document::Reading::default();
    match now {
        Ok(Amount::Energy(energy)) => reading.energy_j = Some(energy.get()),
        Ok(Amount::Power(power)) => reading.power_w = Some(power.get()),
        Ok(Amount::Temperature(degrees)) => reading.temperature_c = Some(degrees.get()),
        Ok(Amount::Frequency(clock)) => reading.clock_mhz = Some(clock.get()),
        Ok(Amount::Share(share)) => reading.share = Some(share.get()),
        Ok(Amount::Throttle(throttle)) => {
            reading.throttle = Some(document::Throttle {
                idle: throttle.idle,
                power_cap: throttle.power_cap,
                clock_setting: throttle.clock_setting,
                thermal: throttle.thermal,
                hardware: throttle.hardware,
            });
        }
        Err(problem) => reading.problem = Some(problem.clone()),
    }
    reading
}
