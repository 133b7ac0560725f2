//! `sweetspot simulate --meters`: an independent client reads all meters, and nothing is left when the program ends.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{program, sweetspot, text};

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/examples");
    path.join(name).to_string_lossy().into_owned()
}

#[test]
fn an_independent_client_reads_all_meters() {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/meters.py");
    let output = program()
        .args([
            "simulate",
            "--node",
            &example("my_node.toml"),
            "--meters",
            "--",
        ])
        .arg("python3")
        .arg(client)
        .arg(env!("CARGO_BIN_EXE_sweetspot"))
        .args(["sim-workload", "--network", &example("my_workload.toml")])
        .args(["--ranks", "2", "--seconds", "3"])
        .output()
        .unwrap();
    let shown = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{shown:?}");
    // What is offered is said in two lines.
    assert_eq!(shown.1.lines().count(), 2, "{shown:?}");
    assert!(
        shown.1.contains("wall (wt310:tcp://127.0.0.1:"),
        "{shown:?}"
    );
}

#[test]
fn made_files_are_read_by_any_program() {
    let script = "cd $SWEETSPOT_SYSFS/class && cat powercap/intel-rapl:1/name powercap/intel-rapl:0:0/name \
        powercap/intel-rapl:0/constraint_0_power_limit_uw hwmon/hwmon0/power1_average_interval hwmon/hwmon4/name && \
        stat -c %a powercap/intel-rapl:0/energy_uj && \
        grep -c spec $SWEETSPOT_METERS && env | grep -c ^SWEETSPOT_METER_";
    let node = example("my_node.toml");
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "simulate", "--node", &node, "--meters", "--", "sh", "-c", script,
    ];
    let output = sweetspot(folder.path(), &args);
    let expected = "package-1\ndram\n120000000\n1000\nina228\n400\n8\n8\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
}

#[test]
fn a_list_of_meters_offers_only_these() {
    let folder = tempfile::tempdir().unwrap();
    let node = example("my_node.toml");
    let args = [
        "simulate",
        "--node",
        &node,
        "--meters=redfish,wt310",
        "--meter-fault=redfish=password:root:calvin",
        "--",
        "sh",
        "-c",
        "grep -v spec $SWEETSPOT_METERS; echo $SWEETSPOT_METER_PASSWORD",
    ];
    let output = sweetspot(folder.path(), &args);
    let expected =
        "[bmc]\nuser = \"root\"\npassword-env = \"SWEETSPOT_METER_PASSWORD\"\n\n[wall]\n\ncalvin\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
}

#[test]
fn wrong_lists_and_faults_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let node = example("my_node.toml");
    let rejected = |arguments: &[&str]| {
        let all = [&["simulate", "--node", &node], arguments, &["--", "true"]].concat();
        let output = sweetspot(folder.path(), &all);
        assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let message = rejected(&["--meters=wt310,wt500"]);
    assert!(
        message.contains("invalid meter `wt500`") && message.contains("shelly-gen1"),
        "{message}"
    );
    let message = rejected(&["--meters", "--meter-fault", "wt310=broken"]);
    assert!(
        message.contains("invalid fault `wt310=broken`") && message.contains("rubbish"),
        "{message}"
    );
    let message = rejected(&["--meter-fault", "wt310=silent"]);
    assert!(message.contains("--meters"), "{message}");
    let output = sweetspot(
        folder.path(),
        &["simulate", "--gpu", "v100", "--meters", "--", "true"],
    );
    assert_eq!(output.status.code(), Some(125));
    assert!(
        text(&output.stderr).contains("--node"),
        "{}",
        text(&output.stderr)
    );
}

/// A simulated node whose command sleeps.
struct SleepingNode {
    program: Child,
    sleeper: String,
    folder: PathBuf,
    address: String,
}

fn start_sleeping_node() -> SleepingNode {
    let script = "echo $$; echo $SWEETSPOT_SIM; echo $SWEETSPOT_METER_WT310; exec sleep 60";
    let mut program = program()
        .args(["simulate", "--node", &example("my_node.toml"), "--meters"])
        .args(["--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    SleepingNode {
        sleeper: line(),
        folder: line().into(),
        address: line().replace("wt310:tcp://", ""),
        program,
    }
}

fn kill(signal: &str, pid: &str) {
    Command::new("kill").args([signal, pid]).status().unwrap();
}

#[test]
fn nothing_is_left_when_the_program_is_killed() {
    for signal in ["-KILL", "-TERM", "-INT"] {
        let mut node = start_sleeping_node();
        assert!(TcpStream::connect(&node.address).is_ok());
        assert!(node.folder.join("meters.toml").exists());
        kill(signal, &node.program.id().to_string());
        node.program.wait().unwrap();
        let ended = Instant::now();
        while node.folder.exists() {
            assert!(
                ended.elapsed() < Duration::from_secs(5),
                "{signal}: {:?} is left",
                node.folder
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(TcpStream::connect(&node.address).is_err(), "{signal}");
        // Only a killed program cannot pass a signal on to its command.
        kill("-KILL", &node.sleeper);
    }
}
