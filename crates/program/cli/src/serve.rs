//! `sweetspot serve` and `sweetspot policy`.

use std::path::Path;

use anyhow::{Context, Result};
use rustix::process::{getegid, geteuid, getgroups};
use sweetspot_device::DeviceId;
use sweetspot_report::{Line, Text};
use sweetspot_service::install::{Installation, install, uninstall};
use sweetspot_service::policy::{Account, Gpu, SystemAccounts, explain};
use sweetspot_service::{ServiceFiles, load_policy, serve_users};
use sweetspot_session::gpu_ids;

use crate::args::{PolicyArgs, PolicyCommand, ServeArgs};
use crate::documents::print;
use crate::exit::Outcome;

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
    })?;
    Ok(Outcome::DONE)
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
