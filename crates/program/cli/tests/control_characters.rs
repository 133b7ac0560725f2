//! Names in studies, networks and profiles come from other people: what a terminal or a browser would obey is not printed.

use std::path::Path;

use crate::common::{sweetspot, text, words};
use crate::host::TestHost;

/// Clears the screen, rings, moves up, and begins a control sequence in one character; then a tag.
const HOSTILE: &str = "\u{1b}[2J\u{7}\u{1b}[1A\u{9b}31m<script>alert(1)</script>";

/// `HOSTILE` within a JSON string.
const HOSTILE_JSON: &str = r"\u001b[2J\u0007\u001b[1A\u009b31m<script>alert(1)</script>";

fn assert_printable(what: &str, bytes: &[u8]) {
    let printed = text(bytes);
    let bad = printed
        .chars()
        .find(|one| one.is_control() && !matches!(one, '\n'));
    assert_eq!(bad, None, "{what}: {printed:?}");
}

/// A study in which every text that a program or a driver has given is hostile.
fn hostile_study(folder: &Path) {
    let sweep = "sweep --simulate v100 --network resnet50 --power-cap 150,300 --repeat 2 --study s";
    assert!(sweetspot(folder, &words(sweep)).status.success());
    let database = rusqlite::Connection::open(folder.join("s/study.db")).unwrap();
    let changes = [
        "UPDATE meta SET value = replace(value, 'Tesla V100-SXM2-16GB', 'Tesla ' || ?1) WHERE key IN ('subject', 'plan')",
        "UPDATE meta SET value = json_set(value, '$.configurations[0].parameters.note', json('\"' || ?1 || '\"')) WHERE key = 'plan'",
    ];
    for change in changes {
        database.execute(change, [HOSTILE_JSON]).unwrap();
    }
    for change in [
        "UPDATE meta SET value = 'host ' || ?1 WHERE key = 'machine'",
        "UPDATE meta SET value = 'program ' || ?1 WHERE key = 'program'",
        "INSERT OR REPLACE INTO run_phase VALUES (0, 9, 'phase ' || ?1, 1.0, 1.0)",
        "INSERT OR REPLACE INTO run_value VALUES (0, 'value ' || ?1, 1.0)",
        "INSERT OR REPLACE INTO run_warning VALUES (0, 0, 'warning ' || ?1)",
        "UPDATE run SET status = 'failed', reason = 'reason ' || ?1, output = ?1 WHERE id = 1",
    ] {
        database.execute(change, [HOSTILE]).unwrap();
    }
}

#[test]
fn hostile_texts_of_a_study_do_not_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    hostile_study(folder.path());
    for line in [
        "report s",
        "report s --by note",
        "study show s",
        "study list .",
        "compare s s",
        "report s --objective energy --limit time<=+5%",
    ] {
        let output = sweetspot(folder.path(), &words(line));
        assert_printable(line, &output.stdout);
        assert_printable(line, &output.stderr);
    }
    let host = TestHost::new("v100");
    let run = host
        .sweetspot()
        .args(["run", "--from", "s", "--", "true"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_printable("run --from", &run.stderr);
    assert_printable("run --from", &run.stdout);
}

#[test]
fn hostile_texts_of_a_study_are_escaped_in_documents() {
    let folder = tempfile::tempdir().unwrap();
    hostile_study(folder.path());
    let json = sweetspot(folder.path(), &words("report s --export-json -"));
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(
        document["device"]["name"]
            .as_str()
            .unwrap()
            .contains(HOSTILE)
    );
    assert!(!json.stdout.contains(&0x1b));
    let html = sweetspot(folder.path(), &words("report s --export-html -"));
    let page = text(&html.stdout);
    assert!(page.contains("</html>"));
    assert!(!page.contains("<script>alert"), "{page}");
    assert!(!page.contains('\u{1b}') && !page.contains('\u{9b}'));
}

#[test]
fn hostile_names_in_networks_do_not_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let tests = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../foundation/network/tests/onnx"
    );
    let mut count = 0;
    for entry in std::fs::read_dir(tests).unwrap().flatten() {
        if entry.path().extension().is_none_or(|end| end != "onnx") {
            continue;
        }
        let mut bytes = std::fs::read(entry.path()).unwrap();
        // The names of operators stay; every third letter of other names becomes an escape character.
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        for at in (0..bytes.len().saturating_sub(3)).step_by(3) {
            if bytes[at..at + 3].iter().all(|byte| is_name(*byte)) {
                bytes[at + 1] = 0x1b;
            }
        }
        std::fs::write(folder.path().join("a.onnx"), bytes).unwrap();
        for line in ["network ./a.onnx", "network ./a.onnx --layers"] {
            let output = sweetspot(folder.path(), &words(line));
            assert_printable(line, &output.stdout);
            assert_printable(line, &output.stderr);
        }
        count += 1;
    }
    assert!(count > 0);
    let net = format!("network {HOSTILE}\ninput data 3x8x8\nconv {HOSTILE} 3x3\n");
    std::fs::write(folder.path().join("a.net"), net).unwrap();
    let output = sweetspot(folder.path(), &words("network ./a.net"));
    assert_printable("network ./a.net", &output.stderr);
    assert_printable("network ./a.net", &output.stdout);
}

#[test]
fn hostile_names_in_profiles_and_flags_do_not_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let profile = include_str!("../../../simulate/sim/profiles/gpus/nvidia_h200.toml");
    let named = profile.replace("NVIDIA H200", &format!("NVIDIA {HOSTILE_JSON}"));
    assert_ne!(named, profile);
    std::fs::write(folder.path().join("gpu.toml"), named).unwrap();
    for line in [
        "simulate --gpu ./gpu.toml -- true".to_owned(),
        format!("network {HOSTILE}"),
        format!("report {HOSTILE}"),
        format!("sweep --simulate {HOSTILE} --network resnet50"),
        format!("measure --{HOSTILE} -- true"),
        format!("simulate --gpu v100 -- {HOSTILE}"),
    ] {
        let output = sweetspot(folder.path(), &words(&line));
        assert!(!output.status.success(), "{line:?}");
        assert_printable(&line, &output.stderr);
        assert_printable(&line, &output.stdout);
    }
}
