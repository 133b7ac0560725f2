//! The link as the workload uses it: each thread that writes has its own ring.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::control::{Tuning, tuning, word};
use crate::host::{Host, rank, thread_start};
use crate::layout::{
    BATCH_SIZE_INDEX, CLOSED_OFFSET, CONTROL_FILE, CONTROL_FILE_SIZE, CONTROL_HEADER_SIZE,
    DEFAULT_SLOTS, Header, HeaderError, KIND_BEGIN, KIND_END, KIND_ITEMS, KIND_PHASE, KIND_VALUE,
    LOST_OFFSET, OTHER_NAMES, READ_INDEX_OFFSET, REFUSED_OFFSET, RING_PREFIX, SLOT_SIZE,
    TUNING_INDEX, VERSION, parse_control, slot_bytes, third_word,
};
use crate::map::Map;
use crate::{LINK_VARIABLE, LinkError, Moment, value};

/// Writes phases, processed items and values to the link. It can only be used in the thread that created it.
///
/// A forked child must create its own writer and must not use its parent's.
#[derive(Debug)]
pub struct Writer {
    map: Map,
    control: Map,
    header: Header,
    /// The number of the next record to write, counted from 0.
    next: Cell<u64>,
    /// The number of the first record that does not fit into the ring, as of the last look at the reader's
    /// progress.
    limit: Cell<u64>,
    lost: Cell<u64>,
    /// The batch size last reported as [`crate::value::BATCH_SIZE`]; 0 if none was.
    reported_batch_size: Cell<u64>,
    /// The smallest batch size that did not fit into memory; 0 if there is none.
    too_large: Cell<u64>,
    names: RefCell<HashMap<Box<str>, u32, BuildHasherDefault<Fnv>>>,
    // The header contains the thread's id, and the ring ends with the thread.
    not_send: PhantomData<*const ()>,
}

impl Writer {
    /// Opens a ring in the folder that [`crate::LINK_VARIABLE`] names; `None` if the variable is not set.
    pub fn from_env() -> Result<Option<Self>, LinkError> {
        Self::from_env_as_rank(rank())
    }

    /// Opens a ring of this rank in the folder that [`crate::LINK_VARIABLE`] names; `None` if the variable is not set.
    /// A process that runs several ranks itself opens one ring for each.
    pub fn from_env_as_rank(rank: Option<u32>) -> Result<Option<Self>, LinkError> {
        match std::env::var_os(LINK_VARIABLE) {
            Some(folder) if !folder.is_empty() => {
                Self::open_as_rank(Path::new(&folder), rank).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Creates the calling thread's ring buffer in the folder of a shared-memory link.
    pub fn open(folder: &Path) -> Result<Self, LinkError> {
        Self::open_as_rank(folder, rank())
    }

    /// Creates a ring buffer of this rank in the folder of a shared-memory link.
    fn open_as_rank(folder: &Path, rank: Option<u32>) -> Result<Self, LinkError> {
        let (control, capacity) = open_control(folder)?;
        let host = Host::current();
        let header = Header {
            capacity,
            slots: DEFAULT_SLOTS,
            rank,
            boot: host.boot,
            pid: std::process::id(),
            tid: rustix::thread::gettid().as_raw_pid() as u32,
            start: thread_start(),
            namespace: host.namespace,
        };
        let (pid, tid, nanos) = (header.pid, header.tid, Moment::now().nanos());
        let file = folder.join(format!("{RING_PREFIX}{pid}-{tid}-{nanos}"));
        // Readers ignore files with this name; the file is renamed when it is complete.
        let draft = folder.join(format!(".{RING_PREFIX}{pid}-{tid}-{nanos}"));
        let made = create(&draft, &header).and_then(|map| {
            std::fs::rename(&draft, &file)?;
            Ok(map)
        });
        let map = made.map_err(|source| {
            let _ = std::fs::remove_file(&draft);
            LinkError::File { file, source }
        })?;
        Ok(Self {
            map,
            control,
            header,
            next: Cell::new(0),
            limit: Cell::new(u64::from(capacity)),
            lost: Cell::new(0),
            reported_batch_size: Cell::new(0),
            too_large: Cell::new(0),
            names: RefCell::new(HashMap::from_iter([(OTHER_NAMES.into(), 0)])),
            not_send: PhantomData,
        })
    }

    /// Marks the beginning of a phase.
    pub fn begin(&self, name: &str) {
        self.write(KIND_BEGIN, self.name(name), Moment::now(), 0);
    }

    /// Marks the end of a phase.
    pub fn end(&self, name: &str) {
        self.write(KIND_END, self.name(name), Moment::now(), 0);
    }

    /// Marks the beginning of a phase, and its end when the returned value is dropped.
    pub fn phase(&self, name: &str) -> Phase<'_> {
        let name = self.name(name);
        self.write(KIND_BEGIN, name, Moment::now(), 0);
        Phase { writer: self, name }
    }

    /// Records a phase that was timed by other means, such as by the GPU.
    pub fn phase_between(&self, name: &str, begin: Moment, end: Moment) {
        self.write(KIND_PHASE, self.name(name), begin, end.nanos());
    }

    /// Reports that `items` more items are processed.
    pub fn progress(&self, items: u64) {
        self.write(KIND_ITEMS, 0, Moment::now(), items);
    }

    /// Reports a value such as an accuracy. The names in [`crate::value`] have a fixed meaning.
    pub fn value(&self, name: &str, value: f64) {
        self.write(KIND_VALUE, self.name(name), Moment::now(), value.to_bits());
    }

    /// The batch size that sweetspot asks for; `None` if the workload should decide. Each new size is reported
    /// back once as [`crate::value::BATCH_SIZE`]. If that size is at or above one that did not fit into memory,
    /// half of the latter is returned instead.
    pub fn batch_size(&self) -> Option<NonZeroU64> {
        let mut size = NonZeroU64::new(word(&self.control, BATCH_SIZE_INDEX))?;
        let too_large = self.too_large.get();
        if too_large != 0 && size.get() >= too_large {
            size = NonZeroU64::new(too_large / 2).unwrap_or(NonZeroU64::MIN);
        }
        if self.reported_batch_size.replace(size.get()) != size.get() {
            self.value(value::BATCH_SIZE, size.get() as f64);
        }
        Some(size)
    }

    /// Reports a finished batch with its number of items and its duration.
    pub fn batch(&self, items: u64, time: Duration) {
        self.value(value::BATCH_TIME, time.as_secs_f64());
        self.progress(items);
    }

    /// Reports the time from a request's arrival to its response, for each request or for the slowest of a
    /// batch.
    pub fn latency(&self, time: Duration) {
        self.value(value::LATENCY, time.as_secs_f64());
    }

    /// Reports the number of requests in the queue.
    pub fn queue(&self, length: u64) {
        self.value(value::QUEUE_LENGTH, length as f64);
    }

    /// Reports the rate at which requests arrive at the server, in requests per second.
    pub fn arrivals(&self, per_second: f64) {
        self.value(value::ARRIVALS, per_second);
    }

    /// Reports that a batch of `batch` items does not fit into the GPU's memory.
    pub fn out_of_memory(&self, batch: u64) {
        let before = self.too_large.get();
        if batch > 0 && (before == 0 || batch < before) {
            self.too_large.set(batch);
        }
        self.value(value::OUT_OF_MEMORY, batch as f64);
    }

    /// What sweetspot does with the GPU's settings at present.
    pub fn tuning(&self) -> Tuning {
        tuning(word(&self.control, TUNING_INDEX))
    }

    /// The number of records dropped because the ring was full: sweetspot did not read fast enough.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// Writes a record, or counts it as lost if the ring is full.
    #[inline]
    fn write(&self, kind: u32, name: u32, at: Moment, value: u64) {
        let number = self.next.get();
        if number >= self.limit.get() && !self.room(number) {
            self.lost.set(self.lost.get() + 1);
            self.word(LOST_OFFSET, self.lost.get());
            return;
        }
        self.next.set(number + 1);
        let record = self.header.record(number);
        let words = [at.nanos(), value, third_word(kind, name, self.lost.get())];
        for (place, value) in words.into_iter().enumerate() {
            self.map
                .word(record + place * 8)
                .store(value, Ordering::Relaxed);
        }
        // The sequence number is written last: it marks the record as complete.
        self.word(record + 24, number + 1);
    }

    /// Checks whether the reader has made room for the record with this number.
    #[cold]
    fn room(&self, number: u64) -> bool {
        let read = |at| self.map.word(at).load(Ordering::Acquire);
        let (first, second) = (read(READ_INDEX_OFFSET), read(READ_INDEX_OFFSET + 8));
        if first == second && first <= number {
            self.limit.set(first + u64::from(self.header.capacity));
        }
        number < self.limit.get()
    }

    /// The index of a name in the table of names; 0 if the table is full.
    fn name(&self, name: &str) -> u32 {
        if let Some(&index) = self.names.borrow().get(name) {
            return index;
        }
        self.new_name(name)
    }

    /// Adds a name to the table of names and returns its index.
    #[cold]
    fn new_name(&self, name: &str) -> u32 {
        let mut names = self.names.borrow_mut();
        let index = names.len() as u32;
        if name.is_empty() {
            return 0;
        }
        if index >= self.header.slots {
            let refused = self.map.word(REFUSED_OFFSET).load(Ordering::Relaxed);
            self.word(REFUSED_OFFSET, refused + 1);
            return 0;
        }
        for (place, part) in slot_bytes(name).as_chunks::<8>().0.iter().enumerate() {
            self.word(
                self.header.slot(index) + place * 8,
                u64::from_le_bytes(*part),
            );
        }
        names.insert(name.into(), index);
        index
    }

    /// Writes a word of the ring file.
    #[inline]
    fn word(&self, offset: usize, value: u64) {
        self.map.word(offset).store(value, Ordering::Release);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.word(CLOSED_OFFSET, 1);
    }
}

/// An open phase of [`Writer::phase`]; dropping it marks the end.
#[derive(Debug)]
#[must_use = "the phase ends when this is dropped"]
pub struct Phase<'a> {
    writer: &'a Writer,
    name: u32,
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        self.writer.write(KIND_END, self.name, Moment::now(), 0);
    }
}

/// Opens the control file; returns it with the capacity that new rings should have.
fn open_control(folder: &Path) -> Result<(Map, u32), LinkError> {
    let path = folder.join(CONTROL_FILE);
    let open = || -> io::Result<(Map, [u8; CONTROL_HEADER_SIZE])> {
        let file = File::open(&path)?;
        if file.metadata()?.len() != CONTROL_FILE_SIZE as u64 {
            return Err(io::Error::other(
                "the file does not have the length of a control file",
            ));
        }
        let mut header = [0; CONTROL_HEADER_SIZE];
        file.read_exact_at(&mut header, 0)?;
        Ok((Map::readable(&file, CONTROL_FILE_SIZE)?, header))
    };
    let (map, header) = open().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => LinkError::NoTool {
            folder: folder.to_owned(),
        },
        _ => LinkError::File {
            file: path.clone(),
            source,
        },
    })?;
    match parse_control(&header) {
        Ok(capacity) => Ok((map, capacity)),
        Err(HeaderError::Version(found)) => Err(LinkError::Version {
            file: path,
            found,
            known: VERSION,
        }),
        Err(HeaderError::Malformed(why)) => Err(LinkError::Malformed { file: path, why }),
        Err(HeaderError::OtherBoot) => Err(LinkError::OtherBoot { file: path }),
    }
}

/// Creates a ring file and maps it into memory.
fn create(path: &Path, header: &Header) -> io::Result<Map> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    reserve(&file, header.length())?;
    file.write_all_at(&header.bytes(), 0)?;
    file.write_all_at(&slot_bytes(OTHER_NAMES), header.slot(0) as u64)?;
    Map::writable(&file, header.length())
}

/// Reserves all memory of the file at once. Otherwise, if memory ran out, a later write would kill the workload
/// with SIGBUS.
fn reserve(file: &File, length: usize) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = [0; SLOT_SIZE * 32];
            for at in (0..length).step_by(zeros.len()) {
                let part = zeros.len().min(length - at);
                file.write_all_at(&zeros[..part], at as u64)?;
            }
            Ok(())
        }
        result => Ok(result?),
    }
}

/// The FNV-1a hash, which is fast for short keys. It needs no protection from attacks, because the workload
/// chooses the names itself.
#[derive(Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
