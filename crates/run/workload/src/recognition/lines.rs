//! The log lines of training scripts and frameworks that print no bar.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::format::Format;
use super::sample::{Amount, Evidence, Role, Sample};
use super::text::{Pattern, captures, group, number};

static TIMM: Pattern = LazyLock::new(|| {
    Regex::new(r"\b(?:Train: [0-9]+|(Test[^:]*):) \[ *([0-9]+)/([0-9]+)(?: \( *[0-9]+%\))?\] +(?:Loss|Time): ").ok()
});

/// Reads a line of timm's `train.py`. It counts updates from 0 and prints a line when an update is done.
pub(super) fn parse_timm(line: &str) -> Option<Sample> {
    let found = line.contains("/").then(|| captures(&TIMM, line))??;
    let role = match group(&found, 1) {
        "" => Role::Training,
        _ => Role::Validation,
    };
    let (done, total) = (number(&found, 2)? + 1.0, number(&found, 3)?);
    Some(Sample::strong(
        Format::Timm,
        role,
        "step",
        done,
        Some(total),
    ))
}

static IMAGENET: Pattern = LazyLock::new(|| {
    Regex::new(r"^(?:Epoch: \[ *[0-9]+\]|(Test): )\[ *([0-9]+)/ *([0-9]+)\]\s+Time ").ok()
});

/// Reads a line of PyTorch's ImageNet example, which many scripts copy.
pub(super) fn parse_imagenet(line: &str) -> Option<Sample> {
    let found = line.contains("]").then(|| captures(&IMAGENET, line))??;
    let role = match group(&found, 1) {
        "" => Role::Training,
        _ => Role::Validation,
    };
    Some(Sample::strong(
        Format::ImageNet,
        role,
        "step",
        number(&found, 2)?,
        number(&found, 3),
    ))
}

static NANOGPT: Pattern =
    LazyLock::new(|| Regex::new(r"^iter ([0-9]+): loss [^ ,]+, time [0-9.]+ms").ok());

/// Reads a line of nanoGPT.
pub(super) fn parse_nanogpt(line: &str) -> Option<Sample> {
    let found = line
        .starts_with("iter ")
        .then(|| captures(&NANOGPT, line))??;
    Some(Sample::strong(
        Format::NanoGpt,
        Role::Training,
        "step",
        number(&found, 1)?,
        None,
    ))
}

static MEGATRON: Pattern = LazyLock::new(|| {
    Regex::new(r"\biteration +([0-9]+)/ *[0-9]+ \|(?: consumed samples: +([0-9]+) \|)?.*elapsed time per iteration").ok()
});

/// Reads a line of Megatron-LM. Samples are counted where the line has them.
pub(super) fn parse_megatron(line: &str) -> Option<Sample> {
    let found = line
        .contains("elapsed time per iteration")
        .then(|| captures(&MEGATRON, line))??;
    let (unit, done) = match number(&found, 2) {
        Some(samples) => ("sample", samples),
        None => ("step", number(&found, 1)?),
    };
    Some(Sample::strong(
        Format::Megatron,
        Role::Training,
        unit,
        done,
        None,
    ))
}

static MMENGINE: Pattern = LazyLock::new(|| {
    Regex::new(r"\b(?:Epoch|Iter)(?:\((train|val|test)\))? *(?:\[ *[0-9]+\])?\[ *([0-9]+)/ *([0-9]+)\]\s+(?:\S*lr|eta|time|data_time|accuracy)?.*: ").ok()
});

/// Reads a line of MMEngine, or of MMCV before it.
pub(super) fn parse_mmengine(line: &str) -> Option<Sample> {
    let is_likely = line.contains("Epoch") || line.contains("Iter");
    let found = (is_likely && line.contains("time: ")).then(|| captures(&MMENGINE, line))??;
    let role = match group(&found, 1) {
        "val" | "test" => Role::Validation,
        _ => Role::Training,
    };
    Some(Sample::strong(
        Format::MmEngine,
        role,
        "step",
        number(&found, 2)?,
        number(&found, 3),
    ))
}

static DETECTRON2: Pattern =
    LazyLock::new(|| Regex::new(r"\beta: \S.* iter: ([0-9]+)  .*\btime: [0-9.]+").ok());

/// Reads a line of Detectron2. It counts iterations from 0 and prints a line when one is done.
pub(super) fn parse_detectron2(line: &str) -> Option<Sample> {
    let found = line
        .contains(" iter: ")
        .then(|| captures(&DETECTRON2, line))??;
    Some(Sample::strong(
        Format::Detectron2,
        Role::Training,
        "step",
        number(&found, 1)? + 1.0,
        None,
    ))
}

static DARKNET: Pattern = LazyLock::new(|| {
    Regex::new(r"^ *[0-9]+(?:, [0-9.]+)?: [^ ,]+, [^ ,]+ avg(?: loss)?, [0-9.]+ rate, [0-9.]+ seconds, ([0-9]+) images").ok()
});

/// Reads a line of Darknet, which counts images.
pub(super) fn parse_darknet(line: &str) -> Option<Sample> {
    let found = line
        .contains(" rate, ")
        .then(|| captures(&DARKNET, line))??;
    Some(Sample::strong(
        Format::Darknet,
        Role::Training,
        "image",
        number(&found, 1)?,
        None,
    ))
}

/// Reads a line that the Trainer of Hugging Face logs every few steps: `{'loss': 2.3, ..., 'epoch': 0.5}`. Every such
/// line stands for the same number of steps, which it does not contain; the epoch is rounded.
pub(super) fn parse_trainer(line: &str) -> Option<Sample> {
    let is_log = line.starts_with("{'loss': ") && line.contains("'epoch': ") && line.ends_with('}');
    let sample = Sample::strong(Format::HuggingFace, Role::Training, "log line", 0.0, None);
    is_log.then_some(Sample {
        evidence: Evidence::Medium,
        amount: Amount::One,
        ..sample
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count, the total, the unit and the role of a line.
    fn read(sample: Option<Sample>) -> Option<(f64, Option<f64>, String, Role)> {
        let sample = sample?;
        match sample.amount {
            Amount::Done { done, total } => Some((done, total, sample.unit, sample.role)),
            _ => None,
        }
    }

    fn expected(
        done: f64,
        total: Option<f64>,
        unit: &str,
        role: Role,
    ) -> Option<(f64, Option<f64>, String, Role)> {
        Some((done, total, unit.to_owned(), role))
    }

    #[test]
    fn log_lines_are_read() {
        let train = |done, total| expected(done, total, "step", Role::Training);
        let validation = |done, total| expected(done, total, "step", Role::Validation);
        let line = "Train: 0 [  50/1251 (  4%)]  Loss: 6.93 (6.93)  Time: 0.123s, 1040.21/s  (0.130s,  984.62/s)";
        assert_eq!(read(parse_timm(line)), train(51.0, Some(1251.0)));
        let line = "Test: [   0/3]  Time: 0.125 (0.125)  Loss:   0.810 ( 0.810)";
        assert_eq!(read(parse_timm(line)), validation(1.0, Some(3.0)));
        let line =
            "Epoch: [0][  10/5005]\tTime  0.2 ( 1.2)\tData  0.0 ( 0.1)\tLoss 6.9e+00 (6.9e+00)";
        assert_eq!(read(parse_imagenet(line)), train(10.0, Some(5005.0)));
        let line = "Test: [  1/196]\tTime  0.595 ( 0.595)\tLoss 0.0";
        assert_eq!(read(parse_imagenet(line)), validation(1.0, Some(196.0)));
        let line = "iter 10: loss 2.3456, time 105.21ms, mfu 12.34%";
        assert_eq!(read(parse_nanogpt(line)), train(10.0, None));
        let line = "05/01 12:00:00 - mmengine - INFO - Epoch(train)  [1][ 50/469]  lr: 1.0000e-02  eta: 0:00:02  time: 0.05";
        assert_eq!(read(parse_mmengine(line)), train(50.0, Some(469.0)));
        let line = "05/01 12:00:00 - mmengine - INFO - Iter(val) [10/10]    accuracy: 1.0000  data_time: 0.0003  time: 0.0537";
        assert_eq!(read(parse_mmengine(line)), validation(10.0, Some(10.0)));
        let line = "2021-05-01 12:00:00,123 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, eta: 1 day, 2:00:00, time: 0.5";
        assert_eq!(read(parse_mmengine(line)), train(50.0, Some(7330.0)));
        let line = "[05/01 12:00:00 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 2.3  time: 0.5123  lr: 0.0005";
        assert_eq!(read(parse_detectron2(line)), train(20.0, None));
    }

    #[test]
    fn samples_and_images_are_counted_where_the_line_has_them() {
        let line = " [2024-05-01 12:00:00] iteration      100/  500000 | consumed samples:        25600 | elapsed time per iteration (ms): 123.4 |";
        assert_eq!(
            read(parse_megatron(line)),
            expected(25600.0, None, "sample", Role::Training)
        );
        let line = "100: 2.345678, 2.456789 avg, 0.001000 rate, 3.456000 seconds, 6400 images";
        assert_eq!(
            read(parse_darknet(line)),
            expected(6400.0, None, "image", Role::Training)
        );
        let line =
            "100, 0.123: 2.345678, 2.456789 avg, 0.001000 rate, 3.456000 seconds, 6400 images";
        assert_eq!(
            read(parse_darknet(line)),
            expected(6400.0, None, "image", Role::Training)
        );
    }

    #[test]
    fn logs_of_the_trainer_are_told_from_its_summaries() {
        let line = "{'loss': '1.178', 'grad_norm': '3.108', 'learning_rate': '4.438e-05', 'epoch': '0.25'}";
        assert_eq!(
            parse_trainer(line).map(|sample| sample.amount),
            Some(Amount::One)
        );
        assert_eq!(parse_trainer("{'eval_loss': '0.8', 'epoch': '1'}"), None);
        assert_eq!(
            parse_trainer("{'train_runtime': '5.52', 'train_loss': '0.7399', 'epoch': '2'}"),
            None
        );
    }
}
