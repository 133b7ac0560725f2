//! What can be simulated.

use sweetspot_sim::{GpuProfile, Workload};

use crate::table::Rows;

/// A table of GPUs and one of workloads.
pub fn profiles_text(
    gpus: &[(String, GpuProfile)],
    workloads: &[Workload],
    markdown: bool,
) -> String {
    let mut gpu_rows = Rows::new(&[
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
    let mut workload_rows = Rows::new(&["Workload", "Mode", "Batch", "Known on"]);
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
            known.join(", "),
        ]);
    }
    let draw = |rows: &Rows| {
        if markdown {
            rows.markdown()
        } else {
            rows.terminal()
        }
    };
    format!("{}\n\n{}\n", draw(&gpu_rows), draw(&workload_rows))
}

fn or_dash(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}
