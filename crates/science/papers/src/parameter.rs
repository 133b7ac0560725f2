//! The fitted parameters of a study's profiles: their names and values, by which a fit reads and changes them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sweetspot_sim::{Mode, Workload};

use crate::batch_sizer_2021::ONE_HOST_TIME;
use crate::power_capping_2022::FROM_LAYERS;
use crate::{PapersError, Profiles, batch_sizer_2021, dvfs_2019};

/// A parameter that was fitted to a study: a number in one of its profiles.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameter {
    /// The profile that contains the parameter.
    pub profile: ParameterProfile,
    /// The keys that lead to the number, joined by dots, such as `power.context`. In a workload, `on.GPU.core` is the
    /// number of one GPU.
    pub key: String,
}

/// A profile with fitted parameters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParameterProfile {
    /// The profile of a GPU.
    Gpu(String),
    /// The profile of a node.
    Node(String),
    /// The profile of a workload: its name, and whether it is training.
    Workload(String, bool),
    /// The constants of a study from which the work of its networks is computed.
    Study(String),
}

impl ParameterProfile {
    /// The profile of a workload.
    pub(crate) fn of(workload: &Workload) -> Self {
        let is_training = workload.profile.mode == Mode::Train;
        Self::Workload(workload.name.clone(), is_training)
    }
}

impl std::fmt::Display for ParameterProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gpu(name) => write!(f, "gpu {name}"),
            Self::Node(name) => write!(f, "node {name}"),
            Self::Workload(name, true) => write!(f, "training {name}"),
            Self::Workload(name, false) => write!(f, "inference {name}"),
            Self::Study(name) => write!(f, "study {name}"),
        }
    }
}

impl std::str::FromStr for ParameterProfile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || format!("`{text}` is not a profile");
        let (kind, name) = text.split_once(' ').ok_or_else(unknown)?;
        let name = name.to_owned();
        Ok(match kind {
            "gpu" => Self::Gpu(name),
            "node" => Self::Node(name),
            "training" => Self::Workload(name, true),
            "inference" => Self::Workload(name, false),
            "study" => Self::Study(name),
            _ => return Err(unknown()),
        })
    }
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.profile, self.key)
    }
}

/// A number and its unit, as a profile contains it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterValue {
    /// The number.
    pub number: f64,
    /// The unit; empty if the number has none.
    pub unit: String,
}

impl ParameterValue {
    /// The value with another number and the same unit.
    pub fn with_number(&self, number: f64) -> Self {
        Self {
            number,
            unit: self.unit.clone(),
        }
    }
}

impl std::fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.unit.as_str() {
            "" => write!(f, "{}", self.number),
            unit => write!(f, "{} {unit}", self.number),
        }
    }
}

impl std::str::FromStr for ParameterValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
        let number = number.parse();
        Ok(Self {
            number: number.map_err(|_| format!("`{text}` is not a number with a unit"))?,
            unit: unit.to_owned(),
        })
    }
}

impl Profiles {
    /// The fitted parameters of a study: those of its workloads, its constants, its node and its GPUs.
    pub fn parameters(&self, study: &str) -> Vec<Parameter> {
        let gpus = gpus_fitted_to(study);
        let mut all = Vec::new();
        let mut add = |profile: ParameterProfile, keys: &[String], under: &str| {
            all.extend(keys.iter().map(|key| Parameter {
                profile: profile.clone(),
                key: format!("{under}{key}"),
            }));
        };
        for name in gpus {
            if let Some(gpu) = self.gpus.get(*name) {
                add(ParameterProfile::Gpu((*name).to_owned()), &gpu.fitted, "");
            }
        }
        if let Some(node) = self.nodes.get(study) {
            add(ParameterProfile::Node(study.to_owned()), &node.fitted, "");
        }
        let constants = match study {
            dvfs_2019::STUDY => self.dvfs_2019.fitted.clone(),
            batch_sizer_2021::STUDY => batch_sizer_2021::HOST_TIMES.map(str::to_owned).to_vec(),
            FROM_LAYERS => self.power_capping_2022.fitted.clone(),
            ONE_HOST_TIME => vec!["host".to_owned()],
            _ => Vec::new(),
        };
        add(ParameterProfile::Study(study.to_owned()), &constants, "");
        let of_study = format!("@{study}");
        for workload in &self.workloads {
            if workload.name.ends_with(&of_study) {
                let profile = ParameterProfile::of(workload);
                add(profile.clone(), &workload.profile.fitted, "");
                for on in &workload.profile.on {
                    add(profile.clone(), &on.fitted, &format!("on.{}.", on.gpu));
                }
            }
        }
        all
    }

    /// The value of a parameter.
    pub fn value(&self, parameter: &Parameter) -> Result<ParameterValue, PapersError> {
        let missing = || no_parameter(parameter, "there is no such number");
        let document = match &parameter.profile {
            ParameterProfile::Gpu(name) => document(self.gpus.get(name)),
            ParameterProfile::Node(name) => document(self.nodes.get(name)),
            ParameterProfile::Study(study) if study == batch_sizer_2021::STUDY => document(
                batch_sizer_2021::workloads(&mut self.workloads.clone())
                    .next()
                    .as_deref(),
            ),
            ParameterProfile::Study(study) => {
                let text = self.constants(study);
                text.and_then(|text| serde_json::from_str(&text).ok())
            }
            ParameterProfile::Workload(..) => {
                let mut all = self.workloads.iter();
                let found =
                    all.find(|workload| ParameterProfile::of(workload) == parameter.profile);
                document(found.map(|workload| &workload.profile))
            }
        };
        let document = document.ok_or_else(missing)?;
        let text = match find(&document, &parameter.key).ok_or_else(missing)? {
            Value::String(text) => text.clone(),
            number => number.to_string(),
        };
        text.parse()
            .map_err(|problem: String| no_parameter(parameter, &problem))
    }

    /// The profiles with other values of some parameters, and with what is computed from them.
    pub fn with_parameters<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a Parameter, ParameterValue)>,
    ) -> Result<Self, PapersError> {
        let mut profiles = self.clone();
        let mut has_constants = false;
        for (parameter, value) in values {
            profiles.set(parameter, &value)?;
            has_constants |= matches!(&parameter.profile, ParameterProfile::Study(name) if name == dvfs_2019::STUDY);
        }
        if has_constants {
            dvfs_2019::derive_workloads(&mut profiles)?;
        }
        Ok(profiles)
    }

    /// Changes a parameter.
    fn set(&mut self, parameter: &Parameter, value: &ParameterValue) -> Result<(), PapersError> {
        let key = parameter.key.as_str();
        let changed = match &parameter.profile {
            ParameterProfile::Gpu(name) => replace(self.gpus.get_mut(name), key, value),
            ParameterProfile::Node(name) => replace(self.nodes.get_mut(name), key, value),
            // The host takes the same time for an item of a data set, whatever the network.
            ParameterProfile::Study(study) if study == batch_sizer_2021::STUDY => {
                let mut own = batch_sizer_2021::workloads(&mut self.workloads);
                own.try_for_each(|profile| replace(Some(profile), key, value))
            }
            ParameterProfile::Study(study) => match study.as_str() {
                FROM_LAYERS => replace(Some(&mut self.power_capping_2022), key, value),
                ONE_HOST_TIME => replace(Some(&mut self.batch_sizer_2021), key, value),
                _ => replace(Some(&mut self.dvfs_2019), key, value),
            },
            ParameterProfile::Workload(..) => {
                let mut all = self.workloads.iter_mut();
                let found =
                    all.find(|workload| ParameterProfile::of(workload) == parameter.profile);
                replace(found.map(|workload| &mut workload.profile), key, value)
            }
        };
        changed.map_err(|problem| no_parameter(parameter, &problem))
    }
}

/// The GPUs whose profiles were fitted to a study. That of node_power_capping_2023 was fitted to power_capping_2022.
fn gpus_fitted_to(study: &str) -> &'static [&'static str] {
    match study {
        "power_capping_2022" => &["quadro_rtx_6000", "tesla_v100_sxm2_16gb"],
        "dvfs_2019" => &["tesla_p100", "tesla_v100_pcie_16gb", "gtx_2080ti"],
        "multi_gpu_2018" => &["titan_x_pascal", "titan_x_maxwell"],
        "batch_sizer_2021" => &["tesla_p40"],
        "h200" => &["nvidia_h200"],
        _ => &[],
    }
}

/// The error that a parameter cannot be read or changed.
fn no_parameter(parameter: &Parameter, problem: &str) -> PapersError {
    PapersError::Workload {
        workload: parameter.to_string(),
        reason: problem.to_owned(),
    }
}

/// A profile as a document in which numbers are found by their keys; `None` if there is no such profile.
fn document(profile: Option<&impl Serialize>) -> Option<Value> {
    serde_json::to_value(profile?).ok()
}

/// Replaces a number in a profile.
fn replace<T: Serialize + DeserializeOwned>(
    profile: Option<&mut T>,
    key: &str,
    value: &ParameterValue,
) -> Result<(), String> {
    let profile = profile.ok_or("there is no such profile")?;
    let mut document = serde_json::to_value(&*profile).map_err(|error| error.to_string())?;
    for (key, value) in with_complements(key, value) {
        let place = find_mut(&mut document, &key).ok_or("there is no such number")?;
        *place = match value.unit.as_str() {
            "" => Value::from(value.number),
            _ => Value::from(value.to_string()),
        };
    }
    *profile = serde_json::from_value(document).map_err(|error| error.to_string())?;
    Ok(())
}

/// The first of two phases has the same share of core and of memory work, and the second has the rest.
const SHARE: &str = "phase.share";

/// The keys in the document to which a parameter's value belongs, each with the value.
fn with_complements(key: &str, value: &ParameterValue) -> Vec<(String, ParameterValue)> {
    if key != SHARE {
        return vec![(path_of(key), value.clone())];
    }
    let rest = value.with_number(100.0 - value.number);
    vec![
        ("phase.0.core".to_owned(), value.clone()),
        ("phase.0.memory".to_owned(), value.clone()),
        ("phase.1.core".to_owned(), rest.clone()),
        ("phase.1.memory".to_owned(), rest),
    ]
}

/// The keys that lead to a parameter's number in the document.
fn path_of(key: &str) -> String {
    match key {
        SHARE => "phase.0.core".to_owned(),
        "phase.switching" => "phase.1.switching".to_owned(),
        _ => key.to_owned(),
    }
}

/// Finds a number in a document.
fn find<'a>(document: &'a Value, key: &str) -> Option<&'a Value> {
    let mut place = document;
    for key in path_of(key).split('.') {
        place = match place.as_array() {
            Some(entries) => entries.get(entry(entries, key)?)?,
            None => place.get(key)?,
        };
    }
    Some(place)
}

/// Finds a number in a document, to change it.
fn find_mut<'a>(document: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let mut place = document;
    for key in key.split('.') {
        place = match place {
            Value::Array(entries) => {
                let index = entry(entries, key)?;
                entries.get_mut(index)?
            }
            _ => place.get_mut(key)?,
        };
    }
    Some(place)
}

/// The index of an entry in an array, by its number or by the name of its GPU or of its phase.
fn entry(entries: &[Value], key: &str) -> Option<usize> {
    let is_named = |entry: &Value| {
        let names = ["gpu", "name", "phase"].map(|name| entry.get(name).and_then(Value::as_str));
        names.contains(&Some(key))
    };
    key.parse()
        .ok()
        .or_else(|| entries.iter().position(is_named))
}
