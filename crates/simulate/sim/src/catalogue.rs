//! Finds built-in profiles by name, and the user's own profiles by path.

use include_dir::{Dir, include_dir};

use crate::user_profiles::user_text;

use crate::profile::{
    GpuProfile, Mode, NodeProfile, ProfileError, Variant, VariantError, WorkloadProfile, parse_gpu,
    parse_node, parse_workload,
};

/// The files of the built-in profiles, in the folders `gpus`, `nodes` and `workloads/STUDY`.
pub(crate) static PROFILES: Dir = include_dir!("$CARGO_MANIFEST_DIR/profiles");
/// The folder of the GPU profiles.
const GPUS: &str = "gpus";
/// The folder of the node profiles.
const NODES: &str = "nodes";
/// The folder of the workload profiles, which has a folder for each study.
const WORKLOADS: &str = "workloads";

/// Why a profile cannot be found or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// No profile has this name.
    #[error("there is no {what} `{name}`; the nearest are {}", near.join(", "))]
    Unknown {
        /// The kind of profile that was searched for, such as `GPU profile`, `network` or `study of
        /// resnet50`.
        what: String,
        /// The name that the user gave.
        name: String,
        /// The names of profiles that are the most similar.
        near: Vec<String>,
    },
    /// Several studies have a profile of the network, and the GPU does not determine which one is meant.
    #[error("several studies have a profile of `{network}`: use one of {}", studies.join(", "))]
    Ambiguous {
        /// The name that the user gave.
        network: String,
        /// The full name `NETWORK@STUDY` of each profile.
        studies: Vec<String>,
    },
    /// The file of the profile cannot be read.
    #[error("cannot read the profile {path}: {reason}")]
    Unreadable {
        /// The path that the user gave.
        path: String,
        /// Why the file cannot be read.
        reason: String,
    },
    /// The user's folder of profiles has no profile.
    #[error(
        "there are no profiles in {folder}: it must contain gpus/NAME.toml, nodes/NAME.toml or workloads/STUDY/NETWORK.toml"
    )]
    NoProfiles {
        /// The folder that the user gave.
        folder: String,
    },
    /// A file in the user's folder of profiles does not have the name of a built-in profile.
    #[error("{path} replaces no built-in profile: the nearest are {}", near.join(", "))]
    NotBuiltIn {
        /// The path of the file.
        path: String,
        /// The most similar paths of built-in profiles.
        near: Vec<String>,
    },
    /// The study has a profile of the network for training or for inference, but not for the requested one of
    /// the two.
    #[error("`{workload}` has a profile for {has} only, not for {asked}")]
    Mode {
        /// The name that the user gave.
        workload: String,
        /// Training or inference, whichever the profile is for.
        has: Mode,
        /// Training or inference, whichever the user asked for.
        asked: Mode,
    },
    /// The workload does not have the requested variant.
    #[error("`{workload}` {problem}")]
    Variant {
        /// The name that the user gave.
        workload: String,
        /// What is wrong with the variant.
        problem: VariantError,
    },
    /// The file is not a valid profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// A workload: its profile and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The name `NETWORK@STUDY`, or the path of the user's file.
    pub name: String,
    /// The profile of the workload.
    pub profile: WorkloadProfile,
}

/// Every built-in GPU profile with its name, in alphabetical order.
pub fn gpus() -> Result<Vec<(String, GpuProfile)>, CatalogueError> {
    let mut gpus = Vec::new();
    for (name, text) in built_in(GPUS) {
        let profile = parse_gpu(&format!("{name}.toml"), text)?;
        gpus.push((name, profile));
    }
    Ok(gpus)
}

/// Every built-in node with its name, in alphabetical order.
pub fn nodes() -> Result<Vec<(String, NodeProfile)>, CatalogueError> {
    let mut nodes = Vec::new();
    for (name, text) in built_in(NODES) {
        let profile = parse_node(&format!("{name}.toml"), text)?;
        nodes.push((name, profile));
    }
    Ok(nodes)
}

/// Finds a node by name or by the path of a TOML file.
pub fn find_node(name: &str) -> Result<(String, NodeProfile), CatalogueError> {
    if is_path(name) {
        let profile = parse_node(name, &read(name)?)?;
        return Ok((name.to_owned(), profile));
    }
    let nodes = nodes()?;
    let found = nodes.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    found.cloned().ok_or_else(|| CatalogueError::Unknown {
        what: "node profile".to_owned(),
        name: name.to_owned(),
        near: nearest(name, nodes.iter().map(|(name, _)| name.clone())),
    })
}

/// Every built-in workload, in alphabetical order, training before inference.
pub fn workloads() -> Result<Vec<Workload>, CatalogueError> {
    let mut workloads = Vec::new();
    for (name, text) in workload_texts() {
        let profile = parse_workload(&name, text)?;
        workloads.push(Workload { name, profile });
    }
    Ok(workloads)
}

/// Finds a GPU by name, by alias or by the path of a TOML file.
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
    let is_it = |own: &String| own.eq_ignore_ascii_case(name);
    let found = gpus
        .iter()
        .find(|(own, profile)| is_it(own) || profile.aliases.iter().any(is_it));
    found.cloned().ok_or_else(|| CatalogueError::Unknown {
        what: "GPU profile".to_owned(),
        name: name.to_owned(),
        near: nearest(name, names()),
    })
}

/// Returns the name and the text of a GPU's profile, found like [`find_gpu`] and checked.
pub fn gpu_text(name: &str) -> Result<(String, String), CatalogueError> {
    let (found, _) = find_gpu(name)?;
    text_of(GPUS, found)
}

/// Returns the name and the text of a node's profile, found like [`find_node`] and checked.
pub fn node_text(name: &str) -> Result<(String, String), CatalogueError> {
    let (found, _) = find_node(name)?;
    text_of(NODES, found)
}

/// The name and the text of a profile that was found: from the built-in files, or from the user's file.
fn text_of(folder: &str, found: String) -> Result<(String, String), CatalogueError> {
    if is_path(&found) {
        let text = read(&found)?;
        return Ok((found, text));
    }
    let text = built_in(folder).find(|(known, _)| *known == found);
    let (name, text) = text.unwrap_or((found, ""));
    Ok((name, text.to_owned()))
}

/// Finds a workload and returns its requested variant. `name` is `NETWORK@STUDY`, `NETWORK` alone (preferably
/// from the study `study`), or the path of a TOML file.
pub fn find_workload(
    name: &str,
    study: Option<&str>,
    variant: &Variant,
) -> Result<Workload, CatalogueError> {
    let profiles = if is_path(name) {
        vec![Workload {
            name: name.to_owned(),
            profile: parse_workload(name, &read(name)?)?,
        }]
    } else {
        find_built_in(name, study)?
    };
    let has = profiles[0].profile.mode;
    let mut profiles = profiles.into_iter();
    let found = profiles.find(|own| variant.mode.is_none_or(|mode| mode == own.profile.mode));
    let Some(mut workload) = found else {
        return Err(CatalogueError::Mode {
            workload: name.to_owned(),
            has,
            asked: variant.mode.unwrap_or(has),
        });
    };
    let profile = workload.profile.with_variant(variant);
    workload.profile = profile.map_err(|problem| CatalogueError::Variant {
        workload: workload.name.clone(),
        problem,
    })?;
    Ok(workload)
}

/// Finds the built-in profiles of a workload: for training, for inference or both. There is at least one.
fn find_built_in(name: &str, study: Option<&str>) -> Result<Vec<Workload>, CatalogueError> {
    // Names of networks and studies have no capital letters.
    let lower = name.to_ascii_lowercase();
    let (network, asked_study) = match lower.split_once('@') {
        Some((network, study)) => (network, Some(study)),
        None => (lower.as_str(), None),
    };
    let network = match network {
        "inception_v1" => "googlenet",
        network => network,
    };
    let mut of_network: Vec<(String, &str)> = workload_texts()
        .filter(|(name, _)| name.split('@').next() == Some(network))
        .collect();
    let mut wanted = name.to_owned();
    if let Some(study) = asked_study.or(study) {
        wanted = format!("{network}@{study}");
        of_network.retain(|(name, _)| *name == wanted);
    }
    let Some((first, _)) = of_network.first().cloned() else {
        return Err(CatalogueError::Unknown {
            what: "workload".to_owned(),
            name: name.to_owned(),
            near: nearest(&wanted, workload_texts().map(|(name, _)| name)),
        });
    };
    if of_network.iter().any(|(name, _)| *name != first) {
        let mut studies: Vec<_> = of_network.into_iter().map(|(name, _)| name).collect();
        studies.dedup();
        return Err(CatalogueError::Ambiguous {
            network: network.to_owned(),
            studies,
        });
    }
    let profiles = of_network.into_iter().map(|(name, text)| {
        let profile = parse_workload(&name, text)?;
        Ok(Workload { name, profile })
    });
    profiles.collect()
}

/// Whether there are built-in workloads of this study.
pub fn has_workloads(study: &str) -> bool {
    PROFILES.get_dir(format!("{WORKLOADS}/{study}")).is_some()
}

/// The names and texts of all built-in workload profiles.
fn workload_texts() -> impl Iterator<Item = (String, &'static str)> {
    let folders = PROFILES.get_dir(WORKLOADS).into_iter().flat_map(Dir::dirs);
    let mut studies: Vec<String> = folders
        .filter_map(|dir| Some(dir.path().file_name()?.to_string_lossy().into_owned()))
        .collect();
    studies.sort();
    studies.into_iter().flat_map(|study| {
        // `NETWORK.toml`, or `NETWORK.train.toml` and `NETWORK.infer.toml`, training first.
        let mut files: Vec<_> = built_in(&format!("{WORKLOADS}/{study}")).collect();
        files.sort_by_key(|(stem, _)| {
            let (network, mode) = stem.split_once('.').unwrap_or((stem, ""));
            (network.to_owned(), std::cmp::Reverse(mode.to_owned()))
        });
        files.into_iter().map(move |(stem, text)| {
            let network = stem.split('.').next().unwrap_or_default();
            (format!("{network}@{study}"), text)
        })
    })
}

/// The names and texts of the built-in profiles in a folder, or of the user's in place of them.
fn built_in(folder: &str) -> impl Iterator<Item = (String, &'static str)> + use<> {
    let files = PROFILES.get_dir(folder).into_iter().flat_map(Dir::files);
    let mut files: Vec<_> = files.collect();
    files.sort_by_key(|file| file.path());
    files.into_iter().filter_map(|file| {
        let name = file.path().file_stem()?.to_string_lossy().into_owned();
        let text = user_text(file.path()).or_else(|| file.contents_utf8());
        Some((name, text?))
    })
}

/// Whether a profile's name is the path of a file.
fn is_path(name: &str) -> bool {
    name.ends_with(".toml") || name.contains(std::path::MAIN_SEPARATOR)
}

/// Reads a profile from a file, which must be a regular file of at most 1 MiB.
pub(crate) fn read(path: &str) -> Result<String, CatalogueError> {
    /// The maximum size of a profile, in bytes.
    const MAX_BYTES: u64 = 1 << 20;
    let unreadable = |reason: String| CatalogueError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    sweetspot_input::read_text(path, MAX_BYTES).map_err(|error| unreadable(error.to_string()))
}

/// The three names that are the most similar to `name`, the most similar first.
pub(crate) fn nearest(name: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut near: Vec<_> = names
        .map(|known| (strsim::jaro_winkler(&name.to_lowercase(), &known), known))
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.dedup_by(|a, b| a.1 == b.1);
    near.into_iter().take(3).map(|(_, known)| known).collect()
}
