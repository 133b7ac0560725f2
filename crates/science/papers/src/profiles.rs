//! The profiles that are compared with the papers: the built-in ones, or candidates during a fit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sweetspot_decide::Outcome as Means;
use sweetspot_device::Settings;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_sim::{
    CatalogueError, GpuProfile, NodeProfile, Outcome, Variant, Workload, gpus, nodes, parse_gpu,
    parse_node, parse_workload, workloads,
};
use sweetspot_study::{Configuration, EnergyOf, RunEnding};

use crate::PapersError;
use crate::dvfs_2019::StudyConstants;
use sweetspot_virtual_time::SimulatedJob;

/// Profiles of GPUs, nodes and workloads by name.
#[derive(Clone, Debug)]
pub struct Profiles {
    /// The GPU profiles by name.
    pub gpus: BTreeMap<String, GpuProfile>,
    /// The node profiles by name.
    pub nodes: BTreeMap<String, NodeProfile>,
    /// The workload profiles of all studies.
    pub workloads: Vec<Workload>,
    /// The constants of dvfs_2019, from which the work of its networks is computed.
    pub dvfs_2019: StudyConstants,
}

/// A workload on simulated GPUs, which runs without noise.
pub(super) struct SimulatedCase {
    job: SimulatedJob,
    energy_of: EnergyOf,
    study: String,
}

/// The time, energy and items of a simulated run.
pub(super) struct CaseRun {
    pub time: Seconds,
    pub energy: Joules,
    pub items: f64,
}

impl Profiles {
    /// Loads the profiles that are built into the program.
    pub fn built_in() -> Result<Self, PapersError> {
        Ok(Self {
            gpus: gpus()?.into_iter().collect(),
            nodes: nodes()?.into_iter().collect(),
            workloads: workloads()?,
            dvfs_2019: StudyConstants::built_in()?,
        })
    }

    /// The profiles with those in a folder in place of the built-in ones of the same name. The folder has the form of the
    /// built-in profiles: `gpus/NAME.toml`, `nodes/NAME.toml` and `workloads/STUDY/NETWORK.toml`.
    pub fn with_folder(mut self, folder: &Path) -> Result<Self, PapersError> {
        for (name, path) in files(&folder.join("gpus"))? {
            let profile = parse_gpu(&path.display().to_string(), &read(&path)?);
            self.gpus
                .insert(name, profile.map_err(CatalogueError::from)?);
        }
        for (name, path) in files(&folder.join("nodes"))? {
            let profile = parse_node(&path.display().to_string(), &read(&path)?);
            self.nodes
                .insert(name, profile.map_err(CatalogueError::from)?);
        }
        for (study, study_folder) in files(&folder.join("workloads"))? {
            for (stem, path) in files(&study_folder)? {
                let profile = parse_workload(&path.display().to_string(), &read(&path)?);
                let profile = profile.map_err(CatalogueError::from)?;
                let network = stem.split('.').next().unwrap_or_default();
                let name = format!("{network}@{study}");
                self.workloads
                    .retain(|own| own.name != name || own.profile.mode != profile.mode);
                self.workloads.push(Workload { name, profile });
            }
        }
        Ok(self)
    }

    /// Prepares a workload of a study on these GPUs for simulation.
    pub(super) fn case(
        &self,
        gpus: &[&str],
        node: Option<&str>,
        workload: &str,
        variant: &Variant,
        energy_of: EnergyOf,
    ) -> Result<SimulatedCase, PapersError> {
        let missing = |name: &str| PapersError::Workload {
            workload: workload.to_owned(),
            reason: format!("there is no profile `{name}`"),
        };
        let found = self.workloads.iter().find(|known| {
            known.name == workload && variant.mode.is_none_or(|mode| mode == known.profile.mode)
        });
        let found = found.ok_or_else(|| missing(workload))?;
        let profile = found.profile.with_variant(variant);
        let workload_variant = Workload {
            name: found.name.clone(),
            profile: profile.map_err(|problem| missing(&problem.to_string()))?,
        };
        let gpus = gpus.iter().map(|name| {
            let profile = self.gpus.get(*name).ok_or_else(|| missing(name))?;
            Ok((name.to_string(), profile.clone()))
        });
        let node = node.map(|name| self.nodes.get(name).ok_or_else(|| missing(name)));
        Ok(SimulatedCase {
            job: SimulatedJob::from_profiles(
                gpus.collect::<Result<_, PapersError>>()?,
                node.transpose()?.cloned(),
                workload_variant,
            )?,
            energy_of,
            study: workload.to_owned(),
        })
    }

    /// The time and energy of a workload's default variant at each of some power caps, without noise, on the first
    /// `count` of the GPUs.
    pub fn curve(
        &self,
        gpus: &[&str],
        node: Option<&str>,
        workload: &str,
        energy_of: EnergyOf,
        count: u64,
        caps: impl IntoIterator<Item = Watts>,
    ) -> Result<Vec<(Watts, Means)>, PapersError> {
        let case = self.case(gpus, node, workload, &Variant::default(), energy_of)?;
        let at = |cap| {
            let settings = Settings {
                power_cap: Some(cap),
                ..Settings::default()
            };
            let run = case.run(settings, case.batch(), count)?;
            Ok((cap, Means::new(run.time, run.energy)))
        };
        caps.into_iter().map(at).collect()
    }
}

/// The files and folders in a folder, with their names without endings; none if there is no such folder.
fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>, PapersError> {
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(folder, &error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        let is_profile = path.extension().is_some_and(|ending| ending == "toml");
        if let Some(stem) = path.file_stem().filter(|_| is_profile || path.is_dir()) {
            found.push((stem.to_string_lossy().into_owned(), path.clone()));
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the text of a profile.
fn read(path: &Path) -> Result<String, PapersError> {
    /// The maximum size of a profile, in bytes.
    const MAX_BYTES: u64 = 1 << 20;
    sweetspot_input::read_text(path, MAX_BYTES).map_err(|error| unreadable(path, &error))
}

/// The error that a file or folder cannot be read.
fn unreadable(path: &Path, error: &std::io::Error) -> PapersError {
    CatalogueError::Unreadable {
        path: path.display().to_string(),
        reason: error.to_string(),
    }
    .into()
}

impl SimulatedCase {
    /// The default batch size of the workload.
    pub fn batch(&self) -> u64 {
        self.job.workload.profile.batch
    }

    /// Changes the number of items in a run.
    pub fn items(mut self, items: u64) -> Self {
        self.job.items = items;
        self
    }

    /// Whether a batch fits into the GPUs' memory.
    pub fn fits(&self, batch: u64) -> bool {
        self.job.jobs(batch, 1, None).is_ok()
    }

    /// Simulates a run with these settings on the first `gpus` GPUs.
    pub fn run(&self, settings: Settings, batch: u64, gpus: u64) -> Result<CaseRun, PapersError> {
        let configuration = configuration(settings, batch, gpus);
        match self.job.run(&configuration, None)? {
            RunEnding::Done(result) => Ok(CaseRun {
                time: result.time,
                energy: result
                    .energy_of(self.energy_of)
                    .map_or(Joules::ZERO, |energy| energy.value),
                items: result.items.unwrap_or(0.0),
            }),
            RunEnding::Failed(failure) => Err(self.error(failure.reason)),
        }
    }

    /// Simulates a run with these settings, and returns the outcome of each GPU.
    pub fn ranks(
        &self,
        settings: Settings,
        batch: u64,
        gpus: u64,
    ) -> Result<Vec<Outcome>, PapersError> {
        let together = self
            .job
            .simulate(&configuration(settings, batch, gpus), None, &mut ())?;
        let together = together.map_err(|failure| self.error(failure.reason))?;
        Ok(together.ranks)
    }

    /// The error that the workload cannot be simulated for this reason.
    fn error(&self, reason: String) -> PapersError {
        PapersError::Workload {
            workload: self.study.clone(),
            reason,
        }
    }
}

/// The configuration with these settings on every GPU.
fn configuration(settings: Settings, batch: u64, gpus: u64) -> Configuration {
    Configuration::on(gpus)
        .with_settings(settings)
        .with_batch(batch)
}
