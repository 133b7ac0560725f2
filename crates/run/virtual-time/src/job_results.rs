//! The results of simulated runs, as a study stores them.

use std::collections::BTreeMap;

use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_sim::{GroupOutcome, NodeLoad, Trace, uuid};
use sweetspot_stats::Seed;
use sweetspot_study::{
    Column, Configuration, DeviceEnergy, DevicePhase, Energies, Energy, EnergyOf, Failure,
    PhaseResult, Quantity, RunEnding, RunResult, Series,
};

use crate::{SimulatedJob, SimulationError};

/// The time between two stored samples, as in a real driver's buffer.
const SAMPLE_PERIOD: Seconds = Seconds::new(0.02);
/// The name of the measurement method in the results of simulated runs.
const METHOD: &str = "simulator";

impl SimulatedJob {
    /// Simulates a run, and returns its result.
    pub fn run(
        &self,
        configuration: &Configuration,
        seed: Option<Seed>,
    ) -> Result<RunEnding, SimulationError> {
        let together = self.simulate(configuration, seed, &mut ())?;
        Ok(self.run_ending(together, configuration, seed))
    }

    /// Simulates a run, and returns its result with samples of power, clock and utilisation.
    pub fn run_sampled(
        &self,
        configuration: &Configuration,
        seed: Option<Seed>,
    ) -> Result<(RunEnding, Vec<Series>), SimulationError> {
        let gpus = configuration.gpus as usize;
        let mut traces = vec![Trace::every(SAMPLE_PERIOD); gpus];
        let together = self.simulate(configuration, seed, traces.as_mut_slice())?;
        let series = traces.into_iter().enumerate();
        let series = series.map(|(index, trace)| self.series(index, trace));
        let series = series.collect();
        Ok((self.run_ending(together, configuration, seed), series))
    }

    /// The samples of one GPU as a time series for storage.
    fn series(&self, index: usize, trace: Trace) -> Series {
        let profile = &self.gpus[index].profile;
        let [power, mut clock, utilisation] = trace.into_parts();
        let default = profile.core.default.get() as f32;
        for clock in &mut clock {
            *clock *= default;
        }
        let period = SAMPLE_PERIOD.nanos();
        Series {
            device: uuid(&profile.name, index as u64).to_string(),
            source: METHOD.to_owned(),
            nanos: (1..=power.len() as i64).map(|n| n * period).collect(),
            columns: vec![
                (Quantity::Power, Column::All(power)),
                (Quantity::Utilisation, Column::All(utilisation)),
                (Quantity::CoreClock, Column::All(clock)),
            ],
            throttle: None,
        }
    }

    /// Simulates a run and returns its result, or why it failed; `sink` receives the power of each GPU.
    fn run_ending(
        &self,
        together: Result<GroupOutcome, Failure>,
        configuration: &Configuration,
        seed: Option<Seed>,
    ) -> RunEnding {
        let together = match together {
            Ok(together) => together,
            Err(failure) => return RunEnding::Failed(failure),
        };
        let in_use = configuration.gpus as usize;
        let of = |of| self.energy(of, &together, in_use, seed).map(Energy::exact);
        let energies = Energies {
            job_gpus: of(EnergyOf::JobGpus),
            all_gpus: of(EnergyOf::AllGpus),
            node: of(EnergyOf::Node),
        };
        let devices = self.gpus.iter().enumerate().map(|(index, gpu)| {
            let idle = gpu.profile.power.idle * together.time;
            let rank = together.ranks.get(index).map(|rank| rank.energy);
            DeviceEnergy {
                device: uuid(&gpu.profile.name, index as u64),
                in_job: index < in_use,
                energy: Some(Energy::exact(rank.unwrap_or(idle))),
                method: METHOD.to_owned(),
            }
        });
        RunEnding::Done(RunResult {
            time: together.time,
            energies,
            devices: devices.collect(),
            items: Some(together.ranks.iter().map(|rank| rank.items as f64).sum()),
            phases: phases(&together),
            values: BTreeMap::new(),
        })
    }

    /// The energy of the devices that `of` names; `None` for the whole node if the job has no node profile.
    fn energy(
        &self,
        of: EnergyOf,
        together: &GroupOutcome,
        in_use: usize,
        seed: Option<Seed>,
    ) -> Option<Joules> {
        let of_job: Joules = together.ranks.iter().map(|rank| rank.energy).sum();
        let unused: Watts = self.gpus[in_use..]
            .iter()
            .map(|gpu| gpu.profile.power.idle)
            .sum();
        match of {
            EnergyOf::JobGpus => Some(of_job),
            EnergyOf::AllGpus => Some(of_job + unused * together.time),
            EnergyOf::Node => {
                let node = self.node.as_ref()?;
                let most = self.gpus.iter().map(|gpu| gpu.profile.cap.default).sum();
                let is_used: Vec<bool> = (0..self.gpus.len()).map(|gpu| gpu < in_use).collect();
                let spans = together.spans.iter().map(|span| {
                    let load = NodeLoad {
                        gpus: span.energy / span.time + unused,
                        most,
                        in_use: &is_used,
                        package_caps: &[],
                    };
                    node.power(&load).wall * span.time
                });
                let error = seed.map_or(0.0, |seed| 2.0 * seed.label("meter").uniform() - 1.0);
                Some(spans.sum::<Joules>() * (1.0 + node.meter.accuracy.get() * error))
            }
        }
    }
}

/// The phases of a run: their times on the slowest GPU, and the energy of all GPUs.
fn phases(together: &GroupOutcome) -> Vec<PhaseResult> {
    let names = together.ranks[0].phases.iter().map(|phase| &phase.name);
    let phases = names.map(|name| {
        let all = together.ranks.iter().flat_map(|rank| &rank.phases);
        let by_device: Vec<DevicePhase> = all
            .filter(|phase| phase.name == *name)
            .map(|phase| DevicePhase {
                time: phase.time,
                energy: Some(phase.energy),
            })
            .collect();
        let slower = |time: Seconds, one: &DevicePhase| time.max(one.time);
        PhaseResult {
            name: name.clone(),
            time: by_device.iter().fold(Seconds::ZERO, slower),
            energy: by_device.iter().map(|one| one.energy).sum(),
            by_device,
        }
    });
    phases.collect()
}
