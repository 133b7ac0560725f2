//! A Slurm cluster that exists for the duration of a test: a controller and several nodes on this machine, each with a
//! simulated host of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sweetspot_sim_host::Host;

use crate::common::{NO_CONFIG, text};

/// The longest wait for something that Slurm does.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster, which ends with this value.
pub struct Cluster {
    /// The folder of the cluster, which belongs to root.
    pub folder: PathBuf,
    services: Vec<Child>,
}

/// A script of this repository.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../scripts")
        .join(name)
}

impl Cluster {
    /// Starts a cluster with this many nodes. With a policy every node has a service, and jobs can ask for caps.
    pub fn start(nodes: u32, policy: Option<&str>) -> Self {
        Self::start_with(nodes, policy, &[])
    }

    /// Does the same with more lines in slurm.conf.
    pub fn start_with(nodes: u32, policy: Option<&str>, lines: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = PathBuf::from(format!(
            "/run/sweetspot-slurm-{}-{number}",
            std::process::id()
        ));
        std::fs::create_dir(&folder).expect("the tests run as root");
        let mut cluster = Self {
            folder,
            services: Vec::new(),
        };
        let program = cluster.program();
        std::fs::copy(env!("CARGO_BIN_EXE_sweetspot"), &program).unwrap();
        let mut up = Command::new(script("slurm-up"));
        up.arg(&cluster.folder)
            .args(["--nodes", &nodes.to_string()]);
        up.arg("--program").arg(&program);
        up.args(lines.iter().flat_map(|line| ["--conf", *line]));
        if let Some(policy) = policy {
            let jobs = format!("[slurm]\nfolder = \"{}\"\n", cluster.path("jobs").display());
            let text = policy.replace("[slurm]\n", &jobs);
            std::fs::write(cluster.path("policy.toml"), text).unwrap();
            for hook in ["prolog", "epilog"] {
                let file = cluster.write_hook(hook);
                let name = hook[..1].to_uppercase() + &hook[1..];
                up.arg("--conf").arg(format!("{name}={}", file.display()));
            }
            up.args(["--conf", "PrologFlags=Alloc"]);
        }
        let output = up.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        if policy.is_some() {
            for node in 1..=nodes {
                cluster.start_service(&format!("n{node}"));
            }
        }
        cluster
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The program, where every user can execute it.
    pub fn program(&self) -> PathBuf {
        self.path("sweetspot")
    }

    /// Writes the script that Slurm runs before or after a job.
    fn write_hook(&self, hook: &str) -> PathBuf {
        let (file, folder) = (self.path(&format!("site-{hook}")), self.folder.display());
        let script = format!(
            "#!/bin/sh\nset -a; . {folder}/hosts/$SLURMD_NODENAME/env; set +a\nexec {folder}/sweetspot slurm {hook} --socket {folder}/$SLURMD_NODENAME/run/socket --policy {folder}/policy.toml >>{folder}/log/hooks 2>&1\n"
        );
        std::fs::write(&file, script).unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// Starts the service of a node.
    pub fn start_service(&mut self, node: &str) {
        let folder = self.path(node);
        std::fs::create_dir_all(&folder).unwrap();
        let library = folder.join("libnvml.so");
        std::fs::copy(self.host(node).join("lib/libnvidia-ml.so.1"), &library).unwrap();
        let service = Command::new(self.program())
            .arg("serve")
            .arg("--nvml")
            .arg(&library)
            .arg("--socket")
            .arg(folder.join("run/socket"))
            .arg("--journal")
            .arg(folder.join("journal"))
            .arg("--audit")
            .arg(folder.join("log/audit.jsonl"))
            .arg("--policy")
            .arg(self.path("policy.toml"))
            .env("SWEETSPOT_SIM", self.host(node))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        self.services.push(service);
        let socket = folder.join("run/socket");
        wait_for("the service", || {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        });
    }

    /// Kills the services of all nodes.
    pub fn kill_services(&mut self) {
        for mut service in self.services.drain(..) {
            let _ = service.kill();
            let _ = service.wait();
        }
    }

    /// The folder of the simulated host of a node.
    pub fn host(&self, node: &str) -> PathBuf {
        let file = self.path(&format!("hosts/{node}/env"));
        let variables = std::fs::read_to_string(file).unwrap();
        let line = variables
            .lines()
            .find_map(|line| line.strip_prefix("SWEETSPOT_SIM="));
        PathBuf::from(line.unwrap())
    }

    /// The power caps of a node's GPUs, and the frequencies to which their core clocks are locked.
    pub fn settings(&self, node: &str) -> Vec<(f64, Option<f64>)> {
        let host = Host::open(&self.host(node)).unwrap();
        let read = |gpu: &sweetspot_sim_host::SharedGpu| {
            gpu.with_gpu(|gpu| {
                (
                    gpu.power_cap().get(),
                    gpu.core_lock().map(|(_, high)| high.get()),
                )
            })
            .unwrap()
        };
        host.gpus().iter().map(read).collect()
    }

    /// A command that speaks to this cluster.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("SLURM_CONF", self.path("slurm.conf"))
            .env("XDG_CONFIG_HOME", NO_CONFIG)
            .current_dir(folder)
            .stdin(Stdio::null());
        command
    }

    /// Runs the program in a folder.
    pub fn sweetspot(&self, folder: &Path, words: &[&str]) -> Output {
        self.command(self.program(), folder)
            .args(words)
            .output()
            .unwrap()
    }

    /// Runs a command of Slurm and returns what it prints.
    pub fn slurm(&self, words: &[&str]) -> String {
        let output = self
            .command(words[0], Path::new("/"))
            .args(&words[1..])
            .output()
            .unwrap();
        text(&output.stdout)
    }

    /// Waits until no job is in the queue.
    pub fn wait_until_idle(&self) {
        wait_for("an empty queue", || {
            self.slurm(&["squeue", "--noheader"]).is_empty()
        });
    }

    /// Kills a daemon of this cluster.
    pub fn kill_daemon(&self, name: &str) {
        let pid = std::fs::read_to_string(self.path(&format!("pids/{name}"))).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill_services();
        let _ = Command::new(script("slurm-down"))
            .arg(&self.folder)
            .output();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Waits until something holds; panics if that takes too long.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
