//! What a user types by mistake is answered with the form that works.

use crate::common::{sweetspot, text, words};
use crate::host::TestHost;

/// The message of a command that fails.
fn message(line: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = sweetspot(folder.path(), &words(line));
    assert!(!output.status.success(), "{line}");
    text(&output.stderr)
}

#[test]
fn ranges_with_a_dash_are_answered_with_a_range() {
    for (axis, range) in [
        ("--power-cap 150-300", "write 150..300:5"),
        ("--power-cap 150W-300W", "write 150..300:5"),
        ("--core-clock 900-1350", "write 900..1350:"),
    ] {
        let message = message(&format!("sweep --simulate v100 --network resnet50 {axis}"));
        assert!(message.contains(range), "{message}");
    }
}

#[test]
fn networks_with_a_comma_are_answered_with_a_flag_each() {
    for verb in ["sweep", "tune"] {
        let message = message(&format!("{verb} --simulate v100 --network resnet50,vgg19"));
        assert!(
            message.contains("name each network by itself: --network resnet50 --network vgg19"),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = "simulate = \"v100\"\nnetwork = \"resnet50,vgg19\"\n";
    std::fs::write(folder.path().join("two.toml"), file).unwrap();
    let output = sweetspot(folder.path(), &["sweep", "two.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(
        message.contains("two.toml: network: name each network by itself: --network resnet50"),
        "{message}"
    );
}

#[test]
fn names_match_in_any_case() {
    let folder = tempfile::tempdir().unwrap();
    let line =
        "sweep --simulate V100 --network ResNet50 --power-cap 150,300 --objective EDP --no-study";
    let output = sweetspot(folder.path(), &words(line));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(" min EDP "));
}

#[test]
fn a_command_without_its_separator_is_shown_with_it() {
    for (line, answer) in [
        (
            "run --power-cap 150W python train.py --epochs 3",
            "sweetspot: write your command after `--`: sweetspot run --power-cap 150W -- python train.py --epochs 3\n",
        ),
        (
            "measure ./train",
            "sweetspot: write your command after `--`: sweetspot measure -- ./train\n",
        ),
    ] {
        assert_eq!(message(line), answer);
    }
    // A flag that does not exist is no command.
    assert!(message("run --power-capp 150W").contains("--power-capp"));
    assert!(message("report a b").contains("unexpected"));
}

#[test]
fn a_mistyped_program_is_answered_with_a_similar_one() {
    let host = TestHost::new("v100");
    for verb in ["run --power-cap 200W", "measure"] {
        let mut command = host.sweetspot();
        let output = command
            .args(words(verb))
            .args(["--", "slepp", "1"])
            .output()
            .unwrap();
        let message = text(&output.stderr);
        assert!(message.contains("cannot run slepp"), "{message}");
        assert!(message.ends_with("did you mean sleep?\n"), "{message}");
    }
}

#[test]
fn an_objective_without_its_price_is_refused_at_once() {
    for (objective, flag) in [("cost", "--price-per-kwh"), ("carbon", "--carbon")] {
        let message = message(&format!(
            "sweep --simulate v100 --network resnet50 --objective {objective}"
        ));
        assert!(message.contains(flag), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}
