//! How a job scales with the GPUs of the node of node_power_capping_2023: with its link, its start-up and its overlap.

use sweetspot_papers::Profiles;
use sweetspot_quantity::{Bytes, BytesPerSecond, Ratio, Seconds, Watts};
use sweetspot_sim::{NodeProfile, WorkloadProfile};
use sweetspot_study::EnergyOf;

const STUDY: &str = "node_power_capping_2023";

/// The speed-up of this number of GPUs over one at the default cap, with a changed node and workload.
fn speedup(
    gpus: u64,
    change_node: impl Fn(&mut NodeProfile),
    change_workload: impl Fn(&mut WorkloadProfile),
) -> f64 {
    let mut profiles = Profiles::built_in().unwrap();
    let name = format!("xception@{STUDY}");
    change_node(profiles.nodes.get_mut(STUDY).unwrap());
    let mut workloads = profiles.workloads.iter_mut();
    let workload = workloads.find(|workload| workload.name == name).unwrap();
    change_workload(&mut workload.profile);
    let time = |gpus| {
        let boards = ["quadro_rtx_6000"; 8];
        let caps = [Watts::new(260.0)];
        let curve = profiles.curve(&boards, Some(STUDY), &name, EnergyOf::Node, gpus, caps);
        curve.unwrap()[0].1.time.get()
    };
    time(1) / time(gpus)
}

/// The speed-up of 8 GPUs with links of this bandwidth in GB/s.
fn with_bandwidth(bandwidth: f64) -> f64 {
    let set = |node: &mut NodeProfile| {
        node.all_reduce.bandwidth = BytesPerSecond::new(1e9 * bandwidth);
    };
    speedup(8, set, |_| {})
}

#[test]
fn the_bandwidth_of_the_link_changes_the_speedup() {
    let [slow, medium, fast] = [1.0, 10.0, 100.0].map(with_bandwidth);
    assert!(slow < 0.4 * medium, "{slow} and {medium}");
    assert!(medium < 0.9 * fast, "{medium} and {fast}");
}

/// The table in docs/explanation/reproduce/node-power-capping-2023.md.
#[test]
fn the_page_has_the_speedups_of_8_gpus_by_bandwidth() {
    let page = include_str!("../../../../docs/explanation/reproduce/node-power-capping-2023.md");
    for bandwidth in ["0.5", "1", "10", "15.8", "100"] {
        let here = with_bandwidth(bandwidth.parse().unwrap());
        let mut lines = page.lines();
        let line = lines.find(|line| line.starts_with(&format!("| {bandwidth} GB/s")));
        let cell = line.unwrap().split('|').nth_back(1).unwrap().trim();
        let printed: f64 = cell.parse().unwrap();
        assert!((here / printed - 1.0).abs() < 0.01, "{line:?}: {here}");
    }
}

#[test]
fn without_exchange_and_startup_8_gpus_are_8_times_as_fast() {
    let alone = speedup(
        8,
        |_| {},
        |workload| {
            workload.gradients = Bytes::ZERO;
            workload.on[0].startup = Seconds::ZERO;
        },
    );
    assert!((alone - 8.0).abs() < 0.05, "{alone}");
    // Both cost something: neither alone explains the loss.
    let exchange = speedup(8, |_| {}, |workload| workload.on[0].startup = Seconds::ZERO);
    let startup = speedup(8, |_| {}, |workload| workload.gradients = Bytes::ZERO);
    let both = speedup(8, |_| {}, |_| {});
    assert!(both < exchange && exchange < startup && startup < alone);
    assert!(startup > 7.0, "the start-up is small: {startup}");
}

#[test]
fn the_backward_pass_hides_no_more_than_its_own_time() {
    let overlapped = |bandwidth: f64, overlap: f64| {
        let set = |node: &mut NodeProfile| {
            node.all_reduce.bandwidth = BytesPerSecond::new(1e9 * bandwidth);
            node.all_reduce.overlap = Ratio::new(overlap);
        };
        speedup(8, set, |workload| workload.on[0].startup = Seconds::ZERO)
    };
    // A ring over a fast link fits into the backward pass, one over a slow link does not.
    assert!((overlapped(10.0, 1.0) - 8.0).abs() < 0.05);
    let (slow, hidden) = (overlapped(1.0, 0.0), overlapped(1.0, 1.0));
    assert!(slow < hidden && hidden < 3.0, "{slow} and {hidden}");
}
