//! `sweetspot replay`, also on measurements of the Zeus project if they are available.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::common::{sweetspot, text};
use serde_json::Value;

/// Writes the records of two jobs under seven caps: one is limited by the clock, one never reaches the cap.
fn write_records(folder: &Path) -> PathBuf {
    let mut rows = "network,power_limit,time,power\n".to_owned();
    for cap in (100..=250).step_by(25) {
        let power = f64::from(cap).min(230.0);
        let time = 100.0 * (0.6 + 0.4 * 170.0 / (power - 60.0));
        writeln!(rows, "busy,{cap},{time},{power}").unwrap();
        writeln!(rows, "idle,{cap},50,60").unwrap();
    }
    let path = folder.join("records.csv");
    std::fs::write(&path, rows).unwrap();
    path
}

const COLUMNS: [&str; 8] = [
    "--knob",
    "power_limit",
    "--time",
    "time",
    "--power",
    "power",
    "--group",
    "network",
];

fn replay(folder: &Path, args: &[&str]) -> std::process::Output {
    sweetspot(folder, &[&["replay"], args].concat())
}

#[test]
fn strategies_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    write_records(folder.path());
    let args = [
        &["--curves", "records.csv", "--strategy", "all"][..],
        &["--objective", "energy"],
        &COLUMNS,
        &["--export-json", "replay.json", "--export-csv", "replay.csv"],
        &["--export-figures", "figures"],
    ]
    .concat();
    let output = replay(folder.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for name in ["exhaustive", "linear", "golden", "guided"] {
        assert!(shown.contains(name), "{shown}");
    }
    let json = std::fs::read(folder.path().join("replay.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["schema"], "sweetspot.replay/1");
    let busy = &json["curves"][0];
    assert_eq!(busy["group"]["network"], "busy");
    assert_eq!(busy["points"], 7);
    // The energy of the clock-bound job is lowest at 150 W: 100 W (0.6 + 68 / 40) is more than 125 W (0.6 + 68 / 65), and
    // so on.
    assert_eq!(busy["optimum"]["power_limit"], 150.0);
    assert!(busy["regret"].as_f64().unwrap() < 0.02, "{busy}");
    assert!(json["summary"]["evaluations_median"].as_f64().unwrap() <= 7.0);
    assert_eq!(json["strategies"].as_array().unwrap().len(), 4);
    let rows = std::fs::read_to_string(folder.path().join("replay.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 4 * 2);
    let svg = folder.path().join("figures/regret-by-evaluations.svg");
    assert!(std::fs::read_to_string(svg).unwrap().contains("golden"));
}

#[test]
fn a_study_can_be_replayed_and_used_as_prior() {
    let folder = tempfile::tempdir().unwrap();
    for network in ["resnet50", "vgg19"] {
        let args = [
            "sweep",
            "--simulate",
            "v100",
            "--network",
            network,
            "--repeat",
            "2",
        ];
        assert!(sweetspot(folder.path(), &args).status.success());
    }
    let args = [
        "--study",
        "resnet50-v100",
        "--prior",
        "vgg19-v100",
        "--export-json",
        "-",
    ];
    let output = replay(folder.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["curves"][0]["points"], 31);
    assert!(
        json["curves"][0]["regret"].as_f64().unwrap() < 0.01,
        "{json}"
    );
    assert!(json["curves"][0]["evaluations"].as_u64().unwrap() <= 16);
}

#[test]
fn bad_input_is_rejected_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    write_records(folder.path());
    std::fs::write(folder.path().join("empty.csv"), "a,b,c\n").unwrap();
    std::fs::write(folder.path().join("bad.csv"), "a,b,c\n1,2,x\n").unwrap();
    let abc = ["--knob", "a", "--time", "b", "--power", "c"];
    let cases: [(&[&str], &str); 9] = [
        (&["--curves", "none.csv"], "--knob"),
        (
            &[&["--curves", "none.csv"][..], &abc].concat(),
            "cannot read none.csv",
        ),
        (
            &[&["--curves", "empty.csv"][..], &abc].concat(),
            "has no rows",
        ),
        (
            &[&["--curves", "bad.csv"][..], &abc].concat(),
            "line 2: `c` is `x`",
        ),
        (
            &[&["--curves", "records.csv"][..], &abc].concat(),
            "no column `a`; it has network",
        ),
        (
            &[
                "--curves",
                "records.csv",
                "--knob",
                "power_limit",
                "--time",
                "time",
            ],
            "--power COL",
        ),
        (
            &[
                &["--curves", "records.csv", "--strategy", "magic"][..],
                &COLUMNS,
            ]
            .concat(),
            "unknown strategy `magic`",
        ),
        (
            &[
                &["--curves", "records.csv", "--reference", "99"][..],
                &COLUMNS,
            ]
            .concat(),
            "no record at the reference 99",
        ),
        (&["--study", "nowhere"], "nowhere"),
    ];
    for (args, wanted) in cases {
        let output = replay(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let shown = text(&output.stderr);
        assert!(shown.contains(wanted), "{args:?}: {shown}");
        assert_eq!(shown.trim_end().lines().count(), 1, "{shown}");
    }
}

/// The objectives of the tests on measured curves.
const OBJECTIVES: [&str; 4] = ["energy", "edp", "eds:1.5", "eds:2.0"];

/// The file with the measured curves of a GPU in the Zeus project.
fn measured_curves(gpu: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/measured_zeus");
    let file = folder.join(format!("summary_power_{gpu}.csv"));
    file.to_str().unwrap().to_owned()
}

/// Replays all strategies on the measured curves of a GPU, and returns the document.
fn replay_measured(gpu: &str, objective: &str, prior: &str, seed: u64) -> Value {
    let seed = seed.to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = measured_curves(gpu);
    let args = [
        &["--curves", &file, "--knob", "power_limit"][..],
        &["--time", "time_per_epoch", "--power", "average_power"],
        &["--group", "dataset,network,batch_size,optimizer"],
        &["--objective", objective, "--prior", prior],
        &["--strategy", "all", "--seed", &seed, "--export-json", "-"],
    ]
    .concat();
    let output = replay(folder.path(), &args);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A value of a strategy's summary after a number of evaluations.
fn after(document: &Value, strategy: &str, key: &str, evaluations: usize) -> f64 {
    let strategies = document["strategies"].as_array().unwrap();
    let of_strategy = |own: &&Value| own["strategy"] == strategy;
    let summary = &strategies.iter().find(of_strategy).unwrap()["summary"];
    let values = summary[key].as_array().unwrap();
    let value = values.get(evaluations - 1).or(values.last()).unwrap();
    value.as_f64().unwrap()
}

/// Checks the guided strategy on the measured curves of the Zeus project, without prior knowledge: at three evaluations
/// it is within 1 % on three curves of four, its mean regret is never above those of golden and linear, and the bounds
/// that it states hold in 90 %.
#[test]
#[ignore = "needs ../shared/measured_zeus"]
fn guided_search_does_well_on_measured_zeus_curves() {
    for gpu in ["v100", "p100"] {
        for objective in OBJECTIVES {
            let document = replay_measured(gpu, objective, "none", 1);
            let within = after(&document, "guided", "within_1pct_by_evaluations", 3);
            assert!(within >= 0.75, "{gpu} {objective}: {within}");
            for evaluations in 2..=5 {
                let of = |strategy: &str| {
                    after(&document, strategy, "regret_by_evaluations", evaluations)
                };
                let (guided, others) = (of("guided"), of("golden").min(of("linear")));
                let shown = format!("{gpu} {objective} {evaluations}: {guided}, others {others}");
                assert!(guided <= others + 1e-9, "{shown}");
            }
            check_bounds(&document, &format!("{gpu} {objective}"));
            let summary = &document["summary"];
            assert!(
                summary["within_1pct"].as_f64().unwrap() >= 0.93,
                "{gpu} {objective}"
            );
            assert!(summary["evaluations_median"].as_f64().unwrap() <= 5.0);
        }
    }
}

/// Checks that stated bounds hold in 90 %, at the end of the search and after 3, 4 and 5 evaluations, and that half of
/// them are at most 2 %.
fn check_bounds(document: &Value, label: &str) {
    let summary = &document["summary"];
    let held = summary["bounds_held"].as_f64().unwrap();
    assert!(held >= 0.9, "{label}: {held}");
    let median = summary["regret_bound_median"].as_f64().unwrap();
    assert!(median <= 0.02, "{label}: {median}");
    for evaluations in 3..=5 {
        let held = after(
            document,
            "guided",
            "bounds_held_by_evaluations",
            evaluations,
        );
        assert!(held >= 0.9, "{label} at {evaluations}: {held}");
    }
}

/// A value of the guided strategy after a number of evaluations, averaged over documents.
fn mean_after(documents: &[Value], key: &str, evaluations: usize) -> f64 {
    let values = documents.iter();
    let values = values.map(|document| after(document, "guided", key, evaluations));
    values.sum::<f64>() / documents.len() as f64
}

/// Checks the guided strategy with what it learns from the other curves of the same GPU, and from the other GPU, on
/// average over seeds: one seed is not representative.
///
/// On 19 of the 68 curves of the V100 and 16 of the 45 of the P100 the job draws less than 76 W, so that no cap has an
/// effect and what differs is noise. With every other curve right, chance gives 84 to 89 % within 1 % at three
/// evaluations on average, and 90 % or more in 1.5 to 12 % of all tries on the V100 and 22 to 34 % on the P100.
#[test]
#[ignore = "needs ../shared/measured_zeus"]
fn guided_search_learns_from_measured_zeus_curves() {
    const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;
    let replays = |gpu: &str, objective: &str, prior: &str| -> Vec<Value> {
        std::thread::scope(|scope| {
            let replay = |seed| scope.spawn(move || replay_measured(gpu, objective, prior, seed));
            let running: Vec<_> = SEEDS.map(replay).collect();
            running.into_iter().map(|one| one.join().unwrap()).collect()
        })
    };
    // For each objective, the curves of both GPUs that the search ends within 1 % of, learning from the same GPU.
    let mut good = [0.0; OBJECTIVES.len()];
    let mut all = 0.0;
    for (gpu, other) in [("v100", "p100"), ("p100", "v100")] {
        for (number, objective) in OBJECTIVES.into_iter().enumerate() {
            let cold = replays(gpu, objective, "none");
            let curves = cold[0]["curves"].as_array().unwrap().len() as f64;
            all += curves / OBJECTIVES.len() as f64;
            for (prior, least) in [("leave-one-out", 0.78), (&measured_curves(other), 0.72)] {
                let label = format!("{gpu} {objective} {prior}");
                let documents = replays(gpu, objective, prior);
                let key = "within_1pct_by_evaluations";
                let at_three: Vec<f64> = documents
                    .iter()
                    .map(|document| after(document, "guided", key, 3))
                    .collect();
                let within = mean_after(&documents, key, 3);
                println!("{label}: {within:.3} of {at_three:.3?}");
                assert!(within >= least, "{label}: {at_three:?}");
                for document in &documents {
                    check_bounds(document, &label);
                    if prior == "leave-one-out" {
                        let within = document["summary"]["within_1pct"].as_f64().unwrap();
                        good[number] += curves * within / documents.len() as f64;
                    }
                }
                for evaluations in 2..=5 {
                    let of = |strategy: &str| after(&documents[0], strategy, key, evaluations);
                    let others = of("golden").max(of("linear"));
                    let guided = mean_after(&documents, key, evaluations);
                    assert!(
                        guided >= others,
                        "{label} {evaluations}: {guided}, {others}"
                    );
                    let key = "regret_by_evaluations";
                    let of = |strategy: &str| after(&documents[0], strategy, key, evaluations);
                    let others = of("golden").min(of("linear"));
                    let guided = mean_after(&documents, key, evaluations);
                    let shown = format!("{label} {evaluations}: {guided}, others {others}");
                    assert!(guided <= others, "{shown}");
                }
                // A prior costs at most half a percent of regret.
                for evaluations in 3..=5 {
                    let of = |documents: &[Value]| {
                        mean_after(documents, "regret_by_evaluations", evaluations)
                    };
                    let (own, cold) = (of(&documents), of(&cold));
                    assert!(
                        own <= cold + 0.005,
                        "{label} {evaluations}: {own}, cold {cold}"
                    );
                }
            }
        }
    }
    for (objective, good) in OBJECTIVES.into_iter().zip(good) {
        let least = if objective == "eds:1.5" { 0.96 } else { 0.97 };
        assert!(good >= least * all, "{objective}: {good} of {all}");
    }
}

#[test]
fn curves_that_cannot_be_judged_are_reported_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "gpu,cap,time,power\na,300,10,200\na,200,11,150\nb,300,10,200\nc,300,10,200\nc,200,10,200\n";
    std::fs::write(folder.path().join("caps.csv"), rows).unwrap();
    let args = "replay --curves caps.csv --knob cap --time time --power power --group gpu";
    let args: Vec<&str> = args.split(' ').collect();
    let shown = text(&sweetspot(folder.path(), &args).stdout);
    assert!(
        shown.contains("b: one point, so there is nothing to search."),
        "{shown}"
    );
    assert!(shown.contains("c: all points are equal"), "{shown}");
    let limit = ["--limit", "time<=-50%", "--export-json", "-"];
    let output = sweetspot(folder.path(), &[&args[..], &limit].concat());
    assert_eq!(output.status.code(), Some(1));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["summary"]["curves_judged"], 0);
    assert!(document["summary"].get("within_1pct").is_none());
    let note = document["notes"][0].as_str().unwrap();
    assert!(note.contains("left out of the shares"), "{note}");
    let reference = ["--reference", "201"];
    let no_group = &args[..args.len() - 2];
    let output = sweetspot(folder.path(), &[no_group, &reference].concat());
    let err = text(&output.stderr);
    assert!(err.contains("the curve of all rows"), "{err}");
}
