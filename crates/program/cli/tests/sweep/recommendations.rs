//! Recommendations of sweeps: ties, preferences, added runs and unusual studies.

use serde_json::Value;

use super::{folder, json};
use crate::common::{sweetspot, text};

const CAPS: [&str; 7] = [
    "sweep",
    "--simulate",
    "v100",
    "--network",
    "resnet50",
    "--power-cap",
    "150..300:10",
];

/// The recommendation of a sweep with these flags.
fn recommendation(args: &[&str]) -> (Value, String) {
    let folder = folder();
    let more = ["--no-study", "--export-json", "study.json"];
    let output = sweetspot(folder.path(), &[args, &more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let study = json(&folder.path().join("study.json"));
    (study["recommendation"].clone(), shown)
}

fn indices(list: &Value) -> Vec<u64> {
    let list = list.as_array().unwrap().iter();
    list.map(|one| one.as_u64().unwrap()).collect()
}

#[test]
fn the_preference_decides_among_ties() {
    let by = |prefer| recommendation(&[&CAPS[..], &["--prefer", prefer]].concat()).0;
    let (time, energy, mean) = (by("time"), by("energy"), by("mean"));
    let ties = indices(&time["may_be_best"]);
    assert!((2..=7).contains(&ties.len()), "{time}");
    assert_eq!(indices(&energy["may_be_best"]), ties);
    assert_eq!(time["point"], *ties.last().unwrap());
    assert_eq!(energy["point"], ties[0]);
    assert!(ties.contains(&mean["point"].as_u64().unwrap()));
    assert_eq!(
        (&time["change"], &time["objective"]),
        (&true.into(), &"edp".into())
    );
    let saving = &time["saving"];
    let interval = saving["ci95"]["energy"].as_array().unwrap();
    let energy = saving["energy"].as_f64().unwrap();
    assert!(energy < -0.15 && saving["time"].as_f64().unwrap() > 0.05);
    assert!(interval[0].as_f64().unwrap() < energy && energy < interval[1].as_f64().unwrap());
    let (_, shown) = recommendation(&CAPS);
    let reason = time["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("fastest of ") && shown.contains(reason),
        "{reason}: {shown}"
    );
    let folder = folder();
    let wrong = [&CAPS[..], &["--prefer", "speed"]].concat();
    let output = sweetspot(folder.path(), &wrong);
    assert!(text(&output.stderr).contains("use time, energy or mean"));
}

#[test]
fn caps_that_do_not_bind_change_nothing() {
    let caps = [
        "sweep",
        "--simulate",
        "v100",
        "--network",
        "alexnet",
        "--power-cap",
    ];
    for seed in ["1", "2", "3", "4"] {
        let args = [&caps[..], &["270..300:1", "--seed", seed]].concat();
        let (recommendation, shown) = recommendation(&args);
        assert_eq!(recommendation["change"], false, "{recommendation}");
        assert_eq!(recommendation["point"], 30, "{recommendation}");
        assert_eq!(indices(&recommendation["may_be_best"]).len(), 31);
        assert!(recommendation["saving"].is_null());
        assert!(
            shown.contains("no other setting is significantly better in edp"),
            "{shown}"
        );
        assert!(
            shown.contains("30 others from 270 W to 299 W may be as good."),
            "{shown}"
        );
        let chance = recommendation["chance_nothing_gains"].as_f64().unwrap();
        assert!(chance > 0.9, "{recommendation}");
    }
}

/// With one run of two caps nothing tells noise from effect: the text says what is assumed and what may be missed.
#[test]
fn keeping_the_default_after_one_run_each_says_how_uncertain_that_is() {
    let args = [&CAPS[..5], &["--power-cap", "200,300", "--repeat", "1"]].concat();
    let (recommendation, shown) = recommendation(&args);
    assert_eq!(recommendation["change"], false, "{recommendation}");
    let chance = recommendation["chance_nothing_gains"].as_f64().unwrap();
    assert!((0.02..0.9).contains(&chance), "{recommendation}");
    let loss = recommendation["expected_loss"].as_f64().unwrap();
    for wanted in [
        "200 W may be as good.".to_owned(),
        format!(
            "is {:.0} %; the best one is expected to be {:.1} % better.",
            100.0 * chance,
            100.0 * loss
        ),
        "the noise of runs is estimated, not measured".to_owned(),
    ] {
        assert!(shown.contains(&wanted), "{wanted}: {shown}");
    }
}

/// Large noise of single runs must not look like a gain.
#[test]
fn one_noisy_run_of_each_cap_recommends_no_change_where_none_binds() {
    let folder = folder();
    let profile = include_str!("../../../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
    let noisy = profile
        .replace("Tesla V100-SXM2-16GB", "Noisy")
        .replace("aliases = [\"v100\"]", "noise = \"20 %\"");
    std::fs::write(folder.path().join("noisy.toml"), noisy).unwrap();
    for seed in 1..=8 {
        let args = format!(
            "sweep --simulate noisy.toml --network alexnet@power_capping_2022 --power-cap 270..300:1 --repeat 1 --seed {seed} --no-study"
        );
        let output = sweetspot(folder.path(), &args.split(' ').collect::<Vec<_>>());
        let shown = text(&output.stdout);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(shown.contains("keep the default power cap"), "{shown}");
    }
}

#[test]
fn a_study_of_few_runs_says_how_to_add_more() {
    let folder = folder();
    let args = [&CAPS[..], &["--repeat", "1", "--study", "few"]].concat();
    let shown = text(&sweetspot(folder.path(), &args).stdout);
    assert!(
        shown.contains("the noise of runs is estimated, not measured"),
        "{shown}"
    );
    let command = "sweetspot sweep --resume few --repeat 5";
    assert!(shown.contains(command), "{shown}");
    let report = text(&sweetspot(folder.path(), &["report", "few"]).stdout);
    assert!(report.contains(command), "{report}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let shown = text(&sweetspot(folder.path(), &words).stdout);
    assert!(
        shown.contains("5 runs each") && !shown.contains("More runs"),
        "{shown}"
    );
}

#[test]
fn runs_are_added_until_the_recommendation_is_certain() {
    let folder = folder();
    let until = [
        "--until",
        "sure",
        "--study",
        "sure",
        "--export-json",
        "sure.json",
    ];
    let output = sweetspot(folder.path(), &[&CAPS[..], &until].concat());
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(shown.contains(" Certain after "), "{shown}");
    let study = json(&folder.path().join("sure.json"));
    let runs = |point: &Value| point["runs"].as_u64().unwrap();
    let all: Vec<u64> = study["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(runs)
        .collect();
    assert!(all.iter().all(|runs| (3..=30).contains(runs)), "{all:?}");
    // Only settings that may be best, and the reference, are repeated more often than the others.
    let least = *all.iter().min().unwrap();
    assert!(
        all.iter().filter(|runs| **runs > least).count() < all.len() / 2,
        "{all:?}"
    );
    assert!(study["recommendation"]["expected_loss"].as_f64().unwrap() < 0.005);
    let again = sweetspot(folder.path(), &["sweep", "--resume", "sure"]);
    assert_eq!(text(&again.stdout), shown);
    // The preference of the study decides which runs are added, and stays with it.
    let prefer = "--power-cap 150..300:5 --until sure --prefer energy --study frugal";
    let prefer: Vec<&str> = prefer.split(' ').collect();
    let output = sweetspot(folder.path(), &[&CAPS[..5], &prefer].concat());
    let shown = text(&output.stdout);
    assert!(shown.contains(" Certain after "), "{shown}");
    let again = sweetspot(folder.path(), &["sweep", "--resume", "frugal"]);
    assert_eq!(text(&again.stdout), shown);
    // Far too few runs for noise of 10 %: the recommendation says that it is not certain.
    let profile = include_str!("../../../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
    let noisy = profile
        .replace("Tesla V100-SXM2-16GB", "Noisy")
        .replace("aliases = [\"v100\"]", "noise = \"10 %\"");
    std::fs::write(folder.path().join("noisy.toml"), noisy).unwrap();
    let args = "sweep --simulate noisy.toml --network resnet50@power_capping_2022 --power-cap 150,160,170 --until sure --at-most 3 --no-study";
    let few = sweetspot(folder.path(), &args.split(' ').collect::<Vec<_>>());
    let shown = text(&few.stdout);
    assert!(few.status.success(), "{}", text(&few.stderr));
    assert!(shown.contains(" Not certain after 12 runs"), "{shown}");
    let wrong = [&CAPS[..], &["--until", "certain"]].concat();
    let output = sweetspot(folder.path(), &wrong);
    assert!(
        text(&output.stderr).contains("or sure"),
        "{}",
        text(&output.stderr)
    );
    let both = [&CAPS[..], &["--until", "sure", "--strategy", "guided"]].concat();
    let output = sweetspot(folder.path(), &both);
    assert!(text(&output.stderr).contains("until cannot be used with a strategy"));
    for (flags, problem) in [
        (
            &["--until", "sure", "--at-most", "2"][..],
            "at-most must not be less",
        ),
        (&["--at-most", "9"], "at-most needs until"),
        (
            &[
                "--until",
                "sure",
                "--objective",
                "cost",
                "--price-per-kwh",
                "0.3",
            ],
            "until sure cannot be used for cost",
        ),
    ] {
        let output = sweetspot(folder.path(), &[&CAPS[..], flags].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(problem),
            "{}",
            text(&output.stderr)
        );
    }
}
