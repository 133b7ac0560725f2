//! Starts the guard process, with the rights that it needs to change settings.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result, bail};
use sweetspot_session::{SettingsAccess, StartAsRoot};
use sweetspot_workload::{GuardProgram, WorkloadError};
use tracing::level_filters::LevelFilter;

use crate::args::SudoArgs;
use crate::root_guard::own_program;

/// The process that was started as root before this one became the user who called sudo.
static KEEPER: OnceLock<Mutex<UnixStream>> = OnceLock::new();

/// Starts guard processes.
pub struct GuardLauncher {
    command: Box<dyn Fn() -> Result<Command, WorkloadError>>,
    asks_root: bool,
}

impl GuardLauncher {
    /// Finds out who can change settings: root's process that was started before, sudo if the user asks for it, the
    /// service if it runs, otherwise the guard process itself.
    pub fn new(args: &SudoArgs) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let access = match KEEPER.get() {
            Some(keeper) => SettingsAccess::Root(ask_keeper(keeper)),
            None if args.sudo && !rustix::process::geteuid().is_root() => {
                authenticate(&program)?;
                SettingsAccess::Root(start_with_sudo(program.clone()))
            }
            None => SettingsAccess::available(),
        };
        Ok(Self {
            asks_root: access.asks_root(),
            // The log level is passed on as a flag and not in the environment, because the user's command inherits the
            // environment of the guard.
            command: Box::new(move || {
                let mut guard = access.guard_command(own_program(&program))?;
                guard.args(["--log", &LevelFilter::current().to_string()]);
                Ok(guard)
            }),
        })
    }

    /// How guard processes are started.
    pub fn program(&self) -> GuardProgram<'_> {
        GuardProgram {
            command: &*self.command,
            asks_root: self.asks_root,
        }
    }
}

/// The arguments of a process that changes settings as root.
fn root_guard() -> Vec<std::ffi::OsString> {
    let mut words = vec!["root-guard".into()];
    // The environment of the user does not reach root's process. The library must belong to root, which that process
    // checks.
    if let Some(library) = std::env::var_os("SWEETSPOT_NVML") {
        words.extend(["--nvml".into(), library]);
    }
    words
}

/// Lets sudo ask for the password, where it needs one, before anything runs in the background.
fn authenticate(program: &Path) -> Result<()> {
    let mut sudo = Command::new("sudo");
    let status = sudo
        .arg("--")
        .arg(program)
        .args(root_guard())
        .arg("--check")
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("sudo does not allow you to change GPU settings as root"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "there is no program `sudo` on this machine: ask your administrator for the service (`sweetspot serve --install`)"
        ),
        Err(error) => Err(error).context("cannot run sudo"),
    }
}

/// Starts a process that changes settings through sudo, which has asked for the password already.
fn start_with_sudo(program: PathBuf) -> StartAsRoot {
    Box::new(move |socket| {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "--"])
            .arg(&program)
            .args(root_guard())
            .arg(socket);
        // Signals of the terminal are for this program, which restores the settings itself.
        sudo.stdin(Stdio::null()).process_group(0).spawn().map(drop)
    })
}

/// Asks the process that was started as root to start one that changes settings.
fn ask_keeper(keeper: &'static Mutex<UnixStream>) -> StartAsRoot {
    Box::new(|socket| {
        let mut stream = keeper.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(socket.as_os_str().as_encoded_bytes())?;
        stream.write_all(b"\n")
    })
}

/// Starts the process that stays root when this one becomes the user who called sudo.
pub fn start_keeper() -> Result<()> {
    let (own, other) = UnixStream::pair().context("cannot make a socket")?;
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let mut keeper = own_program(&program);
    let status = keeper
        .args(root_guard())
        .arg("--keeper")
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(other)))
        .status()
        .context("cannot start the process that changes settings as root")?;
    if !status.success() {
        bail!("the process that changes settings as root cannot be started");
    }
    let _ = KEEPER.set(Mutex::new(own));
    Ok(())
}
