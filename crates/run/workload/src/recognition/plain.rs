//! Plain lines with a counter or a rate, as people print them: `step 100`, `Epoch 3 batch 200 loss 0.5`,
//! `[100/5000] loss: 0.5`, `images/sec: 212.5`.
//!
//! Many programs that train nothing print such lines too: compilers (`[12/345] Building loss.o`), installers
//! (`Step 3/12 : RUN make`), web servers (`GET /?batch=5`). A number in brackets therefore counts only beside a loss,
//! a rate or another measure of training, and a counter without one is weak evidence, which the recogniser believes only if it
//! rises very regularly.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::format::Format;
use super::sample::{Amount, Evidence, Role, Sample};
use super::text::{Pattern, captures, group, name_of, number, parse_number, role_of};

/// A word for a counter, and its number. Only certain characters may stand before the word: not those of an address
/// (`/step/3`, `?batch=5`), a file name (`my_step 3`) or a compound (`time-step 3`).
static COUNTER: Pattern = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?i)(?:^|[\s\[({|,;:"'>]|train/|trainer/)"#,
        r"(global[_ ]?step|total[_ ]timesteps|num_updates|steps?|iterations?|iters?|updates?|(?:mini-?)?batch(?:es)?)",
        r#"["']?\s*[:=#|]?\s*[\[(]?\s*([0-9][0-9,_]*)(?:\s*(?:/|of)\s*([0-9][0-9,_]*))?"#,
    ))
    .ok()
});

/// A count and its total in brackets: `[640/60000 (1%)]`, `[100/5000]`.
static BRACKETS: Pattern = LazyLock::new(|| {
    Regex::new(r"[\[(]\s*([0-9]+)\s*/\s*([0-9]+)\s*(?:\(\s*[0-9.]+%\))?\s*[\])]").ok()
});

/// The epoch and the count in brackets: `[2, 2000] loss: 1.2`.
static PAIR: Pattern = LazyLock::new(|| Regex::new(r"^\[[0-9]+, +([0-9]+)\]").ok());

/// A count after the epoch, as fairseq prints it: `epoch 001:    100 / 5000 loss=2.3`.
static AFTER_EPOCH: Pattern =
    LazyLock::new(|| Regex::new(r"(?i)\bepoch [0-9]+: +([0-9]+) */ *([0-9]+)\b").ok());

/// An epoch, which counts if the line has no other counter.
static EPOCH: Pattern = LazyLock::new(|| {
    Regex::new(r#"(?i)(?:^|[\s\[({|,"'])epoch["']?\s*[:=#]?\s*\[?\s*([0-9]+)"#).ok()
});

/// A loss or another measure of training, with its value.
static MEASURE: Pattern = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)(?:^|[^a-z])(?:[a-z_]*loss|lr|learning[_ ]rate|acc|accuracy|ppl|perplexity|grad[_ ]?norm|gnorm|reward|",
        r#"elbo|nll|mse|mae|psnr|mfu|top-?1)[a-z_@0-9() ]*["']?\s*[:=|]?\s*[(\[]?["']?-?(?:[0-9]|\.[0-9]|nan|inf)"#,
    ))
    .ok()
});

/// A step of a Docker build.
static DOCKER_STEP: Pattern = LazyLock::new(|| Regex::new(r"^Step [0-9]+/[0-9]+ : [A-Z]+\b").ok());

/// Units whose rate is progress; bytes, requests and the like are none.
const UNITS: &str = r"(images?|imgs?|samples?|examples?|items?|frames?|tokens?|toks?|words?|sequences?|seqs?|sentences?|iterations?|iters?|its?|steps?|batch(?:es)?|updates?)";

/// A rate before its number: `images/sec: 212.5`.
static RATE_BEFORE: Pattern = LazyLock::new(|| {
    let unit = format!(r"(?i)(?:^|[^a-z]){UNITS}");
    Regex::new(&format!(
        r#"{unit}\s*(?:/|_?per_?|\s+per\s+)\s*s(?:ec(?:ond)?)?["']?\s*[:=|]\s*["']?([0-9][0-9,.]*[kKM]?)"#
    ))
    .ok()
});

/// A rate after its number: `212.5 images/s`.
static RATE_AFTER: Pattern = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)(?:^|[\s(\[|:=,])([0-9][0-9,.]*[kKM]?)\s*{UNITS}\s*(?:/\s*|\s+per\s+)s(?:ec(?:ond)?)?(?:$|[^a-z])"
    ))
    .ok()
});

/// The benchmark of TensorFlow: the step, and a rate that is a mean since the start.
static BENCHMARK: Pattern =
    LazyLock::new(|| Regex::new(r"^([0-9]+)\s+images/sec: [0-9.]+ \+/-").ok());

/// Reads a plain line: its counter or, without one, its rate.
pub(super) fn parse(line: &str) -> Option<Sample> {
    if !line.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let rate = parse_rate(line);
    let is_measured = rate.is_some() || captures(&MEASURE, line).is_some();
    parse_counter(line, is_measured)
        .or_else(|| parse_count(line, is_measured))
        .or(rate)
        .or_else(|| parse_epoch(line, is_measured))
}

/// The words for counters in the order in which they are preferred: a count of all steps does not restart.
const PREFERRED: [&str; 6] = ["global", "total", "num_", "step", "it", "up"];

/// Reads a counter with a word.
fn parse_counter(line: &str, is_measured: bool) -> Option<Sample> {
    let mut best: Option<(usize, Sample)> = None;
    for found in COUNTER.as_ref()?.captures_iter(line) {
        let end = found.get(0)?.end();
        let word = found.get(1)?;
        if !ends_number(&line[end..]) {
            continue;
        }
        let lower = word.as_str().to_lowercase();
        let rank = PREFERRED.iter().position(|start| lower.starts_with(start));
        let rank = rank.unwrap_or(PREFERRED.len());
        if best.as_ref().is_some_and(|(earlier, _)| *earlier <= rank) {
            continue;
        }
        let name = name_of(&line[..word.end()]);
        let sample = counter_sample(
            &name,
            unit_of_counter(&lower),
            number(&found, 2)?,
            is_measured,
        );
        best = Some((rank, with_total(sample, number(&found, 3))));
    }
    let (_, sample) = best?;
    let is_docker = !is_measured && captures(&DOCKER_STEP, line).is_some();
    let is_believable = is_measured || !sample.unit.starts_with("update");
    (is_believable && !is_docker).then_some(sample)
}

/// Whether a number ends before this text, and is not the start of `3.5`, `3b` or `3%`.
fn ends_number(rest: &str) -> bool {
    let mut next = rest.chars();
    match next.next() {
        None => true,
        Some('.') => !next.next().is_some_and(|digit| digit.is_ascii_digit()),
        Some('%' | '_' | '-') => false,
        Some(other) => !other.is_alphanumeric(),
    }
}

/// What a counter with this word counts.
fn unit_of_counter(word: &str) -> &'static str {
    match word {
        _ if word.contains("batch") => "batch",
        _ if word.starts_with("up") || word.starts_with("num_") => "update",
        _ if word.starts_with("total") => "timestep",
        _ => "step",
    }
}

/// Reads a count without a word, which only counts beside a measure of training.
fn parse_count(line: &str, is_measured: bool) -> Option<Sample> {
    if !is_measured {
        return None;
    }
    if let Some(found) = captures(&BENCHMARK, line).or_else(|| captures(&PAIR, line)) {
        return Some(counter_sample("", "step", number(&found, 1)?, true));
    }
    let after_epoch = captures(&AFTER_EPOCH, line);
    let last = || BRACKETS.as_ref()?.captures_iter(line).last();
    let found = after_epoch.or_else(last)?;
    let name = name_of(&line[..found.get(1)?.start()]);
    // `Epoch [3/10] loss` counts epochs.
    let unit = match name.ends_with("epoch")
        && group(&found, 0).starts_with(['[', '('])
        && !line.contains('%')
    {
        true => "epoch",
        false => "item",
    };
    let sample = counter_sample(&name, unit, number(&found, 1)?, true);
    Some(with_total(sample, number(&found, 2)))
}

/// Reads an epoch beside a measure of training.
fn parse_epoch(line: &str, is_measured: bool) -> Option<Sample> {
    let found = is_measured.then(|| captures(&EPOCH, line))??;
    let end = found.get(0)?.end();
    let done = number(&found, 1).filter(|_| ends_number(&line[end..]))?;
    let name = name_of(&line[..end]);
    Some(counter_sample(&name, "epoch", done, true))
}

/// Reads a rate.
fn parse_rate(line: &str) -> Option<Sample> {
    if let Some(found) = captures(&BENCHMARK, line) {
        return Some(counter_sample("", "step", number(&found, 1)?, true));
    }
    let (unit, rate, begin) = match captures(&RATE_BEFORE, line) {
        Some(found) => (
            group(&found, 1),
            parse_rate_number(group(&found, 2))?,
            found.get(1)?.start(),
        ),
        None => {
            let found = captures(&RATE_AFTER, line)?;
            (
                group(&found, 2),
                parse_rate_number(group(&found, 1))?,
                found.get(1)?.start(),
            )
        }
    };
    let name = name_of(&line[..begin]);
    Some(Sample {
        format: Format::Rates,
        role: role_of(&name),
        name,
        evidence: Evidence::Medium,
        unit: unit.to_lowercase(),
        amount: Amount::Rate(rate),
    })
}

/// The number of a rate; a full stop or comma may end the sentence.
fn parse_rate_number(text: &str) -> Option<f64> {
    parse_number(text.trim_end_matches(['.', ',']))
}

/// The sample of a counter.
fn counter_sample(name: &str, unit: &str, done: f64, is_measured: bool) -> Sample {
    Sample {
        format: Format::Steps,
        name: name.to_owned(),
        role: match role_of(name) {
            Role::Preparation if is_measured => Role::Unknown,
            role => role,
        },
        evidence: match is_measured {
            true => Evidence::Medium,
            false => Evidence::Weak,
        },
        unit: unit.to_owned(),
        amount: Amount::Done { done, total: None },
    }
}

/// The same sample with the total that the line contains.
fn with_total(sample: Sample, total: Option<f64>) -> Sample {
    match sample.amount {
        Amount::Done { done, .. } => Sample {
            amount: Amount::Done { done, total },
            ..sample
        },
        _ => sample,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count, the total and the unit of a line.
    fn counted(line: &str) -> Option<(f64, Option<f64>, String)> {
        let sample = parse(line)?;
        match sample.amount {
            Amount::Done { done, total } => Some((done, total, sample.unit)),
            _ => None,
        }
    }

    #[test]
    fn counters_are_read() {
        let expected =
            |done: f64, total: Option<f64>, unit: &str| Some((done, total, unit.to_owned()));
        for (line, done, total, unit) in [
            ("step 100", 100.0, None, "step"),
            ("Step: 100/1000", 100.0, Some(1000.0), "step"),
            ("epoch 3 batch 200", 200.0, None, "batch"),
            (
                "Epoch [1/5], Step [100/600], Loss: 0.5",
                100.0,
                Some(600.0),
                "step",
            ),
            ("[100/5000] loss 0.53", 100.0, Some(5000.0), "item"),
            (
                "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.297471",
                640.0,
                Some(60000.0),
                "item",
            ),
            ("[2,  4000] loss: 1.234", 4000.0, None, "step"),
            (
                "epoch 001:    100 / 5000 loss=2.3, ups=3.2",
                100.0,
                Some(5000.0),
                "item",
            ),
            (
                "step   10 | loss: 6.1 | lr 1.0e-4 | dt: 105.2ms | tok/sec: 500000.00",
                10.0,
                None,
                "step",
            ),
            (
                "{\"global_step\": 1_200, \"step\": 3, \"loss\": 2.3}",
                1200.0,
                None,
                "step",
            ),
            (
                "epoch=0/micro_step=100 train/step=100, CurrSamplesPerSec=1050.1",
                100.0,
                None,
                "step",
            ),
            (
                "[Rank 0] step=100, skipped=0, lr=[0.001], mom=[[0.9]]",
                100.0,
                None,
                "step",
            ),
            ("|    total_timesteps | 2048 |", 2048.0, None, "timestep"),
            ("iteration 1,500: training loss = 0.2", 1500.0, None, "step"),
            (
                "10\timages/sec: 212.5 +/- 0.4 (jitter = 1.2)\t7.890",
                10.0,
                None,
                "step",
            ),
            ("Epoch 3, loss: 0.52", 3.0, None, "epoch"),
            ("Epoch [3/10] loss: 0.52", 3.0, Some(10.0), "epoch"),
        ] {
            assert_eq!(counted(line), expected(done, total, unit), "{line}");
        }
    }

    #[test]
    fn rates_are_read() {
        for (line, rate, unit) in [
            ("it/s: 3.4", 3.4, "it"),
            ("images/sec: 212.5", 212.5, "images"),
            ("throughput: 1,212.5 samples per second", 1212.5, "samples"),
            ("speed 12.5k tokens/s, loss", 12500.0, "tokens"),
            ("samples_per_second: 40", 40.0, "samples"),
        ] {
            let sample = parse(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(sample.amount, Amount::Rate(rate), "{line}");
            assert_eq!(sample.unit, unit);
        }
    }

    #[test]
    fn other_lines_are_no_progress() {
        for line in [
            "[12/345] Building CXX object src/Loss.cpp.o",
            "127.0.0.1 - - \"GET /7.bin?batch=6 HTTP/1.1\" 200 -",
            "Step 3/12 : RUN make",
            "step 3.5",
            "batch_size: 64",
            "update 5 packages",
            "speed: 12.5 MB/s, 31 requests/sec: 3",
            "it took 3 s",
            "time-step 30",
            "Epoch 3/10",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
