//! Helpers of the link's tests.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_link::{Event, LINK_VARIABLE, Mark, Moment, Reader, Record};

/// A folder for links, in shared memory if possible.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// The ring files of a link.
pub fn ring_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("ring-")
        })
        .collect();
    files.sort();
    files
}

pub fn records(events: &[Event]) -> Vec<&Record> {
    let mut records = Vec::new();
    for event in events {
        if let Event::Record(record) = event {
            records.push(record);
        }
    }
    records
}

pub fn marks(events: &[Event]) -> Vec<&Mark> {
    records(events).iter().map(|it| &it.mark).collect()
}

/// Marks as one word each.
pub fn describe_marks(events: &[Event]) -> Vec<String> {
    let show = |record: &&Record| match &record.mark {
        Mark::Begin(name) => format!("+{name}"),
        Mark::End(name) => format!("-{name}"),
        Mark::Phase { name, .. } => format!("={name}"),
        Mark::Items(items) => format!("{items}"),
        Mark::Value { name, value } => format!("{name}:{value}"),
    };
    records(events).iter().map(show).collect()
}

pub fn lost(events: &[Event]) -> u64 {
    let count = |event: &Event| match event {
        Event::Lost { count, .. } => *count,
        _ => 0,
    };
    events.iter().map(count).sum()
}

pub fn faults(events: &[Event]) -> Vec<String> {
    let fault = |event: &Event| match event {
        Event::Fault(error) => Some(error.to_string()),
        _ => None,
    };
    events.iter().filter_map(fault).collect()
}

pub fn ended(events: &[Event]) -> usize {
    let ended = |event: &&Event| matches!(event, Event::Ended(_));
    events.iter().filter(ended).count()
}

/// Drains until a condition is true, and panics if it does not become true.
pub fn drain_until(reader: &mut Reader, condition: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let start = Moment::now().nanos();
    let mut events = Vec::new();
    loop {
        events.extend(reader.drain());
        if condition(&events) {
            return events;
        }
        let waited = Moment::now().nanos() - start;
        let others = || events.iter().filter(|it| !matches!(it, Event::Record(_)));
        assert!(
            waited < 20_000_000_000,
            "waited in vain: {:?}",
            others().collect::<Vec<_>>()
        );
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// A program that the tests need; the test fails if it is missing.
pub fn program(name: &str) -> Command {
    let version = Command::new(name).arg("--version").output();
    assert!(
        version.is_ok(),
        "{name} is needed: scripts/setup installs it"
    );
    Command::new(name)
}

/// Python with the client on its path and a link.
pub fn python(link: &Path) -> Command {
    let mut command = program("python3");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../python/src");
    command.env("PYTHONPATH", source).env(LINK_VARIABLE, link);
    for rank in ["RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK"] {
        command.env_remove(rank);
    }
    command
}
