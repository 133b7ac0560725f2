//! A file with a small record, stored as two copies with a lock and a checksum.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};
use rustix::fs::{FlockOperation, flock};

/// The first word of each copy, which identifies the file's format.
const MAGIC: u64 = 0x5357_5350_4f54_0001;

/// The header of each copy of the record.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    magic: u64,
    length: u64,
    generation: u64,
    checksum: u64,
}

/// A file that stores one record of a plain-old-data type, in two copies.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// Creates the file with a first record.
    pub fn create<T: Pod>(path: PathBuf, record: &T) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        write(&file, 0, 1, record)?;
        Ok(Self { path })
    }

    /// Uses an existing file; nothing is read yet.
    pub fn from_path(path: PathBuf) -> Self {
        Self { path }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the record, passes it to a closure that may change it, and writes it back. A lock excludes all other
    /// processes and threads meanwhile. The file is opened each time, because a forked process would share the lock of
    /// an inherited descriptor.
    pub fn update<T: Pod, R>(&self, change: impl FnOnce(&mut T) -> R) -> io::Result<R> {
        let file = File::options().read(true).write(true).open(&self.path)?;
        lock(&file)?;
        let copies = [read::<T>(&file, 0), read::<T>(&file, 1)];
        let (copy, generation, mut record) = match copies {
            [Some((a, _)), Some((b, record))] if b > a => (0, b, record),
            [Some((a, record)), _] => (1, a, record),
            [None, Some((b, record))] => (0, b, record),
            [None, None] => return Err(io::Error::other("both copies of the state are damaged")),
        };
        let result = change(&mut record);
        write(&file, copy, generation + 1, &record)?;
        Ok(result)
    }
}

/// Locks a file until this descriptor is closed or its process ends.
pub fn lock(file: &File) -> io::Result<()> {
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The position of a copy in the file.
fn offset<T>(copy: u64) -> u64 {
    copy * (size_of::<Header>() + size_of::<T>()) as u64
}

/// Reads a copy: its generation and record; `None` if the copy is damaged.
fn read<T: Pod>(file: &File, copy: u64) -> Option<(u64, T)> {
    let mut header = Header::zeroed();
    let mut record = T::zeroed();
    file.read_exact_at(bytemuck::bytes_of_mut(&mut header), offset::<T>(copy))
        .ok()?;
    let after = offset::<T>(copy) + size_of::<Header>() as u64;
    file.read_exact_at(bytemuck::bytes_of_mut(&mut record), after)
        .ok()?;
    let is_intact = header.magic == MAGIC
        && header.length == size_of::<T>() as u64
        && header.checksum == checksum(header.generation, &record);
    is_intact.then_some((header.generation, record))
}

/// Writes a copy with its generation number; the higher generation is the newer copy.
fn write<T: Pod>(file: &File, copy: u64, generation: u64, record: &T) -> io::Result<()> {
    let header = Header {
        magic: MAGIC,
        length: size_of::<T>() as u64,
        generation,
        checksum: checksum(generation, record),
    };
    let mut bytes = Vec::with_capacity(size_of::<Header>() + size_of::<T>());
    bytes.extend_from_slice(bytemuck::bytes_of(&header));
    bytes.extend_from_slice(bytemuck::bytes_of(record));
    file.write_all_at(&bytes, offset::<T>(copy))
}

/// The checksum over whole words, which a partly written copy does not match.
fn checksum<T: Pod>(generation: u64, record: &T) -> u64 {
    let words = bytemuck::bytes_of(record).chunks_exact(8);
    words.fold(generation, |sum, word| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        (sum ^ u64::from_ne_bytes(bytes))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_copy_falls_back_to_the_other_and_two_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = Store::create(path.clone(), &[1u64, 2]).unwrap();
        store.update(|record: &mut [u64; 2]| record[0] = 5).unwrap();
        store.update(|record: &mut [u64; 2]| record[0] = 6).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        // The newest copy is the first again: generation 3.
        file.write_all_at(&[0xff; 8], offset::<[u64; 2]>(0) + 32)
            .unwrap();
        assert_eq!(store.update(|record: &mut [u64; 2]| record[0]).unwrap(), 5);
        file.write_all_at(&[0xff; 8], offset::<[u64; 2]>(0) + 32)
            .unwrap();
        file.write_all_at(&[0xff; 8], offset::<[u64; 2]>(1) + 32)
            .unwrap();
        assert!(store.update(|_: &mut [u64; 2]| ()).is_err());
    }

    #[test]
    fn concurrent_updates_are_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path().join("state"), &[0u64; 100]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        store
                            .update(|record: &mut [u64; 100]| record[99] += 1)
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(
            store.update(|record: &mut [u64; 100]| record[99]).unwrap(),
            1600
        );
    }
}
