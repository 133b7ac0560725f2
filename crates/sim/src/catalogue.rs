//! The built-in profiles by name, and the user's own by path.

use include_dir::{Dir, include_dir};

use crate::profile::{GpuProfile, ProfileError, WorkloadProfile, parse_gpu, parse_workload};

static GPUS: Dir = include_dir!("$CARGO_MANIFEST_DIR/profiles/gpus");
static WORKLOADS: Dir = include_dir!("$CARGO_MANIFEST_DIR/profiles/workloads");

/// A name that leads nowhere, or a file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// No profile has this name.
    #[error(
        "there is no {what} `{name}`; the nearest are {} (`sweetspot simulate --list` shows all)",
        near.join(", ")
    )]
    Unknown {
        /// `GPU profile`, `network`, `study of resnet50`.
        what: String,
        /// As asked for.
        name: String,
        /// The nearest names.
        near: Vec<String>,
    },
    /// The network was run in several studies and the GPU does not say which is meant.
    #[error("`{network}` was run in several studies; write one of {}", studies.join(", "))]
    Ambiguous {
        /// As asked for.
        network: String,
        /// `NETWORK@STUDY` for each.
        studies: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read the profile {path}: {reason}")]
    Unreadable {
        /// As asked for.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// The file can be read but not used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// A workload and the name it is known by: `NETWORK@STUDY`, or the path of the user's file.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// What it does.
    pub profile: WorkloadProfile,
}

/// Every built-in GPU profile with its name, in alphabetical order.
pub fn gpus() -> Result<Vec<(String, GpuProfile)>, CatalogueError> {
    let mut gpus = Vec::new();
    for (name, text) in built_in(&GPUS) {
        let profile = parse_gpu(&format!("{name}.toml"), text)?;
        gpus.push((name, profile));
    }
    Ok(gpus)
}

/// Every built-in workload, in alphabetical order.
pub fn workloads() -> Result<Vec<Workload>, CatalogueError> {
    let mut workloads = Vec::new();
    for (name, text) in workload_texts() {
        let profile = parse_workload(&name, text)?;
        workloads.push(Workload { name, profile });
    }
    Ok(workloads)
}

/// A GPU by name, alias or path of a TOML file.
pub fn find_gpu(name: &str) -> Result<(String, GpuProfile), CatalogueError> {
    if is_path(name) {
        let profile = parse_gpu(name, &read(name)?)?;
        return Ok((name.to_owned(), profile));
    }
    let gpus = gpus()?;
    let names = || {
        let aliases = gpus.iter().flat_map(|(_, profile)| profile.aliases.clone());
        gpus.iter().map(|(name, _)| name.clone()).chain(aliases)
    };
    let found = gpus
        .iter()
        .find(|(own, profile)| own == name || profile.aliases.iter().any(|alias| alias == name));
    found.cloned().ok_or_else(|| CatalogueError::Unknown {
        what: "GPU profile".to_owned(),
        name: name.to_owned(),
        near: nearest(name, names()),
    })
}

/// The name and the text of a GPU's profile, found as [`find_gpu`] finds it and known to be good.
pub fn gpu_text(name: &str) -> Result<(String, String), CatalogueError> {
    let (found, _) = find_gpu(name)?;
    if is_path(name) {
        let text = read(name)?;
        return Ok((found, text));
    }
    let text = built_in(&GPUS).find(|(known, _)| *known == found);
    let (name, text) = text.unwrap_or((found, ""));
    Ok((name, text.to_owned()))
}

/// A workload by `NETWORK@STUDY`, by `NETWORK` alone for a GPU of `study`, or by path of a TOML file.
pub fn find_workload(name: &str, study: Option<&str>) -> Result<Workload, CatalogueError> {
    if is_path(name) {
        let profile = parse_workload(name, &read(name)?)?;
        return Ok(Workload {
            name: name.to_owned(),
            profile,
        });
    }
    let (network, asked_study) = match name.split_once('@') {
        Some((network, study)) => (network, Some(study)),
        None => (name, None),
    };
    let network = match network {
        "inception_v1" => "googlenet",
        network => network,
    };
    let all: Vec<_> = workload_texts().collect();
    let of_network: Vec<_> = all
        .iter()
        .filter(|(name, _)| name.split('@').next() == Some(network))
        .collect();
    let of_study = |study: &str| {
        let wanted = format!("{network}@{study}");
        of_network.iter().find(|(name, _)| *name == wanted)
    };
    let found = match (asked_study, study, of_network.as_slice()) {
        (Some(asked), _, _) => of_study(asked),
        (None, Some(study), _) => of_study(study),
        (None, None, [only]) => Some(only),
        (None, None, []) => None,
        (None, None, several) => {
            return Err(CatalogueError::Ambiguous {
                network: network.to_owned(),
                studies: several.iter().map(|(name, _)| name.clone()).collect(),
            });
        }
    };
    match found {
        Some((name, text)) => Ok(Workload {
            name: name.clone(),
            profile: parse_workload(name, text)?,
        }),
        None => Err(CatalogueError::Unknown {
            what: "workload".to_owned(),
            name: name.to_owned(),
            near: nearest(name, all.into_iter().map(|(name, _)| name)),
        }),
    }
}

fn workload_texts() -> impl Iterator<Item = (String, &'static str)> {
    let mut studies: Vec<_> = WORKLOADS.dirs().collect();
    studies.sort_by_key(|dir| dir.path());
    studies.into_iter().flat_map(|dir| {
        let study = dir.path().to_string_lossy().into_owned();
        built_in(dir).map(move |(network, text)| (format!("{network}@{study}"), text))
    })
}

fn built_in(dir: &'static Dir<'static>) -> impl Iterator<Item = (String, &'static str)> {
    let mut files: Vec<_> = dir.files().collect();
    files.sort_by_key(|file| file.path());
    files.into_iter().filter_map(|file| {
        let name = file.path().file_stem()?.to_string_lossy().into_owned();
        Some((name, file.contents_utf8()?))
    })
}

fn is_path(name: &str) -> bool {
    name.ends_with(".toml") || name.contains(std::path::MAIN_SEPARATOR)
}

/// Profiles are small, plain files; anything else is not read at all.
fn read(path: &str) -> Result<String, CatalogueError> {
    const MOST_BYTES: u64 = 1 << 20;
    let unreadable = |reason: String| CatalogueError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let about = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if !about.is_file() {
        return Err(unreadable("it is not a file".to_owned()));
    }
    if about.len() > MOST_BYTES {
        return Err(unreadable("it is too large for a profile".to_owned()));
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))
}

/// The three names most like it, the nearest first.
fn nearest(name: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut near: Vec<_> = names
        .map(|known| (strsim::jaro_winkler(&name.to_lowercase(), &known), known))
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(3).map(|(_, known)| known).collect()
}
