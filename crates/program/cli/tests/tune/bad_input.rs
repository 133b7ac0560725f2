//! Input that `tune` refuses.

use super::*;

#[test]
fn criteria_that_windows_cannot_evaluate_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let job = ["tune", "--simulate", "v100", "--network", "resnet50"];
    for (flag, value) in [
        ("--limit", "accuracy>=0.7"),
        ("--limit", "time<=100s"),
        ("--limit", "energy<=1J"),
        ("--objective", "cost"),
        ("--objective", "carbon"),
    ] {
        let output = sweetspot(folder.path(), &[&job[..], &[flag, value]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let err = text(&output.stderr);
        assert_eq!(err.lines().count(), 1, "{err}");
        let criterion = format!("the {} {value}: ", flag.trim_start_matches("--"));
        assert!(err.contains(&criterion), "{err}");
        let advice = match value {
            "cost" => "--price-per-kwh",
            "carbon" => "--carbon",
            _ => "--limit",
        };
        assert!(err.contains(advice), "{err}");
    }
    let output = sweetspot(
        folder.path(),
        &[&job[..], &["--limit", "time<=-20%"]].concat(),
    );
    assert_eq!(output.status.code(), Some(1));
    let out = text(&output.stdout);
    assert!(out.contains("meets the limits"), "{out}");
}

#[test]
fn bad_input_is_rejected_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let line = |args: &[&str]| {
        let output = sweetspot(folder.path(), args);
        let err = text(&output.stderr);
        assert_eq!(err.lines().count(), 1, "{err}");
        (output.status.code(), err)
    };
    let (code, err) = line(&["tune"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("nothing to run"), "{err}");
    let (code, err) = line(&["tune", "--simulate", "v100"]);
    assert!(code == Some(2) && err.contains("--network"), "{err}");
    let (code, err) = line(&[
        "tune",
        "--simulate",
        "v100",
        "--network",
        "resnet50",
        "--",
        "true",
    ]);
    assert!(code == Some(125) && err.contains("virtual time"), "{err}");
    let (code, err) = line(&["tune", "--network", "resnet50", "--", "true"]);
    assert!(
        code == Some(125) && err.contains("remove --network"),
        "{err}"
    );
    let (_, err) = line(&[
        "tune",
        "--knob",
        "fan",
        "--simulate",
        "v100",
        "--network",
        "resnet50",
    ]);
    assert!(
        err.contains("power-cap, core-clock, both or cpu-power-cap"),
        "{err}"
    );
    let (_, err) = line(&[
        "tune",
        "--budget",
        "0",
        "--simulate",
        "v100",
        "--network",
        "resnet50",
    ]);
    assert!(err.contains("more than 0 %"), "{err}");
    let host = TestHost::new("v100");
    let output = tune(&host, folder.path(), &["--read-only", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("read-only"));
    let output = tune(&host, folder.path(), &["--", "/no/such/program"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    // Without progress the exit code is 1, but the command runs to its end.
    let output = tune(&host, folder.path(), &["--", "sh", "-c", "sleep 1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(caps(&host), [300.0]);
}
