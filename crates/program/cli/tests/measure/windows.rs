//! Progress, and the measured part of a run.

use super::common::{json, measure, number, shell, text, warnings};
use crate::host::TestHost;

#[test]
fn progress_is_found_in_all_of_the_output() {
    let host = TestHost::new("nvidia_h200");
    let printed = |pattern: &str, more: &[&str], script: &str| {
        let args = [&["--progress", pattern], more, shell(script).as_slice()].concat();
        json(&host, &args)
    };
    // The last line counts, and a count that restarts is added.
    let epochs = "for e in 1 2; do for i in 10 20 30; do echo $i items; done; done";
    let (document, _) = printed(r"(\d+) items", &[], epochs);
    assert_eq!(number(&document["items"]), 60.0, "{document}");
    // A progress bar that never ends its line: each of its states has its own time.
    let bar = r"for i in 0 1 2 3 4 5; do printf '\r%d/5' $i; sleep 0.1; done";
    let (document, output) = printed(r"(\d+)/5", &["--window", "progress"], bar);
    assert_eq!(number(&document["items"]), 5.0, "{document}");
    assert!(
        (0.48..0.9).contains(&number(&document["time_s"])),
        "{document}"
    );
    assert_eq!(text(&output.stderr), "\r0/5\r1/5\r2/5\r3/5\r4/5\r5/5");
    // A rate applies to the whole window.
    let (document, _) = printed(
        r"images/sec: ([\d.]+)",
        &[],
        "sleep 0.2; echo images/sec: 500",
    );
    let items = 500.0 * number(&document["time_s"]);
    assert!(
        (number(&document["items"]) - items).abs() < 1e-6,
        "{document}"
    );
    // No output is lost, however much there is.
    let output = measure(
        &host,
        &[&["--progress", r"^(\d+)$"], shell("seq 300000").as_slice()].concat(),
    );
    let shown = text(&output.stdout);
    assert_eq!(shown.lines().take(300_000).last(), Some("300000"));
    assert!(
        shown.contains("300000 items, "),
        "{}",
        &shown[shown.len() - 500..]
    );
    let (document, _) = printed("loss", &[], "echo nothing of the kind");
    assert!(document.get("items").is_none(), "{document}");
    assert!(
        warnings(&document)[0].contains("progress pattern matched nothing"),
        "{document}"
    );
}

#[test]
fn a_missing_window_is_reported() {
    let host = TestHost::new("nvidia_h200");
    let missing = |args: &[&str], expected: &str| {
        let (document, output) = json(&host, args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            document["window_problem"]
                .as_str()
                .unwrap()
                .contains(expected),
            "{document}"
        );
        assert!(
            warnings(&document)[0].ends_with("the whole run is measured instead"),
            "{document}"
        );
        assert!(number(&document["energy_j"]) > 0.0);
    };
    missing(
        &["--window", "phase:x", "--", "sleep", "0.1"],
        "never marked a phase 'x'",
    );
    missing(
        &["--iterations", "5", "--", "sleep", "0.1"],
        "give a progress pattern",
    );
    let most = u64::MAX.to_string();
    let few = [
        "--progress",
        "x",
        "--skip",
        &most,
        "--",
        "sh",
        "-c",
        "echo x; sleep 0.2; echo x",
    ];
    missing(&few, "progress was reported 2 times");
}
