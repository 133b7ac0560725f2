//! NVML functions for initialisation, shutdown, error texts and system properties.

use std::ffi::{c_char, c_int, c_uint};

use nvml_wrapper_sys::bindings as nvml;

use crate::support::*;

/// The driver's version that is reported to clients.
const DRIVER: &str = "580.159.04";
/// The CUDA version that is reported to clients: 13.0.
const CUDA: c_int = 13_000;

exports! {
    fn nvmlInit_v2() { initialise() }
    fn nvmlInit() { initialise() }
    fn nvmlInitWithFlags(_flags: c_uint) { initialise() }
    fn nvmlShutdown() { shut_down() }

    fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) {
        host()?;
        write_text(version, length, DRIVER)
    }
    fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint) {
        host()?;
        write_text(version, length, concat!("13.", "580.159.04"))
    }
    fn nvmlSystemGetCudaDriverVersion(version: *mut c_int) {
        host()?;
        write_value(version, CUDA)
    }
    fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) {
        host()?;
        write_value(version, CUDA)
    }
    fn nvmlSystemGetProcessName(pid: c_uint, name: *mut c_char, length: c_uint) {
        host()?;
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).map_err(|_| NOT_FOUND)?;
        let first = command.split(|byte| *byte == 0).next().unwrap_or_default();
        write_text(name, length, &String::from_utf8_lossy(first))
    }
}

/// See `nvmlErrorString` in NVIDIA's documentation.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(result: nvml::nvmlReturn_t) -> *const c_char {
    let text = match result {
        SUCCESS => c"Success",
        UNINITIALIZED => c"Uninitialized",
        INVALID_ARGUMENT => c"Invalid Argument",
        NOT_SUPPORTED => c"Not Supported",
        NO_PERMISSION => c"Insufficient Permissions",
        NOT_FOUND => c"Not Found",
        INSUFFICIENT_SIZE => c"Insufficient Size",
        DRIVER_NOT_LOADED => c"Driver Not Loaded",
        GPU_IS_LOST => c"GPU is lost",
        ARGUMENT_VERSION_MISMATCH => c"Argument version mismatch",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}
