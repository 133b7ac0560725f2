//! The Python client, read by the Rust reader.

mod common;

use std::num::NonZeroU64;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use common::{
    describe_marks, drain_until, ended, faults, folder, lost, program, python, ring_files,
};
use sweetspot_link::{Event, Irregularity, Mark, Reader, Ring, pair_phases};

/// Runs a program to its end and returns its events on the link.
fn run(reader: &mut Reader, text: &str, set: impl FnOnce(&mut Command)) -> Vec<Event> {
    let mut command = python(reader.folder());
    command.args(["-c", &format!("import sweetspot as s\n{text}")]);
    set(&mut command);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut events = reader.drain();
    events.extend(reader.drain());
    events
}

fn rings(events: &[Event]) -> Vec<Ring> {
    let mut rings = Vec::new();
    for event in events {
        if let Event::Appeared(ring) = event {
            rings.push(*ring);
        }
    }
    rings
}

#[test]
fn the_clients_own_tests_pass() {
    let mut python = program("python3");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python");
    let output = python
        .args(["-B", "-m", "unittest", "discover", "-s", "tests"])
        .current_dir(root)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("OK"), "{text}");
}

#[test]
fn phases_items_and_values_are_read_with_any_names() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    let text = "
with s.phase('step'):
    with s.phase('vorwärts ∇'): pass
    s.begin('step'); s.end('step')
s.progress(items=128)
s.value('accuracy', 0.76)
s.begin('é' * 100)";
    let events = run(&mut reader, text, |_| {});
    let long = format!("+{}", "é".repeat(63));
    assert_eq!(
        describe_marks(&events),
        [
            "+step",
            "+vorwärts ∇",
            "-vorwärts ∇",
            "+step",
            "-step",
            "-step",
            "128",
            "accuracy:0.76",
            &long
        ]
    );
    assert_eq!((ended(&events), faults(&events).len()), (1, 0));
    let (spans, irregular) = pair_phases(&events);
    assert_eq!(spans.len(), 3);
    assert!(matches!(
        irregular[..],
        [Irregularity::BeginWithoutEnd { .. }]
    ));
    assert_eq!(rings(&events)[0].rank, None);
}

#[test]
fn too_many_names_and_a_full_ring_are_reported() {
    let parent = folder();
    let mut reader = Reader::open_with_capacity(&parent.path().join("link"), 512).unwrap();
    let text = "for i in range(300): s.begin(f'n{i}')\nfor i in range(300): s.progress(i)";
    let events = run(&mut reader, text, |_| {});
    assert_eq!(describe_marks(&events).len(), 512);
    assert_eq!(lost(&events), 88);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::NamesRefused { count: 45, .. }))
    );
    assert_eq!(ended(&events), 1);
}

#[test]
fn each_thread_and_fork_has_its_own_ring() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    let text = "
import os, threading
def work():
    for _ in range(50):
        with s.phase('work'): s.progress(1)
threads = [threading.Thread(target=work) for _ in range(3)]
with s.phase('main'):
    [t.start() for t in threads]
    child = os.fork()
    if child == 0:
        work(); os._exit(0)
    [t.join() for t in threads]
    os.waitpid(child, 0)";
    let set = |command: &mut Command| {
        command.env("RANK", "3").env("LOCAL_RANK", "1");
    };
    let events = run(&mut reader, text, set);
    let rings = rings(&events);
    assert_eq!(rings.len(), 5);
    assert!(rings.iter().all(|ring| ring.rank == Some(3)));
    let mut processes: Vec<u32> = rings.iter().map(|ring| ring.pid).collect();
    processes.sort_unstable();
    processes.dedup();
    assert_eq!((processes.len(), ended(&events)), (2, 5));
    let (spans, irregular) = pair_phases(&events);
    assert_eq!((spans.len(), irregular.len()), (4 * 50 + 1, 0));
}

#[test]
fn a_batch_size_can_change_while_the_program_runs() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    let mut command = python(reader.folder());
    let text = "
import sweetspot as s
last = None
while last != 96:
    size = s.batch_size(default=32)
    if size != last: s.value('batch', size)
    last = size";
    let mut child = command.args(["-c", text]).spawn().unwrap();
    let seen = |events: &[Event], size: f64| {
        common::marks(events)
            .iter()
            .any(|mark| matches!(mark, Mark::Value { value, .. } if *value == size))
    };
    drain_until(&mut reader, |events| seen(events, 32.0));
    for size in [64, 96] {
        reader.control().set_batch_size(NonZeroU64::new(size));
        drain_until(&mut reader, |events| seen(events, size as f64));
    }
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_killed_program_leaves_complete_records() {
    let parent = folder();
    let mut reader = Reader::open_with_capacity(&parent.path().join("link"), 4096).unwrap();
    let text = "
import sweetspot as s, itertools
for i in itertools.count():
    with s.phase('a'): s.progress(i)";
    for round in 0..15 {
        let mut command = python(reader.folder());
        let mut child = command.args(["-c", text]).spawn().unwrap();
        let mut events = drain_until(&mut reader, |events| describe_marks(events).len() > 100);
        std::thread::sleep(std::time::Duration::from_micros(137 * round));
        child.kill().unwrap();
        // Its end is noticed even before it is waited for, when it is a zombie.
        events.extend(drain_until(&mut reader, |events| ended(events) == 1));
        child.wait().unwrap();
        assert_eq!(faults(&events), [""; 0]);
        let describe_marks = describe_marks(&events);
        let mut expected = 0;
        for event in &events {
            match event {
                // Every item has three records; its number shows which ones are lost.
                Event::Lost { .. } => expected = u64::MAX,
                Event::Record(record) => {
                    if let Mark::Items(item) = record.mark {
                        assert!(
                            expected == u64::MAX || item == expected,
                            "{item} {expected}"
                        );
                        expected = item + 1;
                    }
                }
                _ => {}
            }
        }
        assert!(describe_marks.len() > 100);
        let (_, irregular) = pair_phases(&events);
        let open = irregular
            .iter()
            .filter(|it| matches!(it, Irregularity::BeginWithoutEnd { .. }))
            .count();
        assert!(lost(&events) > 0 || open <= 1, "{irregular:?}");
    }
    assert!(ring_files(reader.folder()).is_empty());
}

#[test]
fn a_damaged_ring_is_reported_and_others_are_read() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    let text = "
import os, glob
s.progress(7)
ring = glob.glob(os.environ['SWEETSPOT_LINK'] + '/ring-*')[0]
data = open(ring, 'rb').read()
def spoil(name, data): open(os.path.join(os.path.dirname(ring), name), 'wb').write(data)
spoil('ring-version', data[:8] + b'\\x02' + data[9:])
spoil('ring-short', data[:1000])
spoil('ring-boot', data[:40] + b'\\x01' * 16 + data[56:])
spoil('ring-empty', b'')";
    let events = run(&mut reader, text, |_| {});
    assert_eq!(describe_marks(&events), ["7"]);
    let mut faults = faults(&events);
    faults.sort();
    assert_eq!(faults.len(), 4, "{faults:?}");
    for (fault, part) in faults.iter().zip(["boot", "empty", "short", "version"]) {
        assert!(fault.contains(&format!("ring-{part}")), "{fault}");
    }
}

#[test]
fn an_unwritable_folder_does_not_harm_the_program() {
    let parent = folder();
    let reader = Reader::create_in(parent.path()).unwrap();
    let mut command = python(reader.folder());
    std::fs::set_permissions(reader.folder(), PermissionsExt::from_mode(0o500)).unwrap();
    if rustix::process::geteuid().is_root() {
        // Root can write anywhere, so the test becomes the user nobody, who cannot even enter the folder.
        use std::os::unix::process::CommandExt;
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python/src/sweetspot");
        let readable = parent.path().join("python");
        std::fs::create_dir(&readable).unwrap();
        let copied = Command::new("cp")
            .args(["-r", source])
            .arg(&readable)
            .status()
            .unwrap();
        assert!(copied.success());
        std::fs::set_permissions(parent.path(), PermissionsExt::from_mode(0o755)).unwrap();
        command = Command::new("/usr/bin/python3");
        if Command::new("/usr/bin/python3").output().is_err() {
            eprintln!("SKIPPED: there is no /usr/bin/python3 for another user");
            return;
        }
        command
            .env("PYTHONPATH", &readable)
            .env(sweetspot_link::LINK_VARIABLE, reader.folder());
        command.uid(65534);
    }
    let text =
        "import sweetspot as s\nwith s.phase('a'): s.progress(1)\nprint(s.batch_size(default=4))";
    let output = command
        .args(["-B", "-c", text])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("Permission denied"), "{errors}");
    assert_eq!(errors.matches("sweetspot:").count(), 1, "{errors}");
}
