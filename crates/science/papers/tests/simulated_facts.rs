//! Statements of the papers and properties of every profile, to which no profile was fitted.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use sweetspot_device::Settings;
use sweetspot_fit::{FitRequest, MeasuredRow, predict};
use sweetspot_papers::Profiles;
use sweetspot_quantity::{Megahertz, Seconds, Watts};
use sweetspot_sim::{GpuProfile, Mode, Variant, WorkloadProfile, find_gpu, find_workload};
use sweetspot_study::{AxisText, Definition};
use sweetspot_virtual_time::sweep;

/// A workload on one GPU, without noise.
struct TestWorkload {
    request: FitRequest,
    profile: WorkloadProfile,
}

impl TestWorkload {
    fn new(gpu: &str, workload: &str, variant: &Variant) -> Self {
        let (gpu_name, gpu) = find_gpu(gpu).unwrap();
        let profile = find_workload(workload, None, variant).unwrap().profile;
        Self {
            request: FitRequest {
                gpu_name,
                gpu,
                network: profile.network.clone(),
                mode: profile.mode,
                rows: Vec::new(),
            },
            profile,
        }
    }

    fn gpu(&self) -> &GpuProfile {
        &self.request.gpu
    }

    /// The time of an iteration and the mean power, or why the run fails.
    fn try_run(&self, batch: u64, settings: Settings) -> Result<(Seconds, Watts), String> {
        let row = MeasuredRow {
            batch,
            settings,
            iterations: 100,
            iteration: Seconds::new(1.0),
            power: Watts::new(1.0),
        };
        match predict(&self.request, &self.profile, &row) {
            Ok(run) => Ok((run.iteration, run.power)),
            Err(problem) => Err(problem.to_string()),
        }
    }

    /// The items per second and watts.
    fn run(&self, batch: u64, settings: Settings) -> (f64, f64) {
        let (iteration, power) = self.try_run(batch, settings).unwrap();
        (batch as f64 / iteration.get(), power.get())
    }
}

fn training(algorithm: &str) -> Variant {
    Variant {
        mode: Some(Mode::Train),
        conv_algorithm: Some(algorithm.to_owned()),
        dataset: None,
    }
}

fn core(clock: f64) -> Settings {
    Settings {
        core_clock: Some(Megahertz::new(clock)),
        ..Settings::default()
    }
}

/// Table II of dvfs_2019; the smallest batch size fits everywhere.
const DVFS: [(&str, &[u64]); 4] = [
    ("alexnet", &[128, 256, 512, 1024]),
    ("vgg16", &[16, 32, 64]),
    ("googlenet", &[16, 32, 64, 128]),
    ("resnet50", &[8, 16, 32]),
];

fn dvfs(gpu: &str, network: &str, variant: &Variant) -> TestWorkload {
    TestWorkload::new(gpu, &format!("{network}@dvfs_2019"), variant)
}

/// Section IV.B and appendix A: "when the core frequency surpasses 1,000 MHz, the power consumption has a
/// sudden jump".
#[test]
fn power_jumps_above_1000_mhz_on_p100_and_v100() {
    let boards: [(&str, [f64; 4]); 2] = [
        ("tesla_p100", [544.0, 936.0, 1063.0, 1328.0]),
        ("tesla_v100_pcie_16gb", [510.0, 945.0, 1087.0, 1380.0]),
    ];
    for (gpu, clocks) in boards {
        for (network, batches) in DVFS {
            let stand = dvfs(gpu, network, &training("gemm"));
            let watts = clocks.map(|clock| stand.run(batches[0], core(clock)).1);
            let below = (watts[1] - watts[0]) / (clocks[1] - clocks[0]);
            let above = (watts[3] - watts[2]) / (clocks[3] - clocks[2]);
            assert!(
                above > 1.3 * below,
                "{gpu} {network}: {below:.3} W/MHz below, {above:.3} above"
            );
        }
    }
}

/// "Due to the limitation of GPU memory size, some large batch sizes are not supported", most of them with
/// FFT.
#[test]
fn batches_that_do_not_fit_fail_with_the_largest_that_does() {
    let (mut fitting, mut failing) = ([0; 3], 0);
    for gpu in ["tesla_p100", "tesla_v100_pcie_16gb", "gtx_2080ti"] {
        for (network, batches) in DVFS {
            for (index, algorithm) in ["gemm", "winograd", "fft"].into_iter().enumerate() {
                let stand = dvfs(gpu, network, &training(algorithm));
                for batch in batches {
                    let Err(problem) = stand.try_run(*batch, Settings::default()) else {
                        fitting[index] += 1;
                        continue;
                    };
                    failing += 1;
                    let (_, largest) = problem
                        .split_once("the largest that fits is ")
                        .unwrap_or_else(|| panic!("{problem}"));
                    let largest: u64 = largest.parse().unwrap();
                    assert!(largest < *batch);
                    stand.try_run(largest, Settings::default()).unwrap();
                    stand.try_run(largest + 1, Settings::default()).unwrap_err();
                }
            }
        }
    }
    assert!(failing > 0);
    assert!(
        fitting.is_sorted_by(|more, fewer| more > fewer),
        "{fitting:?}"
    );
}

/// batch_sizer_2021, section 3: "when processing the Caltech256 dataset using MobileNet, we observe
/// significant throughput improvement as the batch size increases, while the improvement is negligible when
/// processing the ImageNet dataset with the same DNN". In the simulator the first few items of a batch gain something
/// on ImageNet too: an eighth of the gain on Caltech.
#[test]
fn mobilenet_gains_from_batch_on_caltech_and_hardly_on_imagenet() {
    for network in ["mobilenet_v1", "mobilenet_v2"] {
        let speeds = |dataset: &str| {
            let variant = Variant {
                dataset: Some(dataset.to_owned()),
                ..Variant::default()
            };
            let name = format!("{network}@batch_sizer_2021");
            let stand = TestWorkload::new("tesla_p40", &name, &variant);
            [1, 8, 256].map(|batch| stand.run(batch, Settings::default()).0)
        };
        let (caltech, imagenet) = (speeds("caltech"), speeds("imagenet"));
        assert!(caltech[2] > 2.5 * caltech[0], "{network}: {caltech:?}");
        assert!(imagenet[2] < 1.1 * imagenet[1], "{network}: {imagenet:?}");
        let gained = |speeds: [f64; 3]| speeds[2] - speeds[0];
        assert!(
            gained(imagenet) < 0.16 * gained(caltech),
            "{network}: {imagenet:?}, {caltech:?}"
        );
    }
}

/// batch_sizer_2021, section 3: from a batch of 256 on the multiprocessors limit the speed (Inception on Caltech), so
/// that it follows the core clock and not the launches.
#[test]
fn at_a_batch_of_256_the_p40_is_bound_by_its_cores() {
    let variant = Variant {
        dataset: Some("caltech".to_owned()),
        ..Variant::default()
    };
    for network in ["googlenet", "inception_v2", "inception_v3"] {
        let stand = TestWorkload::new(
            "tesla_p40",
            &format!("{network}@batch_sizer_2021"),
            &variant,
        );
        let work = &stand.profile.on[0];
        let device = (work.core + work.memory) * 256.0 + work.memory_per_batch;
        assert!(
            device > work.launch * 20.0,
            "{network}: launches are hidden"
        );
        let speed = |clock| stand.run(256, core(clock)).0;
        let gain = speed(1531.0) / speed(949.0) - 1.0;
        assert!(gain > 0.2, "{network}: {gain:+.3} for 61 % more clock");
    }
}

/// On the H200 a larger batch never has a shorter iteration.
#[test]
fn iterations_on_the_h200_take_longer_the_larger_the_batch() {
    let profiles = Profiles::built_in().unwrap();
    let of_h200 = profiles
        .workloads
        .iter()
        .filter(|workload| workload.name.ends_with("@h200"));
    let mut networks = 0;
    for workload in of_h200 {
        let variant = Variant {
            mode: Some(workload.profile.mode),
            ..Variant::default()
        };
        let stand = TestWorkload::new("nvidia_h200", &workload.name, &variant);
        let time = |power: u32| stand.try_run(1 << power, Settings::default()).unwrap().0;
        let times: Vec<Seconds> = (0..=9).map(time).collect();
        assert!(
            times.is_sorted_by(|shorter, longer| shorter < longer),
            "{}: {times:?}",
            workload.name
        );
        networks += 1;
    }
    assert_eq!(networks, 8);
}

/// node_power_capping_2023: the profiles do not contain the number of GPUs of a job. Each GPU behaves as one alone, and
/// the exchange of gradients is added.
#[test]
fn several_gpus_follow_from_one() {
    let definition = Definition {
        node: Some("node_power_capping_2023".to_owned()),
        network: Some("xception".to_owned()),
        gpus: Some(AxisText("1,2,4,8".to_owned())),
        repeat: Some(1),
        ..Definition::default()
    };
    let study = sweep(&definition, NonZeroUsize::MIN).unwrap();
    let kernels = |gpus: u64| {
        let point = study
            .points
            .iter()
            .find(|point| point.configuration.gpus == gpus);
        let run = point.unwrap().results().next().unwrap();
        let phases = run.phases.iter();
        let kernels = phases.filter(|phase| ["forward", "backward"].contains(&phase.name.as_str()));
        let time: f64 = kernels.map(|phase| phase.time.get()).sum();
        let items = run.items.unwrap();
        (time * gpus as f64 / items, run.time.get())
    };
    let (alone, whole) = kernels(1);
    for gpus in [2, 4, 8] {
        let (each, time) = kernels(gpus);
        assert!(
            (each / alone - 1.0).abs() < 0.03,
            "an item takes {alone} s on one GPU and {each} s on one of {gpus}"
        );
        assert!(whole / time < gpus as f64, "the exchange costs something");
        assert!(time < whole, "and is worth it");
    }
}

/// A node's profile has no key that could hold a result for a number of GPUs.
#[test]
fn no_node_profile_depends_on_the_number_of_gpus() {
    let known = BTreeSet::from([
        "name",
        "gpus",
        "fitted",
        "host",
        "idle",
        "per_gpu",
        "fans",
        "supply",
        "capacity",
        "efficiency",
        "all_reduce",
        "bandwidth",
        "unlike_bandwidth",
        "latency",
        "overlap",
        "activity",
        "gpus_per_link",
        "processors",
        "packages",
        "cap",
        "dram",
        "meter",
        "period",
        "accuracy",
    ]);
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../simulate/sim/profiles/nodes"
    );
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let key = line
                .trim_matches(['[', ']'])
                .split(" = ")
                .next()
                .unwrap_or_default();
            assert!(
                key.is_empty() || known.contains(key),
                "{}: {key}",
                path.display()
            );
        }
    }
}

/// The simulated GPUs support every setting of the studies.
#[test]
fn every_clock_of_the_studies_is_supported() {
    let offered = |gpu: &str, clocks: &[f64]| {
        let levels = find_gpu(gpu).unwrap().1.core.levels();
        for clock in clocks {
            assert!(
                levels.contains(&Megahertz::new(*clock)),
                "{gpu}: {clock} MHz"
            );
        }
    };
    offered(
        "tesla_p100",
        &[544.0, 683.0, 810.0, 936.0, 1063.0, 1202.0, 1328.0],
    );
    offered(
        "tesla_v100_pcie_16gb",
        &[510.0, 652.0, 802.0, 945.0, 1087.0, 1237.0, 1380.0],
    );
    offered(
        "gtx_2080ti",
        &[950.0, 1150.0, 1350.0, 1550.0, 1750.0, 1950.0, 2025.0],
    );
    offered(
        "tesla_p40",
        &[
            544.0, 632.0, 734.0, 835.0, 949.0, 1063.0, 1189.0, 1303.0, 1430.0, 1531.0,
        ],
    );
    let stand = TestWorkload::new("nvidia_h200", "resnet50@h200", &Variant::default());
    assert_eq!(stand.gpu().cap.default, Watts::new(700.0));
}
