//! The built-in profiles, and how profiles are found.

use sweetspot_sim::{
    GpuProfile, Variant, find_gpu, find_workload, gpus, parse_gpu, parse_workload, workloads,
};
use toml::Value;

const V100: &str = include_str!("../profiles/gpus/tesla_v100_sxm2_16gb.toml");
const RESNET50: &str = include_str!("../profiles/workloads/power_capping_2022/resnet50.toml");

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
        assert_eq!(
            found.profile,
            workload.profile.with_variant(&variant).unwrap()
        );
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

/// A table of results by cap or clock would be a list of numbers, or keys that contain numbers. The only allowed lists
/// are of names, of the hardware's clocks, of phases, variants, GPUs and faults, and the efficiency of a power supply
/// at the four loads of its label.
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
                    // The number formats of a board are names and not settings.
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
    // The check itself finds such tables.
    assert_eq!(check("[time]\ncaps = [150, 300]\n").len(), 1);
    assert_eq!(check("[time]\n150 = 339.0\n").len(), 1);
}

/// The published tables are only compared with the simulator.
#[test]
fn the_simulator_reads_no_published_table() {
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
fn unknown_names_suggest_the_nearest_ones() {
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
fn the_path_of_a_file_works_where_a_name_does() {
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

/// Moves the tables of a profile below a table.
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
    // The file's own GPU is listed under the file's name; others keep their names.
    let names: Vec<&str> = found.on.iter().map(|on| on.gpu.as_str()).collect();
    assert_eq!(names, ["my.toml", "quadro_rtx_6000"]);
    let error = |text: &str| parse_gpu("my.toml", text).unwrap_err().to_string();
    let idle = both.replace("idle = \"40 W\"", "idle = \"-4 W\"");
    assert!(
        error(&idle).contains("`gpu.power.idle`: -4 W is out of range"),
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
