//! The batch study: networks whose kernels are started one by one and whose data is copied from the host. The constants of
//! the GPU stay as they are; only the host's are fitted.

use anyhow::Result;
use sweetspot_network::Precision;
use sweetspot_predict::{Predictor, Work};
use sweetspot_quantity::Seconds;
use sweetspot_sim::{Chip, Load, Mode, find_gpu};

use crate::constants::fit_logarithms;
use crate::quantile;
use crate::rows::{BATCH_STUDY, MeasuredRow, measured_rows};

/// The host's constants, with the value that a fit starts with and its bounds: microseconds for a kernel in inference and
/// in training, and for the copy of an item.
const HOST: [(&str, f64, f64, f64); 3] = [
    ("a kernel in inference", 20.0, 1.0, 1000.0),
    ("a kernel in training", 200.0, 10.0, 2000.0),
    ("the copy of an item", 5.0, 0.1, 100.0),
];

/// Fits the host's constants to every other batch size of the study, and prints the errors of the others.
pub fn report_batch_study() -> Result<()> {
    let mut rows = measured_rows("batch_study_inference.csv", &BATCH_STUDY)?;
    rows.extend(measured_rows("batch_study_training.csv", &BATCH_STUDY)?);
    let (name, profile) = find_gpu("nvidia_h200")?;
    let chip = Chip::new(&profile);
    let limits = chip.limits(profile.cap.default, None, None);
    let mut works = Vec::new();
    for row in &rows {
        let gpu = (name.as_str(), &profile);
        let predictor = Predictor::new(&row.network, gpu, Precision::Bf16, row.mode)?;
        works.push(predictor.work_at(row.batch));
    }
    // The prediction of a row divided by its measurement: time and power.
    let ratios = |host: &[f64], index: usize| {
        let (row, work): (&MeasuredRow, _) = (&rows[index], &works[index]);
        let kernels = row.kernels.iter();
        let (per_kernel, kernels) = match row.mode {
            Mode::Infer => (host[0], kernels.count()),
            Mode::Train => (
                host[1],
                kernels
                    .filter(|kernel| kernel.work != Work::BatchNormalisation)
                    .count(),
            ),
        };
        let launch = 1e-6 * per_kernel * kernels as f64;
        let all: f64 = work.parts.iter().map(|part| part.kernel_time().get()).sum();
        let mut work = work.clone();
        for part in &mut work.parts {
            part.launch = Seconds::new(launch * part.kernel_time().get() / all);
        }
        let mut loads = work.loads();
        loads.push(Load::Waiting {
            host: Seconds::new(1e-6 * host[2] * row.batch as f64),
        });
        let steady = chip.steady(&limits, &loads);
        [steady.time.get() / row.time, steady.power.get() / row.power]
    };
    println!("\nbatch study, with the GPU's constants and three of the host:");
    let mut judged = Vec::new();
    for half in 0..2 {
        let fitted_to: Vec<usize> = (half..rows.len()).step_by(2).collect();
        let host = fit_logarithms(&HOST, None, 40, |host| {
            fitted_to
                .iter()
                .map(|index| ratios(host, *index)[0].ln())
                .collect()
        });
        for ((name, ..), value) in HOST.iter().zip(&host) {
            println!("  {name}: {value:.1} us");
        }
        let others = (1 - half..rows.len()).step_by(2);
        judged.extend(others.map(|index| (index, ratios(&host, index))));
    }
    for (about, from) in [("all batches", 0), ("batches of 64 and more", 64)] {
        for mode in [Mode::Infer, Mode::Train] {
            let of_mode = judged.iter().filter(|(index, _)| {
                let row = &rows[*index];
                row.mode == mode && row.batch >= from
            });
            let of_mode: Vec<&[f64; 2]> = of_mode.map(|(_, ratios)| ratios).collect();
            let [time, power] = [0, 1].map(|column| {
                let errors: Vec<f64> = of_mode
                    .iter()
                    .map(|ratios| (ratios[column] - 1.0).abs())
                    .collect();
                [0.5, 0.9].map(|share| 100.0 * quantile(&errors, share))
            });
            println!(
                "  {mode}, {about}, rows left out: time {:.1} / {:.1} %, power {:.1} / {:.1} % of {} rows",
                time[0],
                time[1],
                power[0],
                power[1],
                of_mode.len()
            );
        }
    }
    if std::env::args().any(|argument| argument == "--rows") {
        for (index, [time, power]) in &judged {
            let row = &rows[*index];
            println!(
                "    {:20} {:3} {}  time {time:.2} power {power:.2}",
                row.network.name, row.batch, row.mode
            );
        }
    }
    Ok(())
}
