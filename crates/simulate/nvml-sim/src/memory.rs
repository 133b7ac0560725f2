//! Memory and the programs that take it.

use std::ffi::c_uint;

use nvml::{
    nvmlBAR1Memory_t, nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t, nvmlProcessInfo_t,
    nvmlProcessInfo_v1_t,
};
use nvml_wrapper_sys::bindings as nvml;

use crate::support::*;

/// Bytes in all and taken.
fn use_of(device: nvmlDevice_t) -> Result<(u64, u64), u32> {
    look(device, |live| {
        let total = live.profile().memory.capacity.get() as u64;
        (total, (live.memory_used().get() as u64).min(total))
    })
}

/// No slice of a GPU.
const WHOLE: c_uint = c_uint::MAX;

fn programs(device: nvmlDevice_t) -> Result<Vec<nvmlProcessInfo_t>, u32> {
    let programs = look(device, |live| live.jobs())?;
    let infos = programs.into_iter().map(|(pid, memory)| nvmlProcessInfo_t {
        pid,
        usedGpuMemory: memory.get() as u64,
        gpuInstanceId: WHOLE,
        computeInstanceId: WHOLE,
    });
    Ok(infos.collect())
}

exports! {
    fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, place: *mut nvmlMemory_t) {
        let (total, used) = use_of(device)?;
        put(place, nvmlMemory_t { total, free: total - used, used })
    }
    fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, place: *mut nvmlMemory_v2_t) {
        if place.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the place is not null and the client has filled in the version.
        let version = unsafe { (*place).version };
        check_version::<nvmlMemory_v2_t>(version, 2)?;
        let (total, used) = use_of(device)?;
        put(place, nvmlMemory_v2_t { version, total, reserved: 0, free: total - used, used })
    }
    fn nvmlDeviceGetBAR1MemoryInfo(device: nvmlDevice_t, place: *mut nvmlBAR1Memory_t) {
        gpu(device)?;
        let total = 256 << 20;
        put(place, nvmlBAR1Memory_t { bar1Total: total, bar1Free: total, bar1Used: 0 })
    }
    fn nvmlDeviceGetComputeRunningProcesses_v3(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
        put_list(count, infos, &programs(device)?)
    }
    fn nvmlDeviceGetComputeRunningProcesses_v2(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
        put_list(count, infos, &programs(device)?)
    }
    fn nvmlDeviceGetComputeRunningProcesses(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_v1_t) {
        let old = programs(device)?.into_iter().map(|info| nvmlProcessInfo_v1_t {
            pid: info.pid,
            usedGpuMemory: info.usedGpuMemory,
        });
        put_list(count, infos, &old.collect::<Vec<_>>())
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
        gpu(device)?;
        put_list(count, infos, &[])
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
        gpu(device)?;
        put_list(count, infos, &[])
    }
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
        gpu(device)?;
        put_list(count, infos, &[])
    }
}
