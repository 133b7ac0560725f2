//! What a budget says about bad input.

use super::common::{EARLIER_CAP, budget, caps, signal, start_budget, stderr_text, wait_for_caps};
use crate::host::TestHost;

#[test]
fn bad_values_are_refused_with_a_sentence() {
    let host = TestHost::new("v100:2");
    for (args, sentence) in [
        (&["--below", "much"][..], "invalid power cap `much`"),
        (
            &["--below", "400W", "--device", "0,1,2"],
            "there is no GPU `2`",
        ),
        (
            &["--below", "400W", "--floor", "7=200W"],
            "GPU 7, which does not share the budget",
        ),
        (
            &["--below", "400W", "--floor", "0=900W"],
            "its present power cap is 300 W",
        ),
        (&["--below", "400W", "--priority", "0=0"], "a value above 0"),
        (&["--below", "400W", "--of", "node"], "needs a power meter"),
        (&["--below", "400W", "--read-only"], "read-only mode is on"),
        (
            &["--cap-file", "/nowhere/budget"],
            "cap file /nowhere/budget",
        ),
        (&["set", "400W"], "you have no running budget"),
    ] {
        let output = budget(&host, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = stderr_text(&output);
        assert!(said.contains(sentence), "{args:?}: {said}");
        assert_eq!(said.trim().lines().count(), 1, "{said}");
    }
    assert_eq!(caps(&host), vec![300.0; 2]);
}

#[test]
fn a_budget_below_the_lowest_caps_sets_them_and_says_so() {
    let host = TestHost::new("v100:2");
    let output = budget(&host, &["--below", "50W", "--for", "3s"]);
    let said = stderr_text(&output);
    assert!(said.contains("the budget of 50 W cannot be kept"), "{said}");
    assert!(
        said.contains("300 W even at their lowest power caps"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!said.contains("lower the floors"), "{said}");
    assert!(host.writes().contains("150"), "{}", host.writes());
    assert_eq!(caps(&host), vec![300.0; 2]);
}

#[test]
fn a_second_budget_is_refused_and_a_cap_file_with_rubbish_changes_nothing() {
    let host = TestHost::new("v100:2");
    host.set_caps(EARLIER_CAP);
    let file = host.folder().join("budget.txt");
    std::fs::write(&file, "400W").unwrap();
    let first = start_budget(&host, &["--cap-file", file.to_str().unwrap()]);
    wait_for_caps(&host, "400 W", |caps| caps.iter().sum::<f64>() <= 400.5);
    let second = budget(&host, &["--below", "500W"]);
    assert_eq!(second.status.code(), Some(2));
    let said = stderr_text(&second);
    assert!(said.contains("another budget"), "{said}");
    std::fs::write(&file, "rubbish").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(caps(&host).iter().sum::<f64>() <= 400.5);
    signal("-TERM", &first, false);
    let output = first.wait_with_output().unwrap();
    let said = stderr_text(&output);
    assert!(said.contains("the budget stays at 400 W"), "{said}");
    assert_eq!(caps(&host), vec![EARLIER_CAP; 2]);
}

#[test]
fn a_floor_below_the_lowest_cap_is_said_to_have_no_effect() {
    let host = TestHost::new("v100:2");
    let args = ["--below", "500W", "--floor", "0=50W", "--for", "1s"];
    let output = budget(&host, &args);
    let said = stderr_text(&output);
    assert!(
        said.contains(
            "GPU 0: its lowest power cap is 150 W, so that its floor of 50 W has no effect"
        ),
        "{said}"
    );
}
