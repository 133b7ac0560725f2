//! Real GPUs: finding them, choosing among them, and the guard that sets them.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use sweetspot_backend_nvml::{Nvml, NvmlGpu};
use sweetspot_device::{Device, DeviceId};
use sweetspot_guard::{Controlled, Journal, Left, restore_left, serve};
use sweetspot_sim_host::ENVIRONMENT;

use crate::SessionError;

/// NVML from its usual place, or from where `SWEETSPOT_NVML` says.
pub(crate) fn open_nvml() -> Result<Nvml, SessionError> {
    let library = std::env::var_os("SWEETSPOT_NVML");
    Ok(Nvml::open(library.as_deref())?)
}

/// Every GPU and slice; at least one.
pub(crate) fn all_gpus(nvml: Nvml) -> Result<Vec<NvmlGpu>, SessionError> {
    let gpus = nvml.gpus()?;
    if gpus.is_empty() {
        return Err(SessionError::NoGpu);
    }
    Ok(gpus)
}

/// `all`, indices or UUIDs, separated by commas. Without a selector: what `CUDA_VISIBLE_DEVICES` leaves.
pub(crate) fn select(
    gpus: Vec<NvmlGpu>,
    selector: Option<&str>,
) -> Result<Vec<NvmlGpu>, SessionError> {
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let (text, is_cuda) = match (selector, &visible) {
        (Some(selector), _) => (selector, false),
        (None, Some(visible)) => (visible.as_str(), true),
        (None, None) => ("all", false),
    };
    if text == "all" {
        return Ok(gpus
            .into_iter()
            .filter(|gpu| gpu.descriptor().parent.is_none())
            .collect());
    }
    let known: Vec<String> = gpus
        .iter()
        .map(|gpu| format!("{} ({})", gpu.index(), gpu.descriptor().id))
        .collect();
    let bad = |problem: String| SessionError::Device {
        selector: text.to_owned(),
        problem,
        known: known.join(", "),
    };
    let mut places = Vec::new();
    for part in text.split(',').map(str::trim) {
        let place = gpus.iter().position(|gpu| is_named(gpu, part));
        match place {
            Some(place) if gpus[place].descriptor().parent.is_some() => {
                return Err(bad(format!(
                    "{part} is a slice, which shares its GPU's settings: name the GPU"
                )));
            }
            Some(place) if places.contains(&place) => {
                return Err(bad(format!("`{part}` is there twice")));
            }
            Some(place) => places.push(place),
            // CUDA ends its list at the first name it does not know.
            None if is_cuda && !places.is_empty() => break,
            None => return Err(bad(format!("there is no GPU `{part}`"))),
        }
    }
    let mut gpus: Vec<Option<NvmlGpu>> = gpus.into_iter().map(Some).collect();
    Ok(places
        .into_iter()
        .filter_map(|place| gpus[place].take())
        .collect())
}

/// By index, by UUID, or by the beginning of one, as CUDA has it.
fn is_named(gpu: &NvmlGpu, name: &str) -> bool {
    let descriptor = gpu.descriptor();
    match name.parse::<u32>() {
        Ok(index) => descriptor.parent.is_none() && gpu.index() == index,
        Err(_) => name.len() > 4 && descriptor.id.as_str().starts_with(name),
    }
}

/// Where guards keep their journals: on a simulated host its own folder, else the system's.
pub fn guard_folder() -> PathBuf {
    if let Some(host) = std::env::var_os(ENVIRONMENT) {
        return Path::new(&host).join("guard");
    }
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/run/sweetspot");
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(&folder).join("sweetspot"),
        None => {
            std::env::temp_dir().join(format!("sweetspot-{}", rustix::process::geteuid().as_raw()))
        }
    }
}

/// What guards that are gone left changed on this machine.
pub fn left_changed() -> Result<Vec<Left>, SessionError> {
    let folder = guard_folder();
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    Ok(Journal::open(&folder)?.left()?)
}

/// Opens a device for writing.
fn opener(nvml: Nvml) -> impl FnMut(&DeviceId) -> Result<Box<dyn Controlled>, String> {
    move |id| {
        let gpus = nvml.gpus().map_err(|error| error.to_string())?;
        let gpu = gpus.into_iter().find(|gpu| gpu.descriptor().id == *id);
        let gpu = gpu.ok_or_else(|| format!("there is no GPU {id} on this machine"))?;
        Ok(Box::new(gpu))
    }
}

/// What the guard's process does: serves the client behind the socket.
pub fn serve_as_guard(socket: &Path) -> Result<(), SessionError> {
    let stream = UnixStream::connect(socket).map_err(|problem| SessionError::System {
        what: "the guard cannot reach its client",
        problem,
    })?;
    let nvml = open_nvml()?;
    let journal = Journal::open(&guard_folder())?;
    serve(stream, journal, &mut opener(nvml)).map_err(|problem| SessionError::System {
        what: "the guard cannot serve",
        problem,
    })
}

/// Puts back everything that was left changed: a line about each, good or bad.
pub fn restore_all() -> Result<Vec<Result<String, String>>, SessionError> {
    let left = left_changed()?;
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let journal = Journal::open(&guard_folder())?;
    let mut open = opener(open_nvml()?);
    Ok(left
        .iter()
        .map(|left| restore_left(&journal, left, &mut open))
        .collect())
}
