//! Tests on recorded outputs of real programs, which `tests/recordings/README.md` describes.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sweetspot_device::Moment;

use super::{Format, RecognisedFormat, Recogniser};
use crate::counter::ProgressCounter;
use crate::output::{Lines, OutputProgress};

/// The result of a recording.
struct Counted {
    recognised: Option<RecognisedFormat>,
    items: Option<f64>,
    /// The items per second between the first report and the last.
    rate: f64,
    /// The time from the first report to the moment at which the format was known; `None` if that was only known at the
    /// end.
    delay: Option<f64>,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recordings")
        .join(name)
}

/// The output of a recording, with the times at which its parts arrived.
fn read(path: &Path) -> Vec<(f64, Vec<u8>)> {
    let text = std::fs::read_to_string(path).unwrap();
    let events = text.lines().skip(1).map(|line| {
        let event: (f64, String, String) = serde_json::from_str(line).unwrap();
        (event.0, event.2.into_bytes())
    });
    events.collect()
}

fn at(seconds: f64) -> Moment {
    Moment::from_nanos((seconds * 1e9) as u64)
}

/// Feeds a recording to a recogniser, in pieces of these sizes, and counts its items.
fn count(path: &Path, format: Option<Format>, sizes: &[usize]) -> Counted {
    let mut recogniser = Recogniser::new(format);
    let mut counter = ProgressCounter::new(at(0.0));
    let mut lines = Lines::default();
    let mut progress = Vec::new();
    let mut take_all = |counter: &mut ProgressCounter, reports: Vec<OutputProgress>| {
        for OutputProgress { at, report, source } in reports {
            progress.extend(counter.take_output_report(at, report, source));
        }
    };
    let (mut known_at, mut end) = (None, 0.0);
    let mut sizes = sizes.iter().cycle();
    for (time, bytes) in read(path) {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
            rest = others;
            let mut reports = Vec::new();
            lines.feed(at(time), piece, &mut |at, line| {
                reports.extend(recogniser.take_line(at, line))
            });
            take_all(&mut counter, reports);
        }
        known_at = known_at.or(recogniser.recognised().map(|_| time));
        end = time;
    }
    let mut reports = Vec::new();
    lines.end(&mut |at, line| reports.extend(recogniser.take_line(at, line)));
    reports.extend(recogniser.finish());
    take_all(&mut counter, reports);
    counter.take_exit(at(end));
    progress.retain(|one| counter.counts(one.reporter));
    let first = progress.first().map(|first| first.at);
    let last = progress.iter().map(|one| one.at).max();
    let span = first
        .zip(last)
        .map_or(0.0, |(first, last)| (last - first).get());
    Counted {
        recognised: recogniser.recognised(),
        items: counter.items(),
        rate: progress.iter().skip(1).map(|one| one.items).sum::<f64>() / span,
        delay: known_at
            .zip(first)
            .map(|(known, first)| (at(known) - first).get()),
    }
}

/// Every recording of a training: its format, its unit, the right count and the true rate.
const TRAININGS: [(&str, Format, &str, f64, f64); 31] = [
    ("tqdm-nested-pty", Format::Tqdm, "it", 120.0, 27.0),
    ("tqdm-nested-pipe", Format::Tqdm, "it", 120.0, 27.0),
    ("tqdm-unlabelled", Format::Tqdm, "it", 120.0, 18.0),
    ("tqdm-slow", Format::Tqdm, "batch", 6.0, 0.77),
    ("tqdm-unknown-total", Format::Tqdm, "img", 100.0, 25.0),
    ("tqdm-processes", Format::Tqdm, "it", 80.0, 14.0),
    ("lightning-tqdm-pty", Format::Tqdm, "it", 40.0, 7.0),
    ("lightning-tqdm-pipe", Format::Tqdm, "it", 40.0, 7.0),
    ("lightning-rich", Format::Rich, "it", 40.0, 7.0),
    ("huggingface-pty", Format::HuggingFace, "it", 48.0, 8.5),
    ("huggingface-pipe", Format::HuggingFace, "it", 48.0, 8.5),
    (
        "huggingface-lines",
        Format::HuggingFace,
        "log line",
        8.0,
        1.5,
    ),
    ("fastai", Format::Fastai, "batch", 40.0, 8.0),
    ("ultralytics", Format::Ultralytics, "it", 24.0, 11.0),
    ("keras-3-pty", Format::Keras, "step", 24.0, 3.8),
    ("keras-3-verbose-2", Format::Keras, "step", 24.0, 3.8),
    ("keras-2", Format::Keras, "step", 24.0, 3.8),
    ("timm", Format::Timm, "step", 32.0, 7.5),
    ("imagenet", Format::ImageNet, "step", 32.0, 5.0),
    ("nanogpt", Format::NanoGpt, "step", 40.0, 13.0),
    ("mmengine-epochs", Format::MmEngine, "step", 60.0, 17.0),
    ("mmengine-iterations", Format::MmEngine, "step", 60.0, 9.6),
    ("detectron2", Format::Detectron2, "step", 100.0, 22.0),
    (
        "lines-megatron",
        Format::Megatron,
        "sample",
        25600.0,
        7000.0,
    ),
    ("lines-darknet", Format::Darknet, "image", 640.0, 170.0),
    ("lines-mnist", Format::Steps, "item", 117_600.0, 24_000.0),
    ("lines-cifar", Format::Steps, "step", 24_000.0, 5400.0),
    ("lines-steps", Format::Steps, "step", 1200.0, 360.0),
    ("lines-benchmark", Format::Steps, "step", 100.0, 33.0),
    ("lines-json", Format::Steps, "step", 600.0, 180.0),
    ("lines-rates", Format::Rates, "images", 1055.0, 211.0),
];

fn training(name: &str) -> PathBuf {
    folder("training").join(format!("{name}.cast"))
}

/// Checks the count of a recording, which is exact unless three processes print the same bar, or only rates are known.
fn assert_counted(name: &str, counted: &Counted, unit: &str, items: f64, rate: f64) {
    let recognised = counted.recognised.as_ref();
    assert_eq!(
        recognised.map(|found| found.unit.as_str()),
        Some(unit),
        "{name}"
    );
    let tolerance = match name {
        "tqdm-processes" => 0.1 * items,
        "lines-rates" => 0.05 * items,
        _ => 0.0,
    };
    let found = counted.items.unwrap();
    assert!((found - items).abs() <= tolerance, "{name}: {found} items");
    let ratio = counted.rate / rate;
    assert!(
        (0.8..1.25).contains(&ratio),
        "{name}: {} items/s",
        counted.rate
    );
}

#[test]
fn every_training_is_counted() {
    for (name, format, unit, items, rate) in TRAININGS {
        let counted = count(&training(name), None, &[usize::MAX]);
        assert_eq!(
            counted.recognised.as_ref().map(|found| found.format),
            Some(format),
            "{name}"
        );
        assert_counted(name, &counted, unit, items, rate);
        println!(
            "{name}: {items} {unit}, {:.1}/s, known after {:?} s",
            counted.rate, counted.delay
        );
        // The recorded training of Ultralytics takes less than two seconds.
        let is_known_soon = counted.delay.is_some_and(|delay| delay < 5.0);
        assert!(
            is_known_soon || name == "ultralytics",
            "{name}: {:?}",
            counted.delay
        );
    }
    let files = std::fs::read_dir(folder("training")).unwrap().count();
    assert_eq!(files, TRAININGS.len(), "a recording has no row");
}

#[test]
fn a_format_can_be_chosen_by_its_name() {
    for (name, format, unit, items, rate) in TRAININGS {
        let counted = count(&training(name), Some(format), &[usize::MAX]);
        // The bar of a Trainer is found under both names.
        assert_counted(name, &counted, unit, items, rate);
        let other = match format {
            Format::Timm => Format::Keras,
            _ => Format::Timm,
        };
        let counted = count(&training(name), Some(other), &[usize::MAX]);
        assert_eq!(counted.items, None, "{name} is no {}", other.name());
    }
    for name in ["lightning-tqdm-pty", "lightning-rich"] {
        let counted = count(&training(name), Some(Format::Lightning), &[usize::MAX]);
        assert_eq!(counted.items, Some(40.0), "{name}");
    }
}

#[test]
fn other_programs_report_no_progress() {
    let mut files = 0;
    for file in std::fs::read_dir(folder("other")).unwrap() {
        let path = file.unwrap().path();
        let counted = count(&path, None, &[usize::MAX]);
        assert_eq!(counted.recognised, None, "{}", path.display());
        assert_eq!(counted.items, None, "{}", path.display());
        files += 1;
    }
    assert!(files >= 20, "{files}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// The count does not depend on how the output is cut into pieces.
    #[test]
    fn pieces_do_not_matter(sizes in prop::collection::vec(1..60usize, 40)) {
        for (name, _, unit, items, rate) in TRAININGS {
            assert_counted(name, &count(&training(name), None, &sizes), unit, items, rate);
        }
        for file in std::fs::read_dir(folder("other")).unwrap() {
            let path = file.unwrap().path();
            prop_assert!(count(&path, None, &sizes).items.is_none(), "{}", path.display());
        }
    }
}
