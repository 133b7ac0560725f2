//! Damaged rings of the link, which the measured program writes.

use sweetspot_link::{Reader, Writer};

use super::{cases, damage, run_cases};

#[test]
fn rings() {
    let folder = tempfile::tempdir().unwrap();
    let reader = Reader::create_in(folder.path()).unwrap();
    let writer = Writer::open(reader.folder()).unwrap();
    for number in 0..200 {
        writer.progress(number);
        drop(writer.phase("forward"));
    }
    let entries = || std::fs::read_dir(reader.folder()).unwrap().flatten();
    let files: Vec<_> = entries().filter(|entry| entry.path().is_file()).collect();
    let valid: Vec<_> = files
        .iter()
        .map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()))
        .collect();
    assert!(!valid.is_empty());
    run_cases(cases(1000, 1), |random| {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        for (name, bytes) in &valid {
            std::fs::write(folder.path().join(name), damage(random, bytes)).unwrap();
        }
        if let Ok(mut reader) = Reader::open(folder.path()) {
            let _ = reader.drain();
            let _ = reader.drain();
        }
    });
}
