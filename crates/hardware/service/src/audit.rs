//! The audit log: who asked for what, what was set before and after, and what was refused. One JSON object per line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Map, Value};
use sweetspot_guard::Owner;

use crate::rate::Allowance;

/// When the log is larger than this, it is renamed and a new one begins.
const MAX_BYTES: u64 = 32 << 20;

/// How many refusals of one user are logged at once, and per second after that. A flood of requests must neither fill the
/// disk nor push older lines out.
const REFUSALS_AT_ONCE: f64 = 50.0;
const REFUSALS_PER_SECOND: f64 = 1.0;

/// The same for all users together: a user can have many user ids. At this rate it takes days to push out a line.
const ALL_REFUSALS_AT_ONCE: f64 = 2000.0;
const ALL_REFUSALS_PER_SECOND: f64 = 0.25;

/// The most users whose refusals are counted separately, unless all of them have just been refused something.
const MAX_USERS: usize = 1000;

/// The longest reason of a refusal. It may quote what the user has sent.
const MAX_REASON: usize = 600;

/// The audit log.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    refusals: HashMap<u32, Refusals>,
    /// How many refusals of all users may be logged.
    all_refusals: Allowance,
    /// The number of refusals that were not logged, of users who are no longer counted separately.
    left_out_of_others: u64,
}

/// The refusals of one user.
#[derive(Debug)]
struct Refusals {
    /// How many may be logged.
    allowance: Allowance,
    /// The number that was not logged since the last one that was.
    left_out: u64,
}

/// A line of the log.
#[derive(Debug, Serialize)]
struct Line<'a> {
    /// Seconds since 1970.
    time: f64,
    event: &'a str,
    uid: Option<u32>,
    pid: u32,
    owner: String,
    #[serde(flatten)]
    details: Map<String, Value>,
}

impl Audit {
    /// Opens the log, which is created if needed. Only root can read it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let audit = Self {
            path: path.to_owned(),
            refusals: HashMap::new(),
            all_refusals: Allowance::new(
                ALL_REFUSALS_AT_ONCE,
                ALL_REFUSALS_PER_SECOND,
                Instant::now(),
            ),
            left_out_of_others: 0,
        };
        audit.file().map(|_| audit)
    }

    /// Opens the file for appending.
    fn file(&self) -> io::Result<File> {
        File::options()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(&self.path)
    }

    /// Adds a line. The line is written when this returns; an error means that it is not.
    pub fn record(&self, event: &str, owner: &Owner, details: Value) -> io::Result<()> {
        let line = Line {
            time: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |time| time.as_millis() as f64 / 1000.0),
            event,
            uid: owner.uid,
            pid: owner.pid,
            owner: owner.to_string(),
            details: match details {
                Value::Object(details) => details,
                other => Map::from_iter([("details".to_owned(), other)]),
            },
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let mut file = self.file()?;
        let mut length = file.metadata()?.len();
        if length > MAX_BYTES {
            std::fs::rename(&self.path, self.path.with_extension("old.jsonl"))?;
            file = self.file()?;
            length = 0;
        }
        file.write_all(&text).inspect_err(|_| {
            // Where the disk is full, the beginning of the line may be written. The next line must not follow it.
            let _ = file.set_len(length);
        })
    }

    /// Adds a line that cannot prevent anything any more, such as what a write has led to. Errors go to the journal of
    /// the system.
    pub fn report(&self, event: &str, owner: &Owner, details: Value) {
        if let Err(error) = self.record(event, owner, details) {
            tracing::error!(%error, path = %self.path.display(), "cannot write the audit log");
        }
    }

    /// Adds a line about a refused request, unless there were too many of them.
    pub fn refusal(&mut self, owner: &Owner, request: &str, reason: &str, now: Instant) {
        if self.refusals.len() >= MAX_USERS {
            self.forget_users(now);
        }
        let new = || Refusals {
            allowance: Allowance::new(REFUSALS_AT_ONCE, REFUSALS_PER_SECOND, now),
            left_out: 0,
        };
        let uid = owner.uid.unwrap_or(u32::MAX);
        let refusals = self.refusals.entry(uid).or_insert_with(new);
        if !refusals.allowance.take(now) || !self.all_refusals.take(now) {
            refusals.left_out += 1;
            return;
        }
        let reason: String = reason.chars().take(MAX_REASON).collect();
        let mut details = serde_json::json!({"request": request, "reason": reason});
        let left_out = [
            ("refusals_left_out", &mut refusals.left_out),
            ("refusals_left_out_of_others", &mut self.left_out_of_others),
        ];
        for (key, count) in left_out {
            if *count > 0 {
                details[key] = std::mem::take(count).into();
            }
        }
        self.report("refused", owner, details);
    }

    /// Forgets users who have not been refused anything for a while.
    fn forget_users(&mut self, now: Instant) {
        let left_out = &mut self.left_out_of_others;
        self.refusals.retain(|_, one| {
            let is_kept = !one.allowance.is_full(now);
            if !is_kept {
                *left_out += one.left_out;
            }
            is_kept
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_counted_and_not_logged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut audit = Audit::open(&path).unwrap();
        let (owner, begin) = (Owner::current_process(), Instant::now());
        for _ in 0..1000 {
            audit.refusal(&owner, "apply", "no", begin);
        }
        audit.refusal(
            &owner,
            "apply",
            "no",
            begin + std::time::Duration::from_secs(2),
        );
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 51);
        assert_eq!(lines[50]["refusals_left_out"], 950);
        assert_eq!(lines[0]["reason"], "no");
    }

    /// A user with subordinate ids can ask as thousands of users.
    #[test]
    fn a_flood_of_many_users_neither_fills_the_log_nor_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut audit = Audit::open(&path).unwrap();
        let mut owner = Owner::current_process();
        let mut now = Instant::now();
        for uid in 0..20_000 {
            owner.uid = Some(uid);
            audit.refusal(&owner, "apply", &"x".repeat(16_000), now);
            now += std::time::Duration::from_millis(10);
        }
        assert!(
            audit.refusals.len() <= MAX_USERS,
            "{}",
            audit.refusals.len()
        );
        let length = path.metadata().unwrap().len();
        assert!(length < 4 << 20, "{length}");
    }

    #[test]
    fn a_link_in_place_of_the_log_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        std::os::unix::fs::symlink(folder.path().join("other"), &path).unwrap();
        assert!(Audit::open(&path).is_err());
    }
}
