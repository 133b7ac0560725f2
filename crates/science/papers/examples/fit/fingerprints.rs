//! Stores the fingerprints of a study's profiles.

use std::error::Error;
use std::path::Path;

use sweetspot_papers::ProfileFingerprint;

use crate::candidate::stored_profiles;

/// Replaces the fingerprints of a study in `data/held_out/profile_fingerprints.csv`.
pub fn run(study: &str) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/held_out");
    let path = folder.join("profile_fingerprints.csv");
    let mut all: Vec<ProfileFingerprint> = match path.exists() {
        true => csv::Reader::from_path(&path)?
            .deserialize()
            .collect::<Result<_, _>>()?,
        false => Vec::new(),
    };
    all.retain(|row| row.study != study);
    all.extend(stored_profiles()?.fingerprints(study));
    all.sort_by(|a, b| (&a.study, &a.profile).cmp(&(&b.study, &b.profile)));
    let mut writer = csv::Writer::from_path(&path)?;
    for row in all {
        writer.serialize(row)?;
    }
    writer.flush()?;
    Ok(())
}
