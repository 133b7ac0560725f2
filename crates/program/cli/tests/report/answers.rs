//! What `report` says on a terminal and in documents.

use serde_json::Value;

use super::stores::{caps, faults};
use crate::common::{sweetspot, text};

const COLUMNS: usize = 100;

#[test]
fn whatever_a_study_is_the_report_fits_and_never_panics() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (name, maker) in faults() {
        maker.make(&here.join(name));
        for more in [
            &[][..],
            &["--objective", "energy", "--limit", "time<=+5%"],
            &["--objective", "eds:2"],
        ] {
            let args = [
                &["report", name][..],
                more,
                &[
                    "--export-json",
                    "out.json",
                    "--export-csv",
                    "out.csv",
                    "--export-md",
                    "out.md",
                ],
            ]
            .concat();
            let output = sweetspot(here, &args);
            let (said, wrong) = (text(&output.stdout), text(&output.stderr));
            assert!(
                matches!(output.status.code(), Some(0 | 1)),
                "{name}: {wrong}"
            );
            assert!(!wrong.contains("panicked"), "{name}: {wrong}");
            for line in said.lines() {
                assert!(line.chars().count() <= COLUMNS, "{name}: {line}");
            }
            assert!(
                !said.contains("NaN") && !said.contains("inf "),
                "{name}: {said}"
            );
            let document: Value =
                serde_json::from_slice(&std::fs::read(here.join("out.json")).unwrap()).unwrap();
            assert_eq!(document["schema"], "sweetspot.study/1");
            assert!(document["answer"]["text"].is_string(), "{name}");
        }
    }
}

fn said(name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (_, maker) = faults()
        .into_iter()
        .find(|(known, _)| *known == name)
        .unwrap();
    maker.make(&folder.path().join("study"));
    text(&sweetspot(folder.path(), &["report", "study"]).stdout)
}

#[test]
fn bad_input_is_said_plainly() {
    for (name, words) in [
        ("one", "only one configuration was tried"),
        (
            "no-reference",
            "There is no reference to compare with (200 W): it was not run",
        ),
        ("reference-failed", "its run failed: it took more than 5 s"),
        ("some-failed", "3 failed"),
        ("all-failed", "no configuration ran without a failure"),
        ("no-energy", "the energy is unknown"),
        ("zero-time", "1 configurations took no time at all"),
        ("never-run", "no configuration has been run"),
        ("single", "differences cannot be distinguished from noise"),
    ] {
        let said = said(name).replace("\n  ", " ");
        assert!(said.contains(words), "{name}: {said}");
    }
}

#[test]
fn a_limit_that_nothing_keeps_to_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).make(&folder.path().join("study"));
    let output = sweetspot(folder.path(), &["report", "study", "--limit", "time<=1s"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("no configuration meets every limit"));
}

#[test]
fn what_is_named_and_has_no_value_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).make(&folder.path().join("caps"));
    for (args, words) in [
        (["--objective", "cost"], "--price-per-kwh"),
        (["--objective", "carbon"], "--carbon"),
        (["--limit", "tme<=+5%"], "`tme<=+5%`"),
        (["--energy-of", "node"], "No energy of node"),
    ] {
        let args = [&["report", "caps"][..], &args].concat();
        let output = sweetspot(folder.path(), &args);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn an_axis_that_is_not_varied_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).make(&folder.path().join("study"));
    let output = sweetspot(folder.path(), &["report", "study", "--by", "batch"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "sweetspot: the study does not vary `batch`; it varies power-cap\n"
    );
}

/// dvfs_2019: saving = 1 - min g(f) / g(default), g the geometric mean of joules per item.
#[test]
fn means_along_an_axis_are_those_of_the_paper() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let sweep = "sweep --simulate tesla_p100 --network vgg16 --infer --core-clock 544,810,936,1063,1328 --axis batch=8,32 --repeat 2 --study s --export-json s.json";
    let output = sweetspot(here, &sweep.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let args = "report s --objective energy-per-item --by core-clock --over batch --mean geometric --export-json -";
    let output = sweetspot(here, &args.split(' ').collect::<Vec<_>>());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = report["points"].as_array().unwrap();
    let mean = |clock: f64| {
        let at: Vec<f64> = points
            .iter()
            .filter(|point| point["settings"]["core_clock_mhz"].as_f64() == Some(clock))
            .map(|point| point["energy_per_item_j"].as_f64().unwrap())
            .collect();
        assert_eq!(at.len(), 2);
        (at[0] * at[1]).sqrt()
    };
    let default = mean(1328.0);
    let best = [544.0, 810.0, 936.0, 1063.0, 1328.0]
        .map(mean)
        .into_iter()
        .fold(f64::MAX, f64::min);
    let saving = report["groups"]["saving"].as_f64().unwrap();
    assert!((saving - (1.0 - best / default)).abs() < 1e-9, "{saving}");
    assert_eq!(report["groups"]["combinations"], 2);
}

#[test]
fn figures_are_files() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).make(&folder.path().join("study"));
    let output = sweetspot(
        folder.path(),
        &["report", "study", "--export-figures", "figures"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let figure = std::fs::read(folder.path().join("figures/energy-time.svg")).unwrap();
    assert!(text(&figure).starts_with("<svg "));
}

/// The feature `png` is tested by `scripts/test --all`.
#[test]
fn figures_are_pictures_or_the_flag_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).make(&folder.path().join("study"));
    let args = ["report", "study", "--export-figures", "figures", "--png"];
    let output = sweetspot(folder.path(), &args);
    let figures = folder.path().join("figures");
    if !cfg!(feature = "png") {
        assert_eq!(output.status.code(), Some(2));
        let error = text(&output.stderr);
        assert!(
            error.contains("cargo build --release --features png"),
            "{error}"
        );
        assert!(output.stdout.is_empty() && !figures.exists());
        return;
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    let picture = std::fs::read(figures.join("curves-power-cap.png")).unwrap();
    assert_eq!(&picture[..8], b"\x89PNG\r\n\x1a\n");
    assert!(picture.len() > 10_000, "something is drawn");
}
