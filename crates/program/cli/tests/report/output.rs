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

#[test]
fn pdf_figures_have_the_width_of_a_column() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    caps(6).write_to(&here.join("study"));
    let pdf = "report study --export-pdf figures.pdf --figure-width one-column --export-figures figures --figure-format svg,pdf";
    let output = sweetspot(here, &pdf.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let whole = std::fs::read(here.join("figures.pdf")).unwrap();
    assert!(whole.starts_with(b"%PDF-"));
    let whole = String::from_utf8_lossy(&whole);
    let drawn = std::fs::read_dir(here.join("figures")).unwrap();
    let names: Vec<String> = drawn
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let count = |extension: &str| {
        names
            .iter()
            .filter(|name| name.ends_with(extension))
            .count()
    };
    assert_eq!(count(".pdf"), count(".svg"), "{names:?}");
    // 85 mm are 240.94 points.
    assert_eq!(
        whole.matches("/MediaBox [0 0 240.94 ").count(),
        count(".pdf")
    );
    let svg = std::fs::read(here.join("figures/energy-time.svg")).unwrap();
    assert!(text(&svg).contains("width=\"85.00mm\""));
    let output = sweetspot(here, &["report", "study", "--export-pdf", "-"]);
    assert!(output.stdout.starts_with(b"%PDF-") && output.stdout.ends_with(b"%%EOF\n"));
}

#[test]
fn a_width_without_a_figure_or_a_bad_one_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).write_to(&folder.path().join("study"));
    for (args, expected) in [
        (
            "--figure-width one-column",
            "changes no figure: give --export-pdf",
        ),
        (
            "--export-pdf x.pdf --figure-width wide",
            "expected one-column, two-column or 50 to 1000",
        ),
        ("--figure-format pdf", "--export-figures"),
    ] {
        let args: Vec<&str> = ["report", "study"]
            .into_iter()
            .chain(args.split(' '))
            .collect();
        let output = sweetspot(folder.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{args:?}: {message}");
    }
}

/// Every command with figures of its own writes them as PDF, by the same flags.
#[test]
fn commands_on_simulated_gpus_write_pdf() {
    let folder = tempfile::tempdir().unwrap();
    caps(6).write_to(&folder.path().join("study"));
    caps(5).write_to(&folder.path().join("other"));
    for line in [
        "compare study other",
        "replay --study study",
        "tune --simulate v100 --network resnet50",
        "hold --simulate h200 --network resnet50 --below 400W --seconds 20",
        "reproduce power-capping-2022",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let flags = ["--export-pdf", "one.pdf", "--figure-width", "120"];
        let output = sweetspot(folder.path(), &[&args[..], &flags].concat());
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{line}: {output:?}"
        );
        let pdf = std::fs::read(folder.path().join("one.pdf")).unwrap();
        // 120 mm are 340.16 points.
        assert!(
            String::from_utf8_lossy(&pdf).contains("/MediaBox [0 0 340.16 "),
            "{line}"
        );
        std::fs::remove_file(folder.path().join("one.pdf")).unwrap();
    }
}
