//! The bytes of a ring file and of the control file, as `docs/link.md` describes them. Little endian.

use crate::host::Host;

#[cfg(target_endian = "big")]
compile_error!("version 1 of the link is for little-endian machines");

pub(crate) const VERSION: u32 = 1;
pub(crate) const RING_PREFIX: &str = "ring-";
pub(crate) const CONTROL: &str = "control";

pub(crate) const RING_MAGIC: [u8; 8] = *b"SWSPRING";
pub(crate) const HEADER: usize = 256;
pub(crate) const LOST: usize = 128;
pub(crate) const REFUSED: usize = 136;
pub(crate) const CLOSED: usize = 144;
/// Two equal words: if a writer reads two different ones, the reader is between the two writes.
pub(crate) const READ_INDEX: usize = 192;

pub(crate) const SLOT: usize = 128;
pub(crate) const SLOTS: u32 = 256;
pub(crate) const MAX_SLOTS: u32 = 4096;
pub(crate) const OTHER_NAMES: &str = "(other names)";

pub(crate) const RECORD: usize = 32;
pub(crate) const CAPACITY: u32 = 32_768;
pub(crate) const MIN_CAPACITY: u32 = 64;
pub(crate) const MAX_CAPACITY: u32 = 1 << 20;

pub(crate) const CONTROL_MAGIC: [u8; 8] = *b"SWSPCTRL";
pub(crate) const CONTROL_HEADER: usize = 64;
pub(crate) const WORDS: usize = 32;
pub(crate) const CONTROL_LENGTH: usize = CONTROL_HEADER + WORDS * 8;
pub(crate) const BATCH_SIZE: usize = 0;
pub(crate) const TUNING: usize = 1;

const CLOCK_MONOTONIC: u32 = 1;
const NO_RANK: u32 = u32::MAX;

pub(crate) const BEGIN: u32 = 1;
pub(crate) const END: u32 = 2;
pub(crate) const ITEMS: u32 = 3;
pub(crate) const VALUE: u32 = 4;
pub(crate) const PHASE: u32 = 5;

/// The problem with a header.
#[derive(Debug, PartialEq)]
pub(crate) enum HeaderError {
    Malformed(&'static str),
    Version(u32),
    OtherBoot,
}

/// The constant part of a ring's header.
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
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let mut put = |at: usize, data: &[u8]| bytes[at..at + data.len()].copy_from_slice(data);
        put(0, &RING_MAGIC);
        let numbers = [
            VERSION,
            HEADER as u32,
            RECORD as u32,
            self.capacity,
            self.slots,
            SLOT as u32,
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

    /// Parses a header without trusting it: any accepted header describes a file of bounded size.
    pub fn parse(bytes: &[u8; HEADER], host: &Host) -> Result<Self, HeaderError> {
        if bytes[..8] != RING_MAGIC {
            return Err(HeaderError::Malformed(
                "it does not begin with the magic bytes of a ring",
            ));
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        let lengths = [u32_at(bytes, 12), u32_at(bytes, 16), u32_at(bytes, 28)];
        if lengths != [HEADER as u32, RECORD as u32, SLOT as u32] {
            return Err(HeaderError::Malformed(
                "its lengths are not those of its version",
            ));
        }
        let (capacity, slots) = (u32_at(bytes, 20), u32_at(bytes, 24));
        if !is_capacity(capacity) {
            return Err(HeaderError::Malformed("its capacity is invalid"));
        }
        if !(1..=MAX_SLOTS).contains(&slots) {
            return Err(HeaderError::Malformed("its number of names is invalid"));
        }
        if u32_at(bytes, 32) != CLOCK_MONOTONIC {
            return Err(HeaderError::Malformed("its clock is not CLOCK_MONOTONIC"));
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

    pub fn slot(&self, name: u32) -> usize {
        HEADER + name as usize * SLOT
    }

    /// The offset of a record, by its number since the beginning.
    pub fn record(&self, number: u64) -> usize {
        let place = number & u64::from(self.capacity - 1);
        self.slot(self.slots) + place as usize * RECORD
    }

    pub fn length(&self) -> usize {
        self.slot(self.slots) + self.capacity as usize * RECORD
    }
}

/// One record as it is stored in a ring.
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

/// Name, kind and losses as the third word of a record.
pub(crate) const fn third_word(kind: u32, name: u32, lost: u64) -> u64 {
    (name | kind << 16) as u64 | lost << 32
}

pub(crate) fn control_bytes(host: &Host, capacity: u32) -> [u8; CONTROL_LENGTH] {
    let mut bytes = [0; CONTROL_LENGTH];
    bytes[..8].copy_from_slice(&CONTROL_MAGIC);
    let numbers = [VERSION, CONTROL_HEADER as u32, WORDS as u32, capacity];
    for (place, number) in numbers.iter().enumerate() {
        bytes[8 + place * 4..12 + place * 4].copy_from_slice(&number.to_le_bytes());
    }
    bytes[24..40].copy_from_slice(&host.boot);
    bytes
}

/// The ring capacity that the tool asks for.
pub(crate) fn parse_control(bytes: &[u8; CONTROL_HEADER]) -> Result<u32, HeaderError> {
    if bytes[..8] != CONTROL_MAGIC {
        return Err(HeaderError::Malformed(
            "it does not begin with the magic bytes of a control file",
        ));
    }
    let version = u32_at(bytes, 8);
    if version != VERSION {
        return Err(HeaderError::Version(version));
    }
    if [u32_at(bytes, 12), u32_at(bytes, 16)] != [CONTROL_HEADER as u32, WORDS as u32] {
        return Err(HeaderError::Malformed(
            "its lengths are not those of its version",
        ));
    }
    let capacity = u32_at(bytes, 20);
    if !is_capacity(capacity) {
        return Err(HeaderError::Malformed("its capacity is invalid"));
    }
    Ok(capacity)
}

pub(crate) fn is_capacity(capacity: u32) -> bool {
    capacity.is_power_of_two() && (MIN_CAPACITY..=MAX_CAPACITY).contains(&capacity)
}

/// A name's slot: its length, then its text, truncated at a character if it is too long.
pub(crate) fn slot_bytes(name: &str) -> [u8; SLOT] {
    let mut length = name.len().min(SLOT - 1);
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    let mut bytes = [0; SLOT];
    bytes[0] = length as u8;
    bytes[1..=length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}

pub(crate) fn parse_slot(bytes: &[u8; SLOT]) -> Option<&str> {
    let length = usize::from(bytes[0]);
    if length == 0 {
        return None;
    }
    std::str::from_utf8(bytes.get(1..=length)?).ok()
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut part = [0; 4];
    part.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(part)
}

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
            capacity: CAPACITY,
            slots: SLOTS,
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
        const { assert!(LOST / 64 == CLOSED / 64 && READ_INDEX / 64 > CLOSED / 64) };
        assert_eq!(header().record(0) % 64, 0);
    }

    proptest! {
        #[test]
        fn a_header_of_any_bytes_is_bounded(tail in proptest::collection::vec(any::<u8>(), HEADER - 40), capacity: u32, slots: u32) {
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
            prop_assert!(back == name || back.len() > SLOT - 5);
        }
    }
}
