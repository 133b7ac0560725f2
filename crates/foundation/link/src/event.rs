//! What [`crate::Reader::drain`] returns: records of the workload, and new, ended and faulty rings.

use std::sync::Arc;

use crate::{LinkError, Moment};

/// The name of a phase or value.
pub type Name = Arc<str>;

/// Identifies a ring: the ring buffer to which one thread of the workload writes its records. A thread that
/// opens the link again gets another ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ring {
    /// The number of the ring buffer, in the order in which the reader found the ring buffers.
    pub number: u32,
    /// The id of the writing process, in that process's own pid namespace.
    pub pid: u32,
    /// The id of the writing thread.
    pub tid: u32,
    /// The rank of the process in a distributed job, from variables such as `RANK`; `None` if none is set.
    pub rank: Option<u32>,
}

/// Something that the reader found on the shared-memory link to the workload.
#[derive(Debug)]
pub enum Event {
    /// A thread of the workload has created its ring buffer.
    Appeared(Ring),
    /// A thread of the workload has written a record.
    Record(Record),
    /// Records are missing between the previous event of this ring and the next: the ring was full, or writing
    /// failed.
    Lost {
        /// The ring in which records are missing.
        ring: Ring,
        /// The number of missing records.
        count: u64,
    },
    /// The ring's table of names is full: records with further names are reported as `(other names)`.
    NamesRefused {
        /// The ring whose table of names is full.
        ring: Ring,
        /// The number of names rejected since the last such event of this ring.
        count: u64,
    },
    /// The thread has closed its ring or has ended; no further records follow.
    Ended(Ring),
    /// A ring file is damaged or cannot be read, and is ignored from now on. Other rings are not affected.
    Fault(LinkError),
}

/// A record that a thread of the workload wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The ring to which the record was written.
    pub ring: Ring,
    /// The time at which the record was written; for a [`Mark::Phase`], the time at which the phase began.
    pub at: Moment,
    /// The content of the record.
    pub mark: Mark,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// The phase with this name begins.
    Begin(Name),
    /// The phase with this name ends.
    End(Name),
    /// A phase that was timed by other means, such as by the GPU, and recorded afterwards.
    Phase {
        /// The name of the phase.
        name: Name,
        /// The time when the phase ended.
        end: Moment,
    },
    /// The workload has completed this many items since its last such record.
    Items(u64),
    /// The workload reports a value, such as an accuracy or a queue length.
    Value {
        /// The name of the value.
        name: Name,
        /// The reported value, in the unit that the workload uses.
        value: f64,
    },
}
