//! Zeus' own Python clients, unchanged and without root, with `sweetspot serve` on simulated hosts.
//!
//! They are installed in `.venv` by scripts/setup. `cargo test` ignores these tests by default; scripts/test runs them.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sweetspot_sim_host::Host;

use crate::common::text;
use crate::host::TestHost;

/// The user whom the policy allows to set GPUs, and another one.
const USER: u32 = 64_201;
const STRANGER: u32 = 64_202;

const POLICY: &str = "
[[allow]]
users = [64201]
power-cap = true
core-clock = true
persistence = true
";

/// The power cap of the first GPU before the test: not the default, which Zeus would restore itself.
const CAP: f64 = 280.0;

/// The longest wait for something that happens at once on an idle machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A simulated host with the service.
struct ServedHost {
    host: TestHost,
    /// A folder that only root can change, as the service requires.
    folder: PathBuf,
    service: Child,
}

impl ServedHost {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("/run/sweetspot-zeus-{}-{number}", std::process::id());
        let folder = PathBuf::from(folder);
        std::fs::create_dir(&folder).expect("the tests run as root");
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        let host = TestHost::new("v100:2");
        host.set_cap(0, CAP);
        let program = folder.join("sweetspot");
        std::fs::copy(env!("CARGO_BIN_EXE_sweetspot"), &program).unwrap();
        let library = host.folder().join("lib/libnvidia-ml.so.1");
        std::fs::copy(library, folder.join("libnvml.so")).unwrap();
        std::fs::write(folder.join("policy.toml"), POLICY).unwrap();
        let service = Command::new(&program)
            .arg("serve")
            .arg("--nvml")
            .arg(folder.join("libnvml.so"))
            .arg("--socket")
            .arg(folder.join("run/service.sock"))
            .arg("--journal")
            .arg(folder.join("state/journal"))
            .arg("--audit")
            .arg(folder.join("log/audit.jsonl"))
            .arg("--policy")
            .arg(folder.join("policy.toml"))
            // The simulated library looks for its GPUs there; the service itself does not.
            .env("SWEETSPOT_SIM", host.folder())
            .spawn()
            .unwrap();
        let served = Self {
            host,
            folder,
            service,
        };
        wait_for("the service", || {
            UnixStream::connect(served.socket()).is_ok()
        });
        served
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("run/service.sock")
    }

    /// A part of the Python script as a user. The script is read from standard input, because the user may not be able to
    /// open its file.
    fn python_as(&self, uid: u32, part: &str) -> Command {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let python = repository.join(".venv/bin/python");
        assert!(
            python.exists(),
            "NVML clients are needed in .venv: run scripts/setup"
        );
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/zeus_service.py");
        let mut command = self.host.command("setpriv");
        command
            .arg(format!("--reuid={uid}"))
            .arg(format!("--regid={uid}"))
            .args(["--clear-groups", "--"])
            .arg(python)
            .args(["-", part])
            .arg(self.folder.join("sweetspot"))
            .env("ZEUSD_SOCK_PATH", self.socket())
            .current_dir("/")
            .stdin(File::open(script).unwrap());
        command
    }

    /// Runs a part of the script, which must succeed, and returns what it printed.
    fn run(&self, uid: u32, part: &str) -> String {
        let output = self.python_as(uid, part).output().unwrap();
        let printed = text(&output.stdout);
        let all = format!("{printed}{}", text(&output.stderr));
        assert!(output.status.success(), "{all}");
        assert!(printed.lines().any(|line| line.starts_with("OK")), "{all}");
        print!("{printed}");
        printed
    }

    /// The power cap of a GPU in watts.
    fn cap(&self, gpu: usize) -> f64 {
        let host = Host::open(self.host.folder()).unwrap();
        host.gpus()[gpu]
            .with_gpu(|gpu| gpu.power_cap().get())
            .unwrap()
    }

    /// The lines of the audit log about this kind of event.
    fn audited(&self, event: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(self.folder.join("log/audit.jsonl")).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .filter(|line: &Value| line["event"] == event)
            .collect()
    }

    /// Waits until the GPUs have the power caps from before.
    fn wait_for_restoration(&self) {
        wait_for("the power caps from before", || {
            self.cap(0) == CAP && self.cap(1) == 300.0
        });
    }
}

impl Drop for ServedHost {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.service), Signal::TERM);
        let _ = self.service.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn wait_for(what: &str, mut is_true: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
#[ignore = "needs root and NVML clients in .venv"]
fn every_method_of_the_zeusd_client_works() {
    let served = ServedHost::new();
    served.run(USER, "client");
    served.wait_for_restoration();
    let applied = served.audited("applied");
    assert!(applied.len() >= 6, "{applied:?}");
    assert!(
        applied.iter().all(|line| line["uid"] == USER),
        "{applied:?}"
    );
}

#[test]
#[ignore = "needs root and NVML clients in .venv"]
fn the_power_limit_optimizer_profiles_without_root() {
    let served = ServedHost::new();
    served.run(USER, "optimizer");
    served.wait_for_restoration();
    // The log has every limit that the optimizer tried.
    let applied = served.audited("apply");
    let asked: Vec<&str> = applied
        .iter()
        .filter_map(|line| line["settings"]["power_cap"].as_str())
        .collect();
    assert_eq!(&asked[..4], ["300 W", "250 W", "200 W", "150 W"]);
    // The line is written after the cap.
    wait_for("a line about the end", || {
        !served.audited("owner-ended").is_empty()
    });
    let ended = served.audited("owner-ended");
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert!(served.audited("lease-ended").is_empty());
    assert_eq!(ended[0]["devices"][0]["after"]["power_cap"], "280 W");
}

#[test]
#[ignore = "needs root and NVML clients in .venv"]
fn power_is_streamed_to_zeus() {
    let served = ServedHost::new();
    served.run(USER, "stream");
    // Nothing was changed, and nothing was leased.
    assert_eq!(served.host.writes().lines().count(), 0);
}

#[test]
#[ignore = "needs root and NVML clients in .venv"]
fn a_killed_program_leaves_no_power_limit_behind() {
    let served = ServedHost::new();
    let mut client = served.python_as(USER, "hold");
    let mut client = client.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(client.stdout.take().unwrap()).lines();
    let line = output.next().map(Result::unwrap);
    assert_eq!(line.as_deref(), Some("set"));
    assert_eq!(served.cap(0), 150.0);
    let begun = Instant::now();
    client.kill().unwrap();
    served.wait_for_restoration();
    println!(
        "the cap was back {:.0} ms after SIGKILL",
        1e3 * begun.elapsed().as_secs_f64()
    );
    client.wait().unwrap();
}

#[test]
#[ignore = "needs root and NVML clients in .venv"]
fn a_user_outside_the_policy_gets_the_error_of_zeus() {
    let served = ServedHost::new();
    served.run(STRANGER, "denied");
    assert_eq!(served.host.writes().lines().count(), 0);
    let refused = served.audited("refused");
    assert!(refused.len() >= 4, "{refused:?}");
    assert!(refused.iter().all(|line| line["uid"] == STRANGER));
}
