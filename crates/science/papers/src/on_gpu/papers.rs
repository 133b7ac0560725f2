//! What each paper varied, in the form of a plan.

use sweetspot_decide::Objective;
use sweetspot_study::EnergyOf;

use crate::{dvfs_2019, multi_gpu_2018, node_power_capping_2023, power_capping_2022};

/// What a paper varied on each GPU, beside the number of GPUs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Swept {
    /// Power caps in watts, in ascending order; the last is the default.
    PowerCap(Vec<f64>),
    /// Core clocks in MHz, in ascending order, and the default one.
    CoreClock(Vec<f64>, f64),
    /// Batch sizes, the first of which is the reference.
    Batch(Vec<u64>),
}

/// The plan of a paper for one of its GPUs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PaperPlan {
    pub name: &'static str,
    /// The name of the study in names of workloads.
    pub study: &'static str,
    pub source: &'static str,
    pub networks: &'static [&'static str],
    /// The paper's GPUs, with what was varied on each; the first is compared with if the user's is another.
    pub gpus: Vec<(&'static str, Swept)>,
    /// The numbers of GPUs of a job; empty if it always had one.
    pub counts: &'static [u64],
    pub repeat: u32,
    pub energy_of: EnergyOf,
    /// The metrics whose best settings the paper gives.
    pub metrics: Vec<Objective>,
}

/// Steps from `low` to `high`.
fn steps(low: u32, high: u32, step: usize) -> Vec<f64> {
    (low..=high).step_by(step).map(f64::from).collect()
}

/// The plan of a paper; `None` if it has none for a GPU and program of the user.
pub(super) fn find_paper(name: &str) -> Option<PaperPlan> {
    let eds = [Objective::Eds(1.5), Objective::Eds(2.0)];
    let of_stage = [[Objective::Energy, Objective::Edp].as_slice(), &eds].concat();
    Some(match name {
        power_capping_2022::PAPER => PaperPlan {
            name: power_capping_2022::PAPER,
            study: "power_capping_2022",
            source: power_capping_2022::SOURCE,
            networks: &[
                "resnet50",
                "resnet152",
                "vgg19",
                "alexnet",
                "inception_v3",
                "inception_v4",
            ],
            gpus: vec![
                ("tesla_v100_sxm2_16gb", Swept::PowerCap(steps(150, 300, 5))),
                ("quadro_rtx_6000", Swept::PowerCap(steps(100, 260, 5))),
            ],
            counts: &[],
            repeat: 5,
            energy_of: EnergyOf::JobGpus,
            metrics: of_stage,
        },
        node_power_capping_2023::PAPER => PaperPlan {
            name: node_power_capping_2023::PAPER,
            study: "node_power_capping_2023",
            source: node_power_capping_2023::SOURCE,
            networks: &["xception"],
            gpus: vec![("quadro_rtx_6000", Swept::PowerCap(steps(100, 260, 10)))],
            counts: &[1, 2, 4, 8],
            repeat: 10,
            energy_of: EnergyOf::Node,
            metrics: [of_stage.as_slice(), &[Objective::GainMinusLoss]].concat(),
        },
        dvfs_2019::PAPER => PaperPlan {
            name: dvfs_2019::PAPER,
            study: "dvfs_2019",
            source: dvfs_2019::SOURCE,
            networks: &["resnet50", "vgg16", "googlenet", "alexnet"],
            gpus: dvfs_2019::BOARDS
                .iter()
                .map(|board| {
                    (
                        board.gpu,
                        Swept::CoreClock(board.core.to_vec(), board.default),
                    )
                })
                .collect(),
            counts: &[],
            repeat: dvfs_2019::RUNS,
            energy_of: EnergyOf::JobGpus,
            metrics: vec![Objective::Energy],
        },
        multi_gpu_2018::PAPER => PaperPlan {
            name: multi_gpu_2018::PAPER,
            study: "multi_gpu_2018",
            source: multi_gpu_2018::SOURCE,
            networks: &multi_gpu_2018::NETWORKS,
            gpus: vec![(
                multi_gpu_2018::PASCAL,
                Swept::Batch(multi_gpu_2018::BATCHES.to_vec()),
            )],
            counts: &multi_gpu_2018::GPU_COUNTS,
            repeat: 3,
            energy_of: EnergyOf::JobGpus,
            metrics: vec![Objective::Energy, Objective::Edp],
        },
        _ => return None,
    })
}

impl PaperPlan {
    /// The names of the papers that have a plan.
    pub const NAMES: [&'static str; 4] = [
        power_capping_2022::PAPER,
        node_power_capping_2023::PAPER,
        dvfs_2019::PAPER,
        multi_gpu_2018::PAPER,
    ];

    /// What was varied on one of the paper's GPUs.
    pub fn swept(&self, gpu: &str) -> Option<&Swept> {
        let found = self.gpus.iter().find(|(name, _)| *name == gpu);
        found.map(|(_, swept)| swept)
    }
}
