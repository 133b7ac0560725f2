//! Objectives, limits and searches of a study.

use super::{SWEEP, folder, json};
use crate::common::{sweetspot, text};

/// The criteria of a study are used by its report and when it is resumed.
#[test]
fn a_study_stores_its_objective_and_limits() {
    let folder = folder();
    let place = folder.path();
    for strategy in [&["--strategy", "guided", "--prior", "none"][..], &[]] {
        let question = ["--objective", "energy", "--limit", "time<=+5%"];
        let study = ["--study", "kept", "--export-json", "whole.json"];
        let args = [&SWEEP[..], strategy, &question, &study].concat();
        let output = sweetspot(place, &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let recommends = |output: &std::process::Output| {
            let text = text(&output.stdout);
            let line = text.lines().find(|line| line.contains("Recommendation"));
            line.unwrap_or_default().to_owned()
        };
        let shown = recommends(&output);
        assert!(shown.contains("best energy, time<=+5%"), "{shown}");
        let again = ["sweep", "--resume", "kept", "--export-json", "again.json"];
        let output = sweetspot(place, &again);
        assert_eq!(recommends(&output), shown);
        let whole = json(&place.join("whole.json"));
        assert_eq!(whole, json(&place.join("again.json")));
        assert_eq!(whole["limits"][0], "time<=+5%");
        let report = text(&sweetspot(place, &["report", "kept"]).stdout);
        assert!(
            report.contains("best energy within `time<=+5%`"),
            "{report}"
        );
        let other = ["--objective", "edp", "--limit", "none"];
        let report = text(&sweetspot(place, &[&["report", "kept"][..], &other].concat()).stdout);
        let answers = ["best edp.\n", "may be best in edp.\n", "of the best edp.\n"];
        assert!(
            answers.iter().any(|answer| report.contains(answer)),
            "{report}"
        );
        std::fs::remove_dir_all(place.join("kept")).unwrap();
    }
}

#[test]
fn the_result_of_a_search_is_in_the_json() {
    let folder = folder();
    let more = ["--strategy", "guided", "--prior", "none", "--no-study"];
    let args = [&SWEEP[..], &more, &["--export-json", "found.json"]].concat();
    let output = sweetspot(folder.path(), &args);
    assert!(output.status.success());
    let study = json(&folder.path().join("found.json"));
    let search = &study["search"];
    assert_eq!(search["strategy"], "guided");
    assert_eq!(search["objective"], "edp");
    assert_eq!(search["ended"], "sure");
    assert!(search["expected_regret"].as_f64().unwrap() < 0.004);
    assert_eq!(search["point"], study["best"]["edp"]["point"]);
    let cap = &search["choice"]["power_cap_w"];
    let shown = text(&output.stdout);
    assert!(
        shown.contains(&format!("set the power cap to {cap} W")),
        "{shown}"
    );
    let points = study["points"].as_array().unwrap();
    let runs: u64 = points
        .iter()
        .map(|point| point["runs"].as_u64().unwrap())
        .sum();
    assert_eq!(search["evaluations"], runs);
    for point in points {
        let is_run = point["runs"].as_u64() > Some(0);
        assert_eq!(point["status"] == "ok", is_run, "{point}");
        assert_eq!(point["status"] == "not-run", !is_run, "{point}");
    }
}

#[test]
fn a_limit_on_an_unreported_value_is_not_met() {
    let folder = folder();
    let more = ["--power-cap", "150,200,300", "--repeat", "1", "--no-study"];
    let args = [&SWEEP[..], &more, &["--limit", "accuracy>=0.7"]].concat();
    let output = sweetspot(folder.path(), &args);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    assert!(shown.contains("Nothing to recommend"), "{shown}");
}

#[test]
fn prior_studies_of_a_search_are_reported() {
    let folder = folder();
    let place = folder.path();
    let other = [
        "sweep",
        "--simulate",
        "quadro_rtx_6000",
        "--network",
        "resnet50",
    ];
    let few = ["--power-cap", "150,200", "--repeat", "1"];
    sweetspot(place, &[&other[..], &few, &["--study", "other"]].concat());
    let caps = ["--repeat", "1", "--study", "own"];
    sweetspot(place, &[&SWEEP[..], &caps].concat());
    let prior = [
        "--strategy",
        "guided",
        "--no-study",
        "--prior",
        "other,own,own",
    ];
    let output = sweetspot(place, &[&SWEEP[..], &prior].concat());
    let err = text(&output.stderr);
    assert!(
        err.contains("learns nothing from") && err.contains("another GPU"),
        "{err}"
    );
    assert_eq!(err.matches("the search learns from").count(), 1, "{err}");
    std::fs::create_dir_all(place.join("studies/broken")).unwrap();
    std::fs::write(place.join("studies/broken/study.db"), "no database").unwrap();
    let output = sweetspot(place, &[&SWEEP[..], &prior[..3]].concat());
    let err = text(&output.stderr);
    assert!(err.contains("studies/broken"), "{err}");
    // A copy without its samples can be resumed too.
    std::fs::remove_dir_all(place.join("own/samples")).unwrap();
    let output = sweetspot(place, &["sweep", "--resume", "own"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}
