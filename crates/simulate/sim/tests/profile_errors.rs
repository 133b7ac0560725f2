//! Errors of invalid profiles: each names the line, the key and what is allowed.

use sweetspot_sim::{find_node, nodes, parse_gpu, parse_node, parse_workload};

const V100: &str = include_str!("../profiles/gpus/tesla_v100_sxm2_16gb.toml");
const RESNET50: &str = include_str!("../profiles/workloads/power_capping_2022/resnet50.toml");
const NODE: &str = include_str!("../profiles/nodes/multi_gpu_2018.toml");
const VGG16: &str = include_str!("../profiles/workloads/dvfs_2019/vgg16.train.toml");
const MOBILENET: &str = include_str!("../profiles/workloads/batch_sizer_2021/mobilenet_v1.toml");

fn gpu_error(from: &str, to: &str) -> String {
    assert!(V100.contains(from), "{from} is in the profile");
    let text = V100.replacen(from, to, 1);
    let line = 1 + text
        .lines()
        .position(|line| line.contains(to))
        .unwrap_or(usize::MAX - 1);
    let error = parse_gpu("my.toml", &text).expect_err(to);
    if !to.is_empty() {
        assert_eq!(error.line, line, "{error}");
    }
    error.to_string()
}

fn workload_error(from: &str, to: &str) -> String {
    assert!(RESNET50.contains(from), "{from} is in the profile");
    let text = RESNET50.replacen(from, to, 1);
    parse_workload("mine.toml", &text)
        .expect_err(to)
        .to_string()
}

#[test]
fn an_unknown_key_is_reported_with_its_line_and_the_allowed_keys() {
    let message = gpu_error("units = 5120", "unit = 5120");
    assert!(
        message.starts_with(
            "my.toml:9: `core.unit`: unknown key `unit`: use one of `units`, `multiprocessors`,"
        ),
        "{message}"
    );
    let message = workload_error("batch = 128", "batch = 128\nlayers = 50");
    assert!(
        message.starts_with("mine.toml:6: `layers`: unknown key `layers`: use one of"),
        "{message}"
    );
}

#[test]
fn invalid_values_are_reported_with_what_is_allowed() {
    let cases = [
        (
            "min = \"150 W\"",
            "min = \"350 W\"",
            "`cap.min`: 350 W is above cap.max (300 W)",
        ),
        (
            "default = \"1530 MHz\"",
            "default = \"1700 MHz\"",
            "`core.default`: 1700 MHz is out of range: give a value from 135 MHz to 1530 MHz",
        ),
        (
            "voltage_floor = \"75.1944 %\"",
            "voltage_floor = \"175 %\"",
            "`core.voltage_floor`: 175 % is out of range: give a value from 30 % to 100 %",
        ),
        (
            "idle = \"40 W\"",
            "idle = \"-4 W\"",
            "`power.idle`: -4 W is out of range: give a value from 0 W to 10 kW",
        ),
        (
            "idle = \"40 W\"",
            "idle = \"40 J\"",
            "`power.idle`: `40 J` is not a power: write a number and a unit (mW, W, kW, MW)",
        ),
        (
            "idle = \"40 W\"",
            "idle = 40",
            "`power.idle`: invalid type: integer `40`: expected a power in quotes, such as \"1.5 MW\"",
        ),
        (
            "sensors = \"volta\"",
            "sensors = \"volt\"",
            "`sensors`: unknown value `volt`: use one of `maxwell`",
        ),
        (
            "settling = \"30 ms\"",
            "settling = \"0 s\"",
            "`cap.settling`: 0 s is out of range: give a value from 100 us to 60 s",
        ),
        (
            "step = \"7.5 MHz\"",
            "step = \"7 MHz\"",
            "`core.step`: core.max cannot be reached from core.min in whole steps of 7 MHz",
        ),
        (
            "fitted = [\"core.voltage_knee\"",
            "fitted = [\"power.total\"",
            "`fitted`: `power.total` is not allowed here: use",
        ),
    ];
    for (from, to, expected) in cases {
        let text = V100.replacen(from, to, 1);
        let message = parse_gpu("my.toml", &text).expect_err(to).to_string();
        let (_, after_line) = message.split_once(": ").unwrap();
        assert!(
            after_line.starts_with(expected),
            "{message}\n  wanted {expected}"
        );
    }
    let message = gpu_error("min = \"150 W\"", "min = \"50 W\"");
    assert!(
        message.contains(
            "`cap.min`: 50 W cannot be enforced: at the lowest clock the parts of [power] add up to"
        ),
        "{message}"
    );
    let message = gpu_error("default = \"877 MHz\"", "default = \"900 MHz\"");
    assert!(
        message.ends_with("`memory.default`: 900 MHz is not among memory.clocks"),
        "{message}"
    );
    let message = gpu_error("[thermal]", "");
    assert!(message.contains("unknown key `ambient`"), "{message}");
    let message = gpu_error("name = \"Tesla", "name = Tesla");
    assert!(
        message.starts_with("my.toml:2: not valid TOML"),
        "{message}"
    );
    let message = workload_error("core = \"66.7 %\"", "core = \"50 %\"");
    assert!(
        message.contains("`phase`: the core shares of all phases add up to 83.3 %, not 100 %"),
        "{message}"
    );
    let message = workload_error("items = 100000", "items = 0");
    assert!(
        message.contains("`on.0.items`: 0 is out of range: give a number from 1 to 1000000000"),
        "{message}"
    );
}

/// Returns the error message for a profile in which the first `from` is replaced by `to`, and checks that it names the
/// line.
fn message<P, E: std::fmt::Display>(
    text: &str,
    (from, to): (&str, &str),
    parse: impl Fn(&str, &str) -> Result<P, E>,
) -> String {
    let at = text.find(from).expect("it is in the profile");
    let line = 1 + text[..at].matches('\n').count();
    let text = text.replacen(from, to, 1);
    let Err(error) = parse("my.toml", &text) else {
        panic!("{to} is accepted");
    };
    let message = error.to_string();
    assert!(
        message.starts_with(&format!("my.toml:{line}: ")),
        "{message}, not line {line}"
    );
    message
}

#[test]
fn invalid_nodes_are_reported_with_line_and_key() {
    for (name, node) in nodes().unwrap() {
        assert_eq!(find_node(&name).unwrap().1, node);
        assert!(!node.gpus.is_empty());
    }
    let unknown = find_node("multi_gpu").unwrap_err().to_string();
    assert!(
        unknown.contains("the nearest are multi_gpu_2018"),
        "{unknown}"
    );
    let cases = [
        (
            "idle = \"90 W\"",
            "idle = \"90 Watt\"",
            "`host.idle`: `90 Watt` is not a power",
        ),
        (
            "idle = \"90 W\"",
            "idle = \"-1 W\"",
            "`host.idle`: -1 W is out of range: give a value from 0 W to 100 kW",
        ),
        (
            "per_gpu = \"10 W\"",
            "four_gpus = \"10 W\"",
            "`host.four_gpus`: unknown key `four_gpus`: use one of `idle`, `per_gpu`, `fans`",
        ),
        (
            "packages = 1",
            "packages = 0",
            "`processors.packages`: 0 is out of range: give a number from 1 to 16",
        ),
        (
            "idle = \"22 W\"",
            "idle = \"95 W\"",
            "`processors.idle`: 95 W is out of range: give a value from 0 W to 90 W",
        ),
        (
            // The fitted value becomes a comment.
            "overlap = ",
            "overlap = \"130 %\" # ",
            "`all_reduce.overlap`: 130 % is out of range: give a value from 0 % to 100 %",
        ),
        (
            "latency = \"20 us\"",
            "gpus_per_link = 0\nlatency = \"20 us\"",
            "`all_reduce.gpus_per_link`: at least one GPU uses a link: give 1 if each GPU has its own",
        ),
        (
            "capacity = \"1600 W\"",
            "capacity = \"0 W\"",
            "`supply.capacity`: 0 W is out of range: give a value from 1 W to 100 kW",
        ),
        (
            "efficiency = [\"82 %\"",
            "efficiency = [\"8 %\"",
            "`supply.efficiency`: 8 % is out of range: give a value from 30 % to 100 %",
        ),
        (
            "period = \"500 ms\"",
            "period = \"0 s\"",
            "`meter.period`: the time between two readings must be more than zero",
        ),
        (
            "accuracy = \"1 %\"",
            "accuracy = \"50 %\"",
            "`meter.accuracy`: 50 % is out of range: give a value from 0 % to 20 %",
        ),
        (
            "fitted = [",
            "fitted = [\"host.speed\", ",
            "`fitted`: `host.speed` is not allowed here: use host.idle, host.per_gpu",
        ),
    ];
    for (from, to, expected) in cases {
        let message = message(NODE, (from, to), parse_node);
        assert!(message.contains(expected), "{message}\n  wanted {expected}");
    }
}

#[test]
fn invalid_variants_are_reported_with_line_and_key() {
    let of_vgg = |from: &str, to: &str| message(VGG16, (from, to), parse_workload);
    let of_mobilenet = |from: &str, to: &str| message(MOBILENET, (from, to), parse_workload);
    let cases = [
        (
            of_vgg("name = \"winograd\"", "name = \"fft\""),
            "`conv_algorithm.2.name`: `fft` is given twice",
        ),
        (
            of_vgg("work = \"300 %\"", "work = \"0 %\""),
            "`conv_algorithm.1.work`: 0 % is out of range: give a value from 1 % to 10000 %",
        ),
        (
            of_vgg("work = \"300 %\"", "speed = \"300 %\""),
            "unknown key `speed`: use one of `name`, `work`, `memory`, `switching`",
        ),
        (
            of_mobilenet("name = \"caltech\"", "name = \"imagenet\""),
            "`dataset.1.name`: `imagenet` is given twice",
        ),
        (
            of_mobilenet("host = \"0.9 ms\"", "host = \"-4 ms\""),
            "`dataset.1.host`: -4 ms is out of range: give a value from 0 s to 86400 s",
        ),
        (
            of_mobilenet("host = \"0.9 ms\"", "gpu = \"0.9 ms\""),
            "unknown key `gpu`: expected `name` or `host`",
        ),
        (
            of_mobilenet("launch = \"0.95 ms\"", "launch = \"0.95 MHz\""),
            "`on.0.launch`: `0.95 MHz` is not a time",
        ),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{message}\n  wanted {expected}");
    }
}
