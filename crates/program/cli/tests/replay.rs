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

/// Checks the guided strategy on the measured curves of the Zeus project, without prior knowledge and with the other curves
/// of the same GPU as prior.
#[test]
#[ignore = "needs ../shared/measured_zeus"]
fn guided_search_does_well_on_measured_zeus_curves() {
    let measured = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/measured_zeus");
    let folder = tempfile::tempdir().unwrap();
    // The other combinations are in the archived benchmark runs.
    for (prior, objectives, least, nearly) in [
        ("none", ["energy", "eds:1.5"], 0.80, 0.90),
        ("leave-one-out", ["edp", "eds:2.0"], 0.95, 0.95),
    ] {
        for objective in objectives {
            let (mut good, mut fair, mut all) = (0.0, 0.0, 0.0);
            let mut evaluations = Vec::new();
            let mut regrets = vec![[0.0; 8]; 3];
            for gpu in ["v100", "p100"] {
                let file = measured.join(format!("summary_power_{gpu}.csv"));
                let args = [
                    &["--curves", file.to_str().unwrap(), "--knob", "power_limit"][..],
                    &["--time", "time_per_epoch", "--power", "average_power"],
                    &["--group", "dataset,network,batch_size,optimizer"],
                    &[
                        "--objective",
                        objective,
                        "--prior",
                        prior,
                        "--strategy",
                        "all",
                    ],
                    &["--export-json", "-"],
                ]
                .concat();
                let output = replay(folder.path(), &args);
                let json: Value = serde_json::from_slice(&output.stdout).unwrap();
                let curves = json["curves"].as_array().unwrap();
                let count = curves.len() as f64;
                all += count;
                good += count * json["summary"]["within_1pct"].as_f64().unwrap();
                fair += count * json["summary"]["within_2pct"].as_f64().unwrap();
                let own = curves
                    .iter()
                    .map(|curve| curve["evaluations"].as_u64().unwrap());
                evaluations.extend(own);
                for (row, name) in ["linear", "golden", "guided"].iter().enumerate() {
                    let strategies = json["strategies"].as_array().unwrap();
                    let of = strategies
                        .iter()
                        .find(|own| own["strategy"] == *name)
                        .unwrap();
                    let by = of["summary"]["regret_by_evaluations"].as_array().unwrap();
                    for (number, sum) in regrets[row].iter_mut().enumerate() {
                        let regret = by.get(number).or(by.last()).unwrap();
                        *sum += count * regret.as_f64().unwrap();
                    }
                }
            }
            evaluations.sort_unstable();
            let median = evaluations[evaluations.len() / 2];
            let shown = format!("{prior} {objective}: {good} and {fair} of {all}, median {median}");
            assert!(median <= 5, "{shown}");
            assert!(good >= least * all && fair >= nearly * all, "{shown}");
            for number in 0..8 {
                let others = regrets[0][number].min(regrets[1][number]);
                let guided = regrets[2][number];
                assert!(guided <= others + 1e-9, "{shown}: {number} {regrets:?}");
                if (1..5).contains(&number) {
                    assert!(guided < others, "{shown}: {number} {regrets:?}");
                }
            }
        }
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
