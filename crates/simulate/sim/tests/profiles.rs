//! The built-in profiles, and what is said of those that cannot be used.

use sweetspot_sim::{
    GpuProfile, Variant, find_gpu, find_node, find_workload, gpus, nodes, parse_gpu, parse_node,
    parse_workload, workloads,
};
use toml::Value;

const V100: &str = include_str!("../profiles/gpus/tesla_v100_sxm2_16gb.toml");
const RESNET50: &str = include_str!("../profiles/workloads/power_capping_2022/resnet50.toml");

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
fn every_built_in_profile_can_be_used_and_found() {
    let gpus = gpus().unwrap();
    assert!(gpus.len() >= 2);
    for (name, profile) in &gpus {
        assert_eq!(find_gpu(name).unwrap(), (name.clone(), profile.clone()));
        for alias in &profile.aliases {
            assert_eq!(
                &find_gpu(alias).unwrap().0,
                name,
                "an alias belongs to one profile"
            );
        }
    }
    let workloads = workloads().unwrap();
    assert!(workloads.len() >= 6);
    for workload in &workloads {
        let variant = Variant {
            mode: Some(workload.profile.mode),
            ..Variant::default()
        };
        let found = find_workload(&workload.name, None, &variant).unwrap();
        assert_eq!(found.name, workload.name);
        assert_eq!(found.profile, workload.profile.in_form(&variant).unwrap());
        let network = workload.name.split('@').next();
        assert_eq!(network, Some(workload.profile.network.as_str()));
        for on in &workload.profile.on {
            assert!(
                gpus.iter().any(|(name, _)| *name == on.gpu),
                "{}: {}",
                workload.name,
                on.gpu
            );
        }
    }
}

/// A table of results by cap or clock would be a list of numbers, or the same key under many names.
/// The only lists are of names, of clocks that the hardware has, of phases, forms, GPUs and faults, and a
/// power supply's efficiency at the four loads of its label.
#[test]
fn no_profile_lists_an_outcome_for_a_setting() {
    const LISTS: [&str; 11] = [
        "aliases",
        "fitted",
        "memory.clocks",
        "phase",
        "on",
        "on.fitted",
        "fault",
        "fault.knob",
        "conv_algorithm",
        "dataset",
        "supply.efficiency",
    ];
    fn walk(path: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Table(table) => {
                for (key, value) in table {
                    // The kinds of numbers that a board can multiply are names, not settings.
                    let is_kind =
                        path == "peak" && ["tf32", "fp16", "bf16", "int8"].contains(&key.as_str());
                    if key.chars().any(|c| c.is_ascii_digit()) && !is_kind {
                        found.push(format!("{path}.{key}: a key that names a value"));
                    }
                    let path = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    walk(&path, value, found);
                }
            }
            Value::Array(items) => {
                if !LISTS.contains(&path) {
                    found.push(format!("{path}: a list"));
                }
                for item in items {
                    walk(path, item, found);
                }
            }
            _ => {}
        }
    }
    let check = |text: &str| {
        let mut found = Vec::new();
        walk("", &Value::Table(text.parse().unwrap()), &mut found);
        found
    };
    let mut files = 0;
    let mut folders = vec![format!("{}/profiles", env!("CARGO_MANIFEST_DIR")).into()];
    while let Some(folder) = folders.pop() {
        let folder: std::path::PathBuf = folder;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(check(&text), Vec::<String>::new(), "{}", path.display());
            files += 1;
        }
    }
    assert!(files >= 8);
    // The check itself finds what it is for.
    assert_eq!(check("[time]\ncaps = [150, 300]\n").len(), 1);
    assert_eq!(check("[time]\n150 = 339.0\n").len(), 1);
}

/// The published tables are compared with, never looked up.
#[test]
fn the_simulator_knows_no_published_table() {
    let mut folders = vec![format!("{}/src", env!("CARGO_MANIFEST_DIR"))];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.to_string_lossy().into_owned());
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains("published/"), "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 8);
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_those_allowed() {
    let message = gpu_error("units = 5120", "unit = 5120");
    assert!(
        message
            .starts_with("my.toml:9: `core.unit`: unknown key `unit`; allowed are `units`, `min`,"),
        "{message}"
    );
    let message = workload_error("batch = 128", "batch = 128\nlayers = 50");
    assert!(
        message.starts_with("mine.toml:6: `layers`: unknown key `layers`; allowed are"),
        "{message}"
    );
}

#[test]
fn impossible_values_are_named_with_what_is_allowed() {
    let cases = [
        (
            "min = \"150 W\"",
            "min = \"350 W\"",
            "`cap.min`: 350 W is above cap.max (300 W)",
        ),
        (
            "default = \"1530 MHz\"",
            "default = \"1700 MHz\"",
            "`core.default`: 1700 MHz is not possible; allowed are 135 MHz to 1530 MHz",
        ),
        (
            "voltage_floor = \"75.1944 %\"",
            "voltage_floor = \"175 %\"",
            "`core.voltage_floor`: 175 % is not possible; allowed are 30 % to 100 %",
        ),
        (
            "idle = \"40 W\"",
            "idle = \"-4 W\"",
            "`power.idle`: -4 W is not possible; allowed are 0 W to 10 kW",
        ),
        (
            "idle = \"40 W\"",
            "idle = \"40 J\"",
            "`power.idle`: `40 J` is not a power: write a number and a unit (mW, W, kW, MW)",
        ),
        (
            "idle = \"40 W\"",
            "idle = 40",
            "`power.idle`: invalid type: integer `40`; allowed is a power in quotes, such as \"1.5 MW\"",
        ),
        (
            "sensors = \"volta\"",
            "sensors = \"volt\"",
            "`sensors`: unknown value `volt`; allowed are `maxwell`",
        ),
        (
            "settling = \"30 ms\"",
            "settling = \"0 s\"",
            "`cap.settling`: 0 s is not possible; allowed are 100 us to 60 s",
        ),
        (
            "step = \"7.5 MHz\"",
            "step = \"7 MHz\"",
            "`core.step`: 7 MHz does not lead from core.min to core.max in whole steps",
        ),
        (
            "fitted = [\"core.voltage_knee\"",
            "fitted = [\"power.total\"",
            "`fitted`: `power.total` is not possible; allowed are",
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
            "`cap.min`: 50 W cannot be kept: at the lowest clock the parts of [power] come to"
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
        message.contains("`on.0.items`: 0 is not possible; allowed are 1 to 1000000000"),
        "{message}"
    );
}

#[test]
fn unknown_names_bring_the_nearest_ones() {
    let message = |name: &str| find_gpu(name).unwrap_err().to_string();
    assert!(
        message("v10").contains("the nearest are v100"),
        "{}",
        message("v10")
    );
    assert!(message("quadro_rtx6000").contains("quadro_rtx_6000"));
    let message = |name: &str| {
        find_workload(name, Some("power_capping_2022"), &Variant::default())
            .unwrap_err()
            .to_string()
    };
    assert!(
        message("resnet5").contains("resnet50@power_capping_2022"),
        "{}",
        message("resnet5")
    );
    assert!(message("resnet50@dvfs").contains("there is no workload `resnet50@dvfs`"));
    assert!(message("/no/such.toml").contains("cannot read the profile /no/such.toml"));
}

#[test]
fn a_users_own_file_is_taken_where_a_name_is() {
    let folder = std::env::temp_dir().join(format!("sweetspot-profiles-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("mine.toml");
    std::fs::write(&path, V100.replace("Tesla V100-SXM2-16GB", "My GPU")).unwrap();
    let path_text = path.to_string_lossy().into_owned();
    let (name, profile): (String, GpuProfile) = find_gpu(&path_text).unwrap();
    assert_eq!((name, profile.name.as_str()), (path_text.clone(), "My GPU"));
    std::fs::write(&path, RESNET50).unwrap();
    assert_eq!(
        find_workload(&path_text, None, &Variant::default())
            .unwrap()
            .profile
            .network,
        "resnet50"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

const NODE: &str = include_str!("../profiles/nodes/multi_gpu_2018.toml");
const VGG16: &str = include_str!("../profiles/workloads/dvfs_2019/vgg16.train.toml");
const MOBILENET: &str = include_str!("../profiles/workloads/batch_sizer_2021/mobilenet_v1.toml");

/// The message for a profile in which the first `from` is replaced, and that it names the line of `to`.
fn message<P, E: std::fmt::Display>(
    text: &str,
    (from, to): (&str, &str),
    parse: impl Fn(&str, &str) -> Result<P, E>,
) -> String {
    let at = text.find(from).expect("it is in the profile");
    let line = 1 + text[..at].matches('\n').count();
    let text = text.replacen(from, to, 1);
    let Err(error) = parse("my.toml", &text) else {
        panic!("{to} is taken");
    };
    let message = error.to_string();
    assert!(
        message.starts_with(&format!("my.toml:{line}: ")),
        "{message}, not line {line}"
    );
    message
}

#[test]
fn nodes_are_found_by_name_and_refused_with_line_and_key() {
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
            "`host.idle`: -1 W is not possible; allowed are 0 W to 100 kW",
        ),
        (
            "per_gpu = \"10 W\"",
            "four_gpus = \"10 W\"",
            "`host.four_gpus`: unknown key `four_gpus`; allowed are `idle`, `per_gpu`, `fans`",
        ),
        (
            "overlap = \"30 %\"",
            "overlap = \"130 %\"",
            "`all_reduce.overlap`: 130 % is not possible; allowed are 0 % to 100 %",
        ),
        (
            "capacity = \"1600 W\"",
            "capacity = \"0 W\"",
            "`supply.capacity`: 0 W is not possible; allowed are 1 W to 100 kW",
        ),
        (
            "efficiency = [\"82 %\"",
            "efficiency = [\"8 %\"",
            "`supply.efficiency`: 8 % is not possible; allowed are 30 % to 100 %",
        ),
        (
            "period = \"500 ms\"",
            "period = \"0 s\"",
            "`meter.period`: a meter needs some time between two readings",
        ),
        (
            "accuracy = \"1 %\"",
            "accuracy = \"50 %\"",
            "`meter.accuracy`: 50 % is not possible; allowed are 0 % to 20 %",
        ),
        (
            "gpus = \"",
            "fitted = [\"host.speed\"]\ngpus = \"",
            "`fitted`: `host.speed` is not possible; allowed are host.idle, host.per_gpu",
        ),
    ];
    for (from, to, expected) in cases {
        let message = message(NODE, (from, to), parse_node);
        assert!(message.contains(expected), "{message}\n  wanted {expected}");
    }
}

#[test]
fn forms_of_a_workload_are_refused_with_line_and_key() {
    let of_vgg = |from: &str, to: &str| message(VGG16, (from, to), parse_workload);
    let of_mobilenet = |from: &str, to: &str| message(MOBILENET, (from, to), parse_workload);
    let cases = [
        (
            of_vgg("name = \"winograd\"", "name = \"fft\""),
            "`conv_algorithm.2.name`: `fft` is there twice",
        ),
        (
            of_vgg("work = \"140 %\"", "work = \"0 %\""),
            "`conv_algorithm.1.work`: 0 % is not possible; allowed are 1 % to 10000 %",
        ),
        (
            of_vgg("work = \"140 %\"", "speed = \"140 %\""),
            "unknown key `speed`; allowed are `name`, `work`, `memory`, `switching`",
        ),
        (
            of_mobilenet("name = \"caltech\"", "name = \"imagenet\""),
            "`dataset.1.name`: `imagenet` is there twice",
        ),
        (
            of_mobilenet("host = \"0.9 ms\"", "host = \"-4 ms\""),
            "`dataset.1.host`: -4 ms is not possible; allowed are 0 s to 86400 s",
        ),
        (
            of_mobilenet("host = \"0.9 ms\"", "gpu = \"0.9 ms\""),
            "unknown key `gpu`; allowed is `name` or `host`",
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

/// The tables of a profile, put below a table of their own.
fn below(section: &str, text: &str) -> String {
    let lines = text.lines().map(|line| {
        let inner = line.trim_start_matches('[');
        match line.len() - inner.len() {
            0 => line.to_owned(),
            brackets => format!("{}{section}.{inner}", "[".repeat(brackets)),
        }
    });
    format!("[{section}]\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn a_gpu_and_a_workload_may_share_a_file() {
    let gpu = below("gpu", V100);
    let workload =
        below("workload", RESNET50).replace("tesla_v100_sxm2_16gb", "Tesla V100-SXM2-16GB");
    let both = format!("{gpu}\n{workload}");
    assert_eq!(parse_gpu("my.toml", &both), parse_gpu("v100.toml", V100));
    let found = parse_workload("my.toml", &both).unwrap();
    // The file's own GPU is found by the file's name; others stay as they are.
    let names: Vec<&str> = found.on.iter().map(|on| on.gpu.as_str()).collect();
    assert_eq!(names, ["my.toml", "quadro_rtx_6000"]);
    let error = |text: &str| parse_gpu("my.toml", text).unwrap_err().to_string();
    let idle = both.replace("idle = \"40 W\"", "idle = \"-4 W\"");
    assert!(
        error(&idle).contains("`gpu.power.idle`: -4 W is not possible"),
        "{}",
        error(&idle)
    );
    assert!(
        error(&gpu).contains("missing key `workload`"),
        "{}",
        error(&gpu)
    );
    assert!(error(&format!("{both}\n[other]\n")).contains("unknown key `other`"));
}
