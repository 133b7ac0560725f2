//! The Python package with the program: `sweetspot.measure()` and `sweetspot.Study`.
//!
//! Most of these tests are written in Python, in `python/tests/with_program`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use sweetspot_sim_host::Host;

use crate::host::TestHost;

/// A folder of the Python package.
fn package(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../python")
        .join(folder)
}

/// Adds the package and the program to the environment of a command.
fn with_package(command: &mut Command) -> &mut Command {
    let program = Path::new(env!("CARGO_BIN_EXE_sweetspot")).parent();
    let mut path = program.unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    command
        .env("PATH", path)
        .env("PYTHONPATH", package("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // A service of this machine measures other GPUs.
        .env("SWEETSPOT_SOCKET", "/nonexistent/sweetspot.sock")
}

/// Runs the Python tests in a file on a host.
fn run_tests(host: &TestHost, file: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut python = host.command("python3");
    let output = with_package(&mut python)
        .args(["-m", "unittest", "discover", "--pattern", file, "-s"])
        .arg(package("tests/with_program").canonicalize().unwrap())
        .env_remove("CUDA_VISIBLE_DEVICES")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("\nOK"), "{text}");
}

#[test]
fn blocks_are_measured_without_the_tool_around_the_program() {
    run_tests(&TestHost::new("v100:2"), "test_measure.py");
}

#[test]
fn studies_are_read() {
    run_tests(&TestHost::new("v100"), "test_study.py");
}

/// A program that measures a block between two lines of its input.
const BLOCK: &str = r#"
import json, sweetspot
with sweetspot.measure(devices=[0]): pass
print("ready", flush=True)
input()
m = sweetspot.measure(devices=[0]).start()
print("begun", flush=True)
input()
m.stop()
print(json.dumps([m.time_s, m.energy_j, m.interval95_j, m.method, m.source, m.reason]), flush=True)
"#;

#[test]
fn a_block_has_the_energy_that_the_gpu_drew() {
    let host = TestHost::new("v100");
    let mut workload = host.sweetspot();
    workload.args(["sim-workload", "--network", "resnet50", "--seconds", "600"]);
    let mut workload = workload.stdout(Stdio::null()).spawn().unwrap();
    let mut python = host.command("python3");
    let mut python = with_package(&mut python)
        .args(["-c", BLOCK])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = python.stdin.take().unwrap();
    let mut lines = BufReader::new(python.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let energy = || {
        let host = Host::open(host.folder()).unwrap();
        let energy = host.gpus()[0].with_gpu(|gpu| gpu.energy().get());
        energy.unwrap()
    };
    next();
    let before = energy();
    writeln!(orders).unwrap();
    next();
    let inner_before = energy();
    std::thread::sleep(std::time::Duration::from_secs(3));
    let inner_after = energy();
    writeln!(orders).unwrap();
    let result = next();
    let after = energy();
    let _ = workload.kill();
    let _ = workload.wait();
    python.wait().unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let measured = result[1].as_f64().unwrap_or_else(|| panic!("{result}"));
    // The block lies between the two times that enclose it and are enclosed by it.
    assert!(measured > 0.97 * (inner_after - inner_before), "{result}");
    assert!(measured < 1.03 * (after - before), "{result}");
    assert!(measured > 3.0 * 60.0, "the GPU works: {result}");
    let ends: Vec<f64> = serde_json::from_value(result[2].clone()).unwrap();
    assert!(ends[0] < measured && measured < ends[1], "{result}");
    assert_eq!(result[3], "counter+buffer");
    assert_eq!((&result[4], &result[5]), (&"process".into(), &Value::Null));
}

#[test]
fn without_a_driver_the_energy_is_unknown_and_the_reason_is_given() {
    let program = "
import sweetspot
with sweetspot.measure() as m: pass
assert m.energy_j is None and m.by_device == {} and m.method is None and m.interval95_j is None
assert m.time_s >= 0
print(m.reason)
";
    let mut python = Command::new("python3");
    let output = with_package(&mut python)
        .args(["-c", program])
        .env("SWEETSPOT_NVML", "/nonexistent/libnvidia-ml.so.1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("libnvidia-ml.so.1"), "{text}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
#[ignore = "needs mypy in .venv: run scripts/setup"]
fn the_package_is_completely_typed() {
    let root = package("..").canonicalize().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let output = Command::new(root.join(".venv/bin/mypy"))
        .arg("--cache-dir")
        .arg(cache.path())
        .current_dir(&root)
        .output()
        .expect("mypy is installed by scripts/setup");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("no issues found"), "{text}");
    assert!(package("src/sweetspot/py.typed").exists());
}
