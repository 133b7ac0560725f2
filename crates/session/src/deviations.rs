//! `simulate --errors`: how far the simulator is from what was published.

use std::collections::BTreeSet;

use sweetspot_device::Settings;
use sweetspot_quantity::{Joules, Ratio, Seconds};
use sweetspot_sim::Variation;
use sweetspot_study::{Configuration, RunEnd};

use crate::SessionError;
use crate::published::{CapRow, power_capping_2022};
use crate::virtual_time::Bench;

/// A published row and what the simulator makes of it, without noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Deviation {
    /// As published.
    pub published: CapRow,
    /// As simulated.
    pub time: Seconds,
    /// As simulated.
    pub energy: Joules,
}

impl Deviation {
    /// Simulated against published time, less one.
    pub fn of_time(&self) -> Ratio {
        self.time / self.published.time - Ratio::new(1.0)
    }

    /// Simulated against published energy, less one.
    pub fn of_energy(&self) -> Ratio {
        self.energy / self.published.energy - Ratio::new(1.0)
    }

    /// The larger of the two.
    pub fn worst(&self) -> Ratio {
        self.of_time().abs().max(self.of_energy().abs())
    }
}

/// All deviations of one published study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyDeviations {
    /// The study's name.
    pub study: String,
    /// Parameters of the profiles that were fitted to it.
    pub free_parameters: usize,
    /// Different published values that they are to meet.
    pub values: usize,
    /// Row by row, as published.
    pub rows: Vec<Deviation>,
}

impl StudyDeviations {
    /// The row that is farthest off.
    pub fn worst(&self) -> Ratio {
        let worst = self.rows.iter().map(Deviation::worst);
        worst.fold(Ratio::ZERO, Ratio::max)
    }
}

/// How far off a row may be.
pub const TOLERANCE: Ratio = Ratio::new(0.02);

/// Every study whose profiles are there, compared row by row.
pub fn deviations() -> Result<Vec<StudyDeviations>, SessionError> {
    const STUDY: &str = "power_capping_2022";
    let published = power_capping_2022()?;
    let mut rows = Vec::new();
    let mut free = BTreeSet::new();
    let mut different = BTreeSet::new();
    for row in published {
        let network = format!("{}@{STUDY}", row.network);
        let bench = Bench::new(&row.gpu, &network, None, None)?;
        let fitted = bench.gpu.fitted.iter();
        let of_gpu = fitted.map(|key| (bench.gpu_name.clone(), key.clone()));
        let place = format!("{network} on {}", bench.gpu_name);
        let fitted = bench.workload.profile.fitted.iter();
        free.extend(of_gpu.chain(fitted.map(|key| (place.clone(), key.clone()))));
        different.insert((place, row.power_cap.get() as u64));
        let batch = bench.workload.profile.batch;
        let configuration = Configuration {
            settings: Settings {
                power_cap: Some(row.power_cap),
                ..Settings::default()
            },
            batch,
            gpus: 1,
        };
        let result = match bench.run(&configuration, Variation::NONE)? {
            RunEnd::Done(result) => result,
            RunEnd::Failed(reason) => {
                return Err(SessionError::NothingRan {
                    study: STUDY.to_owned(),
                    reason,
                });
            }
        };
        rows.push(Deviation {
            published: row,
            time: result.time,
            energy: result.energy,
        });
    }
    Ok(vec![StudyDeviations {
        study: STUDY.to_owned(),
        free_parameters: free.len(),
        values: 2 * different.len(),
        rows,
    }])
}
