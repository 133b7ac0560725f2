//! `run`, `sweep`, `tune` and `hold` of two users without root, at the same time.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::served_host::{ALICE, Account, BOB, ServedHost, files_below, wait_for_exit};
use crate::common::text;

const POLICY: &str = "[[allow]]\neveryone = true\npower-cap = true\ncore-clock = true\n";

/// Every file below a folder belongs to the user.
fn assert_all_belong_to(folder: &Path, account: Account) {
    for path in files_below(folder) {
        let found = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!(
            (found.uid(), found.gid()),
            (account.uid, account.uid),
            "{path:?}"
        );
    }
}

/// The program `sweetspot` as a user runs it in a folder of that user.
fn sweetspot_at_home(served: &ServedHost, account: Account, args: &[&str]) -> Command {
    let home = served.home_of(account);
    let mut command = served.sweetspot_as(account);
    command
        .args(args)
        .env("HOME", &home)
        .current_dir(&home)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn document(served: &ServedHost, account: Account, name: &str) -> Value {
    let text = std::fs::read(served.home_of(account).join(name)).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// The caps that were written to a GPU, in watts.
fn written_caps(served: &ServedHost, gpu: usize) -> Vec<f64> {
    let writes = served.host.writes();
    let start = format!("gpu{gpu} power_cap ");
    let caps = writes.lines().filter_map(|line| line.strip_prefix(&start));
    caps.map(|cap| cap.trim_end_matches(" mW").parse::<f64>().unwrap() / 1000.0)
        .collect()
}

/// The users who changed settings, from the audit log.
fn appliers(served: &ServedHost) -> Vec<u64> {
    let applied = served.audited("applied");
    let mut uids: Vec<u64> = applied
        .iter()
        .map(|line| line["uid"].as_u64().unwrap())
        .collect();
    uids.sort_unstable();
    uids.dedup();
    uids
}

fn both_uids() -> Vec<u64> {
    vec![ALICE.uid.into(), BOB.uid.into()]
}

/// Runs the same command for Alice on GPU 0 and for Bob on GPU 1 at the same time.
fn run_for_both(served: &ServedHost, args: &[&str]) -> [Output; 2] {
    let start = |account, gpu| {
        let args = [&args[..1], &["--device", gpu], &args[1..]].concat();
        sweetspot_at_home(served, account, &args).spawn().unwrap()
    };
    let started = [start(ALICE, "0"), start(BOB, "1")];
    started.map(|child| child.wait_with_output().unwrap())
}

#[test]
#[ignore = "needs root"]
fn runs_of_two_users_have_the_gpus_that_they_lease() {
    let served = ServedHost::started("v100:2", POLICY);
    served.host.set_caps(250.0);
    let program = served.program();
    // The command shows what it sees, and then waits for the end of its input.
    let script = format!(
        "id -u; id -G; {} devices; read line || true",
        program.display()
    );
    let flags =
        "run --device 0 --power-cap 160W --core-clock 1200 --measure --export-json run.json";
    let words: Vec<&str> = flags
        .split(' ')
        .chain(["--", "sh", "-c", &script])
        .collect();
    let mut alice = sweetspot_at_home(&served, ALICE, &words)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(alice.stdout.take().unwrap()).lines();
    let mut next = || shown.next().unwrap().unwrap();
    assert_eq!(next(), ALICE.uid.to_string());
    assert_eq!(next(), ALICE.uid.to_string());
    let cap = std::iter::repeat_with(&mut next).find(|line| line.contains("power cap: "));
    let cap = cap.unwrap();
    assert!(
        cap.contains("160 W requested, 160 W enforced"),
        "the command sees {cap}"
    );
    assert_eq!(served.settings(0), (160.0, Some(1200.0)));

    // Bob cannot have the same GPU, with any verb, and gets the other one.
    let command = ["--", "true"];
    let verbs: [&[&str]; 4] = [
        &["run", "--power-cap", "170W"],
        &["sweep", "--power-cap", "170,180", "--study", "st"],
        &["tune"],
        &["hold", "--below", "170W", "--knob", "power-cap"],
    ];
    for verb in verbs {
        let args = [verb, &["--device", "0"], &command].concat();
        let output = sweetspot_at_home(&served, BOB, &args).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{verb:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{verb:?}: {message}");
        assert!(message.contains("is in use by process"), "{message}");
    }
    let script = format!("id -u; {} devices", program.display());
    let args = ["run", "--device", "1", "--power-cap", "170W"];
    let args = [&args[..], &["--", "sh", "-c", &script]].concat();
    let output = sweetspot_at_home(&served, BOB, &args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.starts_with(&BOB.uid.to_string()), "{shown}");
    assert!(shown.contains("170 W requested, 170 W enforced"), "{shown}");
    assert!(shown.contains("160 W requested, 160 W enforced"), "{shown}");
    assert_eq!((served.cap(0), served.cap(1)), (160.0, 250.0));

    drop(alice.stdin.take());
    assert!(wait_for_exit(&mut alice).success());
    assert_eq!(served.settings(0), (250.0, None));
    assert_eq!(
        document(&served, ALICE, "run.json")["schema"],
        "sweetspot.run/1"
    );
    for account in [ALICE, BOB] {
        assert_all_belong_to(&served.home_of(account), account);
    }
    assert_eq!(appliers(&served), both_uids());
    assert_eq!(served.audited("refused").len(), verbs.len());
}

#[test]
#[ignore = "needs root"]
fn sweeps_of_two_users_run_side_by_side() {
    let served = ServedHost::started("v100:2", POLICY);
    served.host.set_caps(250.0);
    let flags =
        "sweep --power-cap 160,200 --repeat 2 --settle 30ms --study st --export-json sweep.json";
    let script = "id -u >> uids; sleep 0.2";
    let words: Vec<&str> = flags.split(' ').chain(["--", "sh", "-c", script]).collect();
    for output in run_for_both(&served, &words) {
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    for (gpu, account) in [ALICE, BOB].into_iter().enumerate() {
        let home = served.home_of(account);
        assert_all_belong_to(&home, account);
        assert!(home.join("st/study.db").exists());
        // Two caps and the reference, each of them twice.
        let uids = std::fs::read_to_string(home.join("uids")).unwrap();
        assert_eq!(uids, format!("{}\n", account.uid).repeat(6));
        let points = &document(&served, account, "sweep.json")["points"];
        let caps: Vec<_> = points.as_array().unwrap().iter().collect();
        assert_eq!(caps.len(), 2, "{points}");
        let written = written_caps(&served, gpu);
        for cap in [160.0, 200.0, 300.0] {
            assert!(written.contains(&cap), "{written:?}");
        }
        assert_eq!(written.last(), Some(&250.0), "{written:?}");
        assert_eq!(served.settings(gpu), (250.0, None));
    }
    assert_eq!(appliers(&served), both_uids());
    assert!(served.audited("refused").is_empty());
}

#[test]
#[ignore = "needs root"]
fn jobs_of_two_users_are_tuned_side_by_side() {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml"
    );
    // Two caps, so that an exhaustive search is short.
    let profile = std::fs::read_to_string(source)
        .unwrap()
        .replace("aliases = [\"v100\"]", "aliases = []")
        .replace("\"300 W\"", "\"155 W\"");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gpu.toml");
    std::fs::write(&file, profile).unwrap();
    let served = ServedHost::started(&format!("{}:2", file.display()), POLICY);
    served.host.set_caps(152.0);
    let flags =
        "tune --objective energy --strategy exhaustive --budget 90% --export-json tune.json";
    let program = served.program();
    let workload = "id -u > uid; exec \"$0\" sim-workload --network resnet50 --seconds 40";
    let words: Vec<&str> = flags
        .split(' ')
        .chain(["--", "sh", "-c", workload, program.to_str().unwrap()])
        .collect();
    for output in run_for_both(&served, &words) {
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    for (gpu, account) in [ALICE, BOB].into_iter().enumerate() {
        let home = served.home_of(account);
        assert_all_belong_to(&home, account);
        let uid = std::fs::read_to_string(home.join("uid")).unwrap();
        assert_eq!(uid, format!("{}\n", account.uid));
        let document = document(&served, account, "tune.json");
        assert_eq!(document["status"], "settled", "{document}");
        let written = written_caps(&served, gpu);
        for cap in [150.0, 155.0] {
            assert!(written.contains(&cap), "{written:?}");
        }
        assert_eq!(written.last(), Some(&152.0), "{written:?}");
        assert_eq!(served.settings(gpu), (152.0, None));
    }
    assert_eq!(appliers(&served), both_uids());
}

#[test]
#[ignore = "needs root"]
fn two_users_hold_their_caps_side_by_side() {
    let served = ServedHost::started("nvidia_h200:2", POLICY);
    served.host.set_caps(600.0);
    let flags = "hold --below 300W --knob power-cap --batches 8,32 --export-json hold.json";
    let program = served.program();
    let workload =
        "id -u > uid; exec \"$0\" sim-workload --network resnet50 --infer --serve --seconds 4";
    let words: Vec<&str> = flags
        .split(' ')
        .chain(["--", "sh", "-c", workload, program.to_str().unwrap()])
        .collect();
    for output in run_for_both(&served, &words) {
        // A cap that was not met all the time is 1.
        let code = output.status.code();
        assert!(code == Some(0) || code == Some(1), "{output:?}");
    }
    for (gpu, account) in [ALICE, BOB].into_iter().enumerate() {
        let home = served.home_of(account);
        assert_all_belong_to(&home, account);
        let uid = std::fs::read_to_string(home.join("uid")).unwrap();
        assert_eq!(uid, format!("{}\n", account.uid));
        let document = document(&served, account, "hold.json");
        assert_eq!(document["restored"], true, "{document}");
        let written = written_caps(&served, gpu);
        assert!(written.iter().any(|cap| *cap <= 300.0), "{written:?}");
        assert_eq!(written.last(), Some(&600.0), "{written:?}");
        assert_eq!(served.settings(gpu), (600.0, None));
    }
    assert_eq!(appliers(&served), both_uids());
    assert!(served.audited("refused").is_empty());
}
