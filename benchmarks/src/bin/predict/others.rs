//! Other GPUs, on which nothing was measured, compared with what NVIDIA published; and how long a prediction takes.

use std::time::Instant;

use anyhow::Result;
use sweetspot_decide::{Criteria, Objective};
use sweetspot_network::{Precision, built_in, parse};
use sweetspot_predict::Predictor;
use sweetspot_session::predict_on_gpu;
use sweetspot_sim::{Mode, find_gpu};

use crate::quantile;

/// Items per second of ResNet-50 v1.5 with mixed precision in PyTorch: README of PyTorch/Classification/ConvNets/resnet50v1.5
/// in NVIDIA's DeepLearningExamples (container 21.03; training on one GPU with a batch of 256).
const PUBLISHED: [(&str, Mode, u64, f64); 5] = [
    ("a100", Mode::Train, 256, 2470.0),
    ("v100", Mode::Train, 256, 1200.0),
    ("v100", Mode::Infer, 64, 2984.0),
    ("v100", Mode::Infer, 128, 3249.0),
    ("v100", Mode::Infer, 256, 3382.0),
];

/// Prints predictions with the H200's constants and the data sheet of another GPU.
pub fn report_other_gpus() -> Result<()> {
    println!("\nResNet-50 on other GPUs: predicted from data sheets, 95 % interval, published");
    let network = built_in("resnet50")?;
    for (gpu, mode, batch, published) in PUBLISHED {
        let (name, mut profile) = find_gpu(gpu)?;
        // The V100's profile is that of a study in fp32; only here its predictions are looked at.
        profile.kernels_of = Some("nvidia_h200".to_owned());
        let gpu = (name.as_str(), &profile);
        let predictor = Predictor::new(&network, gpu, Precision::Fp16, mode)?;
        let prediction = predictor.predict(batch);
        let rate = prediction.items_per_s();
        let factor = 1.0 + prediction.errors[0].get();
        let (low, high) = (rate / factor, rate * factor);
        println!(
            "  {name}, {mode}, batch {batch}: {rate:.0} ({low:.0} to {high:.0}), published {published:.0}: {}",
            match (low..=high).contains(&published) {
                true => "inside",
                false => "OUTSIDE",
            }
        );
    }
    Ok(())
}

/// The number of times that the prediction of a network is timed.
const REPEATS: usize = 20;
/// The longest time of a prediction.
const TARGET_MS: f64 = 50.0;

/// Prints the time of the prediction of a network with a thousand layers, with the best settings.
pub fn report_time() -> Result<()> {
    let layers = "conv 64 3x3 pad=1\nrelu\n".repeat(500);
    let network = parse("thousand", &format!("input 3x64x64\n{layers}"))?;
    let criteria = Criteria::from(Objective::Edp);
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        let begun = Instant::now();
        let precision = Precision::Bf16;
        predict_on_gpu("h200", &network, precision, 64, Mode::Train, &criteria)??;
        times.push(1e3 * begun.elapsed().as_secs_f64());
    }
    println!(
        "\na prediction for {} layers, with the best cap and clock: {:.2} ms (median), {:.2} of the limit of {TARGET_MS} ms",
        network.layers.len(),
        quantile(&times, 0.5),
        quantile(&times, 0.5) / TARGET_MS
    );
    Ok(())
}
