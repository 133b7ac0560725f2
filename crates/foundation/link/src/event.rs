//! What a reader tells.

use std::sync::Arc;

use crate::{LinkError, Moment};

/// The name of a phase or value.
pub type Name = Arc<str>;

/// One writer: a thread of a process. A thread that opens its link again is another ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ring {
    /// Rings count in the order in which the reader found them.
    pub number: u32,
    /// The process, in its own pid namespace.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The rank in a distributed job, where the environment names one.
    pub rank: Option<u32>,
}

/// Something that happened on a link.
#[derive(Debug)]
pub enum Event {
    /// A new writer.
    Appeared(Ring),
    /// A record of a writer.
    Record(Record),
    /// At this place of the ring records are missing: it was full, or they could not be written.
    Lost {
        /// The ring.
        ring: Ring,
        /// How many records.
        count: u64,
    },
    /// The table of names is full: so many more names are `(other names)`.
    NamesRefused {
        /// The ring.
        ring: Ring,
        /// How many names, since the last such event.
        count: u64,
    },
    /// The writer closed its ring or is gone; nothing more will come.
    Ended(Ring),
    /// A file that is not read, or not any further. The others go on.
    Fault(LinkError),
}

/// A record and where it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The ring.
    pub ring: Ring,
    /// When it was written; for a [`Mark::Phase`], when the phase began.
    pub at: Moment,
    /// What it says.
    pub mark: Mark,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A phase begins.
    Begin(Name),
    /// A phase ends.
    End(Name),
    /// A phase that was timed otherwise, such as by the GPU, and recorded afterwards.
    Phase {
        /// Its name.
        name: Name,
        /// When it ended.
        end: Moment,
    },
    /// So many items are done, since the last such record.
    Items(u64),
    /// A value such as an accuracy.
    Value {
        /// Its name.
        name: Name,
        /// The value.
        value: f64,
    },
}
