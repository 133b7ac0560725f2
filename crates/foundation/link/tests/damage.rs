//! Damaged files: each is read or reported, and other rings are not affected.

mod common;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{describe_marks, faults, folder, lost, marks, ring_files};
use proptest::prelude::*;
use sweetspot_link::{Reader, Writer, pair_phases};

/// A link with a valid ring of 64 records and a copy of it to damage.
struct DamagedLink {
    _parent: tempfile::TempDir,
    reader: Reader,
    copy: PathBuf,
}

impl DamagedLink {
    fn new() -> Self {
        let parent = folder();
        let reader = Reader::open_with_capacity(&parent.path().join("link"), 64).unwrap();
        let writer = Writer::open(reader.folder()).unwrap();
        for item in 0..10 {
            writer.begin("forward");
            writer.progress(item);
            writer.end("forward");
        }
        let copy = reader.folder().join("ring-9-9-9");
        std::fs::copy(&ring_files(reader.folder())[0], &copy).unwrap();
        Self {
            _parent: parent,
            reader,
            copy,
        }
    }

    fn file(&self) -> File {
        OpenOptions::new().write(true).open(&self.copy).unwrap()
    }

    /// The reported fault; the valid ring is read completely.
    fn fault(mut self, from_copy: usize) -> String {
        let events = self.reader.drain();
        let faults = faults(&events);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("ring-9-9-9"), "{faults:?}");
        assert_eq!(marks(&events).len(), 30 + from_copy);
        assert!(common::faults(&self.reader.drain()).is_empty());
        faults[0].clone()
    }
}

const NAMES: u64 = 256;
const RECORDS: u64 = 256 + 256 * 128;

#[test]
fn each_fault_is_reported() {
    let damage = |at: u64, bytes: &[u8], read: usize| {
        let link = DamagedLink::new();
        link.file().write_all_at(bytes, at).unwrap();
        link.fault(read)
    };
    let assert_fault = |fault: String, part: &str| assert!(fault.contains(part), "{fault}");
    assert_fault(
        damage(0, b"X", 0),
        "does not begin with the magic bytes of a ring",
    );
    assert_fault(damage(8, &[9], 0), "layout version 9");
    assert_fault(damage(12, &[1], 0), "the sizes in its header");
    assert_fault(damage(20, &[65], 0), "capacity");
    assert_fault(damage(20, &u32::MAX.to_le_bytes(), 0), "capacity");
    assert_fault(damage(24, &u32::MAX.to_le_bytes(), 0), "number of names");
    assert_fault(damage(32, &[0], 0), "CLOCK_MONOTONIC");
    assert_fault(damage(40, &[0xaa; 16], 0), "another boot");
    assert_fault(damage(NAMES + 128, &[0], 0), "damaged at record 0");
    assert_fault(
        damage(NAMES + 129, &[0xff, 0xfe], 0),
        "name is missing in the table",
    );
    assert_fault(
        damage(RECORDS + 5 * 32 + 24, &[99], 5),
        "damaged at record 5",
    );
    assert_fault(damage(RECORDS + 5 * 32 + 18, &[77], 5), "kind is unknown");
    assert_fault(
        damage(RECORDS + 5 * 32 + 16, &[0, 3], 5),
        "outside of the table",
    );
}

#[test]
fn a_missing_record_is_lost_and_the_rest_is_read() {
    let missing = RECORDS + 5 * 32 + 24;
    // The copy was made while its writer, this thread, was active.
    let mut link = DamagedLink::new();
    link.file().write_all_at(&[0; 8], missing).unwrap();
    assert_eq!(marks(&link.reader.drain()).len(), 30 + 5);
    let events = common::drain_until(&mut link.reader, |events| marks(events).len() == 24);
    assert_eq!((lost(&events), faults(&events).len()), (1, 0));

    let mut link = DamagedLink::new();
    link.file().write_all_at(&[0; 8], missing).unwrap();
    link.file().write_all_at(&[1], 144).unwrap();
    let events = link.reader.drain();
    assert_eq!((marks(&events).len(), lost(&events)), (59, 1));
}

#[test]
fn a_file_of_another_length_is_reported() {
    for length in [0, 100, 256, RECORDS, RECORDS + 64 * 32 - 1, 1 << 30] {
        let link = DamagedLink::new();
        link.file().set_len(length).unwrap();
        link.fault(0);
    }
}

#[test]
fn a_ring_truncated_while_reading_is_reported() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    let writer = Writer::open(reader.folder()).unwrap();
    writer.progress(1);
    let cut = reader.folder().join("ring-9-9-9");
    std::fs::copy(&ring_files(reader.folder())[0], &cut).unwrap();
    assert_eq!(describe_marks(&reader.drain()), ["1", "1"]);
    File::create(&cut).unwrap();
    writer.progress(2);
    let events = reader.drain();
    assert_eq!(describe_marks(&events), ["2"]);
    assert!(faults(&events)[0].contains("truncated"));
}

#[test]
fn only_regular_files_of_the_folder_are_read() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    let writer = Writer::open(reader.folder()).unwrap();
    writer.progress(7);
    let outside = parent.path().join("outside");
    std::fs::copy(&ring_files(reader.folder())[0], &outside).unwrap();
    let before = std::fs::read(&outside).unwrap();
    let name = |name: &str| reader.folder().join(name);
    std::os::unix::fs::symlink(&outside, name("ring-symlink")).unwrap();
    std::fs::hard_link(&outside, name("ring-hardlink")).unwrap();
    std::fs::create_dir(name("ring-folder")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        name("ring-pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    std::os::unix::net::UnixListener::bind(name("ring-socket")).unwrap();
    let events = reader.drain();
    assert_eq!(describe_marks(&events), ["7"]);
    let faults = faults(&events);
    assert_eq!(faults.len(), 5, "{faults:?}");
    assert!(faults.iter().all(|it| it.contains("not a regular file")));
    let path = reader.folder().to_owned();
    drop(reader);
    assert!(!path.exists());
    assert_eq!(std::fs::read(&outside).unwrap(), before);
}

#[test]
fn rings_of_a_removed_folder_are_still_read() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    let writer = Writer::open(reader.folder()).unwrap();
    reader.drain();
    std::fs::remove_dir_all(reader.folder()).unwrap();
    writer.progress(3);
    assert_eq!(describe_marks(&reader.drain()), ["3"]);
    assert!(Writer::open(reader.folder()).is_err());
}

const SMALL_MOUNT: &str = "SWEETSPOT_TEST_SMALL";

/// Runs itself again with a small file system mounted in a private namespace.
#[test]
fn a_full_file_system_rejects_a_ring_without_harm() {
    if let Some(mount) = std::env::var_os(SMALL_MOUNT) {
        assert_eq!(write_until_full(Path::new(&mount)), Ok(()));
        return;
    }
    let mount = folder();
    let script =
        "mount -t tmpfs -o size=256k,mode=0700 tmpfs \"$1\" || exit 77; exec \"$2\" --exact \"$3\"";
    let output = std::process::Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            script,
            "sh",
        ])
        .arg(mount.path())
        .arg(std::env::current_exe().unwrap())
        .arg("a_full_file_system_rejects_a_ring_without_harm")
        .env(SMALL_MOUNT, mount.path())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("1 passed"), "{text}");
        }
        Ok(output) if output.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&output.stdout));
        }
        _ => eprintln!("SKIPPED: no file system can be mounted here"),
    }
}

fn write_until_full(mount: &Path) -> Result<(), String> {
    let mut reader = Reader::open(mount).map_err(|it| it.to_string())?;
    let writer = Writer::open(mount);
    let error = writer.err().ok_or("a ring of 1 MB found room in 256 kB")?;
    if !error.to_string().contains("No space left") {
        return Err(error.to_string());
    }
    if !reader.drain().is_empty() || mount.read_dir().map_err(|it| it.to_string())?.count() != 1 {
        return Err("something is left of the ring".into());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_anywhere_are_read_or_reported(
        patches in proptest::collection::vec((0..RECORDS + 64 * 32, proptest::collection::vec(any::<u8>(), 1..40)), 1..8),
        near_the_start in any::<bool>(),
    ) {
        let mut link = DamagedLink::new();
        let length = link.copy.metadata().unwrap().len();
        let file = link.file();
        for (at, bytes) in &patches {
            let at = if near_the_start { at % 256 } else { *at };
            let fits = bytes.len().min((length - at) as usize);
            file.write_all_at(&bytes[..fits], at).unwrap();
        }
        for _ in 0..3 {
            let events = link.reader.drain();
            prop_assert!(marks(&events).len() <= 30 + 64);
            pair_phases(&events);
            prop_assert!(faults(&events).len() <= 1);
            lost(&events);
        }
        prop_assert!(link.copy.metadata().is_ok_and(|it| it.len() == length) || !link.copy.exists());
    }

    #[test]
    fn files_of_random_bytes_are_reported(bytes in proptest::collection::vec(any::<u8>(), 0..4000), ring in any::<bool>()) {
        let mut link = DamagedLink::new();
        let mut bytes = bytes;
        if ring && bytes.len() > 12 {
            bytes[..12].copy_from_slice(b"SWSPRING\x01\0\0\0");
        }
        std::fs::write(&link.copy, &bytes).unwrap();
        prop_assert_eq!(faults(&link.reader.drain()).len(), 1);
    }
}
