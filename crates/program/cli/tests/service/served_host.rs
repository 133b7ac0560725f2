//! A simulated host with the service, and accounts that use it.

use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sweetspot_sim_host::Host;

use crate::host::TestHost;

/// The longest wait for something that happens at once on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A user without root. The ids need no entry in /etc/passwd.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    pub uid: u32,
    pub groups: &'static [u32],
}

pub const ALICE: Account = Account::new(64_001, &[]);
pub const BOB: Account = Account::new(64_002, &[]);
/// The group of Carol alone.
pub const CAROLS_GROUP: u32 = 64_100;
pub const CAROL: Account = Account::new(64_003, &[64_099, CAROLS_GROUP]);
/// A user to whom no rule applies.
pub const MALLORY: Account = Account::new(64_004, &[64_101]);

impl Account {
    const fn new(uid: u32, groups: &'static [u32]) -> Self {
        Self { uid, groups }
    }
}

/// A simulated host, the files of its service, and the service while it runs.
pub struct ServedHost {
    pub host: TestHost,
    /// A folder of root in which the service has all its files, removed at the end.
    pub folder: PathBuf,
    /// The folder of the journal.
    pub journal: PathBuf,
    service: Option<Child>,
}

impl ServedHost {
    /// Creates a host whose service is not started.
    pub fn new(gpus: &str, policy: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // Nobody else can write below /run, unlike below /tmp.
        let name = format!("/run/sweetspot-test-{}-{number}", std::process::id());
        let folder = PathBuf::from(name);
        std::fs::create_dir(&folder).expect("the tests run as root");
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        let served = Self {
            host: TestHost::new(gpus),
            journal: folder.join("journal"),
            folder,
            service: None,
        };
        // The original may be in a folder that other users cannot enter.
        let program = env!("CARGO_BIN_EXE_sweetspot");
        if std::fs::hard_link(program, served.program()).is_err() {
            std::fs::copy(program, served.program()).unwrap();
        }
        let library = served.host.folder().join("lib/libnvidia-ml.so.1");
        std::fs::copy(library, served.path("libnvml.so")).unwrap();
        served.write_policy(policy);
        served
    }

    /// Creates a host whose service runs.
    pub fn started(gpus: &str, policy: &str) -> Self {
        let mut served = Self::new(gpus, policy);
        served.start();
        served
    }

    /// A file in the folder of the service.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The program, where every user can execute it.
    pub fn program(&self) -> PathBuf {
        self.path("sweetspot")
    }

    pub fn socket(&self) -> PathBuf {
        self.path("run/service.sock")
    }

    pub fn write_policy(&self, policy: &str) {
        std::fs::write(self.path("policy.toml"), policy).unwrap();
    }

    /// The command that runs the service in the foreground, without its measuring process.
    pub fn serve(&self) -> Command {
        let mut serve = self.serve_and_measure();
        serve.arg("--no-monitor");
        serve
    }

    /// The command that runs the service in the foreground, with its measuring process.
    pub fn serve_and_measure(&self) -> Command {
        let mut serve = Command::new(self.program());
        serve
            .arg("serve")
            .arg("--nvml")
            .arg(self.path("libnvml.so"))
            .arg("--socket")
            .arg(self.socket())
            .arg("--journal")
            .arg(&self.journal)
            .arg("--audit")
            .arg(self.path("log/audit.jsonl"))
            .arg("--policy")
            .arg(self.path("policy.toml"))
            // The simulated library looks for its GPUs there; the service itself does not.
            .env("SWEETSPOT_SIM", self.host.folder())
            .stdin(Stdio::null());
        serve
    }

    /// Starts the service and waits until it can be reached.
    pub fn start(&mut self) {
        let mut serve = self.serve();
        self.start_with(&mut serve);
    }

    /// Starts the service with this command and waits until it can be reached.
    pub fn start_with(&mut self, serve: &mut Command) {
        let messages = File::options()
            .append(true)
            .create(true)
            .open(self.path("messages"));
        let mut service = serve.stderr(messages.unwrap()).spawn().unwrap();
        wait_for("the service", || {
            if let Some(status) = service.try_wait().unwrap() {
                panic!("the service ended with {status}: {}", self.messages());
            }
            UnixStream::connect(self.socket()).is_ok()
        });
        self.service = Some(service);
    }

    pub fn service_pid(&self) -> u32 {
        self.service.as_ref().expect("the service runs").id()
    }

    pub fn signal_service(&self, signal: Signal) {
        send_signal(self.service_pid(), signal);
    }

    /// Waits until the service has ended by itself.
    pub fn wait_for_service(&mut self) -> ExitStatus {
        let mut service = self.service.take().expect("the service runs");
        wait_for_exit(&mut service)
    }

    /// Stops the service as systemd does.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal_service(Signal::TERM);
        self.wait_for_service()
    }

    /// What the service has written to standard error.
    pub fn messages(&self) -> String {
        std::fs::read_to_string(self.path("messages")).unwrap_or_default()
    }

    /// The lines of the audit log.
    pub fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("log/audit.jsonl")).unwrap_or_default();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("lines of JSON")
    }

    /// The lines of the audit log about this kind of event.
    pub fn audited(&self, event: &str) -> Vec<Value> {
        let mut lines = self.audit();
        lines.retain(|line| line["event"] == event);
        lines
    }

    /// A command that a user runs on this host.
    pub fn command_as(&self, account: Account, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.host.command("setpriv");
        let groups: Vec<String> = account.groups.iter().map(u32::to_string).collect();
        match groups.is_empty() {
            true => command.arg("--clear-groups"),
            false => command.arg(format!("--groups={}", groups.join(","))),
        };
        command
            .arg(format!("--reuid={}", account.uid))
            .arg(format!("--regid={}", account.uid))
            .arg("--")
            .arg(program)
            .env("SWEETSPOT_SOCKET", self.socket())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env_remove("XDG_STATE_HOME")
            .current_dir("/")
            .stdin(Stdio::null());
        command
    }

    /// The program `sweetspot` as a user runs it on this host.
    pub fn sweetspot_as(&self, account: Account) -> Command {
        self.command_as(account, self.program())
    }

    /// Creates a folder that belongs to a user.
    pub fn home_of(&self, account: Account) -> PathBuf {
        let home = self.path(&format!("home-{}", account.uid));
        if !home.exists() {
            std::fs::create_dir(&home).unwrap();
            chown(&home, Some(account.uid), Some(account.uid)).unwrap();
        }
        home
    }

    /// Starts a program of a user that uses GPU 0 until it is killed, and waits until it is there.
    pub fn use_gpu(&self, account: Account) -> KilledAtEnd {
        let mut command = self.sweetspot_as(account);
        // The small batch leaves memory for the workloads of others.
        command.args(["sim-workload", "--network", "resnet50", "--batch", "16"]);
        command.args(["--seconds", "600"]);
        let process = KilledAtEnd(command.stdout(Stdio::null()).spawn().unwrap());
        let host = Host::open(self.host.folder()).unwrap();
        wait_for("the workload", || {
            host.gpus()[0]
                .with_gpu(|gpu| gpu.jobs().iter().any(|(pid, _)| *pid == process.0.id()))
                .unwrap()
        });
        process
    }

    /// The UUID of a GPU.
    pub fn uuid(&self, gpu: usize) -> String {
        Host::open(self.host.folder()).unwrap().gpus()[gpu].uuid()
    }

    /// The power cap of a GPU.
    pub fn cap(&self, gpu: usize) -> f64 {
        self.settings(gpu).0
    }

    /// The power cap of a GPU, and the frequency to which its core clock is locked.
    pub fn settings(&self, gpu: usize) -> (f64, Option<f64>) {
        let host = Host::open(self.host.folder()).unwrap();
        let read = host.gpus()[gpu].with_gpu(|gpu| {
            let lock = gpu.core_lock().map(|(_, high)| high.get());
            (gpu.power_cap().get(), lock)
        });
        read.unwrap()
    }

    /// Waits until a GPU has this power cap.
    pub fn wait_for_cap(&self, gpu: usize, watts: f64) {
        wait_for(&format!("a cap of {watts} W"), || self.cap(gpu) == watts);
    }
}

impl Drop for ServedHost {
    fn drop(&mut self) {
        if let Some(mut service) = self.service.take() {
            let _ = service.kill();
            let _ = service.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A process that is killed at the end of the test.
pub struct KilledAtEnd(pub Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process.
pub fn send_signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Waits until something holds; panics if that takes too long.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a process has ended; panics if that takes too long.
pub fn wait_for_exit(child: &mut Child) -> ExitStatus {
    let mut status = None;
    wait_for("the end of a process", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

/// All files below a folder, and the folder itself.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found
}
