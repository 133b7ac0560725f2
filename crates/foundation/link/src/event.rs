//! Events that a reader returns.

use std::sync::Arc;

use crate::{LinkError, Moment};

/// The name of a phase or value.
pub type Name = Arc<str>;

/// A ring: the records of one thread of a process. A thread that opens its link again has another ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ring {
    /// The ring's number, in the order in which the reader found them.
    pub number: u32,
    /// The process id, in the process's own pid namespace.
    pub pid: u32,
    /// The thread id.
    pub tid: u32,
    /// The rank in a distributed job, if the environment names one.
    pub rank: Option<u32>,
}

/// An event on a link.
#[derive(Debug)]
pub enum Event {
    /// A new writer.
    Appeared(Ring),
    /// A record of a writer.
    Record(Record),
    /// Records are missing at this place of the ring: it was full, or they could not be written.
    Lost {
        /// The ring.
        ring: Ring,
        /// The number of records.
        count: u64,
    },
    /// The table of names is full: this many more names became `(other names)`.
    NamesRefused {
        /// The ring.
        ring: Ring,
        /// The number of names since the last such event.
        count: u64,
    },
    /// The writer closed its ring or has ended; no more records follow.
    Ended(Ring),
    /// A file cannot be read, or not any further. Other rings are not affected.
    Fault(LinkError),
}

/// A record and its ring.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The ring.
    pub ring: Ring,
    /// The time of writing; for a [`Mark::Phase`], the time when the phase began.
    pub at: Moment,
    /// The content.
    pub mark: Mark,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A phase begins.
    Begin(Name),
    /// A phase ends.
    End(Name),
    /// A phase that was timed by other means, such as by the GPU, and recorded afterwards.
    Phase {
        /// The phase's name.
        name: Name,
        /// The time when it ended.
        end: Moment,
    },
    /// This many items are done since the last such record.
    Items(u64),
    /// A value such as an accuracy.
    Value {
        /// The value's name.
        name: Name,
        /// The value.
        value: f64,
    },
}
