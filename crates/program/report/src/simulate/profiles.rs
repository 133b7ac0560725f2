//! The profiles that can be simulated.

use sweetspot_sim::{GpuProfile, Mode, NodeProfile, Workload};

use crate::table::Table;
use crate::text::Text;

/// Makes a table of GPUs, one of nodes and one of workloads.
pub fn profiles_text(
    gpus: &[(String, GpuProfile)],
    nodes: &[(String, NodeProfile)],
    workloads: &[Workload],
) -> Text {
    let mut gpu_rows = Table::new(&[
        "GPU",
        "Also",
        "Study",
        "Cap\n[W]",
        "Default\n[W]",
        "Core\n[MHz]",
        "Memory\n[GiB]",
    ])
    .with_text_columns(3);
    for (name, gpu) in gpus {
        gpu_rows.push(vec![
            name.clone(),
            or_dash(gpu.aliases.join(", ")),
            or_dash(gpu.study.clone().unwrap_or_default()),
            format!("{}-{}", gpu.cap.min.get(), gpu.cap.max.get()),
            gpu.cap.default.get().to_string(),
            format!("{}-{}", gpu.core.min.get(), gpu.core.max.get()),
            format!("{:.0}", gpu.memory.capacity.get() / f64::from(1 << 30)),
        ]);
    }
    let mut node_rows =
        Table::new(&["Node", "GPUs", "Host\n[W]", "Supply\n[W]"]).with_text_columns(2);
    for (name, node) in nodes {
        node_rows.push(vec![
            name.clone(),
            node.gpus.clone(),
            node.host.idle.get().to_string(),
            node.supply.capacity.get().to_string(),
        ]);
    }
    let mut workload_rows =
        Table::new(&["Workload", "Mode", "Forms", "Known on", "Batch"]).with_text_columns(4);
    for workload in workloads {
        let known: Vec<_> = workload
            .profile
            .on
            .iter()
            .map(|on| on.gpu.clone())
            .collect();
        workload_rows.push(vec![
            workload.name.clone(),
            mode_name(workload.profile.mode).to_owned(),
            or_dash(variant_names(workload).join(", ")),
            known.join(", "),
            workload.profile.batch.to_string(),
        ]);
    }
    Text::from_parts([gpu_rows, node_rows, workload_rows].map(Text::from))
}

/// The name of a mode, as the flags `--train` and `--infer` write it.
const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Train => "train",
        Mode::Infer => "infer",
    }
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
