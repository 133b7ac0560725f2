//! Writes fitted values into the files of the profiles.

use std::error::Error;
use std::path::{Path, PathBuf};

use sweetspot_papers::{ParameterProfile, ParameterValue, Profiles, published_study};
use sweetspot_quantity::{Bytes, Ratio, Seconds};
use sweetspot_sim::{Mode, Workload};
use toml_edit::{DocumentMut, Item, Value};

use crate::candidate::{Candidate, rounded};

/// The folder of the built-in profiles.
fn profiles_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../simulate/sim/profiles")
}

/// Writes the values of a candidate, and for dvfs_2019 the work that is computed from them.
pub fn write(
    study: &str,
    candidate: &Candidate,
    profiles: &Profiles,
) -> Result<(), Box<dyn Error>> {
    for (parameter, value) in candidate.with_units() {
        let path = path_of(&parameter.profile)?;
        let mut document: DocumentMut = std::fs::read_to_string(&path)?.parse()?;
        for (key, value) in places(&parameter.key, &value) {
            let text = match value.unit.as_str() {
                "" => Value::from(value.number),
                _ => Value::from(value.to_string()),
            };
            set(&mut document, &key, text);
        }
        std::fs::write(&path, document.to_string())?;
    }
    if study == "dvfs_2019" {
        for board in ["tesla_p100", "tesla_v100_pcie_16gb"] {
            let path = path_of(&ParameterProfile::Gpu(board.to_owned()))?;
            let mut document: DocumentMut = std::fs::read_to_string(&path)?.parse()?;
            let core = profiles
                .gpus
                .get(board)
                .ok_or("a missing board")?
                .power
                .core;
            let text = format!("{} W", rounded(core.get()));
            set(&mut document, "power.core", Value::from(text));
            std::fs::write(&path, document.to_string())?;
        }
        for workload in &profiles.workloads {
            if workload.name.ends_with("@dvfs_2019") {
                write_work(workload)?;
            }
        }
    }
    Ok(())
}

/// The file of a profile.
fn path_of(profile: &ParameterProfile) -> Result<PathBuf, Box<dyn Error>> {
    let root = profiles_folder();
    Ok(match profile {
        ParameterProfile::Gpu(name) => root.join("gpus").join(name).with_extension("toml"),
        ParameterProfile::Node(name) => root.join("nodes").join(name).with_extension("toml"),
        ParameterProfile::Study(name) if name == "batch_sizer_2021" => {
            return Err("the host times of batch_sizer_2021 were chosen by hand, and every workload has them".into());
        }
        ParameterProfile::Study(name) => Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src")
            .join(published_study(name))
            .join("constants.toml"),
        ParameterProfile::Workload(name, is_training) => {
            let (network, study) = name.split_once('@').ok_or("a workload without a study")?;
            let folder = root.join("workloads").join(study);
            let mode = if *is_training { "train" } else { "infer" };
            let with_mode = folder.join(format!("{network}.{mode}.toml"));
            match with_mode.exists() {
                true => with_mode,
                false => folder.join(format!("{network}.toml")),
            }
        }
    })
}

/// The places in a file to which a parameter's value belongs.
fn places(key: &str, value: &ParameterValue) -> Vec<(String, ParameterValue)> {
    match key {
        // Two phases have the same shares of core and memory work.
        "phase.share" => {
            let rest = value.with_number(rounded(100.0 - value.number));
            let own = ["phase.0.core", "phase.0.memory"].map(|key| (key, value.clone()));
            let other = ["phase.1.core", "phase.1.memory"].map(|key| (key, rest.clone()));
            let all = own.into_iter().chain(other);
            all.map(|(key, value)| (key.to_owned(), value)).collect()
        }
        "phase.switching" => vec![("phase.1.switching".to_owned(), value.clone())],
        _ => vec![(key.to_owned(), value.clone())],
    }
}

/// Sets a value in a file; an entry of an array is named by its number or its GPU.
fn set(document: &mut DocumentMut, key: &str, to: Value) {
    let mut item = document.as_item_mut();
    for key in key.split('.') {
        let index = key.parse().ok().or_else(|| {
            let tables = item.as_array_of_tables()?;
            let is_gpu = |gpu: Option<&Item>| gpu.and_then(Item::as_str) == Some(key);
            tables.iter().position(|table| is_gpu(table.get("gpu")))
        });
        item = match index {
            Some(index) => &mut item[index],
            None => &mut item[key],
        };
    }
    *item = Item::Value(to);
}

/// Writes the computed work of a workload into its file.
fn write_work(workload: &Workload) -> Result<(), Box<dyn Error>> {
    let profile = &workload.profile;
    let is_training = profile.mode == Mode::Train;
    let path = path_of(&ParameterProfile::Workload(
        workload.name.clone(),
        is_training,
    ))?;
    let mut document: DocumentMut = std::fs::read_to_string(&path)?.parse()?;
    let seconds = |time: Seconds| Value::from(format!("{} us", rounded(1e6 * time.get())));
    let share = |ratio: Ratio| Value::from(format!("{} %", rounded(100.0 * ratio.get())));
    let bytes = |size: Bytes| Value::from(format!("{} MB", rounded(size.get() / 1e6)));
    let mut put = |key: &str, value: Value| set(&mut document, key, value);
    put(
        "half_speed_batch",
        Value::from(rounded(profile.half_speed_batch)),
    );
    put("memory.fixed", bytes(profile.memory.fixed));
    put("memory.per_item", bytes(profile.memory.per_item));
    for (index, algorithm) in profile.conv_algorithms.iter().enumerate() {
        let key = |name: &str| format!("conv_algorithm.{index}.{name}");
        put(&key("work"), share(algorithm.work));
        put(&key("memory"), share(algorithm.memory));
    }
    for on in &profile.on {
        let key = |name: &str| format!("on.{}.{name}", on.gpu);
        put(&key("launch"), seconds(on.launch));
        put(&key("core"), seconds(on.core));
        put(&key("memory"), seconds(on.memory));
        put(&key("memory_per_batch"), seconds(on.memory_per_batch));
        put(&key("switching"), share(on.switching));
        put(&key("memory_activity"), share(on.memory_activity));
    }
    std::fs::write(&path, document.to_string())?;
    Ok(())
}
