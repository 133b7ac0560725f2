//! What is done with the rights of the job's user: reading the user's stored choices, and writing to the job's folder. A
//! process of root must neither read nor write where a user decides what is there.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sweetspot_device::Settings;

use super::record::RECORD_MODE;
use super::{HookContext, JobEnvironment, JobGpu, JobRecord};

/// How long a process of the user may take: the user's home may be on a file system that does not answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Runs this program as the user of a job.
pub struct AsUser {
    /// The program.
    pub program: PathBuf,
}

impl AsUser {
    /// Runs the program as the user of a job, without any other right, and returns what it prints.
    fn run(&self, job: &JobEnvironment, words: &[&str], input: &[u8]) -> io::Result<Vec<u8>> {
        let mut command = Command::new(&self.program);
        command
            .arg("slurm")
            .args(words)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(user) = sweetspot_service::privileges::User::from_uid(job.uid) {
            command.env("HOME", user.home);
        }
        if rustix::process::geteuid().is_root() {
            // The standard library then gives up all other groups too.
            command.uid(job.uid).gid(job.gid);
        }
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(input);
        }
        let begun = Instant::now();
        loop {
            match child.try_wait()? {
                Some(status) if status.success() => break,
                Some(status) => return Err(io::Error::other(format!("it ended with {status}"))),
                None if begun.elapsed() > TIMEOUT => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(io::ErrorKind::TimedOut.into());
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        let mut printed = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(64 << 10).read_to_end(&mut printed)?;
        }
        Ok(printed)
    }

    /// Writes the record of a job to the job's folder, as its user.
    pub fn write_record(&self, job: &JobEnvironment, record: &JobRecord) -> io::Result<()> {
        if !job.folder.starts_with('/') {
            return Ok(());
        }
        let file = format!("{}/{}", job.folder, record.user_file_name());
        let text = serde_json::to_vec_pretty(record)?;
        self.run(job, &["write-record", &file], &text).map(drop)
    }
}

/// Writes a record from standard input to a file; this runs as the user of the job.
pub fn write_user_record(file: &Path) -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().take(1 << 20).read_to_end(&mut text)?;
    sweetspot_study::write_atomically_with_mode(file, &text, RECORD_MODE)
}

/// The settings that an earlier run of `tune` chose for an objective, from the choices of the site and of the user.
pub(super) fn find_choice(
    context: &HookContext<'_>,
    job: &JobEnvironment,
    objective: &str,
    workload: Option<&str>,
    gpus: &[JobGpu],
) -> Result<Settings, String> {
    let gpu = gpus.first().map_or("", |gpu| gpu.name.as_str());
    let count = gpus.len().to_string();
    let mut words = vec!["choice", objective, gpu, &count];
    let folder = context
        .policy
        .choices
        .as_ref()
        .and_then(|folder| folder.to_str());
    words.extend(folder.into_iter().flat_map(|folder| ["--folder", folder]));
    words.extend(workload.into_iter().flat_map(|name| ["--workload", name]));
    let printed = context.as_user.run(job, &words, &[]);
    let printed = printed.map_err(|error| format!("the stored choices cannot be read: {error}"))?;
    let found: Option<Settings> = serde_json::from_slice(&printed)
        .map_err(|_| "the stored choices cannot be read".to_owned())?;
    found.filter(|settings| *settings != Settings::default()).ok_or_else(|| {
        format!("no choice for the objective {objective} on {count} x {gpu} is stored: `sweetspot tune --objective {objective}` stores one")
    })
}
