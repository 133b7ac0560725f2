//! Finds the simulated NVML library among what cargo has built, so that the program can carry it.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // OUT_DIR is PROFILE/build/PACKAGE-HASH/out; build dependencies lie in PROFILE/deps.
    let profile = out.ancestors().nth(3).ok_or("an unusual OUT_DIR")?;
    let built = profile.join("deps/libsweetspot_nvml_sim_library.so");
    let kept = out.join("libnvidia-ml.so.1");
    std::fs::copy(&built, &kept).map_err(|error| format!("{}: {error}", built.display()))?;
    println!("cargo:rustc-env=SWEETSPOT_NVML_SIM={}", kept.display());
    println!("cargo:rerun-if-changed={}", built.display());
    Ok(())
}
