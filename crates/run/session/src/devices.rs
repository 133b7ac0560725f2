//! `devices`: what is here, and how its sensors behave.

use std::time::{Duration, Instant};

use sweetspot_device::{
    Amount, Descriptor, HostDevice, MigSlices, PowerLimits, Reading, SensorKind,
};
use sweetspot_quantity::Seconds;

use crate::SessionError;
use crate::host::{Gpu, all_gpus, open_host, reject_lost, select};

/// A sensor and what was seen of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SensorReport {
    /// What it gives.
    pub kind: SensorKind,
    /// Where it comes from.
    pub source: String,
    /// Its value, where it could be read.
    pub now: Result<Amount, String>,
    /// How often a new value appeared; unknown where it did not change often enough to tell.
    pub update_period: Option<Seconds>,
}

/// A device and what was seen of it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReport {
    /// In the driver's order.
    pub index: u32,
    /// What it is.
    pub descriptor: Descriptor,
    /// Its generation.
    pub architecture: String,
    /// Requested, enforced and default power limit.
    pub limits: Result<PowerLimits, String>,
    /// Its sensors.
    pub sensors: Vec<SensorReport>,
}

/// How long sensors are watched.
const WATCH: Duration = Duration::from_millis(1500);

/// Looks at the chosen devices and watches their sensors for a moment.
pub fn devices(selector: Option<&str>) -> Result<(String, Vec<DeviceReport>), SessionError> {
    let host = open_host()?;
    let driver = host.driver_version()?;
    let gpus = select(all_gpus(host.as_ref())?, selector, MigSlices::Include)?;
    reject_lost(&gpus)?;
    let reports = std::thread::scope(|scope| {
        let watchers: Vec<_> = gpus
            .into_iter()
            .map(|gpu| scope.spawn(move || report(gpu)))
            .collect();
        let reports = watchers
            .into_iter()
            .filter_map(|watcher| watcher.join().ok());
        reports.collect()
    });
    Ok((driver, reports))
}

fn report(mut gpu: Gpu) -> DeviceReport {
    let descriptor = gpu.descriptor().clone();
    let kinds: Vec<SensorKind> = descriptor
        .sensors
        .iter()
        .map(|sensor| sensor.kind)
        .collect();
    let periods = watch(gpu.as_mut(), &kinds);
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

/// The median time between two changes of each sensor.
fn watch(gpu: &mut dyn HostDevice, kinds: &[SensorKind]) -> Vec<Option<Seconds>> {
    let watched = |kind: &SensorKind| {
        matches!(
            kind,
            SensorKind::EnergyCounter | SensorKind::AveragePower | SensorKind::InstantPower
        )
    };
    let mut last: Vec<Option<Reading>> = vec![None; kinds.len()];
    let mut changes: Vec<Vec<f64>> = vec![Vec::new(); kinds.len()];
    let begun = Instant::now();
    while begun.elapsed() < WATCH {
        for (index, kind) in kinds.iter().enumerate().filter(|(_, kind)| watched(kind)) {
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

fn median_gap(times: &[f64]) -> Option<Seconds> {
    const ENOUGH: usize = 4;
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if gaps.len() < ENOUGH {
        return None;
    }
    gaps.sort_by(f64::total_cmp);
    Some(Seconds::new(gaps[gaps.len() / 2]))
}
