//! Bars of tqdm, which PyTorch Lightning and Hugging Face use too.
//!
//! With a known total, tqdm prints `{desc}: {percent}%|{bar}| {n}/{total} [{elapsed}<{remaining}, {rate}{postfix}]`;
//! otherwise `{desc}: {n}{unit} [{elapsed}, {rate}{postfix}]`. The rate is `10.5it/s`, or `1.30s/it` below one per
//! second, and the unit is the program's choice. The count is read, because the rate is a moving average.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::format::Format;
use super::sample::Sample;
use super::text::{Pattern, captures, group, is_bytes, name_of, number, parse_number, role_of};

/// A bar with its count and total. With `unit_scale` they have a prefix: `1.2k/60.0k`. A total of `?` is unknown.
static BAR: Pattern = LazyLock::new(|| {
    Regex::new(
        r"(?:^|[| ])([0-9.]+[kKMGT]?)/([0-9.]+[kKMGT]?|\?) \[(?:[0-9]+ days?, )?[0-9:]+<[^,\]]*(?:, *([^\],]*))?",
    )
    .ok()
});

/// A counter without a total: `12it [00:01, 9.9it/s]`.
static COUNTER: Pattern = LazyLock::new(|| {
    Regex::new(
        r"(?:^|[: ])([0-9.]+)( ?[A-Za-z][^\[]*) \[(?:[0-9]+ days?, )?[0-9:]+, *([^\],]*/[^\],]*)",
    )
    .ok()
});

/// The unit in a rate: `10.5it/s`, `?it/s`, `1.30s/it`.
static RATE: Pattern = LazyLock::new(|| Regex::new(r"^(?:[0-9.]+|\?)(.*)/(.*)$").ok());

/// Reads a bar of tqdm.
pub(super) fn parse(line: &str) -> Option<Sample> {
    if !line.contains(" [") {
        return None;
    }
    let (done, total, rate, before) = match captures(&BAR, line) {
        Some(found) => {
            let before = &line[..found.get(1)?.start()];
            (
                group(&found, 1).to_owned(),
                number(&found, 2),
                group(&found, 3),
                before,
            )
        }
        None => {
            let found = captures(&COUNTER, line)?;
            let before = &line[..found.get(1)?.start()];
            // A scaled count has a prefix before its unit: `1.2kit`.
            let prefix = group(&found, 2).strip_suffix("it").unwrap_or_default();
            (
                format!("{}{prefix}", group(&found, 1)),
                None,
                group(&found, 3),
                before,
            )
        }
    };
    let is_scaled = done.ends_with(|last: char| last.is_alphabetic());
    let unit = unit_of(rate, is_scaled).unwrap_or("it");
    if is_bytes(unit) {
        return None;
    }
    let name = name_of(description(before));
    // Lightning names the version of its log in every bar, unless logging is off.
    let format = match name == "epoch" && line.contains("v_num=") {
        true => Format::Lightning,
        false => Format::Tqdm,
    };
    let done = parse_number(done.trim())?;
    Some(Sample::strong(format, role_of(&name), unit, done, total).named(name))
}

/// The part of a bar before its percentage and its picture.
fn description(before_count: &str) -> &str {
    let Some(bar) = before_count.find('|') else {
        let end = before_count.trim_end().trim_end_matches('%');
        return end.trim_end_matches(|last: char| last.is_ascii_digit());
    };
    let text = before_count[..bar].trim_end().trim_end_matches('%');
    text.trim_end_matches(|last: char| last.is_ascii_digit())
}

/// The unit in the rate of a bar; `None` if the terminal is too narrow for it.
fn unit_of(rate: &str, is_scaled: bool) -> Option<&str> {
    let found = captures(&RATE, rate.trim())?;
    let (before, after) = (group(&found, 1).trim(), group(&found, 2).trim());
    let unit = if before == "s" { after } else { before };
    // In a scaled rate, `1.2kit/s`, the prefix is not part of the unit.
    let unscaled = unit.strip_prefix(['k', 'K', 'M', 'G', 'T']);
    let unscaled = unscaled.filter(|rest| is_scaled && !rest.is_empty() && !is_bytes(unit));
    Some(unscaled.unwrap_or(unit)).filter(|unit| !unit.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recognition::sample::{Amount, Role};

    fn bar(line: &str) -> Option<(f64, Option<f64>, String, String)> {
        let sample = parse(line)?;
        match sample.amount {
            Amount::Done { done, total } => Some((done, total, sample.unit, sample.name)),
            _ => None,
        }
    }

    fn expected(
        done: f64,
        total: Option<f64>,
        unit: &str,
        name: &str,
    ) -> Option<(f64, Option<f64>, String, String)> {
        Some((done, total, unit.to_owned(), name.to_owned()))
    }

    #[test]
    fn bars_have_a_count_a_unit_and_a_name() {
        let line = "epoch 0:  25%|██▎       | 10/40 [00:00<00:00, 33.19it/s, loss=0.5]";
        assert_eq!(bar(line), expected(10.0, Some(40.0), "it", "epoch"));
        let line = " 50%|█████     | 3/6 [00:03<00:03,  1.30s/batch]";
        assert_eq!(bar(line), expected(3.0, Some(6.0), "batch", ""));
        let line = "train: 80 img [00:03, 24.82 img/s]";
        assert_eq!(bar(line), expected(80.0, None, "img", "train"));
        let line = "12it [00:01,  9.92it/s]";
        assert_eq!(bar(line), expected(12.0, None, "it", ""));
        let line = "  2%|▏     | 1.20k/60.0k [1:00:03<00:10, 5.61kit/s]";
        assert_eq!(bar(line), expected(1200.0, Some(60e3), "it", ""));
        let line = "1.20kit [00:01, 5.61kit/s]";
        assert_eq!(bar(line), expected(1200.0, None, "it", ""));
        let line = "Training: |          | 0/? [00:00<?, ?it/s]";
        assert_eq!(bar(line), expected(0.0, None, "it", "training"));
        // A terminal that is too narrow cuts the bar off; without a picture, there is no `|`.
        let line = "  5% 5/100 [00:00<00:09, 10.";
        assert_eq!(bar(line).map(|bar| bar.0), Some(5.0));
    }

    #[test]
    fn downloads_are_no_progress() {
        for line in [
            "model.safetensors:  12%|█▏  | 120M/1.00G [00:10<01:20, 11.0MB/s]",
            "file: 1.20MB [00:01, 1.10MB/s]",
            "data:  12%|█▏  | 120/1000 [00:10<01:20, 11.0B/s]",
            "x: 10%|█   | 52.0M/477M [00:00<00:03, 120MiB/s]",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn lightning_and_validation_are_told_apart() {
        let line = "Epoch 3:  12%|█▏  | 110/938 [00:01<00:08, 95.0it/s, v_num=0]";
        let sample = parse(line).unwrap();
        assert_eq!(
            (sample.format, sample.role),
            (Format::Lightning, Role::Training)
        );
        let line = "Validation DataLoader 0:  50%|█████  | 5/10 [00:00<00:00, 17.4it/s]";
        assert_eq!(parse(line).unwrap().role, Role::Validation);
    }
}
