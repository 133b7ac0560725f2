//! `devices`: lists the GPUs and observes how their sensors behave.

use std::time::{Duration, Instant};

use sweetspot_device::{
    Amount, Descriptor, Device, DeviceId, HostDevice, MigSlices, PowerLimits, Reading, SensorKind,
};
use sweetspot_hosts::{CAP_FIX, ENERGY_FIX, HostPart, open_host_tree};
use sweetspot_quantity::Seconds;

use crate::SessionError;
use crate::host::{Gpu, all_gpus, descriptors, open_host, reject_lost, select};

/// A sensor of a device, with its present value and its observed update period.
#[derive(Clone, Debug, PartialEq)]
pub struct SensorReport {
    /// The kind of sensor.
    pub kind: SensorKind,
    /// The driver's function or field that the sensor is read from.
    pub source: String,
    /// The sensor's present value, or why it cannot be read.
    pub now: Result<Amount, String>,
    /// The median time between two new values; `None` if the value changed too rarely to tell.
    pub update_period: Option<Seconds>,
}

/// A GPU with its limits and sensors, as `devices` lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReport {
    /// The GPU's index in the driver's order.
    pub index: u32,
    /// The GPU's identity, name, sensors and knobs.
    pub descriptor: Descriptor,
    /// The name of the GPU's architecture, such as `Hopper`.
    pub architecture: String,
    /// The requested, enforced and default power limits, or why they cannot be read.
    pub limits: Result<PowerLimits, String>,
    /// The GPU's sensors, in the descriptor's order.
    pub sensors: Vec<SensorReport>,
}

/// A processor package, its memory, a part of it, or a power probe, as `devices` lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostPartReport {
    /// The part's identity, name, sensors and knobs.
    pub descriptor: Descriptor,
    /// The name of the zone or channel in the kernel.
    pub zone: String,
    /// How a probe is named as a meter; `None` for other parts.
    pub meter: Option<String>,
    /// The value of each sensor, or why it cannot be read.
    pub sensors: Vec<(SensorKind, Result<Amount, String>)>,
    /// What this user can do about a sensor that may not be read; `None` if all can be read.
    pub remedy: Option<&'static str>,
    /// The power limits; `None` if the part has no power cap.
    pub limits: Option<Result<PowerLimits, String>>,
    /// Whether the power cap is switched on; `None` if it cannot be switched off.
    pub cap_is_enabled: Option<bool>,
    /// What this user can do to set the power cap; `None` if nothing is needed or there is no cap.
    pub cap_remedy: Option<&'static str>,
}

/// Lists the processor packages and the power probes of this machine, each with its present value.
pub fn host_parts() -> Result<Vec<HostPartReport>, SessionError> {
    let parts = open_host_tree().parts()?;
    Ok(parts.into_iter().map(report_part).collect())
}

/// Reads all sensors of a part once.
fn report_part(mut part: HostPart) -> HostPartReport {
    let sensors = part.sensor_kinds().into_iter().map(|kind| {
        let now = part.read(kind).map(|reading| reading.amount);
        (kind, now.map_err(|error| error.to_string()))
    });
    let sensors = sensors.collect();
    let has_cap = part.may_set_cap().is_some();
    let limits = has_cap.then(|| part.power_limits().map_err(|error| error.to_string()));
    HostPartReport {
        zone: part.zone().to_owned(),
        meter: part.probe_spec(),
        sensors,
        remedy: part.is_denied().then_some(ENERGY_FIX),
        limits,
        cap_is_enabled: part.cap_is_enabled(),
        cap_remedy: (part.may_set_cap() == Some(false)).then_some(CAP_FIX),
        descriptor: part.descriptor().clone(),
    }
}

/// How long the sensors are observed.
const OBSERVATION_TIME: Duration = Duration::from_millis(1500);

/// The GPUs that `devices` lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedDevices {
    /// The driver's version; `None` without a driver.
    pub driver: Option<String>,
    /// The GPUs that answer.
    pub devices: Vec<DeviceReport>,
    /// The index and the name of each GPU that no longer answers.
    pub lost: Vec<(u32, String)>,
}

/// Describes the selected devices and observes their sensors for 1.5 s. It is an error if none of them answers.
pub fn devices(selector: Option<&str>) -> Result<ListedDevices, SessionError> {
    let host = open_host()?;
    let driver = host.driver_version()?;
    let selected = select(all_gpus(host.as_ref())?, selector, MigSlices::Include)?;
    let (lost, gpus): (Vec<Gpu>, Vec<Gpu>) = selected.into_iter().partition(|gpu| gpu.is_lost());
    if gpus.is_empty() {
        reject_lost(&lost)?;
    }
    let reports = std::thread::scope(|scope| {
        let threads: Vec<_> = gpus
            .into_iter()
            .map(|gpu| scope.spawn(move || report_device(gpu)))
            .collect();
        let reports = threads.into_iter().filter_map(|thread| thread.join().ok());
        reports.collect()
    });
    let name = |gpu: &Gpu| (gpu.index(), gpu.descriptor().name.clone());
    Ok(ListedDevices {
        driver: Some(driver),
        devices: reports,
        lost: lost.iter().map(name).collect(),
    })
}

/// The descriptors of the working GPUs that a selector names.
pub fn gpu_descriptors(selector: Option<&str>) -> Result<Vec<Descriptor>, SessionError> {
    let gpus = select(
        all_gpus(open_host()?.as_ref())?,
        selector,
        MigSlices::Exclude,
    )?;
    reject_lost(&gpus)?;
    Ok(descriptors(&gpus))
}

/// The index and identity of every whole GPU of this machine.
pub fn gpu_ids() -> Result<Vec<(u32, DeviceId)>, SessionError> {
    let gpus = all_gpus(open_host()?.as_ref())?;
    let whole = gpus.iter().filter(|gpu| gpu.descriptor().parent.is_none());
    let ids = whole.map(|gpu| (gpu.index(), gpu.descriptor().id.clone()));
    Ok(ids.collect())
}

/// Reads all sensors of a GPU once and observes their update periods.
fn report_device(mut gpu: Gpu) -> DeviceReport {
    let descriptor = gpu.descriptor().clone();
    let kinds: Vec<SensorKind> = descriptor
        .sensors
        .iter()
        .map(|sensor| sensor.kind)
        .collect();
    let periods = observe_update_periods(gpu.as_mut(), &kinds);
    let sensors = descriptor
        .sensors
        .iter()
        .zip(periods)
        .map(|(sensor, update_period)| SensorReport {
            kind: sensor.kind,
            source: sensor.source.clone(),
            now: gpu
                .read(sensor.kind)
                .map(|reading| reading.amount)
                .map_err(|error| error.to_string()),
            update_period,
        })
        .collect();
    DeviceReport {
        index: gpu.index(),
        architecture: gpu.architecture(),
        limits: gpu.power_limits().map_err(|error| error.to_string()),
        descriptor,
        sensors,
    }
}

/// Observes for [`OBSERVATION_TIME`] how often each sensor's value changes, and returns the median times.
fn observe_update_periods(gpu: &mut dyn HostDevice, kinds: &[SensorKind]) -> Vec<Option<Seconds>> {
    let is_polled = |kind: &SensorKind| {
        matches!(
            kind,
            SensorKind::EnergyCounter | SensorKind::AveragePower | SensorKind::InstantPower
        )
    };
    let mut last: Vec<Option<Reading>> = vec![None; kinds.len()];
    let mut changes: Vec<Vec<f64>> = vec![Vec::new(); kinds.len()];
    let start = Instant::now();
    while start.elapsed() < OBSERVATION_TIME {
        for (index, kind) in kinds.iter().enumerate().filter(|(_, kind)| is_polled(kind)) {
            let Ok(reading) = gpu.read(*kind) else {
                continue;
            };
            if last[index].is_some_and(|last| last.amount != reading.amount) {
                changes[index].push(reading.at.nanos() as f64 * 1e-9);
            }
            last[index] = Some(reading);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    if let Some(index) = kinds
        .iter()
        .position(|kind| *kind == SensorKind::BufferedPower)
        && let Ok(drained) = gpu.drain()
    {
        let times = drained
            .readings
            .iter()
            .map(|reading| reading.at.nanos() as f64 * 1e-9);
        changes[index] = times.collect();
    }
    changes.iter().map(|times| median_gap(times)).collect()
}

/// The median of the times between neighbouring moments, which are in seconds; `None` if there are too few.
fn median_gap(times: &[f64]) -> Option<Seconds> {
    /// The minimum number of times between changes for a median.
    const MIN_GAPS: usize = 4;
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if gaps.len() < MIN_GAPS {
        return None;
    }
    gaps.sort_by(f64::total_cmp);
    Some(Seconds::new(gaps[gaps.len() / 2]))
}
