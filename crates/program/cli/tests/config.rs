//! The configuration file of the user: what it sets, and what wins over it.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{program, text, words};
use crate::host::TestHost;

/// A folder with a configuration file.
fn folder_with(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_config(folder.path(), config);
    folder
}

fn write_config(folder: &Path, config: &str) {
    std::fs::create_dir_all(folder.join("config/sweetspot")).unwrap();
    std::fs::write(folder.join("config/sweetspot/config.toml"), config).unwrap();
}

/// Runs a command with the configuration file of a folder, in that folder.
fn configured(folder: &Path, line: &str) -> Output {
    program()
        .args(words(line))
        .current_dir(folder)
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .output()
        .unwrap()
}

fn shown(folder: &Path, line: &str) -> String {
    let output = configured(folder, line);
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The message of a command that is refused before it does anything.
fn refused(folder: &Path, line: &str) -> String {
    let output = configured(folder, line);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert_eq!(text(&output.stdout), "");
    message
}

const SWEEP: &str = "sweep --simulate v100 --network resnet50 --power-cap 150,200,300";

#[test]
fn prices_in_the_file_make_the_objective_cost_work() {
    let prices = "price-per-kwh = 0.5\nprice-per-gpu-hour = 2\n";
    let folder = folder_with(&format!("{prices}currency = \"CHF\"\n"));
    let folder = folder.path();
    shown(folder, &format!("{SWEEP} --objective cost --study one"));
    let with_file = shown(folder, "report one --objective cost");
    assert!(with_file.contains(" 0.1578 CHF "), "{with_file}");
    // A flag replaces its own key alone.
    let other = shown(folder, "report one --objective cost --currency SEK");
    assert_eq!(other, with_file.replace("CHF", "SEK"));
    let cheaper = shown(folder, "report one --objective cost --price-per-gpu-hour 0");
    assert!(
        cheaper.contains(" CHF ") && cheaper != with_file,
        "{cheaper}"
    );
    // A study keeps its own objective, so that it can be resumed without a price.
    shown(folder, &format!("{SWEEP} --objective energy --study two"));
    write_config(folder, "objective = \"cost\"\n");
    shown(folder, "sweep --resume two");
    // The objective of the file is that of a study without one.
    write_config(folder, &format!("objective = \"cost\"\n{prices}"));
    let default = shown(folder, "report one");
    assert_eq!(default, with_file.replace("CHF", "EUR"));
    // Prices of 0 are the same as none.
    write_config(folder, "price-per-kwh = 0\n");
    refused(folder, &format!("{SWEEP} --no-study --objective cost"));
    // Runs cannot be chosen by prices.
    write_config(folder, "objective = \"cost\"\nprice-per-kwh = 1\n");
    let message = refused(folder, &format!("{SWEEP} --no-study --strategy guided"));
    assert!(message.contains("give --objective energy"), "{message}");
}

#[test]
fn a_missing_price_is_answered_with_the_flag_and_the_key() {
    let folder = folder_with("");
    for (objective, flag, key) in [
        ("cost", "--price-per-kwh", "`price-per-kwh = 0.30`"),
        ("carbon", "--carbon", "`carbon = 380`"),
    ] {
        let message = refused(
            folder.path(),
            &format!("{SWEEP} --no-study --objective {objective}"),
        );
        let file = folder.path().join("config/sweetspot/config.toml");
        for part in [flag, key, file.to_str().unwrap()] {
            assert!(message.contains(part), "{message}");
        }
    }
}

/// Grams per kWh are those of the hour at which the job starts.
#[test]
fn the_carbon_intensity_of_the_file_is_used() {
    let hours = "carbon = [1,1,1,1,1,1,1,1,1,1,1,1,9,9,9,9,9,9,9,9,9,9,9,9]\n";
    let folder = folder_with(&format!("objective = \"carbon\"\n{hours}"));
    let folder = folder.path();
    shown(folder, &format!("{SWEEP} --study one"));
    let grams = |start: &str| {
        let text = shown(folder, &format!("report one --start {start}"));
        let line = text.lines().find(|line| line.starts_with("  carbon "));
        let line = line.unwrap_or_else(|| panic!("{text}"));
        let number = line.split_whitespace().nth(1).unwrap();
        number.parse::<f64>().unwrap()
    };
    let ratio = grams("14:00") / grams("2:00");
    assert!((8.9..9.1).contains(&ratio), "{ratio}");
    write_config(folder, "");
    let message = refused(folder, "report one --start 2:00");
    assert!(message.contains("give --carbon"), "{message}");
}

#[test]
fn a_study_keeps_the_objective_of_its_time() {
    let folder = folder_with("objective = \"energy\"\n");
    let folder = folder.path();
    let sweep = shown(folder, &format!("{SWEEP} --study kept"));
    assert!(sweep.contains("energy)"), "{sweep}");
    // The file changes: the study does not.
    write_config(folder, "objective = \"time\"\n");
    let recommendation = |line: &str| {
        let text = shown(folder, line);
        let mut lines = text.lines();
        let line = lines
            .find(|line| line.contains("et the power cap") || line.contains("eep the default"));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    for line in ["report kept", "sweep --resume kept", "study export kept"] {
        assert!(recommendation(line).contains("energy"), "{line}");
    }
    // A flag wins over both.
    let flag = recommendation("report kept --objective ed2p");
    assert!(flag.contains("ed2p"), "{flag}");
    // A study without an objective follows the file, and a search is of EDP unless it says otherwise.
    write_config(folder, "");
    shown(folder, &format!("{SWEEP} --study plain"));
    let search = "sweep --simulate v100 --network resnet50 --strategy guided --prior none";
    shown(folder, &format!("{search} --study found"));
    write_config(folder, "objective = \"ed2p\"\n");
    assert!(recommendation("report plain").contains("ed2p"));
    assert!(!recommendation("report found").contains("ed2p"));
    let searched = recommendation(&format!("{search} --no-study"));
    assert!(searched.contains("ed2p"), "{searched}");
}

#[test]
fn the_preference_of_the_file_is_a_default() {
    let folder = folder_with("prefer = \"mean\"\n");
    let line = "sweep --simulate v100 --network resnet50 --no-study";
    let mean = shown(folder.path(), line);
    assert!(mean.contains("set the power cap to 175 W"), "{mean}");
    let time = shown(folder.path(), &format!("{line} --prefer time"));
    assert!(time.contains("set the power cap to 185 W"), "{time}");
}

#[test]
fn every_command_that_recommends_reads_the_file() {
    let folder = folder_with("objective = \"energy\"\n");
    let folder = folder.path();
    shown(folder, &format!("{SWEEP} --study one"));
    write_config(folder, "objektive = \"edp\"\n");
    for line in [
        "sweep --simulate v100 --network resnet50",
        "sweep --resume one",
        "report one",
        "compare one one",
        "study export one",
        "replay --study one",
        "tune --simulate v100 --network resnet50",
    ] {
        let message = refused(folder, line);
        assert!(
            message.ends_with("config.toml, line 1: unknown key `objektive`: write objective\n"),
            "{message}"
        );
    }
    // Others are not disturbed by it.
    shown(folder, "study list .");
    shown(folder, "fit one");
    let host = TestHost::new("v100");
    let run = |args: &str| {
        let mut command = host.sweetspot();
        command
            .args(words(args))
            .current_dir(folder)
            .env("XDG_CONFIG_HOME", folder.join("config"));
        command.output().unwrap()
    };
    assert_eq!(run("run --from one -- true").status.code(), Some(125));
    assert!(run("run --power-cap 200W -- true").status.success());
    assert!(run("measure -- true").status.success());
}

#[test]
fn a_file_that_cannot_be_read_is_reported() {
    let folder = folder_with("");
    let file = folder.path().join("config/sweetspot/config.toml");
    std::fs::remove_file(&file).unwrap();
    let line = format!("{SWEEP} --no-study");
    shown(folder.path(), &line);
    std::fs::create_dir(&file).unwrap();
    assert!(refused(folder.path(), &line).contains("it is not a file"));
    std::fs::remove_dir(&file).unwrap();
    let made = Command::new("mkfifo").arg(&file).status();
    assert!(made.unwrap().success());
    assert!(refused(folder.path(), &line).contains("it is not a file"));
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    assert!(refused(folder.path(), &line).contains("valid UTF-8"));
    std::fs::write(&file, "#".repeat(100_000)).unwrap();
    assert!(refused(folder.path(), &line).contains("larger than 64 KiB"));
}

/// Without the variable, or with a relative path in it, the file is below the home folder.
#[test]
fn the_home_folder_is_used_without_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join(".config/sweetspot");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("config.toml"), "objective = 1").unwrap();
    for variable in [None, Some("config")] {
        let mut command = program();
        command
            .args(words("tune --simulate v100 --network resnet50"))
            .current_dir(folder.path())
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", folder.path());
        if let Some(folder) = variable {
            command.env("XDG_CONFIG_HOME", folder);
        }
        let message = text(&command.output().unwrap().stderr);
        assert!(
            message.contains("line 1: objective must be a text"),
            "{message}"
        );
    }
}

/// Every test runs the program through the helpers, which keep the developer's own file out.
#[test]
fn no_test_reads_the_file_of_the_developer() {
    let forbidden = concat!("Command::new(env!(\"CARGO_BIN_EXE_", "sweetspot\"))");
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")];
    let mut uses = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs")
                && std::fs::read_to_string(&path).unwrap().contains(forbidden)
            {
                uses.push(path);
            }
        }
    }
    assert_eq!(uses.len(), 1, "use common::program: {uses:?}");
    assert!(uses[0].ends_with("common/mod.rs"), "{uses:?}");
}
