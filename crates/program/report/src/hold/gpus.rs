//! The GPUs of a run with `sweetspot hold`: their names, their settings and their energy.

use sweetspot_quantity::Watts;
use sweetspot_session::hold::{HeldGpu, HoldResult};

use crate::table::Table;
use crate::tune::{model_names, settings_text};

/// The models of the GPUs with their numbers: `2 x NVIDIA H200`.
pub(super) fn gpu_names(result: &HoldResult) -> String {
    model_names(result.gpus.iter().map(|gpu| gpu.device.name.as_str()))
}

/// The mean power of a GPU from the first batch to the last; `None` if it is unknown.
pub(super) fn mean_power(result: &HoldResult, gpu: &HeldGpu) -> Option<Watts> {
    let time = result.summary.time;
    let energy = gpu.energy.filter(|_| time.get() > 0.0)?;
    Some(energy.value / time)
}

/// Makes a row for each of several GPUs: its last setting, its power and its energy.
pub(super) fn gpu_rows(result: &HoldResult) -> Table {
    let mut rows = Table::new(&[
        "GPU",
        "Model",
        "At the end",
        "Power\n[W]",
        "Energy\n[kJ]",
        "Share\n[%]",
    ])
    .with_text_columns(3)
    .with_key_columns(2);
    if result.gpus.len() < 2 {
        return rows;
    }
    for (number, gpu) in result.gpus.iter().enumerate() {
        let share = gpu
            .energy
            .zip(result.energy)
            .map(|(own, all)| own.value / all.value);
        rows.push(vec![
            number.to_string(),
            gpu.device.name.clone(),
            gpu.settings.as_ref().map_or(String::new(), settings_text),
            mean_power(result, gpu).map_or(String::new(), |power| format!("{:.1}", power.get())),
            gpu.energy
                .map_or(String::new(), |own| format!("{:.2}", own.value.get() / 1e3)),
            share.map_or(String::new(), |share| format!("{:.0}", 100.0 * share.get())),
        ]);
    }
    rows
}
