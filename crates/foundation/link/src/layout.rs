//! The bytes of a ring file and of the control file, as `docs/reference/link.md` describes them. Little endian.

use crate::host::Host;

#[cfg(target_endian = "big")]
compile_error!("version 1 of the link is for little-endian machines");

/// The version of the file layout.
pub(crate) const VERSION: u32 = 1;
/// The beginning of a ring file's name.
pub(crate) const RING_PREFIX: &str = "ring-";
/// The name of the control file.
pub(crate) const CONTROL_FILE: &str = "control";

/// The first bytes of a ring file.
pub(crate) const RING_MAGIC: [u8; 8] = *b"SWSPRING";
/// The size of a ring file's header, in bytes.
pub(crate) const HEADER_SIZE: usize = 256;
/// The offset of the number of records that the writer dropped.
pub(crate) const LOST_OFFSET: usize = 128;
/// The offset of the number of names that the writer rejected.
pub(crate) const REFUSED_OFFSET: usize = 136;
/// The offset of the word that is not zero after the writer has closed the ring.
pub(crate) const CLOSED_OFFSET: usize = 144;
/// The offset of two words, both with the number of records read so far. They differ while the reader updates
/// them.
pub(crate) const READ_INDEX_OFFSET: usize = 192;

/// The size of an entry in the table of names, in bytes.
pub(crate) const SLOT_SIZE: usize = 128;
/// The number of entries in a new ring's table of names.
pub(crate) const DEFAULT_SLOTS: u32 = 256;
/// The maximum number of entries in the table of names.
pub(crate) const MAX_SLOTS: u32 = 4096;
/// The name of records whose own name did not fit into the table.
pub(crate) const OTHER_NAMES: &str = "(other names)";

/// The size of a record, in bytes.
pub(crate) const RECORD_SIZE: usize = 32;
/// The default number of records in a ring.
pub(crate) const DEFAULT_CAPACITY: u32 = 32_768;
/// The minimum number of records in a ring.
pub(crate) const MIN_CAPACITY: u32 = 64;
/// The maximum number of records in a ring.
pub(crate) const MAX_CAPACITY: u32 = 1 << 20;

/// The first bytes of the control file.
pub(crate) const CONTROL_MAGIC: [u8; 8] = *b"SWSPCTRL";
/// The size of the control file's header, in bytes.
pub(crate) const CONTROL_HEADER_SIZE: usize = 64;
/// The number of control words, of which only a few are in use.
pub(crate) const CONTROL_WORDS: usize = 32;
/// The size of the control file, in bytes.
pub(crate) const CONTROL_FILE_SIZE: usize = CONTROL_HEADER_SIZE + CONTROL_WORDS * 8;
/// The index of the control word with the batch size.
pub(crate) const BATCH_SIZE_INDEX: usize = 0;
/// The index of the control word with the state of tuning.
pub(crate) const TUNING_INDEX: usize = 1;

/// The number of `CLOCK_MONOTONIC` in a ring's header.
const CLOCK_MONOTONIC: u32 = 1;
/// The number that stands for "no rank" in a ring's header.
const NO_RANK: u32 = u32::MAX;

/// The kind of a record that begins a phase.
pub(crate) const KIND_BEGIN: u32 = 1;
/// The kind of a record that ends a phase.
pub(crate) const KIND_END: u32 = 2;
/// The kind of a record with a number of completed items.
pub(crate) const KIND_ITEMS: u32 = 3;
/// The kind of a record with a value.
pub(crate) const KIND_VALUE: u32 = 4;
/// The kind of a record with a phase that was timed by other means.
pub(crate) const KIND_PHASE: u32 = 5;

/// Why the header of a ring file or control file was rejected.
#[derive(Debug, PartialEq)]
pub(crate) enum HeaderError {
    Malformed(&'static str),
    Version(u32),
    OtherBoot,
}

/// The constant part of a ring file's header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header {
    pub capacity: u32,
    pub slots: u32,
    pub rank: Option<u32>,
    pub boot: [u8; 16],
    pub pid: u32,
    pub tid: u32,
    pub start: u64,
    pub namespace: u64,
}

impl Header {
    /// Encodes the header.
    pub fn bytes(&self) -> [u8; HEADER_SIZE] {
        let mut bytes = [0; HEADER_SIZE];
        let mut put = |at: usize, data: &[u8]| bytes[at..at + data.len()].copy_from_slice(data);
        put(0, &RING_MAGIC);
        let numbers = [
            VERSION,
            HEADER_SIZE as u32,
            RECORD_SIZE as u32,
            self.capacity,
            self.slots,
            SLOT_SIZE as u32,
            CLOCK_MONOTONIC,
            self.rank.unwrap_or(NO_RANK),
        ];
        for (place, number) in numbers.iter().enumerate() {
            put(8 + place * 4, &number.to_le_bytes());
        }
        put(40, &self.boot);
        put(56, &self.pid.to_le_bytes());
        put(60, &self.tid.to_le_bytes());
        put(64, &self.start.to_le_bytes());
        put(72, &self.namespace.to_le_bytes());
        bytes
    }

    /// Parses a header that may contain anything. An accepted header always describes a file of bounded size.
    pub fn parse(bytes: &[u8; HEADER_SIZE], host: &Host) -> Result<Self, HeaderError> {
        if bytes[..8] != RING_MAGIC {
            return Err(HeaderError::Malformed(
                "the file does not begin with the magic bytes of a ring",
            ));
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        let lengths = [u32_at(bytes, 12), u32_at(bytes, 16), u32_at(bytes, 28)];
        if lengths != [HEADER_SIZE as u32, RECORD_SIZE as u32, SLOT_SIZE as u32] {
            return Err(HeaderError::Malformed(
                "the sizes in its header do not match its layout version",
            ));
        }
        let (capacity, slots) = (u32_at(bytes, 20), u32_at(bytes, 24));
        if !is_capacity(capacity) {
            return Err(HeaderError::Malformed(
                "the ring capacity in its header is invalid",
            ));
        }
        if !(1..=MAX_SLOTS).contains(&slots) {
            return Err(HeaderError::Malformed(
                "the number of names in its header is invalid",
            ));
        }
        if u32_at(bytes, 32) != CLOCK_MONOTONIC {
            return Err(HeaderError::Malformed(
                "the clock in its header is not CLOCK_MONOTONIC",
            ));
        }
        let mut boot = [0; 16];
        boot.copy_from_slice(&bytes[40..56]);
        if boot != [0; 16] && host.boot != [0; 16] && boot != host.boot {
            return Err(HeaderError::OtherBoot);
        }
        let rank = u32_at(bytes, 36);
        Ok(Self {
            capacity,
            slots,
            rank: (rank != NO_RANK).then_some(rank),
            boot,
            pid: u32_at(bytes, 56),
            tid: u32_at(bytes, 60),
            start: u64_at(bytes, 64),
            namespace: u64_at(bytes, 72),
        })
    }

    /// The offset of an entry of the table of names.
    pub fn slot(&self, name: u32) -> usize {
        HEADER_SIZE + name as usize * SLOT_SIZE
    }

    /// The offset in the file of the record with this number, counted from the first record ever written.
    pub fn record(&self, number: u64) -> usize {
        let place = number & u64::from(self.capacity - 1);
        self.slot(self.slots) + place as usize * RECORD_SIZE
    }

    /// The length of the whole ring file, in bytes.
    pub fn length(&self) -> usize {
        self.slot(self.slots) + self.capacity as usize * RECORD_SIZE
    }
}

/// A record as it is stored in a ring file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RawRecord {
    pub at: u64,
    pub value: u64,
    pub name: u32,
    pub kind: u32,
    pub lost: u32,
    pub sequence: u64,
}

impl RawRecord {
    /// Decodes the bytes of a record.
    pub fn parse(bytes: &[u8]) -> Self {
        let word = u32_at(bytes, 16);
        Self {
            at: u64_at(bytes, 0),
            value: u64_at(bytes, 8),
            name: word & 0xffff,
            kind: word >> 16,
            lost: u32_at(bytes, 20),
            sequence: u64_at(bytes, 24),
        }
    }
}

/// Packs kind, name index and number of lost records into the third word of a record.
pub(crate) const fn third_word(kind: u32, name: u32, lost: u64) -> u64 {
    (name | kind << 16) as u64 | lost << 32
}

/// Encodes the header and the control words of a new control file.
pub(crate) fn control_bytes(host: &Host, capacity: u32) -> [u8; CONTROL_FILE_SIZE] {
    let mut bytes = [0; CONTROL_FILE_SIZE];
    bytes[..8].copy_from_slice(&CONTROL_MAGIC);
    let numbers = [
        VERSION,
        CONTROL_HEADER_SIZE as u32,
        CONTROL_WORDS as u32,
        capacity,
    ];
    for (place, number) in numbers.iter().enumerate() {
        bytes[8 + place * 4..12 + place * 4].copy_from_slice(&number.to_le_bytes());
    }
    bytes[24..40].copy_from_slice(&host.boot);
    bytes
}

/// Parses the header of a control file and returns the ring capacity, in records, that clients should use.
pub(crate) fn parse_control(bytes: &[u8; CONTROL_HEADER_SIZE]) -> Result<u32, HeaderError> {
    if bytes[..8] != CONTROL_MAGIC {
        return Err(HeaderError::Malformed(
            "the file does not begin with the magic bytes of a control file",
        ));
    }
    let version = u32_at(bytes, 8);
    if version != VERSION {
        return Err(HeaderError::Version(version));
    }
    if [u32_at(bytes, 12), u32_at(bytes, 16)] != [CONTROL_HEADER_SIZE as u32, CONTROL_WORDS as u32]
    {
        return Err(HeaderError::Malformed(
            "the sizes in its header do not match its layout version",
        ));
    }
    let capacity = u32_at(bytes, 20);
    if !is_capacity(capacity) {
        return Err(HeaderError::Malformed(
            "the ring capacity in its header is invalid",
        ));
    }
    Ok(capacity)
}

/// Whether a number of records is a valid capacity of a ring.
pub(crate) fn is_capacity(capacity: u32) -> bool {
    capacity.is_power_of_two() && (MIN_CAPACITY..=MAX_CAPACITY).contains(&capacity)
}

/// Encodes a name for the table of names: its length, then its text. A long name is truncated between two
/// characters.
pub(crate) fn slot_bytes(name: &str) -> [u8; SLOT_SIZE] {
    let mut length = name.len().min(SLOT_SIZE - 1);
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    let mut bytes = [0; SLOT_SIZE];
    bytes[0] = length as u8;
    bytes[1..=length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

/// Decodes an entry of the table of names; `None` if it is empty or not valid text.
pub(crate) fn parse_slot(bytes: &[u8; SLOT_SIZE]) -> Option<&str> {
    let length = usize::from(bytes[0]);
    if length == 0 {
        return None;
    }
    std::str::from_utf8(bytes.get(1..=length)?).ok()
}

/// The little-endian 32-bit number at an offset.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut part = [0; 4];
    part.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(part)
}

/// The little-endian 64-bit number at an offset.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut part = [0; 8];
    part.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOST: Host = Host {
        boot: [7; 16],
        namespace: 1,
    };

    fn header() -> Header {
        Header {
            capacity: DEFAULT_CAPACITY,
            slots: DEFAULT_SLOTS,
            rank: Some(3),
            boot: [7; 16],
            pid: 10,
            tid: 11,
            start: 12,
            namespace: 13,
        }
    }

    #[test]
    fn a_header_round_trips_and_another_boot_is_rejected() {
        let bytes = header().bytes();
        assert_eq!(Header::parse(&bytes, &HOST), Ok(header()));
        let other = Host {
            boot: [8; 16],
            ..HOST
        };
        assert_eq!(Header::parse(&bytes, &other), Err(HeaderError::OtherBoot));
    }

    #[test]
    fn the_writers_and_the_readers_words_share_no_cache_line() {
        const {
            assert!(
                LOST_OFFSET / 64 == CLOSED_OFFSET / 64
                    && READ_INDEX_OFFSET / 64 > CLOSED_OFFSET / 64
            )
        };
        assert_eq!(header().record(0) % 64, 0);
    }

    proptest! {
        #[test]
        fn a_header_of_any_bytes_is_bounded(tail in proptest::collection::vec(any::<u8>(), HEADER_SIZE - 40), capacity: u32, slots: u32) {
            let mut bytes = header().bytes();
            bytes[40..].copy_from_slice(&tail);
            bytes[20..24].copy_from_slice(&capacity.to_le_bytes());
            bytes[24..28].copy_from_slice(&slots.to_le_bytes());
            if let Ok(header) = Header::parse(&bytes, &HOST) {
                prop_assert!(header.length() < 64 << 20);
            }
        }

        #[test]
        fn a_name_round_trips_or_is_truncated_at_a_character(name in "\\PC{1,200}") {
            let slot = slot_bytes(&name);
            let back = parse_slot(&slot).unwrap();
            prop_assert!(name.starts_with(back));
            prop_assert!(back == name || back.len() > SLOT_SIZE - 5);
        }
    }
}
