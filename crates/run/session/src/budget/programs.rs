//! Finds the programs that use GPUs, their links, and the `hold` processes that run them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use sweetspot_link::{LINK_VARIABLE, ProgressTail};
use sweetspot_quantity::Seconds;

use crate::hold::socket::{ControlledVerb, running_pids};

/// The most ancestors of a process that are looked at.
const MAX_ANCESTORS: usize = 64;

/// A program on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuProgram {
    /// A number that identifies the program; the same for all GPUs of one job.
    pub id: u64,
    /// The folder of its link, if it has one that this user may read.
    pub link: Option<PathBuf>,
    /// The process id of the `hold` that runs it, if one does.
    pub hold: Option<u32>,
}

/// Finds programs and follows their progress.
#[derive(Debug, Default)]
pub struct Programs {
    tails: HashMap<PathBuf, ProgressTail>,
    holds: Vec<u32>,
}

impl Programs {
    /// Looks for running holds.
    pub fn refresh(&mut self) {
        self.holds = running_pids(ControlledVerb::Hold);
    }

    /// The running holds.
    pub fn holds(&self) -> &[u32] {
        &self.holds
    }

    /// The program that consists of these processes; `None` without processes.
    pub fn find(&self, pids: &[u32]) -> Option<GpuProgram> {
        let first = pids.iter().min()?;
        let link = pids.iter().find_map(|pid| link_of(*pid));
        let hold = pids.iter().find_map(|pid| self.hold_of(*pid));
        let mut hasher = DefaultHasher::new();
        match &link {
            Some(link) => link.hash(&mut hasher),
            None => (first, start_time(*first)).hash(&mut hasher),
        }
        Some(GpuProgram {
            id: hasher.finish(),
            link,
            hold,
        })
    }

    /// The hold among the ancestors of a process.
    fn hold_of(&self, pid: u32) -> Option<u32> {
        let mut pid = pid;
        for _ in 0..MAX_ANCESTORS {
            if self.holds.contains(&pid) {
                return Some(pid);
            }
            pid = parent_of(pid).filter(|parent| *parent > 1)?;
        }
        None
    }

    /// Reads the new reports of all links that programs use: the link, the time of its last report on the monotonic
    /// clock, and its items.
    pub fn progress(&mut self, programs: &[Option<GpuProgram>]) -> Vec<(PathBuf, Seconds, f64)> {
        let links = programs.iter().flatten();
        let links: HashSet<&PathBuf> = links.filter_map(|program| program.link.as_ref()).collect();
        self.tails.retain(|link, _| links.contains(link));
        for link in links {
            let new = || ProgressTail::new(link);
            self.tails.entry(link.clone()).or_insert_with(new);
        }
        let tails = self.tails.iter_mut();
        let reports = tails.filter_map(|(link, tail)| {
            let (at, items) = tail.poll()?;
            Some((link.clone(), Seconds::new(at.nanos() as f64 / 1e9), items))
        });
        reports.collect()
    }
}

/// The link folder in the environment of a process; `None` for a process of another user.
fn link_of(pid: u32) -> Option<PathBuf> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    variables.find_map(|variable| {
        let value = variable
            .strip_prefix(LINK_VARIABLE.as_bytes())?
            .strip_prefix(b"=")?;
        Some(PathBuf::from(OsStr::from_bytes(value)))
    })
}

/// Fields of `/proc/PID/stat` after the name, which may contain anything.
fn stat_field(pid: u32, number: usize) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(number)?.parse().ok()
}

/// The parent of a process.
fn parent_of(pid: u32) -> Option<u32> {
    stat_field(pid, 1).and_then(|parent| u32::try_from(parent).ok())
}

/// When a process started, in clock ticks since boot.
fn start_time(pid: u32) -> Option<u64> {
    stat_field(pid, 19)
}
