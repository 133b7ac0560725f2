//! The profiles that are compared with the papers: the built-in ones, or candidates during a fit.

use std::collections::BTreeMap;

use sweetspot_decide::Outcome as Means;
use sweetspot_device::Settings;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_sim::{GpuProfile, NodeProfile, Outcome, Variant, Workload, gpus, nodes, workloads};
use sweetspot_study::{Configuration, EnergyOf, RunEnding};

use crate::PapersError;
use crate::batch_sizer_2021::{HostTime, ONE_HOST_TIME};
use crate::dvfs_2019::{self, StudyConstants};
use crate::power_capping_2022::{FROM_LAYERS, LayerConstants};
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
    /// The constants of power_capping_2022 in the form that has no number of a network.
    pub power_capping_2022: LayerConstants,
    /// The host time of batch_sizer_2021 in the form that has one for both data sets.
    pub batch_sizer_2021: HostTime,
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
    /// Loads the profiles that are built into the program, or the user's in place of them.
    pub fn built_in() -> Result<Self, PapersError> {
        Ok(Self {
            gpus: gpus()?.into_iter().collect(),
            nodes: nodes()?.into_iter().collect(),
            workloads: workloads()?,
            dvfs_2019: StudyConstants::built_in()?,
            power_capping_2022: LayerConstants::built_in()?,
            batch_sizer_2021: HostTime::built_in()?,
        })
    }

    /// The constants of a study, or of another form of it, as a JSON document; `None` if it has none.
    pub(crate) fn constants(&self, study: &str) -> Option<String> {
        match study {
            dvfs_2019::STUDY => serde_json::to_string(&self.dvfs_2019).ok(),
            FROM_LAYERS => serde_json::to_string(&self.power_capping_2022).ok(),
            ONE_HOST_TIME => serde_json::to_string(&self.batch_sizer_2021).ok(),
            _ => None,
        }
    }

    /// The profile of a GPU, and a variant of a workload.
    pub(super) fn gpu_and_workload(
        &self,
        gpu: &str,
        workload: &str,
        variant: &Variant,
    ) -> Result<(GpuProfile, Workload), PapersError> {
        let failed = |reason: String| PapersError::Workload {
            workload: workload.to_owned(),
            reason,
        };
        let found = self.workloads.iter().find(|known| known.name == workload);
        let (Some(gpu), Some(found)) = (self.gpus.get(gpu), found) else {
            return Err(failed("there is no such profile".to_owned()));
        };
        let profile = found.profile.with_variant(variant);
        let profile = profile.map_err(|problem| failed(problem.to_string()))?;
        let workload = Workload {
            name: found.name.clone(),
            profile,
        };
        Ok((gpu.clone(), workload))
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
