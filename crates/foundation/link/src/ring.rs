//! Reads the records of one ring file.
//!
//! Files are read with system calls and not through a mapping: a workload that truncates its ring would end the
//! tool with SIGBUS.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{Ordering, fence};

use crate::event::{Event, Mark, Name, Record, Ring};
use crate::host::Host;
use crate::layout::{
    CLOSED_OFFSET, HEADER_SIZE, Header, HeaderError, KIND_BEGIN, KIND_END, KIND_ITEMS, KIND_PHASE,
    KIND_VALUE, LOST_OFFSET, READ_INDEX_OFFSET, RECORD_SIZE, REFUSED_OFFSET, RawRecord, SLOT_SIZE,
    VERSION, parse_slot, u64_at,
};
use crate::{LinkError, Moment};

/// The number of records that are read first, because most reads find few records.
const FIRST_CHUNK_RECORDS: usize = 64;
/// The number of records that are read at once if there are many.
const CHUNK_RECORDS: usize = 1024;
/// A missing record counts as lost after this many nanoseconds.
const MAX_HOLE_NANOS: u64 = 500_000_000;

/// A ring file, as the reader sees it.
#[derive(Debug)]
pub(crate) struct RingFile {
    file: File,
    path: PathBuf,
    header: Header,
    ring: Ring,
    /// The number of the next record to read, counted from the first record ever written.
    next: u64,
    /// The number of lost records that were reported so far.
    lost: u64,
    /// The number of rejected names that were reported so far.
    refused: u64,
    /// The time since which the next record has been missing although the record after it is there.
    hole_since: Option<Moment>,
    names: Vec<Option<Name>>,
}

/// The part of the header that the writer changes.
struct State {
    lost: u64,
    refused: u64,
    closed: bool,
}

impl RingFile {
    /// Opens a ring file and checks its header; `number` identifies the ring in events.
    pub fn open(file: File, path: PathBuf, number: u32, host: &Host) -> Result<Self, LinkError> {
        let mut bytes = [0; HEADER_SIZE];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(source) => return Err(unreadable(path, source)),
        }
        let header = match Header::parse(&bytes, host) {
            Ok(header) => header,
            Err(error) => return Err(header_error(path, error)),
        };
        let length = match file.metadata() {
            Ok(metadata) => metadata.len(),
            Err(source) => return Err(LinkError::File { file: path, source }),
        };
        if length != header.length() as u64 {
            let why = "the file's length does not match its header";
            return Err(LinkError::Malformed { file: path, why });
        }
        let read = [
            u64_at(&bytes, READ_INDEX_OFFSET),
            u64_at(&bytes, READ_INDEX_OFFSET + 8),
        ];
        Ok(Self {
            file,
            path,
            header,
            ring: Ring {
                number,
                pid: header.pid,
                tid: header.tid,
                rank: header.rank,
            },
            next: if read[0] == read[1] { read[0] } else { 0 },
            lost: 0,
            refused: 0,
            hole_since: None,
            names: vec![None; header.slots as usize],
        })
    }

    /// The identity of the ring.
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// Reads the available records, but at most the ring's capacity, and returns whether the ring has ended.
    pub fn drain(&mut self, host: &Host, events: &mut Vec<Event>) -> Result<bool, LinkError> {
        let before = events.len();
        // The state is read before the records: if the ring has ended, the records read below are all there are.
        let state = self.state()?;
        let emptied = self.read_records(state.closed, events)?;
        if !emptied {
            return Ok(false);
        }
        self.report_counts(&state, events);
        if state.closed || events.len() > before {
            return Ok(state.closed);
        }
        let Header {
            pid,
            tid,
            start,
            namespace,
            ..
        } = self.header;
        if !host.has_ended(namespace, pid, tid, start) {
            return Ok(false);
        }
        let state = self.state()?;
        let emptied = self.read_records(true, events)?;
        if emptied {
            self.report_counts(&state, events);
        }
        Ok(emptied)
    }

    /// Reads the part of the header that the writer changes.
    fn state(&self) -> Result<State, LinkError> {
        let mut bytes = [0; CLOSED_OFFSET + 8 - LOST_OFFSET];
        self.read(&mut bytes, LOST_OFFSET)?;
        Ok(State {
            lost: u64_at(&bytes, 0),
            refused: u64_at(&bytes, REFUSED_OFFSET - LOST_OFFSET),
            closed: u64_at(&bytes, CLOSED_OFFSET - LOST_OFFSET) != 0,
        })
    }

    /// Reports records and names that the writer has dropped since the last call.
    fn report_counts(&mut self, state: &State, events: &mut Vec<Event>) {
        let ring = self.ring;
        if state.lost > self.lost {
            let count = state.lost - self.lost;
            events.push(Event::Lost { ring, count });
            self.lost = state.lost;
        }
        if state.refused > self.refused {
            let count = state.refused - self.refused;
            events.push(Event::NamesRefused { ring, count });
            self.refused = state.refused;
        }
    }

    /// Reads records and returns whether the ring is empty now. It is not if the writer added records as fast
    /// as they were read.
    fn read_records(&mut self, ended: bool, events: &mut Vec<Event>) -> Result<bool, LinkError> {
        let lap = self.next.saturating_add(u64::from(self.header.capacity));
        let mut buffer = [0; CHUNK_RECORDS * RECORD_SIZE];
        let mut chunk = FIRST_CHUNK_RECORDS;
        while self.next < lap {
            let to_end =
                u64::from(self.header.capacity) - (self.next & u64::from(self.header.capacity - 1));
            let want = (to_end.min(lap - self.next) as usize).min(chunk);
            let bytes = &mut buffer[..want * RECORD_SIZE];
            self.read(bytes, self.header.record(self.next))?;
            let count = self.published(bytes);
            if count == 0 {
                if self.has_arrived()? {
                    return Ok(false);
                }
                if !self.is_hole(ended)? {
                    return Ok(true);
                }
                let (ring, count) = (self.ring, 1);
                events.push(Event::Lost { ring, count });
                self.next += 1;
                self.hole_since = None;
                continue;
            }
            // The records are read again, because they may have been read before their sequence number was.
            fence(Ordering::Acquire);
            let bytes = &mut buffer[..count * RECORD_SIZE];
            self.read(bytes, self.header.record(self.next))?;
            if self.published(bytes) != count {
                return Err(self.damaged("the record was changed after it was complete"));
            }
            for record in bytes.chunks_exact(RECORD_SIZE) {
                self.decode(RawRecord::parse(record), events)?;
                self.next += 1;
            }
            self.publish_index()?;
            self.hole_since = None;
            chunk = CHUNK_RECORDS;
        }
        Ok(false)
    }

    /// The number of complete records at the beginning of `bytes`: those with the expected sequence number.
    fn published(&self, bytes: &[u8]) -> usize {
        bytes
            .chunks_exact(RECORD_SIZE)
            .zip(self.next.saturating_add(1)..)
            .take_while(|(record, sequence)| u64_at(record, RECORD_SIZE - 8) == *sequence)
            .count()
    }

    /// Whether the next record has been written meanwhile. If it has not, its sequence number must be that of
    /// the previous lap, or zero during a write; any other number is an error.
    fn has_arrived(&self) -> Result<bool, LinkError> {
        let expected = self.next.saturating_add(1);
        let before = expected.saturating_sub(u64::from(self.header.capacity));
        // A read during a write sees another value the next time.
        for _ in 0..3 {
            let sequence = self.sequence(self.next)?;
            if sequence == expected {
                return Ok(true);
            }
            if sequence == before || sequence == 0 {
                return Ok(false);
            }
        }
        Err(self.damaged("the record's sequence number is not the expected one"))
    }

    /// Whether the next record will never be written, because its writer was interrupted and continued with
    /// the record after it. This is assumed after [`MAX_HOLE_NANOS`]; otherwise the ring would seem empty
    /// forever.
    fn is_hole(&mut self, ended: bool) -> Result<bool, LinkError> {
        let after = self.next.saturating_add(1);
        let skipped = self.sequence(after)? == after.saturating_add(1);
        if !skipped || self.has_arrived()? {
            self.hole_since = None;
            return Ok(false);
        }
        let now = Moment::now();
        let since = *self.hole_since.get_or_insert(now);
        Ok(ended || now.nanos().saturating_sub(since.nanos()) > MAX_HOLE_NANOS)
    }

    /// Reads the sequence number of a record.
    fn sequence(&self, number: u64) -> Result<u64, LinkError> {
        let mut bytes = [0; 8];
        self.read(&mut bytes, self.header.record(number) + RECORD_SIZE - 8)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Converts a record to an event.
    fn decode(&mut self, raw: RawRecord, events: &mut Vec<Event>) -> Result<(), LinkError> {
        let ring = self.ring;
        let count = u64::from(raw.lost.wrapping_sub(self.lost as u32));
        if count > 0 {
            events.push(Event::Lost { ring, count });
            self.lost = self.lost.wrapping_add(count);
        }
        let mark = match raw.kind {
            KIND_BEGIN => Mark::Begin(self.name(raw.name)?),
            KIND_END => Mark::End(self.name(raw.name)?),
            KIND_PHASE => Mark::Phase {
                name: self.name(raw.name)?,
                end: Moment::from_nanos(raw.value),
            },
            KIND_ITEMS => Mark::Items(raw.value),
            KIND_VALUE => Mark::Value {
                name: self.name(raw.name)?,
                value: f64::from_bits(raw.value),
            },
            _ => return Err(self.damaged("the record's kind is unknown")),
        };
        let at = Moment::from_nanos(raw.at);
        events.push(Event::Record(Record { ring, at, mark }));
        Ok(())
    }

    /// The name with this index in the table of names.
    fn name(&mut self, index: u32) -> Result<Name, LinkError> {
        let Some(known) = self.names.get(index as usize) else {
            return Err(self.damaged("the record's name index is outside of the table of names"));
        };
        if let Some(name) = known {
            return Ok(name.clone());
        }
        let mut slot = [0; SLOT_SIZE];
        self.read(&mut slot, self.header.slot(index))?;
        let Some(text) = parse_slot(&slot) else {
            return Err(self.damaged("the record's name is missing in the table of names"));
        };
        let name = Name::from(text);
        self.names[index as usize] = Some(name.clone());
        Ok(name)
    }

    /// Publishes the index of the next record to read. It is written twice, so the writer can detect an
    /// incomplete update.
    fn publish_index(&self) -> Result<(), LinkError> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next.to_le_bytes());
        bytes[8..].copy_from_slice(&self.next.to_le_bytes());
        self.file
            .write_all_at(&bytes, READ_INDEX_OFFSET as u64)
            .map_err(|source| unreadable(self.path.clone(), source))
    }

    /// Reads bytes at an offset of the file.
    fn read(&self, bytes: &mut [u8], at: usize) -> Result<(), LinkError> {
        self.file
            .read_exact_at(bytes, at as u64)
            .map_err(|source| unreadable(self.path.clone(), source))
    }

    /// The error that the next record is damaged.
    fn damaged(&self, why: &'static str) -> LinkError {
        LinkError::Damaged {
            file: self.path.clone(),
            record: self.next,
            why,
        }
    }
}

/// The error that the file cannot be read.
fn unreadable(file: PathBuf, source: io::Error) -> LinkError {
    if source.kind() == io::ErrorKind::UnexpectedEof {
        let why = "the file is truncated";
        return LinkError::Malformed { file, why };
    }
    LinkError::File { file, source }
}

/// Converts a problem with the header to an error about the file.
fn header_error(file: PathBuf, error: HeaderError) -> LinkError {
    match error {
        HeaderError::Malformed(why) => LinkError::Malformed { file, why },
        HeaderError::Version(found) => LinkError::Version {
            file,
            found,
            known: VERSION,
        },
        HeaderError::OtherBoot => LinkError::OtherBoot { file },
    }
}
