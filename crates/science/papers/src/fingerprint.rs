//! Fingerprints of profiles, which tell whether a profile is the one that was fitted.
//!
//! `data/held_out/profile_fingerprints.csv` has the fingerprint of every profile of a study as it was fitted. It is written
//! by `cargo run --release -p sweetspot-papers --example fit -- STUDY --fingerprints`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::forms::published_study;
use crate::tables::{read_rows, table_text};
use crate::{PapersError, ParameterProfile, Profiles};

/// The file with the fingerprints.
const FILE: &str = "profile_fingerprints.csv";

/// The fingerprint of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileFingerprint {
    /// The study that the profile belongs to.
    pub study: String,
    /// The profile, such as `gpu tesla_p100`.
    pub profile: String,
    /// A hash of all its values.
    pub fingerprint: String,
}

impl Profiles {
    /// The fingerprints of the profiles of a study: of its GPUs, its node, its constants and its workloads.
    pub fn fingerprints(&self, study: &str) -> Vec<ProfileFingerprint> {
        let mut all = Vec::new();
        let mut add = |profile: ParameterProfile, text: Option<String>| {
            all.extend(text.map(|text| ProfileFingerprint {
                study: study.to_owned(),
                profile: profile.to_string(),
                fingerprint: format!("{:016x}", hash(&text)),
            }));
        };
        // Another form of a study uses the study's profiles.
        let published = published_study(study);
        let of_study = format!("@{published}");
        let workloads = self.workloads.iter();
        let workloads = workloads.filter(|workload| workload.name.ends_with(&of_study));
        // A study may use a GPU that was fitted to another one.
        let entries = workloads.clone().flat_map(|one| &one.profile.on);
        let gpus: BTreeSet<&String> = entries.map(|on| &on.gpu).collect();
        for name in gpus {
            let gpu = self.gpus.get(name);
            add(
                ParameterProfile::Gpu(name.clone()),
                gpu.and_then(|gpu| serde_json::to_string(gpu).ok()),
            );
        }
        if let Some(node) = self.nodes.get(published) {
            let profile = ParameterProfile::Node(published.to_owned());
            add(profile, serde_json::to_string(node).ok());
        }
        add(
            ParameterProfile::Study(study.to_owned()),
            self.constants(study),
        );
        for workload in workloads {
            let text = serde_json::to_string(&workload.profile).ok();
            add(ParameterProfile::of(workload), text);
        }
        all
    }

    /// The names of the profiles of a study that are not as they were fitted. A profile without a stored fingerprint is not
    /// checked.
    pub fn changed(&self, study: &str) -> Result<Vec<String>, PapersError> {
        if table_text(FILE).is_none() {
            return Ok(Vec::new());
        }
        let stored: Vec<ProfileFingerprint> = read_rows(FILE)?;
        let own = self.fingerprints(study).into_iter();
        let is_changed = |own: &ProfileFingerprint| {
            let mut stored = stored.iter();
            let found = stored.find(|row| row.study == own.study && row.profile == own.profile);
            found.is_some_and(|row| row.fingerprint != own.fingerprint)
        };
        Ok(own.filter(is_changed).map(|own| own.profile).collect())
    }
}

/// The FNV-1a hash of a text, which is the same on every machine.
fn hash(text: &str) -> u64 {
    let offset = 0xcbf2_9ce4_8422_2325;
    text.bytes().fold(offset, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_profiles_are_those_that_were_fitted() {
        let profiles = Profiles::built_in().unwrap();
        for study in crate::studies() {
            assert_eq!(profiles.changed(study).unwrap(), [""; 0], "{study}");
        }
    }

    #[test]
    fn a_changed_profile_is_named() {
        let mut profiles = Profiles::built_in().unwrap();
        let gpu = profiles.gpus.get_mut("tesla_p100").unwrap();
        gpu.power.idle = sweetspot_quantity::Watts::new(27.0);
        let changed = profiles.changed("dvfs_2019").unwrap();
        assert_eq!(changed, ["gpu tesla_p100"]);
        // The GPU of node_power_capping_2023 was fitted to power_capping_2022.
        let gpu = profiles.gpus.get_mut("quadro_rtx_6000").unwrap();
        gpu.power.idle = sweetspot_quantity::Watts::new(27.0);
        for study in ["power_capping_2022", "node_power_capping_2023"] {
            let changed = profiles.changed(study).unwrap();
            assert_eq!(changed, ["gpu quadro_rtx_6000"], "{study}");
        }
    }
}
