//! `sweetspot compare`.

use serde_json::Value;
use sweetspot_study::RunEnding;

use super::sample_studies::{StudyBuilder, caps, result, unusual_studies};
use crate::common::{sweetspot, text};
use crate::pseudo_terminal::assert_fits;

fn slower(by: f64) -> StudyBuilder {
    StudyBuilder {
        run: Box::new(move |configuration, task| {
            let mut run = result(configuration, task);
            run.time = run.time * by;
            Some(RunEnding::Done(run))
        }),
        ..caps(6)
    }
}

#[test]
fn differences_have_a_size_and_a_significance() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    caps(6).write_to(&here.join("a"));
    slower(1.5).write_to(&here.join("b"));
    slower(1.0).write_to(&here.join("c"));
    let output = sweetspot(here, &["compare", "a", "b", "c", "--export-json", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "sweetspot.compare/1");
    assert_eq!(document["studies"].as_array().unwrap().len(), 3);
    let settings = document["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 7, "the reference and six caps");
    for setting in settings {
        let (b, c) = (&setting["against_first"][0], &setting["against_first"][1]);
        assert!((b["time_s"]["relative"].as_f64().unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(b["time_s"]["significant"], true);
        assert_eq!(b["energy_j"]["significant"], false);
        assert_eq!(c["time_s"]["relative"], 0.0);
        assert_eq!(c["time_s"]["significant"], false);
    }
}

#[test]
fn any_two_studies_can_be_compared() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    caps(6).write_to(&here.join("good"));
    for (name, builder) in unusual_studies() {
        builder.write_to(&here.join(name));
        for pair in [["good", name], [name, "good"]] {
            let args = [
                &["compare"][..],
                &pair,
                &[
                    "--export-html",
                    "c.html",
                    "--export-md",
                    "c.md",
                    "--export-csv",
                    "c.csv",
                ],
            ]
            .concat();
            let output = sweetspot(here, &args);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{name}: {}",
                text(&output.stderr)
            );
            assert_fits(here, &args);
            let page = std::fs::read_to_string(here.join("c.html")).unwrap();
            assert_eq!(page.matches("<script").count(), 1, "{name}");
        }
    }
}

#[test]
fn a_single_study_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let output = sweetspot(folder.path(), &["compare", "a"]);
    assert_eq!(output.status.code(), Some(2));
    let output = sweetspot(folder.path(), &["compare", "a", "b"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("a"),
        "{}",
        text(&output.stderr)
    );
}
