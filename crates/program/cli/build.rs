//! Finds the simulated NVML library that cargo has built, and embeds it in the program. Finds the commit that
//! `sweetspot --version` names.

#[path = "build/commit.rs"]
mod commit;

use std::env;
use std::path::{Path, PathBuf};

/// The file name of the library as cargo builds it.
const LIBRARY_FILE: &str = "libsweetspot_nvml_sim_library.so";
/// The environment variable with the path of a prebuilt library, which is needed to build for another processor.
const PATH_VARIABLE: &str = "SWEETSPOT_NVML_SIM_LIBRARY";
/// The environment variable with the commit to name. Packages set it; if it is empty, no commit is named.
const COMMIT_VARIABLE: &str = "SWEETSPOT_COMMIT";
const UNEXPECTED_FOLDER: &str = "OUT_DIR is not in a target folder of cargo";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let library = match env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => {
            reject_cross_compilation()?;
            find_built_library(&out)?
        }
    };
    let copy = out.join("libnvidia-ml.so.1");
    std::fs::copy(&library, &copy).map_err(|error| format!("{}: {error}", library.display()))?;
    println!("cargo:rustc-env=SWEETSPOT_NVML_SIM={}", copy.display());
    println!("cargo:rerun-if-changed={}", library.display());
    println!("cargo:rerun-if-env-changed={PATH_VARIABLE}");
    set_version()
}

/// Sets the text that `sweetspot --version` prints after the program's name.
fn set_version() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-env-changed={COMMIT_VARIABLE}");
    let commit = match env::var(COMMIT_VARIABLE) {
        Ok(commit) => Some(commit).filter(|commit| !commit.is_empty()),
        Err(_) => find_commit_of_checkout()?,
    };
    let version = env::var("CARGO_PKG_VERSION")?;
    match commit {
        Some(commit) => println!("cargo:rustc-env=SWEETSPOT_VERSION={version} ({commit})"),
        None => println!("cargo:rustc-env=SWEETSPOT_VERSION={version}"),
    }
    Ok(())
}

/// Returns the commit of the checkout, and tells cargo to ask again when a source of the program changes.
fn find_commit_of_checkout() -> Result<Option<String>, Box<dyn std::error::Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../..");
    let root = root.canonicalize()?;
    let sources = commit::list_sources(&root)?;
    let commit = commit::find_commit(&root, &sources);
    if commit.is_some() {
        for source in sources {
            println!("cargo:rerun-if-changed={}", source.display());
        }
    }
    Ok(commit)
}

/// Returns the path of the library. Cargo builds build dependencies for the machine that builds, in
/// TARGET_FOLDER/PROFILE/deps. `OUT_DIR` is TARGET_FOLDER/PROFILE/build/PACKAGE-HASH/out, or with
/// `cargo build --target TRIPLE` TARGET_FOLDER/TRIPLE/PROFILE/build/PACKAGE-HASH/out.
fn find_built_library(out: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let profile = out.ancestors().nth(3).ok_or(UNEXPECTED_FOLDER)?;
    let name = profile.file_name().ok_or(UNEXPECTED_FOLDER)?;
    let parent = profile.parent().ok_or(UNEXPECTED_FOLDER)?;
    let for_target = profile.join("deps").join(LIBRARY_FILE);
    let for_host = parent
        .parent()
        .map(|folder| folder.join(name).join("deps").join(LIBRARY_FILE));
    // With --target, the deps folder beside OUT_DIR holds libraries for the target, not for the host.
    let has_triple = parent.file_name() == env::var_os("TARGET").as_deref();
    match for_host {
        Some(for_host) if has_triple || !for_target.exists() && for_host.exists() => Ok(for_host),
        _ => Ok(for_target),
    }
}

/// Rejects a build for another processor: the library must be built for the machine that Sweetspot runs on.
fn reject_cross_compilation() -> Result<(), Box<dyn std::error::Error>> {
    let (host, target) = (env::var("HOST")?, env::var("TARGET")?);
    let processor = |triple: &str| triple.split('-').next().map(str::to_owned);
    match processor(&host) == processor(&target) {
        true => Ok(()),
        false => Err(format!(
            "the program contains the simulated NVML library, which cargo builds for {host}, not for {target}: build it with `cargo build --release --target {target} -p sweetspot-nvml-sim-library` and set {PATH_VARIABLE} to its path"
        )
        .into()),
    }
}
