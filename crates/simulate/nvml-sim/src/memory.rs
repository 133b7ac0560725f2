//! NVML functions for device memory and the processes that use it.

use std::ffi::c_uint;

use nvml::{
    nvmlBAR1Memory_t, nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t, nvmlProcessInfo_t,
    nvmlProcessInfo_v1_t,
};
use nvml_wrapper_sys::bindings as nvml;

use crate::support::*;

/// The total and the used memory of a device, in bytes.
fn memory_use(device: nvmlDevice_t) -> Result<(u64, u64), u32> {
    read_gpu(device, |live| {
        let total = live.profile().memory.capacity.get() as u64;
        (total, (live.memory_used().get() as u64).min(total))
    })
}

/// The instance id that NVML reports for a process that does not run on a MIG slice.
const NO_INSTANCE: c_uint = c_uint::MAX;

/// The processes that have a job on the device.
fn processes(device: nvmlDevice_t) -> Result<Vec<nvmlProcessInfo_t>, u32> {
    let jobs = read_gpu(device, |live| live.jobs())?;
    let infos = jobs.into_iter().map(|(pid, memory)| nvmlProcessInfo_t {
        pid,
        usedGpuMemory: memory.get() as u64,
        gpuInstanceId: NO_INSTANCE,
        computeInstanceId: NO_INSTANCE,
    });
    Ok(infos.collect())
}

exports! {
    fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, target: *mut nvmlMemory_t) {
        let (total, used) = memory_use(device)?;
        write_value(target, nvmlMemory_t { total, free: total - used, used })
    }
    fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, target: *mut nvmlMemory_v2_t) {
        if target.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the pointer is not null, and the client has filled in the version.
        let version = unsafe { (*target).version };
        check_version::<nvmlMemory_v2_t>(version, 2)?;
        let (total, used) = memory_use(device)?;
        write_value(target, nvmlMemory_v2_t { version, total, reserved: 0, free: total - used, used })
    }
    fn nvmlDeviceGetBAR1MemoryInfo(device: nvmlDevice_t, target: *mut nvmlBAR1Memory_t) {
        gpu(device)?;
        let total = 256 << 20;
        write_value(target, nvmlBAR1Memory_t { bar1Total: total, bar1Free: total, bar1Used: 0 })
    }
    fn nvmlDeviceGetComputeRunningProcesses_v3(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
        write_list(count, infos, &processes(device)?)
    }
    fn nvmlDeviceGetComputeRunningProcesses_v2(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
        write_list(count, infos, &processes(device)?)
    }
    fn nvmlDeviceGetComputeRunningProcesses(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_v1_t) {
        let old = processes(device)?.into_iter().map(|info| nvmlProcessInfo_v1_t {
            pid: info.pid,
            usedGpuMemory: info.usedGpuMemory,
        });
        write_list(count, infos, &old.collect::<Vec<_>>())
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
        gpu(device)?;
        write_list(count, infos, &[])
    }
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
        gpu(device)?;
        write_list(count, infos, &[])
    }
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
        gpu(device)?;
        write_list(count, infos, &[])
    }
}
