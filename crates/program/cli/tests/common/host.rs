//! A simulated host that exists for the duration of a test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use sweetspot_quantity::Watts;
use sweetspot_sim_host::Host;

use crate::common::{NO_CONFIG, program};

/// A simulated host, and the process that owns it.
pub struct TestHost {
    keeper: Child,
    stdin: Option<ChildStdin>,
    folder: PathBuf,
    library: PathBuf,
}

impl TestHost {
    pub fn new(gpus: &str) -> Self {
        let mut keeper = program()
            .args([
                "simulate",
                "--gpu",
                gpus,
                "--",
                "sh",
                "-c",
                "echo $SWEETSPOT_SIM; echo $SWEETSPOT_NVML; read line",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = keeper.stdin.take();
        let out = keeper.stdout.take().expect("its output is piped");
        let mut lines = BufReader::new(out).lines();
        let mut path = || PathBuf::from(lines.next().expect("a line").expect("of text"));
        let (folder, library) = (path(), path());
        Self {
            keeper,
            stdin,
            folder,
            library,
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets the cap of a GPU, as an administrator might have done before.
    pub fn set_cap(&self, gpu: usize, watts: f64) {
        let host = Host::open(&self.folder).expect("a host");
        let set = host.gpus()[gpu].with_gpu(|gpu| gpu.set_power_cap(Watts::new(watts)));
        set.expect("a GPU").expect("a cap that it takes");
    }

    /// Sets the same cap on every GPU.
    pub fn set_caps(&self, watts: f64) {
        let gpus = Host::open(&self.folder).expect("a host").gpus().len();
        (0..gpus).for_each(|gpu| self.set_cap(gpu, watts));
    }

    /// All writes to the devices, one per line.
    pub fn writes(&self) -> String {
        std::fs::read_to_string(self.folder.join("writes.log")).unwrap_or_default()
    }

    /// A command that sees the devices of this host.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("XDG_CONFIG_HOME", NO_CONFIG)
            .env("SWEETSPOT_SIM", &self.folder)
            .env("SWEETSPOT_NVML", &self.library)
            .env("LD_LIBRARY_PATH", self.folder.join("lib"));
        command
    }

    /// The guard processes on this host.
    pub fn guards(&self) -> Vec<u32> {
        let folder = format!("SWEETSPOT_SIM={}\0", self.folder.display());
        processes_with(|command, environment| {
            let is_guard = command.split(|byte| *byte == 0).nth(1) == Some(b"guard");
            is_guard && String::from_utf8_lossy(environment).contains(&folder)
        })
    }

    /// The program `sweetspot` on this host.
    pub fn sweetspot(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_sweetspot"))
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The processes with such a command line and environment.
pub fn processes_with(is_wanted: impl Fn(&[u8], &[u8]) -> bool) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("a list").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let read = |file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        is_wanted(&read("cmdline"), &read("environ"))
    })
    .collect()
}

/// Calls a function for the numbers 0 to `KILLS`, or to `default` without that variable, on four hosts at a time.
pub fn repeat_on_hosts<T: Send>(default: u64, run: impl Fn(&TestHost, u64) -> T + Sync) -> Vec<T> {
    repeat_on(default, || TestHost::new("v100"), run)
}

/// Does the same on four hosts of another kind.
pub fn repeat_on<H, T: Send>(
    default: u64,
    host: impl Fn() -> H + Sync,
    run: impl Fn(&H, u64) -> T + Sync,
) -> Vec<T> {
    let given = std::env::var("KILLS").ok();
    let count: u64 = given.and_then(|text| text.parse().ok()).unwrap_or(default);
    let next = AtomicU64::new(0);
    let work = || {
        let host = host();
        let mut results = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return results;
            }
            results.push(run(&host, number));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        let results = workers.into_iter().map(|worker| worker.join().unwrap());
        let results: Vec<T> = results.flatten().collect();
        assert_eq!(results.len() as u64, count);
        results
    })
}
