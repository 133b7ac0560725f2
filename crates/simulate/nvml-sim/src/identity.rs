//! NVML functions for finding devices and reading their fixed properties.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong};

use nvml::{nvmlDevice_t, nvmlPciInfo_t};
use nvml_wrapper_sys::bindings as nvml;
use sweetspot_sim::Generation;
use sweetspot_sim_host::SharedGpu;

use crate::support::*;

/// The number of the GPU's PCI bus.
fn bus(gpu: &SharedGpu) -> u32 {
    0x1a + gpu.index() as u32
}

/// The PCI address of the GPU, in NVML's format.
fn bus_id(gpu: &SharedGpu) -> String {
    format!("00000000:{:02X}:00.0", bus(gpu))
}

/// NVML's code for a generation's architecture.
fn architecture(generation: Generation) -> u32 {
    match generation {
        Generation::Maxwell => nvml::NVML_DEVICE_ARCH_MAXWELL,
        Generation::Pascal => nvml::NVML_DEVICE_ARCH_PASCAL,
        Generation::Volta => nvml::NVML_DEVICE_ARCH_VOLTA,
        Generation::Turing => nvml::NVML_DEVICE_ARCH_TURING,
        Generation::AmpereGa100 | Generation::Ampere => nvml::NVML_DEVICE_ARCH_AMPERE,
        Generation::Ada => nvml::NVML_DEVICE_ARCH_ADA,
        Generation::Hopper => nvml::NVML_DEVICE_ARCH_HOPPER,
    }
}

/// The CUDA compute capability of a generation: major and minor version.
fn capability(generation: Generation) -> (c_int, c_int) {
    match generation {
        Generation::Maxwell => (5, 2),
        Generation::Pascal => (6, 1),
        Generation::Volta => (7, 0),
        Generation::Turing => (7, 5),
        Generation::AmpereGa100 => (8, 0),
        Generation::Ampere => (8, 6),
        Generation::Ada => (8, 9),
        Generation::Hopper => (9, 0),
    }
}

/// Finds the device with this UUID or bus id; `names` returns that name of a device.
fn find_device(
    text: *const c_char,
    names: impl Fn(&SharedGpu) -> String,
) -> Result<nvmlDevice_t, u32> {
    if text.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: by NVML's contract the text is zero-terminated.
    let text = unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| INVALID_ARGUMENT)?;
    let found = host()?
        .gpus()
        .iter()
        .find(|gpu| names(gpu).eq_ignore_ascii_case(text));
    found.map(|gpu| handle(gpu.index())).ok_or(NOT_FOUND)
}

/// Writes the handle of the device with this index to the client's pointer.
fn write_handle(index: c_uint, device: *mut nvmlDevice_t) -> NvmlResult {
    if index as usize >= host()?.gpus().len() {
        return Err(INVALID_ARGUMENT);
    }
    write_value(device, handle(index as usize))
}

/// Copies a text to a fixed-size field of an NVML structure, terminated by zero.
fn copy_text(target: &mut [c_char], text: &str) {
    for (target, byte) in target.iter_mut().zip(text.bytes().chain([0])) {
        *target = byte as c_char;
    }
}

exports! {
    fn nvmlDeviceGetCount_v2(count: *mut c_uint) { write_value(count, host()?.gpus().len() as c_uint) }
    fn nvmlDeviceGetCount(count: *mut c_uint) { write_value(count, host()?.gpus().len() as c_uint) }
    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t) { write_handle(index, device) }
    fn nvmlDeviceGetHandleByIndex(index: c_uint, device: *mut nvmlDevice_t) { write_handle(index, device) }
    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut nvmlDevice_t) {
        write_value(device, find_device(uuid, SharedGpu::uuid)?)
    }
    fn nvmlDeviceGetHandleByPciBusId_v2(id: *const c_char, device: *mut nvmlDevice_t) {
        write_value(device, find_device(id, bus_id)?)
    }
    fn nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint) {
        write_text(name, length, &gpu(device)?.profile().name)
    }
    fn nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: c_uint) {
        write_text(uuid, length, &gpu(device)?.uuid())
    }
    fn nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut c_uint) {
        write_value(index, gpu(device)?.index() as c_uint)
    }
    fn nvmlDeviceGetMinorNumber(device: nvmlDevice_t, number: *mut c_uint) {
        write_value(number, gpu(device)?.index() as c_uint)
    }
    fn nvmlDeviceGetArchitecture(device: nvmlDevice_t, target: *mut c_uint) {
        write_value(target, architecture(gpu(device)?.profile().sensors))
    }
    fn nvmlDeviceGetBrand(device: nvmlDevice_t, brand: *mut c_uint) {
        gpu(device)?;
        write_value(brand, nvml::nvmlBrandType_enum_NVML_BRAND_NVIDIA)
    }
    fn nvmlDeviceGetCudaComputeCapability(device: nvmlDevice_t, major: *mut c_int, minor: *mut c_int) {
        let (high, low) = capability(gpu(device)?.profile().sensors);
        write_value(major, high)?;
        write_value(minor, low)
    }
    fn nvmlDeviceGetNumGpuCores(device: nvmlDevice_t, count: *mut c_uint) {
        write_value(count, gpu(device)?.profile().core.units as c_uint)
    }
    fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, target: *mut nvmlPciInfo_t) {
        let gpu = gpu(device)?;
        let mut info = nvmlPciInfo_t {
            busIdLegacy: [0; 16],
            domain: 0,
            bus: bus(gpu),
            device: 0,
            pciDeviceId: 0x1db1_10de,
            pciSubSystemId: 0x1212_10de,
            busId: [0; 32],
        };
        copy_text(&mut info.busId, &bus_id(gpu));
        copy_text(&mut info.busIdLegacy, &format!("0000:{:02X}:00.0", bus(gpu)));
        write_value(target, info)
    }
    fn nvmlDeviceGetPersistenceMode(device: nvmlDevice_t, mode: *mut c_uint) {
        write_value(mode, c_uint::from(read_gpu(device, |live| live.persistence())?))
    }
    fn nvmlDeviceSetPersistenceMode(device: nvmlDevice_t, mode: c_uint) {
        if mode > 1 {
            return Err(INVALID_ARGUMENT);
        }
        write_gpu(device, &format!("persistence_mode {mode}"), |live| {
            live.set_persistence(mode == 1);
            Ok(())
        })
    }
    fn nvmlDeviceGetComputeMode(device: nvmlDevice_t, mode: *mut c_uint) {
        gpu(device)?;
        write_value(mode, nvml::nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT)
    }
    fn nvmlDeviceGetDisplayMode(device: nvmlDevice_t, mode: *mut c_uint) {
        gpu(device)?;
        write_value(mode, 0)
    }
    fn nvmlDeviceGetDisplayActive(device: nvmlDevice_t, active: *mut c_uint) {
        gpu(device)?;
        write_value(active, 0)
    }
    fn nvmlDeviceGetMigMode(device: nvmlDevice_t, _current: *mut c_uint, _pending: *mut c_uint) {
        gpu(device)?;
        Err(NOT_SUPPORTED)
    }
    fn nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, count: *mut c_uint) {
        gpu(device)?;
        write_value(count, 0)
    }
    fn nvmlDeviceGetFanSpeed(device: nvmlDevice_t, _speed: *mut c_uint) {
        gpu(device)?;
        Err(NOT_SUPPORTED)
    }
    fn nvmlDeviceGetEncoderUtilization(device: nvmlDevice_t, utilisation: *mut c_uint, period: *mut c_uint) {
        gpu(device)?;
        write_value(utilisation, 0)?;
        write_value(period, 100_000)
    }
    fn nvmlDeviceGetDecoderUtilization(device: nvmlDevice_t, utilisation: *mut c_uint, period: *mut c_uint) {
        gpu(device)?;
        write_value(utilisation, 0)?;
        write_value(period, 100_000)
    }
    fn nvmlDeviceGetCpuAffinity(device: nvmlDevice_t, size: c_uint, set: *mut c_ulong) {
        gpu(device)?;
        for word in 0..size as usize {
            // SAFETY: by NVML's contract there is room for `size` words.
            write_value(unsafe { set.add(word) }, if word == 0 { 1 } else { 0 })?;
        }
        Ok(())
    }
}
