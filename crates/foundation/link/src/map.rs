//! Shared memory as atomic words.
//!
//! This is the only module with unsafe code: other processes write to a mapping at any time, so it may only be
//! accessed as atomic words.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

/// A memory-mapped file of fixed length.
#[derive(Debug)]
pub(crate) struct Map(MmapRaw);

impl Map {
    /// Maps `length` bytes for writing. All pages are loaded at once, so no later write causes a page fault.
    pub fn writable(file: &File, length: usize) -> io::Result<Self> {
        MmapOptions::new()
            .len(length)
            .populate()
            .map_raw(file)
            .map(Self)
    }

    /// Maps `length` bytes for reading only.
    pub fn readable(file: &File, length: usize) -> io::Result<Self> {
        MmapOptions::new()
            .len(length)
            .map_raw_read_only(file)
            .map(Self)
    }

    /// The 64-bit word at a byte offset. Panics if the offset is unaligned or outside of the mapping.
    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(
            offset.is_multiple_of(8) && offset + 8 <= self.0.len(),
            "a word outside of the mapped file"
        );
        // SAFETY: the word is within the mapping, aligned (a mapping starts at a page), alive as long as
        // `self`, and only accessed as an atomic.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().add(offset).cast()) }
    }
}
