//! Unmodified NVML clients of other projects on simulated hosts.
//!
//! They are installed in `.venv` by scripts/setup. `cargo test` ignores these tests by default; scripts/test runs them.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::program;

fn environment() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.venv/bin");
    let has_clients = folder.join("nvitop").exists();
    assert!(
        has_clients,
        "NVML clients are needed in .venv: run scripts/setup"
    );
    folder
}

fn on_host(gpus: &str, command: &[&str]) -> Output {
    program()
        .args(["simulate", "--gpu", gpus, "--"])
        .args(command)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "120")
        .output()
        .unwrap()
}

fn all_of(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn script(gpus: &str, name: &str, arguments: &[&str]) {
    let folder = environment();
    let python = folder.join("python").to_string_lossy().into_owned();
    let path = format!("{}/tests/clients/{name}", env!("CARGO_MANIFEST_DIR"));
    let output = on_host(gpus, &[&[python.as_str(), &path], arguments].concat());
    let text = all_of(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.lines().any(|line| line.starts_with("OK")), "{text}");
    print!("{text}");
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

#[test]
#[ignore = "needs NVML clients in .venv: run scripts/setup"]
fn nvitop_shows_the_simulated_gpus() {
    let folder = environment();
    let output = on_host("v100:2", &[&folder.join("nvitop").to_string_lossy(), "-1"]);
    let text = all_of(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("V100-SXM2-16GB").count(), 2, "{text}");
    assert!(text.contains("40W / 300W"), "{text}");
    assert!(!text.contains("ERROR"), "{text}");
}

#[test]
#[ignore = "needs NVML clients in .venv: run scripts/setup"]
fn gpustat_shows_the_simulated_gpus() {
    let folder = environment();
    let gpustat = folder.join("gpustat").to_string_lossy().into_owned();
    let output = on_host(
        "v100,quadro_rtx_6000",
        &[&gpustat, "--show-power", "--no-color"],
    );
    let text = all_of(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("[0] Tesla V100") && text.contains("[1] Quadro RTX 6000"),
        "{text}"
    );
    assert!(text.contains("40 / 300 W"), "{text}");
}

#[test]
#[ignore = "needs NVML clients in .venv: run scripts/setup"]
fn a_pynvml_script_reads_and_sets_the_simulated_gpus() {
    script("v100,quadro_rtx_6000", "pynvml_script.py", &[]);
}

#[test]
#[ignore = "needs NVML clients in .venv: run scripts/setup"]
fn a_pynvml_script_reads_what_limits_the_simulated_gpus() {
    script("h200,v100,tesla_p100", "pynvml_limits.py", &[PROGRAM]);
}

#[test]
#[ignore = "needs NVML clients in .venv: run scripts/setup"]
fn a_cap_set_by_one_process_slows_the_workload_of_another() {
    script("v100", "closed_loop.py", &[PROGRAM]);
}

#[test]
#[ignore = "needs NVML clients in .venv: run scripts/setup"]
fn zeus_measures_and_optimises() {
    script("v100", "zeus_windows.py", &[PROGRAM]);
}

#[test]
#[ignore = "needs NVML clients in .venv: run scripts/setup"]
fn codecarbon_measures_the_simulated_gpus() {
    script("v100:2", "codecarbon_tracker.py", &[]);
}

/// `HAMMER_S=60` runs for a minute (scripts/torture).
#[test]
#[ignore = "needs NVML clients in .venv: run scripts/setup"]
fn sixteen_processes_see_no_torn_state() {
    let seconds = std::env::var("HAMMER_S").unwrap_or_else(|_| "6".to_owned());
    script("v100", "hammer.py", &[PROGRAM, &seconds]);
}
