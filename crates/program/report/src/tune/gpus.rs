//! The GPUs of a tuned job: their names, their settings and their energy.

use sweetspot_control::tune::TunedJob;
use sweetspot_device::Settings;
use sweetspot_quantity::Joules;

use crate::table::Table;

/// The energy of one GPU over the job, if it is known.
pub(super) fn energy_of_gpu(job: &TunedJob, gpu: usize) -> Option<Joules> {
    job.energy_of_gpus.get(gpu).copied().flatten()
}

/// The models of the GPUs with their numbers: `2 x TITAN X (Pascal), 2 x GeForce GTX TITAN X`.
pub(super) fn gpu_names(job: &TunedJob) -> String {
    model_names(job.devices.iter().map(|device| device.name.as_str()))
}

/// The names of models with their numbers: `2 x TITAN X (Pascal), 2 x GeForce GTX TITAN X`.
pub(crate) fn model_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut models: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match models.iter_mut().find(|(model, _)| *model == name) {
            Some((_, count)) => *count += 1,
            None => models.push((name, 1)),
        }
    }
    let names = models.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        count => format!("{count} x {name}"),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Makes a row for each GPU of a job on several GPUs: its settings and its energy.
pub(super) fn gpu_rows(job: &TunedJob) -> Table {
    let mut rows = Table::new(&[
        "GPU",
        "Model",
        "Reference",
        "Choice",
        "Energy\n[kJ]",
        "Share\n[%]",
    ])
    .with_text_columns(4)
    .with_key_columns(2);
    if job.devices.len() < 2 {
        return rows;
    }
    let choice = job.choice();
    for (gpu, device) in job.devices.iter().enumerate() {
        let own = |point: usize| settings_text(&job.settings_of_gpus[point][gpu]);
        let energy = energy_of_gpu(job, gpu).zip(job.energy);
        rows.push(vec![
            gpu.to_string(),
            device.name.clone(),
            own(job.reference),
            choice.map_or(String::new(), own),
            energy.map_or(String::new(), |(own, _)| format!("{:.1}", own.get() / 1e3)),
            energy.map_or(String::new(), |(own, all)| {
                format!("{:.0}", own.get() / all.get() * 100.0)
            }),
        ]);
    }
    rows
}

/// The settings of one GPU as text.
pub(crate) fn settings_text(settings: &Settings) -> String {
    let cap = settings.power_cap.map(|cap| format!("{:.0} W", cap.get()));
    let clock = settings
        .core_clock
        .map(|clock| format!("{:.0} MHz", clock.get()));
    cap.into_iter().chain(clock).collect::<Vec<_>>().join(", ")
}
