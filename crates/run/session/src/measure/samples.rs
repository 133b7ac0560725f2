//! Converts the readings of a measurement to time series for storage.

use sweetspot_device::{Moment, Throttle};
use sweetspot_measure::DeviceRecording;
use sweetspot_study::{Column, Quantity, Series};

/// The time series of all devices; times count from `begin`.
pub fn series(recorded: &[DeviceRecording], begin: Moment) -> Vec<Series> {
    recorded
        .iter()
        .flat_map(|recorded| device_series(recorded, begin))
        .filter(|series| !series.nanos.is_empty())
        .collect()
}

/// The time series of one device.
fn device_series(recorded: &DeviceRecording, begin: Moment) -> Vec<Series> {
    let device = recorded.device.to_string();
    let nanos = |at: Moment| at.nanos() as i64 - begin.nanos() as i64;
    let new = |source: &str, times: Vec<i64>, columns| Series {
        device: device.clone(),
        source: source.to_owned(),
        nanos: times,
        columns,
        throttle: None,
    };
    let trace = &recorded.trace;
    let mut all = Vec::new();
    let times = trace.buffer.iter().map(|sample| nanos(sample.at));
    let power = trace.buffer.iter().map(|sample| sample.power.get() as f32);
    let power = (Quantity::Power, Column::All(power.collect()));
    all.push(new("buffer", times.collect(), vec![power]));
    for (source, values) in [("instant", &trace.instant), ("average", &trace.average)] {
        let times = values.iter().map(|value| nanos(value.appeared.end));
        let power = values.iter().map(|value| value.power.get() as f32);
        let power = (Quantity::Power, Column::All(power.collect()));
        all.push(new(source, times.collect(), vec![power]));
    }
    let times = trace
        .counter
        .iter()
        .map(|reading| nanos(reading.call.middle()));
    let energy = trace
        .counter
        .iter()
        .map(|reading| Some(reading.value.get()));
    let energy = (Quantity::Energy, Column::Some(energy.collect()));
    all.push(new("counter", times.collect(), vec![energy]));
    let auxiliary = &recorded.auxiliary;
    let column = |of: Quantity, value: fn(&sweetspot_measure::AuxiliaryReadings) -> Option<f64>| {
        (of, Column::Some(auxiliary.iter().map(value).collect()))
    };
    let columns = vec![
        column(Quantity::Utilisation, |row| {
            row.utilisation.map(|share| share.get())
        }),
        column(Quantity::CoreClock, |row| {
            row.core_clock.map(|clock| clock.get())
        }),
        column(Quantity::MemoryClock, |row| {
            row.memory_clock.map(|clock| clock.get())
        }),
        column(Quantity::Temperature, |row| {
            row.temperature.map(|degrees| degrees.get())
        }),
    ];
    let times = auxiliary.iter().map(|row| nanos(row.at)).collect();
    let throttle = auxiliary
        .iter()
        .map(|row| row.throttle.map(throttle_reasons));
    all.push(Series {
        throttle: Some(throttle.collect()),
        ..new("beside", times, columns)
    });
    all
}

/// The names of the active throttle reasons, separated by commas.
fn throttle_reasons(throttle: Throttle) -> String {
    let all = [
        (throttle.idle, "idle"),
        (throttle.power_cap, "power-cap"),
        (throttle.clock_setting, "clock-setting"),
        (throttle.thermal, "thermal"),
        (throttle.hardware, "hardware"),
    ];
    let named = all.into_iter().filter_map(|(is, name)| is.then_some(name));
    named.collect::<Vec<_>>().join(",")
}
