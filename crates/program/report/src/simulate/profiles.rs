//! The profiles that can be simulated.

use sweetspot_sim::{GpuProfile, NodeProfile, Workload};

use crate::table::Table;

/// Makes a table of GPUs, one of nodes and one of workloads.
pub fn profiles_text(
    gpus: &[(String, GpuProfile)],
    nodes: &[(String, NodeProfile)],
    workloads: &[Workload],
    markdown: bool,
) -> String {
    let mut gpu_rows = Table::new(&[
        "GPU",
        "Also",
        "Cap [W]",
        "Default [W]",
        "Core [MHz]",
        "GiB",
        "Study",
    ]);
    for (name, gpu) in gpus {
        gpu_rows.push(vec![
            name.clone(),
            or_dash(gpu.aliases.join(", ")),
            format!("{}-{}", gpu.cap.min.get(), gpu.cap.max.get()),
            gpu.cap.default.get().to_string(),
            format!("{}-{}", gpu.core.min.get(), gpu.core.max.get()),
            format!("{:.0}", gpu.memory.capacity.get() / f64::from(1 << 30)),
            or_dash(gpu.study.clone().unwrap_or_default()),
        ]);
    }
    let mut node_rows = Table::new(&["Node", "GPUs", "Host [W]", "Supply [W]"]);
    for (name, node) in nodes {
        node_rows.push(vec![
            name.clone(),
            node.gpus.clone(),
            node.host.idle.get().to_string(),
            node.supply.capacity.get().to_string(),
        ]);
    }
    let mut workload_rows = Table::new(&["Workload", "Mode", "Batch", "Forms", "Known on"]);
    for workload in workloads {
        let known: Vec<_> = workload
            .profile
            .on
            .iter()
            .map(|on| on.gpu.clone())
            .collect();
        workload_rows.push(vec![
            workload.name.clone(),
            workload.profile.mode.to_string(),
            workload.profile.batch.to_string(),
            or_dash(variant_names(workload).join(", ")),
            known.join(if markdown { ", " } else { "\n" }),
        ]);
    }
    let draw = |rows: &Table| {
        if markdown {
            rows.to_markdown()
        } else {
            rows.to_terminal()
        }
    };
    let tables = [&gpu_rows, &node_rows, &workload_rows].map(draw);
    tables.join("\n\n") + "\n"
}

/// Returns the names of the workload's variants: convolution algorithms or data sets.
fn variant_names(workload: &Workload) -> Vec<String> {
    let profile = &workload.profile;
    let algorithms = profile.conv_algorithms.iter().map(|form| &form.name);
    let datasets = profile.datasets.iter().map(|form| &form.name);
    algorithms.chain(datasets).cloned().collect()
}

/// The text, or a dash if it is empty.
fn or_dash(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}
