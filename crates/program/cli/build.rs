//! Finds the simulated NVML library among what cargo has built, so that the program can carry it.

use std::env;
use std::path::{Path, PathBuf};

const BUILT: &str = "libsweetspot_nvml_sim_library.so";
/// Names a library that was built elsewhere, which is needed where the program is built for another processor.
const GIVEN: &str = "SWEETSPOT_NVML_SIM_LIBRARY";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let library = match env::var_os(GIVEN).filter(|path| !path.is_empty()) {
        Some(given) => PathBuf::from(given),
        None => {
            reject_other_processor()?;
            built_library(&out)?
        }
    };
    let kept = out.join("libnvidia-ml.so.1");
    std::fs::copy(&library, &kept).map_err(|error| format!("{}: {error}", library.display()))?;
    println!("cargo:rustc-env=SWEETSPOT_NVML_SIM={}", kept.display());
    println!("cargo:rerun-if-changed={}", library.display());
    println!("cargo:rerun-if-env-changed={GIVEN}");
    Ok(())
}

/// Build dependencies are built for the machine that builds, and lie in TARGET_FOLDER/PROFILE/deps. `OUT_DIR` is
/// TARGET_FOLDER/PROFILE/build/PACKAGE-HASH/out, or with `cargo build --target TRIPLE`
/// TARGET_FOLDER/TRIPLE/PROFILE/build/PACKAGE-HASH/out.
fn built_library(out: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let profile = out.ancestors().nth(3).ok_or("an unusual OUT_DIR")?;
    let name = profile.file_name().ok_or("an unusual OUT_DIR")?;
    let above = profile.parent().ok_or("an unusual OUT_DIR")?;
    let beside = profile.join("deps").join(BUILT);
    let of_host = above
        .parent()
        .map(|folder| folder.join(name).join("deps").join(BUILT));
    // With a triple the program's own dependencies, for whatever processor, lie beside it.
    let has_triple = above.file_name() == env::var_os("TARGET").as_deref();
    match of_host {
        Some(of_host) if has_triple || !beside.exists() && of_host.exists() => Ok(of_host),
        _ => Ok(beside),
    }
}

/// The library is loaded by programs of the machine that Sweetspot is for.
fn reject_other_processor() -> Result<(), Box<dyn std::error::Error>> {
    let (host, target) = (env::var("HOST")?, env::var("TARGET")?);
    let processor = |triple: &str| triple.split('-').next().map(str::to_owned);
    match processor(&host) == processor(&target) {
        true => Ok(()),
        false => Err(format!(
            "the program carries the simulated NVML library, which cargo builds for {host}, not for {target}: build it with `cargo build --release --target {target} -p sweetspot-nvml-sim-library` and set {GIVEN} to its path"
        )
        .into()),
    }
}
