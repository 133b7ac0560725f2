//! Follows the progress of a workload whose link another sweetspot reads.
//!
//! A [`ProgressTail`] changes nothing in the link: it only looks at the records that writer and reader share. Records
//! that were overwritten before it looked are counted as missing, not guessed.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::Moment;
use crate::host::Host;
use crate::layout::{
    HEADER_SIZE, Header, KIND_ITEMS, READ_INDEX_OFFSET, RECORD_SIZE, RING_PREFIX, RawRecord, u64_at,
};

/// The most rings that are followed at once.
const MAX_RINGS: usize = 64;
/// The most records of one ring that are read in one call.
const MAX_RECORDS: usize = 4096;

/// Counts the items that a workload reports over its link, without being the link's reader.
#[derive(Debug)]
pub struct ProgressTail {
    folder: PathBuf,
    rings: HashMap<PathBuf, Option<RingTail>>,
    items: f64,
    last: Option<Moment>,
}

/// The position in one ring.
#[derive(Debug)]
struct RingTail {
    file: File,
    header: Header,
    /// The number of the next record, counted from the first ever written.
    next: u64,
}

impl ProgressTail {
    /// Follows the rings of a link folder; items count from now on.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            rings: HashMap::new(),
            items: 0.0,
            last: None,
        }
    }

    /// Reads new records, and returns the time of the last report and all items since this value was created. `None`
    /// if there is no new report.
    pub fn poll(&mut self) -> Option<(Moment, f64)> {
        self.discover();
        let before = self.last;
        for ring in self.rings.values_mut().flatten() {
            let (mut count, mut last) = (0.0, None);
            ring.read(|record| {
                if record.kind == KIND_ITEMS {
                    count += record.value as f64;
                    last = Some(Moment::from_nanos(record.at));
                }
            });
            self.items += count;
            self.last = self.last.max(last);
        }
        (self.last > before)
            .then(|| self.last.map(|at| (at, self.items)))
            .flatten()
    }

    /// Opens rings that are new.
    fn discover(&mut self) {
        let entries = std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.starts_with(RING_PREFIX))
        });
        let names: Vec<PathBuf> = names.take(MAX_RINGS).collect();
        self.rings.retain(|path, _| names.contains(path));
        let host = Host::current();
        for path in names {
            self.rings
                .entry(path.clone())
                .or_insert_with(|| RingTail::open(&path, &host));
        }
    }
}

impl RingTail {
    /// Opens a ring for looking; `None` if it cannot be read.
    fn open(path: &Path, host: &Host) -> Option<Self> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = File::options()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)
            .ok()?;
        let mut bytes = [0; HEADER_SIZE];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let header = Header::parse(&bytes, host).ok()?;
        let is_whole = file.metadata().ok()?.size() == header.length() as u64;
        is_whole.then(|| Self {
            next: u64_at(&bytes, READ_INDEX_OFFSET),
            file,
            header,
        })
    }

    /// Passes every new record to a function.
    fn read(&mut self, mut with: impl FnMut(RawRecord)) {
        for _ in 0..MAX_RECORDS {
            let Some(record) = self.record() else { return };
            match record.sequence.checked_sub(1) {
                // A record of this lap, or of a later one if the writer was faster.
                Some(number) if number >= self.next => self.next = number + 1,
                _ => return,
            }
            with(record);
        }
    }

    /// The record at the present position, if it reads the same twice: the writer may be writing it.
    fn record(&self) -> Option<RawRecord> {
        let offset = self.header.record(self.next) as u64;
        let (mut first, mut second) = ([0; RECORD_SIZE], [0; RECORD_SIZE]);
        self.file.read_exact_at(&mut first, offset).ok()?;
        self.file.read_exact_at(&mut second, offset).ok()?;
        (first == second).then(|| RawRecord::parse(&first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, Writer};

    #[test]
    fn items_are_counted_beside_the_reader() {
        let parent = std::env::temp_dir();
        let mut reader = Reader::create_in(&parent).unwrap();
        let mut tail = ProgressTail::new(reader.folder());
        let writer = Writer::open(reader.folder()).unwrap();
        writer.progress(3);
        writer.progress(4);
        assert_eq!(tail.poll().map(|(_, items)| items), Some(7.0));
        assert_eq!(tail.poll(), None);
        reader.drain();
        writer.progress(5);
        assert_eq!(tail.poll().map(|(_, items)| items), Some(12.0));
        // The reader still gets every record.
        let records = reader.drain();
        assert!(!records.is_empty());
    }
}
