//! NVML functions for power, energy, temperature and utilisation.

use std::ffi::{c_int, c_uint, c_ulonglong};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nvml::{
    nvmlDevice_t, nvmlFieldValue_t, nvmlSample_t, nvmlTemperature_t, nvmlUtilization_t, nvmlValue_t,
};
use nvml_wrapper_sys::bindings as nvml;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim::Generation;
use sweetspot_sim_host::LiveGpu;

use crate::support::*;

/// How long a read of the energy counter takes, as measured on an H200.
const COUNTER_READ_TIME: Duration = Duration::from_micros(2_800);
/// How long a read of the sample buffer takes, as measured on an H200.
const BUFFER_READ_TIME: Duration = Duration::from_micros(170);

/// The fields of throttle times in nanoseconds, with the ids of the simulated driver (580.82 and newer).
const POWER_CAP_TIME: u32 = nvml::field_id::NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP;
const SOFTWARE_THERMAL_TIME: u32 = 269;
const HARDWARE_THERMAL_TIME: u32 = 270;
const POWER_BRAKE_TIME: u32 = 271;

/// Converts a power to whole milliwatts.
fn milliwatts(power: Watts) -> c_uint {
    (power.get() * 1e3).round() as c_uint
}

/// The present wall-clock time, in microseconds.
fn wall_micros() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.as_micros() as u64
}

/// Reads the energy counter in millijoules; as slow as the real driver.
fn millijoules(device: nvmlDevice_t) -> Result<u64, u32> {
    if !gpu(device)?.profile().sensors.has_energy_counter() {
        return Err(NOT_SUPPORTED);
    }
    gpu(device)?
        .occupy_slow_path(COUNTER_READ_TIME)
        .map_err(|_| GPU_IS_LOST)?;
    let energy = read_gpu(device, |live| live.counter())?.ok_or(NOT_SUPPORTED)?;
    Ok((energy.get() * 1e3) as u64)
}

/// Whether a generation has NVML fields for averaged and instantaneous power: Ampere and newer ones have.
fn has_power_fields(generation: Generation) -> bool {
    !matches!(
        generation,
        Generation::Maxwell | Generation::Pascal | Generation::Volta | Generation::Turing
    )
}

/// Reads an NVML field: its value, and NVML's code for the value's type.
fn field_value(device: nvmlDevice_t, id: u32, scope: u32) -> Result<(nvmlValue_t, u32), u32> {
    use nvml::field_id as ids;
    let number = |value: c_uint| {
        let value = nvmlValue_t { uiVal: value };
        (value, nvml::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT)
    };
    let long = |value: u64| {
        let value = nvmlValue_t { ullVal: value };
        (
            value,
            nvml::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
        )
    };
    let generation = gpu(device)?.profile().sensors;
    let power = |read: fn(&LiveGpu<'_>) -> Watts| read_gpu(device, |live| milliwatts(read(live)));
    Ok(match id {
        ids::NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION => long(millijoules(device)?),
        POWER_CAP_TIME | SOFTWARE_THERMAL_TIME | HARDWARE_THERMAL_TIME | POWER_BRAKE_TIME => {
            // A simulated GPU never gets too hot, and its power supply always suffices.
            let counted = match id {
                POWER_CAP_TIME => read_gpu(device, |live| live.limit_times().capped)?,
                _ => 0.0,
            };
            let shown = gpu(device)?.profile().throttle_time(Seconds::new(counted));
            let shown = shown.filter(|_| scope == 0).ok_or(NOT_SUPPORTED)?;
            long((shown.get() * 1e9) as u64)
        }
        _ if !has_power_fields(generation) || scope != 0 => return Err(NOT_SUPPORTED),
        ids::NVML_FI_DEV_ENERGY => long(millijoules(device)?),
        ids::NVML_FI_DEV_POWER_AVERAGE => number(power(|live| live.average_power())?),
        ids::NVML_FI_DEV_POWER_INSTANT => number(power(|live| live.instant_power())?),
        ids::NVML_FI_DEV_POWER_MIN_LIMIT => number(power(|live| live.profile().cap.min)?),
        ids::NVML_FI_DEV_POWER_MAX_LIMIT => number(power(|live| live.profile().cap.max)?),
        ids::NVML_FI_DEV_POWER_DEFAULT_LIMIT => number(power(|live| live.profile().cap.default)?),
        ids::NVML_FI_DEV_POWER_CURRENT_LIMIT | ids::NVML_FI_DEV_POWER_REQUESTED_LIMIT => {
            number(power(|live| live.power_cap())?)
        }
        _ => return Err(NOT_SUPPORTED),
    })
}

exports! {
    fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, power: *mut c_uint) {
        write_value(power, milliwatts(read_gpu(device, |live| live.power_usage())?))
    }
    fn nvmlDeviceGetTotalEnergyConsumption(device: nvmlDevice_t, energy: *mut c_ulonglong) {
        write_value(energy, millijoules(device)?)
    }
    fn nvmlDeviceGetFieldValues(device: nvmlDevice_t, count: c_int, values: *mut nvmlFieldValue_t) {
        gpu(device)?;
        if values.is_null() || count < 0 {
            return Err(INVALID_ARGUMENT);
        }
        for index in 0..count as usize {
            // SAFETY: by NVML's contract there are `count` values with their ids filled in.
            let value = unsafe { &mut *values.add(index) };
            value.timestamp = wall_micros() as i64;
            value.latencyUsec = 0;
            match field_value(device, value.fieldId, value.scopeId) {
                Ok((number, kind)) => {
                    value.value = number;
                    value.valueType = kind;
                    value.nvmlReturn = SUCCESS;
                }
                Err(code) => value.nvmlReturn = code,
            }
        }
        Ok(())
    }
    fn nvmlDeviceGetSamples(
        device: nvmlDevice_t,
        kind: c_uint,
        last_seen: c_ulonglong,
        value_kind: *mut c_uint,
        count: *mut c_uint,
        target: *mut nvmlSample_t,
    ) {
        if kind != nvml::nvmlSamplingType_enum_NVML_TOTAL_POWER_SAMPLES {
            gpu(device)?;
            return Err(NOT_SUPPORTED);
        }
        if count.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        gpu(device)?.occupy_slow_path(BUFFER_READ_TIME).map_err(|_| GPU_IS_LOST)?;
        let samples = read_gpu(device, |live| live.samples())?;
        write_value(value_kind, nvml::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT)?;
        let host = host()?;
        let fresh: Vec<nvmlSample_t> = samples
            .into_iter()
            .map(|sample| nvmlSample_t {
                timeStamp: host.wall_micros(sample.at),
                sampleValue: nvmlValue_t { uiVal: milliwatts(Watts::new(sample.watts)) },
            })
            .filter(|sample| sample.timeStamp > last_seen)
            .collect();
        if target.is_null() {
            return write_value(count, fresh.len() as c_uint);
        }
        // SAFETY: `count` is not null.
        let room = unsafe { count.read() } as usize;
        let written = &fresh[fresh.len().saturating_sub(room)..];
        if written.is_empty() {
            return Err(NOT_FOUND);
        }
        write_value(count, written.len() as c_uint)?;
        for (index, sample) in written.iter().enumerate() {
            // SAFETY: by NVML's contract there is room for `count` samples.
            write_value(unsafe { target.add(index) }, *sample)?;
        }
        Ok(())
    }
    fn nvmlDeviceGetPowerManagementMode(device: nvmlDevice_t, mode: *mut c_uint) {
        gpu(device)?;
        write_value(mode, 1)
    }
    fn nvmlDeviceGetPowerManagementLimit(device: nvmlDevice_t, limit: *mut c_uint) {
        write_value(limit, milliwatts(read_gpu(device, |live| live.power_cap())?))
    }
    fn nvmlDeviceGetEnforcedPowerLimit(device: nvmlDevice_t, limit: *mut c_uint) {
        write_value(limit, milliwatts(read_gpu(device, |live| live.enforced_cap())?))
    }
    fn nvmlDeviceGetPowerManagementDefaultLimit(device: nvmlDevice_t, limit: *mut c_uint) {
        write_value(limit, milliwatts(read_gpu(device, |live| live.profile().cap.default)?))
    }
    fn nvmlDeviceGetPowerManagementLimitConstraints(device: nvmlDevice_t, min: *mut c_uint, max: *mut c_uint) {
        let (low, high) = read_gpu(device, |live| (live.profile().cap.min, live.profile().cap.max))?;
        write_value(min, milliwatts(low))?;
        write_value(max, milliwatts(high))
    }
    fn nvmlDeviceSetPowerManagementLimit(device: nvmlDevice_t, limit: c_uint) {
        let cap = Watts::new(f64::from(limit) * 1e-3);
        if !gpu(device)?.profile().cap.domain().contains(cap) {
            return Err(INVALID_ARGUMENT);
        }
        write_gpu(device, &format!("power_cap {limit} mW"), |live| live.set_power_cap(cap))
    }
    fn nvmlDeviceGetTemperature(device: nvmlDevice_t, sensor: c_uint, temperature: *mut c_uint) {
        if sensor != nvml::nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU {
            return Err(INVALID_ARGUMENT);
        }
        write_value(temperature, read_gpu(device, |live| live.temperature().get())?.round() as c_uint)
    }
    fn nvmlDeviceGetTemperatureV(device: nvmlDevice_t, target: *mut nvmlTemperature_t) {
        if target.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the pointer is not null, and the client has filled in version and sensor.
        let (version, sensor) = unsafe { ((*target).version, (*target).sensorType) };
        check_version::<nvmlTemperature_t>(version, 1)?;
        if sensor != nvml::nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU {
            return Err(INVALID_ARGUMENT);
        }
        let degrees = read_gpu(device, |live| live.temperature().get())?.round() as c_int;
        // SAFETY: the pointer is not null.
        unsafe { (*target).temperature = degrees };
        Ok(())
    }
    fn nvmlDeviceGetTemperatureThreshold(device: nvmlDevice_t, threshold: c_uint, temperature: *mut c_uint) {
        gpu(device)?;
        match threshold {
            nvml::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN => write_value(temperature, 95),
            nvml::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN => write_value(temperature, 90),
            _ => Err(NOT_SUPPORTED),
        }
    }
    fn nvmlDeviceGetUtilizationRates(device: nvmlDevice_t, target: *mut nvmlUtilization_t) {
        let busy = read_gpu(device, |live| live.utilisation())?;
        let percent = (100.0 * busy.get()).round().clamp(0.0, 100.0) as c_uint;
        write_value(target, nvmlUtilization_t { gpu: percent, memory: percent / 2 })
    }
    fn nvmlDeviceGetPerformanceState(device: nvmlDevice_t, state: *mut c_uint) {
        let busy = read_gpu(device, |live| !live.jobs().is_empty())?;
        write_value(state, if busy { 0 } else { 8 })
    }
    fn nvmlDeviceGetPowerState(device: nvmlDevice_t, state: *mut c_uint) {
        let busy = read_gpu(device, |live| !live.jobs().is_empty())?;
        write_value(state, if busy { 0 } else { 8 })
    }
}
