//! Reads what GPUs do now, for the live page, the metrics and `top`.

use sweetspot_device::{Device, HostDevice, HostError, Moment, ReadError, SensorKind, Throttle};
use sweetspot_document::live::LiveGpu;
use sweetspot_measure::AuxiliaryReadings;

/// Lists the whole GPUs of a host.
pub fn whole_gpus(
    host: &dyn sweetspot_device::Host,
) -> Result<Vec<Box<dyn HostDevice>>, HostError> {
    let gpus = host.list()?.into_iter();
    Ok(gpus
        .filter(|gpu| gpu.descriptor().parent.is_none())
        .collect())
}

/// Reads the present state of a GPU. `power` is read from the GPU unless the caller knows it.
pub fn read_gpu(gpu: &mut dyn HostDevice, power: Option<f64>) -> LiveGpu {
    let descriptor = gpu.descriptor();
    let mut live = LiveGpu {
        index: gpu.index(),
        uuid: descriptor.id.to_string(),
        name: descriptor.name.clone(),
        lost: gpu.is_lost(),
        ..LiveGpu::default()
    };
    if live.lost {
        return live;
    }
    match gpu.power_limits() {
        Ok(limits) => {
            live.cap_w = Some(limits.enforced.get());
            live.default_cap_w = Some(limits.default.get());
        }
        Err(ReadError::Lost) => {
            live.lost = true;
            return live;
        }
        Err(_) => {}
    }
    live.power_w = power.or_else(|| read_power(gpu));
    let readings = AuxiliaryReadings::read(gpu as &mut dyn Device, Moment::default());
    live.core_clock_mhz = readings.core_clock.map(|clock| clock.get());
    live.memory_clock_mhz = readings.memory_clock.map(|clock| clock.get());
    live.temperature_c = readings.temperature.map(|degrees| degrees.get());
    live.utilisation = readings.utilisation.map(|share| share.get());
    live.limited_by = readings.throttle.map(|reasons| limits_in_words(&reasons));
    let times = gpu.throttle_times();
    live.throttled_by_power_s = times.power_cap.map(|time| time.get());
    live.throttled_by_heat_s = times.thermal.map(|time| time.get());
    live
}

/// Reads the power of a GPU in watts.
fn read_power(gpu: &mut dyn HostDevice) -> Option<f64> {
    let sensors = [SensorKind::InstantPower, SensorKind::AveragePower];
    let sensor = sensors
        .into_iter()
        .find(|kind| gpu.descriptor().sensor(*kind).is_some())?;
    match gpu.read(sensor).ok()?.amount {
        sweetspot_device::Amount::Power(power) => Some(power.get()),
        _ => None,
    }
}

/// Why a GPU does not run faster, in words.
pub fn limits_in_words(reasons: &Throttle) -> String {
    let words = [
        (reasons.power_cap, "the power cap"),
        (reasons.thermal, "its temperature"),
        (reasons.hardware, "a limit of the board"),
        (reasons.clock_setting, "a clock setting"),
        (reasons.idle, "nothing to do"),
    ];
    let given: Vec<&str> = words
        .iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, word)| *word)
        .collect();
    match given.is_empty() {
        true => "nothing".to_owned(),
        false => given.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_in_words() {
        assert_eq!(limits_in_words(&Throttle::default()), "nothing");
        let hot = Throttle {
            power_cap: true,
            thermal: true,
            ..Throttle::default()
        };
        assert_eq!(limits_in_words(&hot), "the power cap, its temperature");
    }
}
