//! Other accounts and containers on the same machine.
//!
//! The tests change their user and their view of the file system, which needs root; scripts/test leaves them out without it.

mod containers;
mod folders;
mod processors;
mod sockets;

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::host::TestHost;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// Two accounts without rights; they need no entry in the list of users.
const VICTIM: u32 = 54_321;
const ATTACKER: u32 = 54_322;

/// A simulated host whose GPUs look real: the library is not in the host's folder, so that journals go to the folders of
/// users and of root.
struct SharedMachine {
    host: TestHost,
    folder: tempfile::TempDir,
}

impl SharedMachine {
    fn new() -> Self {
        let host = TestHost::new("v100");
        let folder = tempfile::tempdir().unwrap();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        open(folder.path(), 0o755);
        let library = folder.path().join("libnvidia-ml.so.1");
        std::fs::copy(host.folder().join("lib/libnvidia-ml.so.1"), &library).unwrap();
        std::fs::copy(PROGRAM, folder.path().join("sweetspot")).unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        open(&folder.path().join("tmp"), 0o1777);
        for user in [VICTIM, ATTACKER] {
            let home = folder.path().join(user.to_string());
            std::fs::create_dir(&home).unwrap();
            chown(&home, Some(user), Some(user)).unwrap();
        }
        // Everybody may log the writes to the GPUs.
        std::fs::write(host.folder().join("writes.log"), "").unwrap();
        open(&host.folder().join("writes.log"), 0o666);
        Self { host, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The environment of a user with this home folder.
    fn environment(&self, mut command: Command, home: &Path) -> Command {
        command
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("XDG_STATE_HOME")
            .env("XDG_CONFIG_HOME", crate::common::NO_CONFIG)
            .env("HOME", home)
            .env("TMPDIR", self.path("tmp"))
            .env("SWEETSPOT_SIM", self.host.folder())
            .env("SWEETSPOT_NVML", self.path("libnvidia-ml.so.1"))
            .current_dir(home)
            .stdin(Stdio::null());
        command
    }

    /// A program that a user without rights runs.
    fn as_user(&self, user: u32, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        let id = user.to_string();
        command
            .args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"])
            .arg(program);
        self.environment(command, &self.path(&id))
    }

    /// A shell in a mount namespace of its own, as in a container: /run, /var/lib and /tmp are empty.
    fn container(&self, flags: &[&str], script: &str) -> Command {
        let mut command = Command::new("unshare");
        let private = "mount -t tmpfs none /run && mount -t tmpfs none /var/lib";
        command
            .arg("--mount")
            .args(flags)
            .args(["sh", "-c", &format!("{private} && {script}")]);
        self.environment(command, self.folder.path())
    }

    /// Makes the GPUs a user's own, who may then change their settings, as root still may.
    fn give_gpus_to(&self, user: u32) {
        let given = Command::new("chown")
            .arg("-R")
            .arg(user.to_string())
            .arg(self.host.folder())
            .status();
        assert!(given.unwrap().success());
    }

    fn cap(&self) -> f64 {
        let host = sweetspot_sim_host::Host::open(self.host.folder()).unwrap();
        let cap = host.gpus()[0].with_gpu(|gpu| gpu.power_cap());
        cap.unwrap().get()
    }

    fn program(&self) -> String {
        self.path("sweetspot").display().to_string()
    }
}

/// Runs a command, and ends it if it takes longer than a test may wait.
fn output_within(mut command: Command, seconds: u64) -> Option<Output> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed().as_secs() >= seconds {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Some(child.wait_with_output().unwrap())
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
