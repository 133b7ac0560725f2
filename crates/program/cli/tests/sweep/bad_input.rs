//! Bad input of a sweep in virtual time.

use super::{SWEEP, expect_rejection, expect_rejection_in, folder};
use crate::common::{sweetspot, text};

#[test]
fn bad_axes_are_rejected() {
    assert_eq!(
        expect_rejection(&["--power-cap", ""], 2),
        "sweetspot: power-cap: the axis `` is empty: write `all`, a range such as 150..300:5, or a list such as 150,180,210\n"
    );
    assert_eq!(
        expect_rejection(&["--power-cap", "300..150:5"], 2),
        "sweetspot: power-cap: the range `300..150:5` is reversed: write 150..300:5\n"
    );
    assert_eq!(
        expect_rejection(&["--power-cap", "100..300:5"], 2),
        "sweetspot: power-cap: 100 W is not supported by tesla_v100_sxm2_16gb: choose 150 W to 300 W\n"
    );
}

#[test]
fn unknown_names_are_rejected() {
    let folder = folder();
    let message = expect_rejection_in(
        folder.path(),
        &["sweep", "--simulate", "v1000", "--network", "resnet50"],
        2,
    );
    assert!(
        message.contains("there is no GPU profile `v1000`; the nearest are v100"),
        "{message}"
    );
    let message = expect_rejection_in(
        folder.path(),
        &["sweep", "--simulate", "v100", "--network", "resnet"],
        2,
    );
    assert!(message.contains("the nearest are resnet50@"), "{message}");
    let message = expect_rejection(&["--objective", "speed"], 2);
    assert!(
        message.contains("unknown objective `speed`: use energy, time, power, edp"),
        "{message}"
    );
}

#[test]
fn a_command_cannot_run_in_virtual_time() {
    let message = expect_rejection(&["--", "python", "train.py"], 125);
    assert_eq!(
        message,
        "sweetspot: simulated GPUs in virtual time cannot run a command: give --network NAME in place of `-- CMD`\n"
    );
    let folder = folder();
    let words = ["sweep", "--network", "resnet50", "--", "python", "train.py"];
    let message = expect_rejection_in(folder.path(), &words, 125);
    assert!(message.contains("remove --network"), "{message}");
    // With a command, bad flags that clap finds give code 125 too.
    expect_rejection(&["--repeat", "0", "--", "python"], 125);
    expect_rejection(&["--repeat", "0"], 2);
}

#[test]
fn incomplete_or_unsupported_flags_are_rejected() {
    let folder = folder();
    let message = expect_rejection_in(folder.path(), &["sweep"], 2);
    assert!(message.contains("nothing to run"), "{message}");
    let message = expect_rejection_in(folder.path(), &["sweep", "--simulate", "v100"], 2);
    assert!(message.contains("give --network NAME"), "{message}");
    let message = expect_rejection(&["--infer"], 2);
    assert!(
        message.contains("`resnet50` has a profile for training only, not for inference"),
        "{message}"
    );
}

#[test]
fn a_batch_that_does_not_fit_is_rejected() {
    let message = expect_rejection(&["--batch", "256"], 2);
    assert_eq!(
        message,
        "sweetspot: resnet50@power_capping_2022: a batch of 256 needs 27.5 GB of device memory, but Tesla V100-SXM2-16GB has 16.9 GB; the largest that fits is 151\n"
    );
}

#[test]
fn a_mistake_in_a_profile_is_reported_with_its_line() {
    let folder = folder();
    let v100 = include_str!("../../../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
    let sweep = |text: &str| {
        std::fs::write(folder.path().join("my.toml"), text).unwrap();
        sweetspot(
            folder.path(),
            &["sweep", "--simulate", "my.toml", "--network", "resnet50"],
        )
    };
    assert!(sweep(v100).status.success());
    let wrong = sweep(&v100.replace("idle = \"40 W\"", "idle = \"40 Watt\""));
    assert_eq!(wrong.status.code(), Some(2));
    let line = 1 + v100
        .lines()
        .position(|line| line.starts_with("idle ="))
        .unwrap();
    assert_eq!(
        text(&wrong.stderr),
        format!(
            "sweetspot: my.toml:{line}: `power.idle`: `40 Watt` is not a power: write 40W (mW, W, kW, MW)\n"
        )
    );
    let denied = sweep(&format!(
        "{v100}\n[[fault]]\nkind = \"write-denied\"\nknob = \"power-cap\"\n"
    ));
    assert_eq!(denied.status.code(), Some(2));
    let message = text(&denied.stderr);
    let why = "sweetspot: the reference of resnet50@power_capping_2022 on my.toml failed: no permission to set power cap: it needs root";
    assert!(message.starts_with(why), "{message}");
}

#[test]
fn impossible_profiles_are_rejected_quickly() {
    let folder = folder();
    let v100 = include_str!("../../../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
    let resnet = include_str!(
        "../../../../simulate/sim/profiles/workloads/power_capping_2022/resnet50.toml"
    );
    let gpu = |from: &str, to: &str| (v100.replacen(from, to, 1), resnet.to_owned());
    let workload = |from: &str, to: &str| (v100.to_owned(), resnet.replacen(from, to, 1));
    let cases = [
        gpu("max = \"300 W\"", "max = \"1e300 W\""),
        gpu("time_constant = \"40 s\"", "time_constant = \"1 us\""),
        gpu("ambient = \"30 C\"", "ambient = \"-1e9 C\""),
        gpu(
            "leakage_per_degree = \"0.5 %\"",
            "leakage_per_degree = \"NaN\"",
        ),
        gpu("bandwidth = \"900 GB/s\"", "bandwidth = \"1 B/s\""),
        gpu("core = \"220 W\"", "core = \"1e300 W\""),
        gpu("memory = \"2", "memory = \"9"),
        gpu("name = \"Tesla", "name = \"\\u001b[31mTesla"),
        workload("host = \"", "host = \"1e20"),
        workload("items = 100000", "items = 9223372036854775807"),
        workload("items = 100000", "startup = \"1e6 h\"\nitems = 100000"),
        workload(
            "items = 100000",
            "host_per_batch = \"20 h\"\nitems = 100000",
        ),
        workload("name = \"forward\"", "name = \"\""),
        (String::new(), resnet.to_owned()),
        ("\u{0}\u{1}".to_owned(), resnet.to_owned()),
    ];
    for (gpu, workload) in &cases {
        std::fs::write(folder.path().join("g.toml"), gpu).unwrap();
        std::fs::write(folder.path().join("w.toml"), workload).unwrap();
        let output = sweetspot(
            folder.path(),
            &["sweep", "--simulate", "g.toml", "--network", "w.toml"],
        );
        let message = text(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{message}{}\n{gpu}\n{workload}",
            text(&output.stdout)
        );
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    for (gpu, reason) in [
        ("/dev/zero.toml/..", "cannot read"),
        (".", "there is no GPU"),
        ("./", "it is not a file"),
        ("/dev/../dev/zero", "it is not a file"),
    ] {
        let message = expect_rejection_in(
            tempfile::tempdir().unwrap().path(),
            &["sweep", "--simulate", gpu, "--network", "resnet50"],
            2,
        );
        assert!(message.contains(reason), "{message}");
    }
    let message = expect_rejection(&["--power-cap", "150..300:0.02", "--repeat", "10000"], 2);
    assert!(
        message.contains("the study has 75010000 runs, more than 1000000"),
        "{message}"
    );
}

#[test]
fn unknown_workload_variants_are_rejected() {
    let message = expect_rejection(&["--conv-algorithm", "fft"], 2);
    assert!(
        message.contains("has no choice of convolution algorithm"),
        "{message}"
    );
    let folder = folder();
    let sweep = ["sweep", "--simulate", "tesla_p100", "--network", "vgg16"];
    let with = |more: &[&str]| expect_rejection_in(folder.path(), &[&sweep[..], more].concat(), 2);
    let message = with(&["--conv-algorithm", "ftt"]);
    assert!(
        message.contains("has no convolution algorithm `ftt`: use gemm, fft, winograd"),
        "{message}"
    );
    let message = with(&["--batch", "256"]);
    assert!(message.contains("the largest that fits is"), "{message}");
    let message = with(&["--core-clock", "1500"]);
    assert!(
        message.contains("core-clock: 1500 MHz is not supported"),
        "{message}"
    );
    let message = with(&["--gpus", "2"]);
    assert!(
        message.contains("gpus 2: the number of simulated GPUs is 1"),
        "{message}"
    );
    let message = with(&["--energy-of", "node"]);
    assert!(
        message.contains("is unknown without a node profile: give --node"),
        "{message}"
    );
}

/// Several networks are several studies, so that one study folder, document or study file is not enough.
#[test]
fn each_network_has_its_own_study() {
    let networks = ["--network", "vgg19", "--power-cap", "150,300"];
    for (more, expected) in [
        (["--study", "one"], "each network has its own study"),
        (["--export-json", "-"], "each network has its own study"),
        (
            ["--write-study", "one.toml"],
            "a study file has one network",
        ),
    ] {
        let message = expect_rejection(&[&networks[..], &more].concat(), 2);
        assert!(message.contains(expected), "{message}");
    }
    let folder = folder();
    let output = sweetspot(folder.path(), &[&SWEEP[..], &networks].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    for study in ["resnet50-v100", "vgg19-v100"] {
        assert!(folder.path().join("studies").join(study).is_dir());
    }
}
