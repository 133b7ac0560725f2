//! Real GPUs: finding them, choosing among them, and the guard that sets them.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use sweetspot_backend_nvml::{Nvml, NvmlGpu};
use sweetspot_device::{Descriptor, Device, DeviceId, OpenError};
use sweetspot_guard::{Controlled, Journal, JournalError, Left, restore_left, serve};
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

/// Whether MIG slices can be meant: they can be read, but share their GPU's settings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slices {
    Too,
    No,
}

/// `all`, indices or UUIDs, separated by commas. Without a selector: what `CUDA_VISIBLE_DEVICES` leaves.
pub(crate) fn select(
    gpus: Vec<NvmlGpu>,
    selector: Option<&str>,
    slices: Slices,
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
            .filter(|gpu| slices == Slices::Too || gpu.descriptor().parent.is_none())
            .collect());
    }
    let known: Vec<String> = gpus
        .iter()
        .map(|gpu| format!("{} ({})", gpu.index(), gpu.descriptor().id))
        .collect();
    let bad = |problem: String| SessionError::Device {
        selector: match is_cuda {
            true => format!("CUDA_VISIBLE_DEVICES={text}"),
            false => format!("--device {text}"),
        },
        problem,
        known: known.join(", "),
    };
    let mut places = Vec::new();
    for part in text.split(',').map(str::trim) {
        let place = gpus.iter().position(|gpu| is_named(gpu, part));
        match place {
            Some(place) if slices == Slices::No && gpus[place].descriptor().parent.is_some() => {
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

/// What tells a job which GPUs it has, in the order of NVML's indices.
pub(crate) fn visible(gpus: &[NvmlGpu]) -> [(String, String); 2] {
    let indices: Vec<String> = gpus.iter().map(|gpu| gpu.index().to_string()).collect();
    [
        ("CUDA_VISIBLE_DEVICES".to_owned(), indices.join(",")),
        ("CUDA_DEVICE_ORDER".to_owned(), "PCI_BUS_ID".to_owned()),
    ]
}

/// Each as it describes itself.
pub(crate) fn descriptors(gpus: &[NvmlGpu]) -> Vec<Descriptor> {
    gpus.iter().map(|gpu| gpu.descriptor().clone()).collect()
}

/// By index, by UUID, or by the beginning of one, as CUDA has it.
fn is_named(gpu: &NvmlGpu, name: &str) -> bool {
    let descriptor = gpu.descriptor();
    match name.parse::<u32>() {
        Ok(index) => descriptor.parent.is_none() && gpu.index() == index,
        Err(_) => name.len() > 4 && descriptor.id.as_str().starts_with(name),
    }
}

/// Where guards of the whole machine keep their journals.
const SYSTEM_FOLDER: &str = "/run/sweetspot";

/// Where guards keep their journals: on a simulated host its own folder, else the system's, or the user's
/// where the user may not write there.
pub fn guard_folder() -> PathBuf {
    if let Some(host) = simulated_host() {
        return host.join("guard");
    }
    if rustix::process::geteuid().is_root() {
        return PathBuf::from(SYSTEM_FOLDER);
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(&folder).join("sweetspot"),
        None => {
            std::env::temp_dir().join(format!("sweetspot-{}", rustix::process::geteuid().as_raw()))
        }
    }
}

/// The folder of the simulated host whose library is in use.
pub(crate) fn simulated_host() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(ENVIRONMENT)?);
    match std::env::var_os("SWEETSPOT_NVML") {
        Some(library) if !Path::new(&library).starts_with(&folder) => None,
        _ => Some(folder),
    }
}

/// What guards that are gone left changed, on the whole machine as well where that is another folder.
pub fn left_changed() -> Vec<Result<Left, JournalError>> {
    let mut folders = vec![guard_folder()];
    if simulated_host().is_none() && folders[0] != Path::new(SYSTEM_FOLDER) {
        folders.push(PathBuf::from(SYSTEM_FOLDER));
    }
    folders.iter().flat_map(|folder| left_in(folder)).collect()
}

fn left_in(folder: &Path) -> Vec<Result<Left, JournalError>> {
    if !folder.exists() {
        return Vec::new();
    }
    match Journal::open(folder).and_then(|journal| journal.left()) {
        Ok(left) => left,
        Err(problem) => vec![Err(problem)],
    }
}

/// Opens a device for writing.
fn opener(nvml: Nvml) -> impl FnMut(&DeviceId) -> Result<Box<dyn Controlled>, OpenError> {
    move |id| Ok(Box::new(nvml.gpu_for_writing(id)?))
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
    let folder = guard_folder();
    let left = left_in(&folder);
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let journal = Journal::open(&folder)?;
    let mut open = opener(open_nvml()?);
    let mut lines = Vec::new();
    for left in left {
        lines.push(match left {
            Ok(left) => restore_left(&journal, &left, &mut open)
                .map(|restored| restored.to_string())
                .map_err(|error| error.to_string()),
            Err(problem) => Err(problem.to_string()),
        });
    }
    Ok(lines)
}
