//! `sweetspot serve` and `sweetspot policy`.

use std::ffi::OsString;
use std::net::ToSocketAddrs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rustix::process::{getegid, geteuid, getgroups};
use sweetspot_device::DeviceId;
use sweetspot_report::{Line, Text};
use sweetspot_service::install::{Installation, install, uninstall};
use sweetspot_service::ownership::require_root_owned;
use sweetspot_service::policy::{Account, Gpu, SystemAccounts, explain};
use sweetspot_service::{MonitorFiles, ServiceFiles, load_policy, serve_users};
use sweetspot_session::gpu_ids;

use crate::args::{PolicyArgs, PolicyCommand, ServeArgs};
use crate::documents::print;
use crate::exit::Outcome;

/// The largest file with a token, in bytes.
const MAX_TOKEN_FILE: u64 = 4096;

/// Runs `sweetspot serve`.
pub fn run(args: &ServeArgs) -> Result<Outcome> {
    if args.install || args.uninstall {
        let installation = Installation {
            root: args.root.clone(),
            program: std::env::current_exe().context("cannot find the path of this program")?,
            nvml: args.files.nvml.clone(),
            start: true,
        };
        let (done, next) = match args.install {
            true => (
                install(&installation)?,
                Line::with_command(
                    "What a user may change:",
                    "sweetspot policy check --user NAME",
                ),
            ),
            false => (
                uninstall(&installation)?,
                Line::with_command("What works without it:", "sweetspot doctor"),
            ),
        };
        for sentence in done {
            print(format!("{sentence}\n"))?;
        }
        print(Text::empty_line() + next)?;
        return Ok(Outcome::DONE);
    }
    serve_users(&ServiceFiles {
        socket: args.socket.clone(),
        policy: args.policy.clone(),
        nvml: args.files.nvml.clone(),
        sysfs: args.files.sysfs.clone(),
        journal: args.files.journal.clone(),
        audit: args.files.audit.clone(),
        monitor: monitor_files(args)?,
    })?;
    Ok(Outcome::DONE)
}

/// The addresses and arguments of the measuring process.
fn monitor_files(args: &ServeArgs) -> Result<Option<MonitorFiles>> {
    if args.no_monitor {
        return Ok(None);
    }
    check_addresses(&args.listen, args.token_file.is_some(), args.insecure)?;
    let token = args.token_file.as_deref().map(read_token).transpose()?;
    let mut arguments: Vec<OsString> = Vec::new();
    if args.dcgm_names {
        arguments.push("--dcgm-names".into());
    }
    for name in &args.host_name {
        arguments.extend(["--host-name".into(), name.into()]);
    }
    Ok(Some(MonitorFiles {
        listen: args.listen.clone(),
        token,
        arguments,
        link: args.monitor_link.clone(),
    }))
}

/// Checks that addresses which other machines can reach have a token, and that the user knows that nothing is encrypted.
pub fn check_addresses(addresses: &[String], has_token: bool, is_insecure: bool) -> Result<()> {
    for address in addresses {
        if is_loopback(address)? {
            continue;
        }
        if !has_token {
            bail!(
                "{address} can be reached from other machines: give a file with a token for its clients (--token-file FILE)"
            );
        }
        if !is_insecure {
            bail!(
                "{address} can be reached from other machines, and this program does not encrypt: put a proxy with TLS in front of a loopback address, or add --insecure in a network that you trust"
            );
        }
    }
    Ok(())
}

/// Whether an address can be reached from this machine alone.
fn is_loopback(address: &str) -> Result<bool> {
    let addresses = address.to_socket_addrs();
    let mut addresses = addresses.with_context(|| {
        format!("invalid address `{address}`: use HOST:PORT, as in 127.0.0.1:9440")
    })?;
    Ok(addresses.all(|address| address.ip().to_canonical().is_loopback()))
}

/// Reads the token from a file that only root can change.
fn read_token(file: &Path) -> Result<String> {
    require_root_owned(file)?;
    parse_token(file)
}

/// Reads a token: one line of at least 16 visible characters.
pub fn parse_token(file: &Path) -> Result<String> {
    let text = sweetspot_input::read_text(file, MAX_TOKEN_FILE)?;
    let token = text.trim();
    let is_token = token.len() >= 16 && token.bytes().all(|byte| byte.is_ascii_graphic());
    match is_token {
        true => Ok(token.to_owned()),
        false => bail!(
            "{} has no token: write one line of 16 or more letters and digits to it, for example from `openssl rand -hex 32`",
            file.display()
        ),
    }
}

/// Runs `sweetspot policy`.
pub fn run_policy(args: &PolicyArgs) -> Result<Outcome> {
    match &args.command {
        PolicyCommand::Check { user, policy } => check_policy(user.as_deref(), policy),
    }
}

/// Checks the policy file and explains it for a user.
fn check_policy(user: Option<&str>, file: &Path) -> Result<Outcome> {
    let policy = load_policy(file)?;
    let (name, account) = match user {
        Some(name) => {
            let account = SystemAccounts.account(name);
            let account = account.with_context(|| format!("there is no user `{name}`"))?;
            (name.to_owned(), account)
        }
        None => calling_user()?,
    };
    // Without a driver the rules can be explained all the same.
    let ids: Vec<(u32, DeviceId)> = gpu_ids().unwrap_or_default();
    let gpus: Vec<Gpu<'_>> = ids
        .iter()
        .map(|(index, id)| Gpu { index: *index, id })
        .collect();
    print(explain(&policy, &name, &account, &gpus))?;
    let next = Line::with_command(
        "Whether the service runs and allows it:",
        "sweetspot doctor",
    );
    print(Text::empty_line() + next)?;
    Ok(Outcome::DONE)
}

/// The user who runs this program, with the groups that the kernel knows.
fn calling_user() -> Result<(String, Account)> {
    let uid = geteuid().as_raw();
    let mut groups: Vec<u32> = getgroups()?.iter().map(|group| group.as_raw()).collect();
    groups.push(getegid().as_raw());
    let user = sweetspot_service::privileges::User::from_uid(uid);
    let name = user.map_or_else(
        || uid.to_string(),
        |user| user.name.to_string_lossy().into_owned(),
    );
    Ok((name, Account { uid, groups }))
}
