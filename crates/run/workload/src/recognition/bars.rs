//! Bars of rich, Ultralytics and fastai.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::format::Format;
use super::sample::{Role, Sample};
use super::text::{Pattern, captures, group, name_of, number, role_of};

/// A bar of rich as PyTorch Lightning sets it up: count, elapsed and remaining time, and rate.
static RICH: Pattern = LazyLock::new(|| {
    Regex::new(r"^(.*?)[━╸╺]{3,}\s*([0-9]+)/([0-9]+|[-?]+)\s+[0-9:]+\s*•\s*[-0-9:]+\s+[0-9.]+\s?([A-Za-z]+)/s").ok()
});

/// A bar of Ultralytics (since 8.3, which replaced tqdm): percentage, picture, count, rate and elapsed time.
static ULTRALYTICS: Pattern = LazyLock::new(|| {
    Regex::new(r"^(.*?): +[0-9]+% [━╸─]+ ([0-9]+)/([0-9]+) (?:[0-9.]+K?(?:it/s|s/it) )? *[0-9.:hms]+(?:<[0-9.:hms]+)?\s*$").ok()
});

/// A bar of fastprogress, which fastai uses.
static FASTAI: Pattern = LazyLock::new(|| {
    Regex::new(r"^(.*?)\|[█-]*\| [0-9.]+% \[([0-9]+)/([0-9]+) [0-9:]+<[0-9:?]+").ok()
});

/// Reads a bar of rich that has a count and a rate.
pub(super) fn parse_rich(line: &str) -> Option<Sample> {
    let found = line.contains('━').then(|| captures(&RICH, line))??;
    let name = name_of(group(&found, 1));
    let done = number(&found, 2)?;
    let total = number(&found, 3);
    Some(Sample::strong(Format::Rich, role_of(&name), group(&found, 4), done, total).named(name))
}

/// Reads a bar of Ultralytics. The numbers and the cut-off text before it say nothing about its role, except the
/// column titles of a validation.
pub(super) fn parse_ultralytics(line: &str) -> Option<Sample> {
    let found = line
        .contains("% ")
        .then(|| captures(&ULTRALYTICS, line))??;
    let name = name_of(group(&found, 1));
    let role = match role_of(&name) {
        Role::Unknown => Role::Training,
        known => known,
    };
    let (done, total) = (number(&found, 2)?, number(&found, 3));
    Some(Sample::strong(Format::Ultralytics, role, "it", done, total))
}

/// Reads a bar of fastai. The bar of the validation has the same form and another total.
pub(super) fn parse_fastai(line: &str) -> Option<Sample> {
    let found = line.contains("% [").then(|| captures(&FASTAI, line))??;
    let (done, total) = (number(&found, 2)?, number(&found, 3));
    Some(Sample::strong(
        Format::Fastai,
        Role::Unknown,
        "batch",
        done,
        total,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_read() {
        let line =
            "Epoch 0/1  ━━━━━╸━━━━━━━━━━━━ 6/40 0:00:00 • 0:00:02 17.65it/s train_loss: 0.099";
        let sample = Sample::strong(Format::Rich, Role::Training, "it", 6.0, Some(40.0));
        assert_eq!(parse_rich(line), Some(sample.named("epoch".to_owned())));
        let line = "        1/2         0G  1.003e-05    0.03966  …: 16% ━━────────── 2/12 3.8it/s 0.4s<2.6s";
        let sample = Sample::strong(Format::Ultralytics, Role::Training, "it", 2.0, Some(12.0));
        assert_eq!(parse_ultralytics(line), Some(sample));
        let line = "                 Class     Images  Instances      Box(P      …: 100% ━━━━━━━━━━━━ 2/2 14.8it/s 0.1s";
        assert_eq!(
            parse_ultralytics(line).map(|sample| sample.role),
            Some(Role::Validation)
        );
        let line = "Epoch 1/2 : |████------------------------------------| 10.00% [4/40 00:00<00:02... 0.7660]";
        let sample = Sample::strong(Format::Fastai, Role::Unknown, "batch", 4.0, Some(40.0));
        assert_eq!(parse_fastai(line), Some(sample));
    }

    #[test]
    fn downloads_are_no_progress() {
        let line = "     ━━━━━━━━━╸━━━━━━━━━━━━━━━━━━━━ 6.2/16.9 MB 45.1 MB/s eta 0:00:01";
        assert_eq!(parse_rich(line).or(parse_ultralytics(line)), None);
    }
}
