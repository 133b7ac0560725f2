//! Counts the memory and the files that this process has in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

/// The bytes that are allocated now.
static IN_USE: AtomicIsize = AtomicIsize::new(0);

/// An allocator that counts.
pub struct Counting;

// SAFETY: every call is passed on to the system's allocator with its own arguments.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller promises what the system's allocator needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// What this process has in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    pub bytes: isize,
    pub files: usize,
    /// The resident memory in KiB, as the kernel counts it.
    pub resident_kib: usize,
}

impl InUse {
    pub fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.unwrap().trim().trim_end_matches(" kB");
        let resident_kib = resident.parse().unwrap();
        drop(status);
        Self {
            files: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            resident_kib,
            bytes: IN_USE.load(Ordering::Relaxed),
        }
    }
}
