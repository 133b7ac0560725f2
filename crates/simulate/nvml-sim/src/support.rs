//! What every exported function needs: the host, a device behind a handle, results for C.

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
pub const UNKNOWN: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_UNKNOWN;

/// A failure is NVML's number for it.
pub type Outcome = Result<(), nvmlReturn_t>;

static HOST: OnceLock<Host> = OnceLock::new();
static CLIENTS: AtomicUsize = AtomicUsize::new(0);

/// Opens the host once for the life of the process.
pub fn initialise() -> Outcome {
    if HOST.get().is_none() {
        let host = Host::from_environment()
            .ok_or(DRIVER_NOT_LOADED)?
            .map_err(|_| DRIVER_NOT_LOADED)?;
        // Another thread may have been faster with the same host.
        let _ = HOST.set(host);
    }
    CLIENTS.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

pub fn shut_down() -> Outcome {
    let fewer = |clients: usize| clients.checked_sub(1);
    CLIENTS
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, fewer)
        .map(drop)
        .map_err(|_| UNINITIALIZED)
}

pub fn host() -> Result<&'static Host, nvmlReturn_t> {
    if CLIENTS.load(Ordering::Acquire) == 0 {
        return Err(UNINITIALIZED);
    }
    HOST.get().ok_or(UNINITIALIZED)
}

/// Handles are numbers that cannot be mistaken for a pointer of the client's.
const HANDLES: usize = 0x5357_5350_0000;

pub fn handle(index: usize) -> nvmlDevice_t {
    std::ptr::without_provenance_mut(HANDLES + 16 * index)
}

pub fn gpu(device: nvmlDevice_t) -> Result<&'static SharedGpu, nvmlReturn_t> {
    let host = host()?;
    let offset = device.addr().checked_sub(HANDLES).ok_or(INVALID_ARGUMENT)?;
    if !offset.is_multiple_of(16) {
        return Err(INVALID_ARGUMENT);
    }
    host.gpus().get(offset / 16).ok_or(INVALID_ARGUMENT)
}

/// Looks at a device at the present moment.
pub fn look<R>(
    device: nvmlDevice_t,
    look: impl FnOnce(&mut LiveGpu<'_>) -> R,
) -> Result<R, nvmlReturn_t> {
    let result = gpu(device)?.look(|live| {
        if live.is_lost() {
            None
        } else {
            Some(look(live))
        }
    });
    result.map_err(|error| of_host(&error))?.ok_or(GPU_IS_LOST)
}

/// Changes a device: root may, and whoever the host belongs to; the change is noted.
pub fn change(
    device: nvmlDevice_t,
    what: &str,
    change: impl FnOnce(&mut LiveGpu<'_>) -> Result<(), WriteDenied>,
) -> Outcome {
    let user = rustix::process::geteuid();
    if !user.is_root() && host()?.owner() != Some(user.as_raw()) {
        return Err(NO_PERMISSION);
    }
    look(device, change)?.map_err(|WriteDenied| NO_PERMISSION)?;
    gpu(device)?.log_write(what);
    Ok(())
}

fn of_host(_: &HostError) -> nvmlReturn_t {
    GPU_IS_LOST
}

/// Runs the body of an exported function; a panic stays inside.
pub fn guarded(body: impl FnOnce() -> Outcome) -> nvmlReturn_t {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => UNKNOWN,
    }
}

/// Gives a value to the client.
pub fn put<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: NVML's contract: a pointer that is not null points to room for one such value.
    unsafe { place.write(value) };
    Ok(())
}

/// Whether a client's structure is the one that this library knows: NVML puts its size and number into one.
pub fn check_version<T>(version: u32, number: u32) -> Outcome {
    match version == size_of::<T>() as u32 | number << 24 {
        true => Ok(()),
        false => Err(ARGUMENT_VERSION_MISMATCH),
    }
}

/// Gives text to the client, ended by a zero.
pub fn put_text(place: *mut c_char, room: u32, text: &str) -> Outcome {
    if place.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if text.len() + 1 > room as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: NVML's contract: `room` bytes may be written there, and the text fits.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), place, text.len());
        place.add(text.len()).write(0);
    }
    Ok(())
}

/// Gives a list to the client in NVML's way: the room comes in through `count`, the number goes out.
pub fn put_list<T: Copy>(count: *mut u32, place: *mut T, values: &[T]) -> Outcome {
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: `count` is not null.
    let room = unsafe { count.read() } as usize;
    put(count, values.len() as u32)?;
    if place.is_null() || room < values.len() {
        return if values.is_empty() {
            Ok(())
        } else {
            Err(INSUFFICIENT_SIZE)
        };
    }
    // SAFETY: there is room for all of them.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), place, values.len()) };
    Ok(())
}

/// Exported functions: each body gives an [`Outcome`].
macro_rules! exports {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {$(
        #[doc = concat!("NVIDIA documents `", stringify!($name), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::support::guarded(|| $body)
        }
    )*};
}
pub(crate) use exports;
