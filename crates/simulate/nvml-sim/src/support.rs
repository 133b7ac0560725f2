//! Helpers of the exported functions: access to the simulated host, device handles and results for C.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use nvml::{nvmlDevice_t, nvmlReturn_t};
use nvml_wrapper_sys::bindings as nvml;
use sweetspot_sim_host::{Host, HostError, LiveGpu, SharedGpu, WriteDenied};

pub const SUCCESS: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_SUCCESS;
pub const UNINITIALIZED: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED;
pub const INVALID_ARGUMENT: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
pub const NOT_SUPPORTED: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
pub const NO_PERMISSION: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_NO_PERMISSION;
pub const NOT_FOUND: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_NOT_FOUND;
pub const INSUFFICIENT_SIZE: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;
pub const DRIVER_NOT_LOADED: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED;
pub const GPU_IS_LOST: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST;
pub const ARGUMENT_VERSION_MISMATCH: nvmlReturn_t =
    nvml::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
pub const IN_USE: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_IN_USE;
pub const NO_DATA: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_NO_DATA;
pub const UNKNOWN: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_UNKNOWN;

/// The result of an NVML function; the error is NVML's return code.
pub type NvmlResult = Result<(), nvmlReturn_t>;

/// The simulated host of this process, once it is opened.
static HOST: OnceLock<Host> = OnceLock::new();
/// The number of initialisations that no shutdown has matched yet.
static CLIENTS: AtomicUsize = AtomicUsize::new(0);

/// Opens the simulated host, once per process, and counts the initialisation.
pub fn initialise() -> NvmlResult {
    if HOST.get().is_none() {
        let host = Host::from_environment()
            .ok_or(DRIVER_NOT_LOADED)?
            .map_err(|_| DRIVER_NOT_LOADED)?;
        // Another thread may have opened the same host in the meantime.
        let _ = HOST.set(host);
    }
    CLIENTS.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// Undoes one initialisation; an error if there is none left.
pub fn shut_down() -> NvmlResult {
    let fewer = |clients: usize| clients.checked_sub(1);
    CLIENTS
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, fewer)
        .map(drop)
        .map_err(|_| UNINITIALIZED)
}

/// The simulated host; an error if the client has not initialised the library.
pub fn host() -> Result<&'static Host, nvmlReturn_t> {
    if CLIENTS.load(Ordering::Acquire) == 0 {
        return Err(UNINITIALIZED);
    }
    HOST.get().ok_or(UNINITIALIZED)
}

/// The handle of the first device. Handles are chosen so that they are not valid pointers.
const HANDLE_BASE: usize = 0x5357_5350_0000;

/// The handle of the device with this index.
pub fn handle(index: usize) -> nvmlDevice_t {
    std::ptr::without_provenance_mut(HANDLE_BASE + 16 * index)
}

/// The device that a client's handle stands for.
pub fn gpu(device: nvmlDevice_t) -> Result<&'static SharedGpu, nvmlReturn_t> {
    let host = host()?;
    let offset = device
        .addr()
        .checked_sub(HANDLE_BASE)
        .ok_or(INVALID_ARGUMENT)?;
    if !offset.is_multiple_of(16) {
        return Err(INVALID_ARGUMENT);
    }
    host.gpus().get(offset / 16).ok_or(INVALID_ARGUMENT)
}

/// Passes the present state of a device to a closure.
pub fn read_gpu<R>(
    device: nvmlDevice_t,
    read: impl FnOnce(&mut LiveGpu<'_>) -> R,
) -> Result<R, nvmlReturn_t> {
    let result = gpu(device)?.with_gpu(|live| {
        if live.is_lost() {
            None
        } else {
            Some(read(live))
        }
    });
    result.map_err(|error| code_of(&error))?.ok_or(GPU_IS_LOST)
}

/// Changes a device's settings and logs the change. Only root and the owner of the simulated host may do so.
pub fn write_gpu(
    device: nvmlDevice_t,
    what: &str,
    change: impl FnOnce(&mut LiveGpu<'_>) -> Result<(), WriteDenied>,
) -> NvmlResult {
    let user = rustix::process::geteuid();
    if !user.is_root() && host()?.owner() != Some(user.as_raw()) {
        return Err(NO_PERMISSION);
    }
    read_gpu(device, change)?.map_err(|WriteDenied| NO_PERMISSION)?;
    gpu(device)?.log_write(what);
    Ok(())
}

/// The return code for an error of the simulated host.
fn code_of(_: &HostError) -> nvmlReturn_t {
    GPU_IS_LOST
}

/// Runs the body of an exported function, and turns a panic into an error code.
pub fn catch_panic(body: impl FnOnce() -> NvmlResult) -> nvmlReturn_t {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => UNKNOWN,
    }
}

/// Writes a value to the client's pointer.
pub fn write_value<T>(target: *mut T, value: T) -> NvmlResult {
    if target.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: by NVML's contract a pointer that is not null points to room for one value.
    unsafe { target.write(value) };
    Ok(())
}

/// Checks that a client's structure has the version that this library supports. NVML's version field combines the
/// structure's size and a number.
pub fn check_version<T>(version: u32, number: u32) -> NvmlResult {
    match version == size_of::<T>() as u32 | number << 24 {
        true => Ok(()),
        false => Err(ARGUMENT_VERSION_MISMATCH),
    }
}

/// Writes a zero-terminated text to the client's buffer.
pub fn write_text(target: *mut c_char, room: u32, text: &str) -> NvmlResult {
    if target.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if text.len() + 1 > room as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: by NVML's contract `room` bytes may be written, and the text fits.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), target, text.len());
        target.add(text.len()).write(0);
    }
    Ok(())
}

/// Writes a list to the client's buffer as NVML does: `count` is the buffer's capacity on entry and the list's length
/// on return.
pub fn write_list<T: Copy>(count: *mut u32, target: *mut T, values: &[T]) -> NvmlResult {
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: `count` is not null.
    let room = unsafe { count.read() } as usize;
    write_value(count, values.len() as u32)?;
    if target.is_null() || room < values.len() {
        return if values.is_empty() {
            Ok(())
        } else {
            Err(INSUFFICIENT_SIZE)
        };
    }
    // SAFETY: there is room for all values.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), target, values.len()) };
    Ok(())
}

/// Defines exported functions; each body returns an [`NvmlResult`].
macro_rules! exports {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {$(
        #[doc = concat!("See `", stringify!($name), "` in NVIDIA's NVML documentation.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::support::catch_panic(|| $body)
        }
    )*};
}
pub(crate) use exports;
