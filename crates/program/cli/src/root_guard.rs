//! The process that changes settings as root for a user who used sudo, and nothing else.

use std::ffi::OsString;
use std::io::{self, BufRead};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use sweetspot_service::privileges::user_behind_sudo;
use sweetspot_service::{ServiceFiles, serve_sudo_user};

use crate::args::RootGuardArgs;
use crate::exit::Outcome;
use crate::messages::print_error;

/// Marks the keeper that runs in the background.
const DETACHED: &str = "SWEETSPOT_KEEPER";

/// Runs `sweetspot root-guard`.
pub fn run(args: &RootGuardArgs) -> Result<Outcome> {
    let user = user_behind_sudo()?;
    let user = user.context("this command is for sudo, which names the user who called it")?;
    match &args.socket {
        _ if args.check => {}
        Some(socket) => {
            let files = ServiceFiles {
                nvml: args.nvml.clone(),
                ..ServiceFiles::default()
            };
            serve_sudo_user(&files, socket, user.uid)?;
        }
        None => keep_starting(args)?,
    }
    Ok(Outcome::DONE)
}

/// Starts a process that changes settings for every socket that the user's program names, until that program ends.
///
/// The first process only starts the second and exits, so that the second is no child of the user's program, which
/// could neither end it nor wait for it.
fn keep_starting(args: &RootGuardArgs) -> Result<()> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    if std::env::var_os(DETACHED).is_none() {
        let mut keeper = own_program(&program);
        keeper.args(std::env::args_os().skip(1)).env(DETACHED, "1");
        keeper
            .process_group(0)
            .spawn()
            .context("cannot start in the background")?;
        return Ok(());
    }
    for line in io::stdin().lock().split(b'\n') {
        let socket = PathBuf::from(OsString::from_vec(
            line.context("cannot read standard input")?,
        ));
        // Anything else could be read as a flag.
        if !socket.is_absolute() {
            print_error("a socket must be named by its absolute path");
            continue;
        }
        let mut guard = own_program(&program);
        guard.arg("root-guard").arg(socket).stdin(Stdio::null());
        if let Some(library) = &args.nvml {
            guard.arg("--nvml").arg(library);
        }
        let mut started = guard
            .spawn()
            .context("cannot start a process that changes settings")?;
        // Nobody else waits for it.
        std::thread::spawn(move || started.wait());
    }
    Ok(())
}

/// A command that runs this very program, whose path is `name`. The file there may have been exchanged or deleted since
/// the program was started.
pub fn own_program(name: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name);
    command
}
