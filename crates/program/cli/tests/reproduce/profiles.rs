//! `sweetspot reproduce --profiles`: the user's profiles in place of built-in ones.

use serde_json::Value;

use super::folder;
use crate::common::{sweetspot, text};

/// The Quadro of two studies, whose profile a user changes.
const QUADRO: &str = include_str!("../../../../simulate/sim/profiles/gpus/quadro_rtx_6000.toml");

/// A folder with a profile of the Quadro.
fn with_quadro(profile: &str) -> tempfile::TempDir {
    let folder = folder();
    let gpus = folder.path().join("mine/gpus");
    std::fs::create_dir_all(&gpus).unwrap();
    std::fs::write(gpus.join("quadro_rtx_6000.toml"), profile).unwrap();
    folder
}

/// The profile with another power of the idle GPU.
fn changed() -> String {
    let idle = QUADRO.lines().find(|line| line.starts_with("idle = "));
    QUADRO.replace(idle.unwrap(), "idle = \"12 W\"")
}

#[test]
fn a_changed_profile_is_named_in_text_and_json() {
    let folder = with_quadro(&changed());
    for study in ["node-power-capping-2023", "power-capping-2022"] {
        let args = ["reproduce", study, "--profiles", "mine", "--summary"];
        let shown = sweetspot(folder.path(), &args);
        assert_eq!(text(&shown.stderr), "");
        let shown = text(&shown.stdout);
        assert!(
            shown.contains("changed profiles: gpu quadro_rtx_6000;"),
            "{shown}"
        );
        // The stored fits belong to the profiles as they were fitted.
        assert!(shown.contains("held-out errors are unknown"), "{shown}");
        assert!(!shown.contains("held out:"), "{shown}");
    }
    let study = "node-power-capping-2023";
    let document = |args: &[&str]| -> Value {
        let output = sweetspot(folder.path(), args);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let args = ["reproduce", study, "--export-json", "-"];
    let fitted = document(&args);
    assert_eq!(fitted["fit"]["changed_profiles"], Value::Null);
    let changed = document(&[&args[..], &["--profiles", "mine"]].concat());
    let names = &changed["fit"]["changed_profiles"];
    assert_eq!(names, &serde_json::json!(["gpu quadro_rtx_6000"]));
    assert_ne!(changed["rows"], fitted["rows"]);
    let held_out = |document: &Value| document["fit"]["held_out"].as_array().unwrap().len();
    assert_eq!((held_out(&fitted), held_out(&changed)), (6, 0));
    let args = ["simulate", "--errors", study, "--profiles", "mine"];
    let shown = text(&sweetspot(folder.path(), &args).stdout);
    assert!(shown.contains("changed profiles: gpu quadro_rtx_6000;"));
}

/// The column of simulated values comes from the changed profile, which the text, the document and the report say.
#[test]
fn a_changed_profile_is_named_beside_the_users_own_gpu() {
    let folder = with_quadro(&changed());
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let shown_with = |profiles: &str, name: &str| {
        let command = format!(
            "{program} reproduce power-capping-2022 --on-this-gpu --points 2 --repeat 1 {profiles} --export-json {name}.json --export-html {name}.html -- {program} sim-workload --network resnet50 --items 300"
        );
        let args = ["simulate", "--gpu", "quadro_rtx_6000", "--", "sh", "-c"];
        let output = sweetspot(folder.path(), &[&args[..], &[&command]].concat());
        let read = |kind: &str| {
            std::fs::read_to_string(folder.path().join(format!("{name}.{kind}"))).unwrap()
        };
        let document: Value = serde_json::from_str(&read("json")).unwrap();
        (text(&output.stdout), document, read("html"))
    };
    let sentence = "Changed profiles: gpu quadro_rtx_6000; simulated values come from them";
    let (shown, own, page) = shown_with("--profiles mine", "changed");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&shown).contains(sentence), "{shown}");
    assert!(page.contains(sentence));
    let names = &own["changed_profiles"];
    assert_eq!(names, &serde_json::json!(["gpu quadro_rtx_6000"]));

    let (shown, own, page) = shown_with("", "fitted");
    assert!(!shown.contains("Changed profiles"), "{shown}");
    assert!(!page.contains("Changed profiles"));
    assert_eq!(own["changed_profiles"], Value::Null);
}

#[test]
fn an_unchanged_profile_changes_nothing() {
    let folder = with_quadro(QUADRO);
    let args = ["reproduce", "node-power-capping-2023", "--export-json", "-"];
    let built_in = sweetspot(folder.path(), &args);
    let own = [&args[..], &["--profiles", "mine"]].concat();
    assert_eq!(sweetspot(folder.path(), &own).stdout, built_in.stdout);
}

#[test]
fn a_folder_that_cannot_be_used_is_one_clear_sentence() {
    let folder = with_quadro("idle = 3");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let error = |profiles: &str| {
        let args = ["reproduce", "dvfs-2019", "--profiles", profiles];
        let output = sweetspot(folder.path(), &args);
        assert_ne!(output.status.code(), Some(0));
        assert_eq!(text(&output.stdout), "");
        text(&output.stderr)
    };
    assert!(error("missing").contains("cannot read the profile missing"));
    assert!(error("empty").contains("there are no profiles in empty"));
    assert!(error("mine").contains("quadro_rtx_6000.toml"));
    std::fs::rename(
        folder.path().join("mine/gpus/quadro_rtx_6000.toml"),
        folder.path().join("mine/gpus/quadro.toml"),
    )
    .unwrap();
    let shown = error("mine");
    assert!(shown.contains("replaces no built-in profile"), "{shown}");
    assert!(shown.contains("gpus/quadro_rtx_6000.toml"), "{shown}");
}
