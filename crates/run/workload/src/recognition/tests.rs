//! Tests of the rules by which a recogniser chooses and counts.

use proptest::prelude::*;
use sweetspot_device::Moment;

use super::{Format, MAX_TRACKS, Recogniser};
use crate::output::{Lines, OutputProgress};
use crate::pattern::OutputReport;

fn at(seconds: f64) -> Moment {
    Moment::from_nanos((seconds * 1e9) as u64)
}

/// The sum of the reports of one source.
fn items(reports: &[OutputProgress], source: u32) -> f64 {
    let of_source = reports.iter().filter(|one| one.source == source);
    let amounts = of_source.map(|one| match one.report {
        OutputReport::Added(items) => items,
        other => panic!("{other:?}"),
    });
    amounts.sum()
}

/// A recogniser with all its reports so far.
#[derive(Default)]
struct Fed {
    recogniser: Recogniser,
    reports: Vec<OutputProgress>,
}

impl Fed {
    fn line(&mut self, seconds: f64, line: &str) {
        let reports = self.recogniser.take_line(at(seconds), line.as_bytes());
        self.reports.extend(reports);
    }

    /// A bar of tqdm that advances by one every tenth of a second, up to its total. Returns the time at its end.
    fn bar(&mut self, begin: f64, description: &str, total: u32) -> f64 {
        self.bar_until(begin, description, total, total)
    }

    /// A bar that is left before its total.
    fn bar_until(&mut self, begin: f64, description: &str, last: u32, total: u32) -> f64 {
        let time = |done: u32| begin + 0.1 * f64::from(done);
        for done in 0..=last {
            let bar = format!("{description} 10%|██  | {done}/{total} [00:01<00:08, 10.0it/s]");
            self.line(time(done), &bar);
        }
        time(last)
    }
}

#[test]
fn a_bar_is_chosen_after_two_seconds_and_its_earlier_reports_follow() {
    let mut fed = Fed::default();
    fed.bar_until(0.0, "", 19, 40);
    assert_eq!((fed.reports.len(), fed.recogniser.recognised()), (0, None));
    fed.bar(2.0, "", 40);
    let first = fed.reports.first().unwrap();
    assert_eq!(
        (first.at, first.report),
        (at(0.0), OutputReport::Added(0.0))
    );
    assert_eq!(items(&fed.reports, 0), 19.0 + 40.0);
    assert_eq!(fed.recogniser.recognised().unwrap().unit, "it");
}

#[test]
fn a_short_bar_counts_at_the_end() {
    let mut fed = Fed::default();
    fed.bar(0.0, "", 8);
    let last = fed.recogniser.finish();
    assert_eq!(items(&last, 0), 8.0);
    assert_eq!(fed.recogniser.finish(), []);
}

#[test]
fn a_resumed_training_does_not_count_earlier_steps() {
    let mut fed = Fed::default();
    for step in 0..20 {
        let line = format!("step {}: loss 2.3", 50_100 + 100 * step);
        fed.line(f64::from(step), &line);
    }
    assert_eq!(items(&fed.reports, 0), 1900.0);
    // A training that prints its first line after 100 steps has done them.
    let mut fed = Fed::default();
    for step in 1..=20 {
        fed.line(f64::from(step), &format!("step {}: loss 2.3", 100 * step));
    }
    assert_eq!(items(&fed.reports, 0), 2000.0);
}

#[test]
fn the_end_of_an_epoch_counts_if_only_its_last_line_is_missing() {
    let mut fed = Fed::default();
    for epoch in 0..3 {
        for step in (0..95).step_by(10) {
            let time = f64::from(epoch * 10 + step / 10);
            fed.line(
                time,
                &format!("Epoch: [{epoch}][{step:2}/95]\tTime  0.1 ( 0.1)"),
            );
        }
    }
    assert_eq!(items(&fed.reports, 0), 95.0 + 95.0 + 90.0);
    // An epoch that was left in the middle counts as far as it went.
    let mut fed = Fed::default();
    for epoch in 0..3 {
        for step in 0..30 {
            let time = f64::from(epoch * 30 + step);
            fed.line(
                time,
                &format!("Epoch: [{epoch}][{step:2}/95]\tTime  0.1 ( 0.1)"),
            );
        }
    }
    assert_eq!(items(&fed.reports, 0), 3.0 * 29.0);
}

#[test]
fn preparation_and_validation_do_not_count() {
    let mut fed = Fed::default();
    let mut time = fed.bar(0.0, "Loading checkpoint shards: ", 100);
    time = fed.bar(time, "Map (num_proc=4): ", 400);
    assert_eq!(fed.recogniser.recognised(), None);
    for epoch in 0..2 {
        time = fed.bar(time, &format!("Epoch {epoch}: "), 50);
        time = fed.bar(time, "Validation: ", 400);
    }
    assert_eq!(items(&fed.reports, 0), 100.0);
    assert!(fed.reports.iter().all(|one| one.source == 0));
}

#[test]
fn a_validation_counts_if_there_is_nothing_else() {
    let mut fed = Fed::default();
    fed.bar(0.0, "Evaluating: ", 290);
    assert_eq!(fed.reports, []);
    fed.bar(29.0, "Evaluating: ", 290);
    assert_eq!(items(&fed.reports, 0), 580.0);
    // A training that follows takes over soon.
    let end = fed.bar(58.0, "Training: ", 100);
    assert_eq!(items(&fed.reports, 1), 100.0);
    assert_eq!(end, 68.0);
}

#[test]
fn another_bar_takes_over_when_the_first_one_stands_still() {
    let mut fed = Fed::default();
    // Without a word that says so, it is unknown that the first bar is preparation.
    let mut time = fed.bar(0.0, "", 40);
    time = fed.bar(time, "pass: ", 300);
    assert_eq!(
        (items(&fed.reports, 0), items(&fed.reports, 1)),
        (40.0, 300.0)
    );
    // A bar that is short compared with the training does not take over.
    time = fed.bar(time, "samples: ", 140);
    fed.bar(time, "pass: ", 300);
    assert_eq!(
        (items(&fed.reports, 0), items(&fed.reports, 1)),
        (40.0, 600.0)
    );
    assert_eq!(fed.recogniser.finish(), []);
}

#[test]
fn processes_that_lag_behind_hardly_change_the_count() {
    let mut fed = Fed::default();
    let bar = |done: u32| format!("Epoch 0: |█  | {done}/400 [00:01<00:08, 10.0it/s]");
    for epoch in 0..2 {
        for step in 0..=400_u32 {
            let time = 0.05 * f64::from(epoch * 400 + step);
            fed.line(time, &bar(step));
            // Another process is three steps behind, also at the end of an epoch.
            let behind = if step < 3 && epoch > 0 {
                397 + step
            } else {
                step.saturating_sub(3)
            };
            fed.line(time, &bar(behind));
        }
    }
    // While the first process has done less than twice the lag, the count restarts with every line of the other.
    let counted = items(&fed.reports, 0);
    assert!((795.0..=850.0).contains(&counted), "{counted}");
}

#[test]
fn the_innermost_of_nested_bars_counts() {
    let mut fed = Fed::default();
    for epoch in 0..10 {
        let begin = f64::from(epoch);
        fed.line(
            begin,
            &format!("epochs:  0%|  | {epoch}/10 [00:01<00:08, 1.0it/s]"),
        );
        fed.bar(begin, "batches: ", 10);
    }
    assert_eq!(items(&fed.reports, 0), 100.0);
    assert_eq!(fed.recogniser.finish(), []);
}

#[test]
fn irregular_counters_without_a_loss_are_not_believed() {
    let mut fed = Fed::default();
    for (time, step) in [
        (0.0, 1),
        (1.0, 2),
        (9.0, 3),
        (9.5, 4),
        (20.0, 5),
        (21.0, 6),
        (50.0, 7),
        (51.0, 8),
        (90.0, 9),
    ] {
        fed.line(time, &format!("step {step}"));
    }
    for (index, step) in [10, 30, 40, 90, 100, 110, 300].iter().enumerate() {
        fed.line(100.0 + index as f64, &format!("batch {step}"));
    }
    assert_eq!(fed.recogniser.finish(), []);
}

#[test]
fn the_number_of_tracks_and_reports_is_bounded() {
    let mut fed = Fed::default();
    for index in 0..10_000_u32 {
        let letters: String = format!("{index}")
            .bytes()
            .map(|digit| (digit + 49) as char)
            .collect();
        fed.line(
            f64::from(index),
            &format!("{letters}: 10%|  | 1/10 [00:01<00:08, 1.0it/s]"),
        );
    }
    assert!(fed.recogniser.tracks.len() <= MAX_TRACKS);
    // A preparation is never chosen, however long it is.
    for step in 0..10_000 {
        fed.line(
            f64::from(step),
            &format!("Map: 1%| | {step}/20000 [00:01<00:08, 1.0 examples/s]"),
        );
    }
    let longest = fed
        .recogniser
        .tracks
        .iter_mut()
        .map(|track| track.take_reports().count());
    assert!(longest.max().unwrap() <= 256);
}

proptest! {
    /// Arbitrary bytes are read without a panic, and nothing negative is counted.
    #[test]
    fn arbitrary_bytes_are_harmless(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..40)) {
        feed_all(pieces);
    }

    /// So is text that looks like progress.
    #[test]
    fn arbitrary_text_is_harmless(
        pieces in prop::collection::vec("([0-9]{1,12}|[/%|: ]|[\\[\\](),.-]|it/s|s/it|step |Epoch |loss[ :=]|ms/step|━|█|\r|\n|\\x1b\\[1m){0,30}", 0..30),
    ) {
        feed_all(pieces.into_iter().map(String::into_bytes).collect());
    }
}

fn feed_all(pieces: Vec<Vec<u8>>) {
    for format in [None, Some(Format::Tqdm), Some(Format::Steps)] {
        let mut recogniser = Recogniser::new(format);
        let mut lines = Lines::default();
        let mut reports = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            let now = at(index as f64);
            lines.feed(now, piece, &mut |at, line| {
                reports.extend(recogniser.take_line(at, line))
            });
        }
        lines.end(&mut |at, line| reports.extend(recogniser.take_line(at, line)));
        reports.extend(recogniser.finish());
        for OutputProgress { report, .. } in reports {
            match report {
                OutputReport::Added(items) => assert!(items >= 0.0 && items.is_finite()),
                OutputReport::Rate(rate) => assert!(rate >= 0.0 && rate.is_finite()),
                other => panic!("{other:?}"),
            }
        }
    }
}
