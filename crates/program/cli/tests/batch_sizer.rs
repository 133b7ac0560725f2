//! `sweetspot reproduce batch-sizer-2021`: its jobs, its conclusions and the origin of its values.

use serde_json::Value;

use crate::common::{sweetspot, text};
use crate::reproduce::{failed_conclusions, folder, json, rows};

/// Two printed values are parameters of the card's profile and are not judged; the other two are missed.
#[test]
fn inputs_of_batch_sizer_2021_are_not_counted_as_met() {
    let (code, document) = json("batch-sizer-2021", 1);
    assert_eq!(code, Some(1));
    assert_eq!(document["confirmed"], false);
    let of_origin = |origin: &str| -> Vec<&Value> {
        let rows = rows(&document).iter();
        rows.filter(|row| row["origin"] == origin).collect()
    };
    let inputs = of_origin("input");
    assert_eq!(inputs.len(), 2);
    for input in inputs {
        assert_eq!(input["published"], input["reproduced"]);
        assert_eq!(input["within"], Value::Null, "{input}");
    }
    let fitted = of_origin("fitted");
    let jobs: Vec<&Value> = fitted.iter().map(|row| &row["row"]["job"]).collect();
    assert_eq!(jobs, [5, 19]);
    assert_eq!(document["judged"], 2);
    let met = fitted.iter().filter(|row| row["within"] == true).count();
    assert_eq!(document["met"], met);
    let printed = rows(&document)
        .iter()
        .filter(|row| row["published"].is_number());
    assert_eq!(printed.count(), 4, "every printed value states its origin");
}

#[test]
fn every_conclusion_that_fails_is_shown_and_ends_with_exit_code_1() {
    let (_, document) = json("batch-sizer-2021", 1);
    let failed = failed_conclusions(&document);
    assert!(!failed.is_empty());
    let folder = folder();
    let output = sweetspot(
        folder.path(),
        &["reproduce", "batch-sizer-2021", "--summary"],
    );
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    let count = format!("{} of 16 conclusions do not hold.", failed.len());
    assert!(shown.contains(&count), "{shown}");
    for sentence in failed {
        assert!(
            shown.contains(&format!("does not hold: {sentence}")),
            "{shown}"
        );
    }
}

/// With three seeds: robust and joint keep the mean of a second, or every reading, below the cap.
#[test]
fn the_jobs_of_batch_sizer_2021_respect_their_cap() {
    const ON_MEANS: [&str; 2] = ["robust", "joint"];
    const ON_READINGS: [&str; 7] = [
        "dvfs",
        "step_up",
        "paper",
        "text",
        "windowed",
        "robust:reading",
        "joint:reading",
    ];
    for seed in 1..=3 {
        let (_, document) = json("batch-sizer-2021", seed);
        let jobs = document["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), 20);
        for job in jobs {
            assert!(job["job"].is_u64() && job["cap_w"].is_number(), "{job}");
            let of = |mode: &str, key: &str| job["modes"][mode][key].as_f64();
            let speed = |mode: &str| of(mode, "items_per_s").unwrap();
            let share = |mode: &str| of(mode, "violation_share").unwrap();
            for (modes, cap_on) in [(&ON_MEANS[..], "mean:1s"), (&ON_READINGS, "reading")] {
                for mode in modes {
                    assert_eq!(job["modes"][mode]["cap_on"], cap_on, "{mode}");
                    assert!(speed(mode) > 0.0 && of(mode, "average_batch").is_some());
                    assert!((0.0..=1.0).contains(&share(mode)), "{mode}: {job}");
                }
            }
            for mode in ON_MEANS {
                let windows = of(mode, "settle_windows").unwrap();
                assert!(windows <= 15.0, "{mode}, seed {seed}: {job}");
            }
            for mode in ["robust", "joint", "robust:reading", "joint:reading"] {
                assert!(share(mode) < 0.01, "{mode}, seed {seed}: {job}");
            }
            // A cap that binds the mean allows single readings above it.
            assert!(speed("robust") >= 0.99 * speed("robust:reading"), "{job}");
            assert!(
                speed("joint") >= 0.99 * speed("robust"),
                "seed {seed}: {job}"
            );
        }
    }
}

/// Checks the conclusions of the paper for its algorithm with cleared readings; most of them do not hold.
/// docs/explanation/reproduce/batch-sizer-2021.md says why.
#[test]
fn conclusions_of_batch_sizer_2021_are_checked_against_the_values() {
    let (_, document) = json("batch-sizer-2021", 1);
    let conclusions = document["conclusions"].as_array().unwrap();
    assert_eq!(conclusions.len(), 16);
    let holds = |words: &str| {
        let mut found = conclusions.iter();
        let has = |one: &&Value| one["conclusion"].as_str().unwrap().contains(words);
        let one = found.find(has).unwrap_or_else(|| panic!("{words}"));
        one["holds"].as_bool().unwrap()
    };
    let jobs = document["jobs"].as_array().unwrap();
    let gains: Vec<f64> = jobs
        .iter()
        .map(|job| {
            let speed = |mode: &str| job["modes"][mode]["items_per_s"].as_f64().unwrap();
            speed("windowed") / speed("dvfs") - 1.0
        })
        .collect();
    let ahead = gains.iter().filter(|gain| **gain > 0.0).count();
    assert_eq!(holds("(windowed) beats DVFS in most jobs"), ahead > 10);
    let most = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let rounds_to_29 = (100.0 * most).round() == 29.0;
    assert_eq!(holds("(windowed) gains up to 29 %"), rounds_to_29);
    assert_eq!(holds("(windowed) gains most in job 19"), most == gains[18]);
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(holds("(windowed) loses at most 8 %"), least >= -0.08);
    assert_eq!(holds("(windowed) loses most in job 5"), least == gains[4]);
    assert!(holds("MobileNet throughput gains much"));
    assert!(!holds("next to nothing on ImageNet"));
}
