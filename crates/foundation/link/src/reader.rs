//! The link as sweetspot uses it: finds the workload's rings and reads their records.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::event::Event;
use crate::folder::Folder;
use crate::host::Host;
use crate::layout::{DEFAULT_CAPACITY, is_capacity};
use crate::ring::RingFile;
use crate::{Control, LinkError};

/// The maximum number of rings read at once. Each needs a file descriptor, of which a process has 1024 by
/// default.
const MAX_RINGS: usize = 512;

/// Reads every ring of a link folder. A folder that the reader created is removed when the reader is dropped.
#[derive(Debug)]
pub struct Reader {
    folder: Folder,
    control: Control,
    host: Host,
    /// The rings by file name; `None` for a ring that has ended or is faulty.
    rings: HashMap<CString, Option<RingFile>>,
    found: u32,
    reported_too_many: bool,
    reported_unlisted: bool,
}

impl Reader {
    /// Creates a private link folder in shared memory, and removes those of sweetspot processes that were
    /// killed.
    pub fn create() -> Result<Self, LinkError> {
        let shared = Path::new("/dev/shm");
        let usable = rustix::fs::access(shared, rustix::fs::Access::WRITE_OK).is_ok();
        Self::create_in(&if usable {
            shared.to_owned()
        } else {
            std::env::temp_dir()
        })
    }

    /// Creates a private link folder in `parent`.
    pub fn create_in(parent: &Path) -> Result<Self, LinkError> {
        Self::from_folder(Folder::create_in(parent)?, DEFAULT_CAPACITY)
    }

    /// Creates this link folder, or uses an existing one that is private and not in use. From an existing
    /// folder, only the link's own files are removed when the reader is dropped.
    pub fn open(folder: &Path) -> Result<Self, LinkError> {
        Self::from_folder(Folder::open(folder)?, DEFAULT_CAPACITY)
    }

    /// Like [`Reader::open`], but with this capacity for each ring, in records: rounded up to a power of two
    /// and limited to 64 to 1,048,576.
    pub fn open_with_capacity(folder: &Path, records: u32) -> Result<Self, LinkError> {
        let capacity = records.clamp(64, 1 << 20).next_power_of_two();
        debug_assert!(is_capacity(capacity));
        Self::from_folder(Folder::open(folder)?, capacity)
    }

    /// Creates the control file in a folder; the workload's new rings have this capacity, in records.
    fn from_folder(folder: Folder, capacity: u32) -> Result<Self, LinkError> {
        let host = Host::current();
        tracing::debug!(folder = %folder.path().display(), capacity, "link opened");
        Ok(Self {
            control: folder.control(&host, capacity)?,
            folder,
            host,
            rings: HashMap::new(),
            found: 0,
            reported_too_many: false,
            reported_unlisted: false,
        })
    }

    /// The path of the link folder, to which [`crate::LINK_VARIABLE`] must be set for the workload.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The control words for the workload.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Reads all new records. The events of one ring are in the order of writing; all events of one ring come
    /// before those of the next.
    pub fn drain(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        self.discover(&mut events);
        for (name, entry) in &mut self.rings {
            let Some(ring) = entry else { continue };
            match ring.drain(&self.host, &mut events) {
                Ok(false) => {}
                Ok(true) => {
                    events.push(Event::Ended(ring.ring()));
                    *entry = None;
                    // This frees the ring's memory: short-lived workers may leave many rings.
                    self.folder.remove(name);
                }
                Err(error) => {
                    events.push(Event::Fault(error));
                    *entry = None;
                }
            }
        }
        events.iter().for_each(log);
        events
    }

    /// Opens the ring files that are new in the folder.
    fn discover(&mut self, events: &mut Vec<Event>) {
        let names = match self.folder.rings() {
            Ok(names) => names,
            Err(error) => {
                if !std::mem::replace(&mut self.reported_unlisted, true) {
                    events.push(Event::Fault(error));
                }
                return;
            }
        };
        // Entries of removed files are dropped; otherwise the map would grow without end.
        self.rings
            .retain(|name, ring| ring.is_some() || names.contains(name));
        let mut followed = self.rings.values().flatten().count();
        for name in names {
            if self.rings.contains_key(&name) {
                continue;
            }
            if followed >= MAX_RINGS {
                self.too_many(followed, events);
                return;
            }
            let path = self.path(&name);
            let opened = match self.folder.open_ring(&name) {
                Ok(Some(file)) => RingFile::open(file, path, self.found, &self.host),
                Ok(None) => Err(LinkError::Malformed {
                    file: path,
                    why: "the file is not a regular file",
                }),
                Err(error) if is_short_of_descriptors(&error) => {
                    self.too_many(followed, events);
                    return;
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(source) => Err(LinkError::File { file: path, source }),
            };
            let entry = match opened {
                Ok(ring) => {
                    self.found += 1;
                    followed += 1;
                    events.push(Event::Appeared(ring.ring()));
                    Some(ring)
                }
                Err(error) => {
                    events.push(Event::Fault(error));
                    None
                }
            };
            self.rings.insert(name, entry);
        }
    }

    /// Reports once that more rings exist than can be read at once.
    fn too_many(&mut self, limit: usize, events: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.reported_too_many, true) {
            let folder = self.folder().to_owned();
            events.push(Event::Fault(LinkError::TooManyRings { folder, limit }));
        }
    }

    /// The path of a file in the link folder.
    fn path(&self, name: &CString) -> PathBuf {
        self.folder().join(OsStr::from_bytes(name.to_bytes()))
    }
}

/// Logs an event.
fn log(event: &Event) {
    match event {
        Event::Appeared(ring) => tracing::debug!(?ring, "ring opened"),
        Event::Ended(ring) => tracing::debug!(?ring, "ring ended"),
        Event::Lost { ring, count } => tracing::warn!(?ring, count, "link records lost"),
        Event::NamesRefused { ring, count } => {
            tracing::warn!(
                ?ring,
                count,
                "names rejected: the ring's table of names is full"
            );
        }
        Event::Fault(error) => tracing::warn!(%error, "link file is ignored from now on"),
        Event::Record(record) => tracing::trace!(?record, "link record"),
    }
}

/// Whether the process or the system has no free file descriptors.
fn is_short_of_descriptors(error: &std::io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|it| code == Some(it.raw_os_error()))
}
