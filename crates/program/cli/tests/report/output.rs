//! The text and documents of `sweetspot report`.

use serde_json::Value;

use super::sample_studies::{caps, unusual_studies};
use crate::common::{sweetspot, text};
use crate::pseudo_terminal::assert_fits;

#[test]
fn any_study_gives_a_report_that_fits_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (name, builder) in unusual_studies() {
        builder.write_to(&here.join(name));
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
            let (shown, errors) = (text(&output.stdout), text(&output.stderr));
            assert!(
                matches!(output.status.code(), Some(0 | 1)),
                "{name}: {errors}"
            );
            assert!(!errors.contains("panicked"), "{name}: {errors}");
            if more.is_empty() {
                assert_fits(here, &args);
            }
            assert!(
                !shown.contains("NaN") && !shown.contains("inf "),
                "{name}: {shown}"
            );
            let document: Value =
                serde_json::from_slice(&std::fs::read(here.join("out.json")).unwrap()).unwrap();
            assert_eq!(document["schema"], "sweetspot.study/1");
            assert!(document["answer"]["text"].is_string(), "{name}");
        }
    }
}

fn report_of(name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (_, builder) = unusual_studies()
        .into_iter()
        .find(|(known, _)| *known == name)
        .unwrap();
    builder.write_to(&folder.path().join("study"));
    text(&sweetspot(folder.path(), &["report", "study"]).stdout)
}

#[test]
fn unusual_studies_are_explained() {
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
        ("zero-time", "1 configurations have a time of zero"),
        ("never-run", "no configuration has been run"),
        ("single", "the noise of runs is estimated, not measured"),
    ] {
        let shown = report_of(name).replace("\n  ", " ");
        assert!(shown.contains(words), "{name}: {shown}");
    }
}

#[test]
fn a_limit_that_nothing_meets_gives_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).write_to(&folder.path().join("study"));
    let output = sweetspot(folder.path(), &["report", "study", "--limit", "time<=1s"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("no configuration meets every limit"));
}

#[test]
fn a_chosen_objective_without_a_value_gives_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).write_to(&folder.path().join("caps"));
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
fn an_axis_that_is_not_varied_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).write_to(&folder.path().join("study"));
    let output = sweetspot(folder.path(), &["report", "study", "--by", "batch"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "sweetspot: the study does not vary `batch`; it varies power-cap\n"
    );
}

/// dvfs_2019: saving = 1 - min g(f) / g(default), g the geometric mean of joules per item.
#[test]
fn means_along_an_axis_match_the_paper() {
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
fn figures_are_written_to_files() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).write_to(&folder.path().join("study"));
    let output = sweetspot(
        folder.path(),
        &["report", "study", "--export-figures", "figures"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let figure = std::fs::read(folder.path().join("figures/energy-time.svg")).unwrap();
    assert!(text(&figure).starts_with("<svg "));
}

/// `scripts/test --all` tests the feature `png`.
#[test]
fn png_figures_are_written_or_the_missing_feature_is_named() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).write_to(&folder.path().join("study"));
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
