//! Helpers: a simulated host for one test file, because the library opens one host per process.
#![allow(dead_code)]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use sweetspot_nvml_sim as _;
use sweetspot_sim::gpu_text;
use sweetspot_sim_host::{ENVIRONMENT, Host, ProfileText};

pub type Device = *mut c_void;

unsafe extern "C" {
    pub fn nvmlInit_v2() -> c_uint;
    pub fn nvmlShutdown() -> c_uint;
    pub fn nvmlErrorString(code: c_uint) -> *const c_char;
    pub fn nvmlSystemGetDriverVersion(text: *mut c_char, room: c_uint) -> c_uint;
    pub fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_uint;
    pub fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut Device) -> c_uint;
    pub fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut Device) -> c_uint;
    pub fn nvmlDeviceGetName(device: Device, text: *mut c_char, room: c_uint) -> c_uint;
    pub fn nvmlDeviceGetUUID(device: Device, text: *mut c_char, room: c_uint) -> c_uint;
    pub fn nvmlDeviceGetPowerUsage(device: Device, power: *mut c_uint) -> c_uint;
    pub fn nvmlDeviceGetTotalEnergyConsumption(device: Device, energy: *mut c_ulonglong) -> c_uint;
    pub fn nvmlDeviceGetPowerManagementLimit(device: Device, limit: *mut c_uint) -> c_uint;
    pub fn nvmlDeviceSetPowerManagementLimit(device: Device, limit: c_uint) -> c_uint;
    pub fn nvmlDeviceGetPowerManagementLimitConstraints(
        device: Device,
        min: *mut c_uint,
        max: *mut c_uint,
    ) -> c_uint;
    pub fn nvmlDeviceGetClockInfo(device: Device, kind: c_uint, clock: *mut c_uint) -> c_uint;
    pub fn nvmlDeviceGetSupportedMemoryClocks(
        device: Device,
        count: *mut c_uint,
        clocks: *mut c_uint,
    ) -> c_uint;
    pub fn nvmlDeviceGetSupportedGraphicsClocks(
        device: Device,
        memory: c_uint,
        count: *mut c_uint,
        clocks: *mut c_uint,
    ) -> c_uint;
    pub fn nvmlDeviceSetGpuLockedClocks(device: Device, low: c_uint, high: c_uint) -> c_uint;
    pub fn nvmlDeviceResetGpuLockedClocks(device: Device) -> c_uint;
    pub fn nvmlDeviceSetMemoryLockedClocks(device: Device, low: c_uint, high: c_uint) -> c_uint;
    pub fn nvmlDeviceGetTemperature(device: Device, sensor: c_uint, value: *mut c_uint) -> c_uint;
    pub fn nvmlDeviceGetTemperatureV(device: Device, place: *mut c_void) -> c_uint;
    pub fn nvmlDeviceGetMemoryInfo_v2(device: Device, place: *mut c_void) -> c_uint;
    pub fn nvmlDeviceGetUtilizationRates(device: Device, place: *mut c_void) -> c_uint;
    pub fn nvmlDeviceGetFieldValues(device: Device, count: c_int, values: *mut c_void) -> c_uint;
    pub fn nvmlDeviceGetSamples(
        device: Device,
        kind: c_uint,
        last_seen: c_ulonglong,
        value_kind: *mut c_uint,
        count: *mut c_uint,
        samples: *mut c_void,
    ) -> c_uint;
    pub fn nvmlDeviceGetFanSpeed_v2(device: Device, fan: c_uint, speed: *mut c_uint) -> c_uint;
}

pub const SUCCESS: c_uint = 0;
pub const UNINITIALIZED: c_uint = 1;
pub const INVALID_ARGUMENT: c_uint = 2;
pub const NOT_SUPPORTED: c_uint = 3;
pub const NO_PERMISSION: c_uint = 4;
pub const NOT_FOUND: c_uint = 6;
pub const INSUFFICIENT_SIZE: c_uint = 7;
pub const DRIVER_NOT_LOADED: c_uint = 9;
pub const GPU_IS_LOST: c_uint = 15;
pub const ARGUMENT_VERSION_MISMATCH: c_uint = 25;

/// Creates a host of these GPUs, each with faults, and points the library to it. The folder stays until the process
/// ends.
pub fn host(gpus: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap().keep();
    let specs = gpus.iter().map(|(name, faults)| {
        let (name, profile) = gpu_text(name).unwrap();
        let profile = format!("{profile}\n{faults}\n");
        ProfileText { name, profile }
    });
    Host::create(&folder, specs.collect(), None, 1).unwrap();
    // SAFETY: tests call this before they start a thread that reads the environment.
    unsafe { std::env::set_var(ENVIRONMENT, &folder) };
}
