//! The Rust writer and reader: order, losses, ends, folders.

mod common;

use std::num::NonZeroU64;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use common::{describe_marks, drain_until, ended, faults, folder, lost, marks, ring_files};
use sweetspot_link::{Event, LinkError, Mark, Moment, Reader, Tuning, Writer, pair_phases};

#[test]
fn everything_written_is_read_in_order() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    assert!(reader.drain().is_empty());
    let writer = Writer::open(reader.folder()).unwrap();
    let before = Moment::now();
    {
        let _outer = writer.phase("step");
        let _inner = writer.phase("forward ∇");
    }
    writer.begin("x");
    writer.end("x");
    writer.progress(128);
    writer.value("accuracy", 0.76);
    writer.phase_between("gpu", Moment::from_nanos(5), Moment::from_nanos(9));
    let events = reader.drain();
    assert_eq!(
        describe_marks(&events),
        [
            "+step",
            "+forward ∇",
            "-forward ∇",
            "-step",
            "+x",
            "-x",
            "128",
            "accuracy:0.76",
            "=gpu"
        ]
    );
    assert!(matches!(events[0], Event::Appeared(ring) if ring.pid == std::process::id()));
    let timed = &common::records(&events)[..8];
    assert!(timed.windows(2).all(|two| two[0].at <= two[1].at));
    assert!(timed[0].at >= before && timed[7].at <= Moment::now());
    let (spans, irregular) = pair_phases(&events);
    assert_eq!((spans.len(), irregular.len()), (4, 0));
    assert!(reader.drain().is_empty());
    drop(writer);
    assert!(matches!(reader.drain()[..], [Event::Ended(_)]));
    assert!(ring_files(reader.folder()).is_empty());
    let path = reader.folder().to_owned();
    drop(reader);
    assert!(!path.exists());
}

#[test]
fn a_full_ring_reports_where_and_how_many_records_are_lost() {
    let parent = folder();
    let mut reader = Reader::open_with_capacity(&parent.path().join("link"), 64).unwrap();
    let writer = Writer::open(reader.folder()).unwrap();
    for item in 0..100 {
        writer.progress(item);
    }
    assert_eq!(writer.lost(), 36);
    let events = reader.drain();
    // A whole lap was read, so there may be more; the loss is reported when the ring is empty at the latest.
    assert_eq!(marks(&events).len(), 64);
    writer.progress(100);
    let later = reader.drain();
    assert!(
        matches!(later[0], Event::Lost { count: 36, .. }),
        "{later:?}"
    );
    assert_eq!(*marks(&later)[0], Mark::Items(100));
    for item in 0..66 {
        writer.progress(item);
    }
    let mut rest = reader.drain();
    rest.extend(reader.drain());
    assert_eq!((marks(&rest).len(), lost(&rest)), (64, 2));
}

#[test]
fn a_concurrent_writer_and_reader_lose_no_record_silently() {
    const RECORDS: u64 = 400_000;
    let parent = folder();
    let mut reader = Reader::open_with_capacity(&parent.path().join("link"), 256).unwrap();
    let path = reader.folder().to_owned();
    let thread = std::thread::spawn(move || {
        let writer = Writer::open(&path).unwrap();
        (0..RECORDS).for_each(|item| writer.progress(item));
    });
    let events = drain_until(&mut reader, |events| ended(events) == 1);
    thread.join().unwrap();
    assert_eq!(faults(&events), [""; 0]);
    let items: Vec<u64> = marks(&events)
        .iter()
        .map(|mark| match mark {
            Mark::Items(items) => *items,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(items.windows(2).all(|two| two[0] < two[1]));
    assert_eq!(items.len() as u64 + lost(&events), RECORDS);
    let mut expected = 0;
    for event in &events {
        match event {
            Event::Lost { count, .. } => expected += count,
            Event::Record(record) => {
                assert_eq!(record.mark, Mark::Items(expected));
                expected += 1;
            }
            _ => {}
        }
    }
}

#[test]
fn too_many_and_too_long_names_are_handled() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    let writer = Writer::open(reader.folder()).unwrap();
    let long = "é".repeat(100);
    writer.begin(&long);
    writer.begin("");
    for name in 0..300 {
        writer.begin(&format!("n{name}"));
    }
    let events = reader.drain();
    let describe_marks = describe_marks(&events);
    assert_eq!(describe_marks[0], format!("+{}", "é".repeat(63)));
    assert_eq!(describe_marks[1], "+(other names)");
    assert_eq!(describe_marks[255], "+n253");
    assert_eq!(describe_marks[256], "+(other names)");
    assert!(matches!(
        events.last(),
        Some(Event::NamesRefused { count: 46, .. })
    ));
}

#[test]
fn control_words_reach_a_writer() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    let writer = Writer::open(reader.folder()).unwrap();
    assert_eq!(writer.batch_size(), None);
    assert_eq!(writer.tuning(), Tuning::Off);
    reader.control().set_batch_size(NonZeroU64::new(96));
    reader.control().set_tuning(Tuning::Settled);
    assert_eq!(writer.batch_size(), NonZeroU64::new(96));
    assert_eq!(writer.tuning(), Tuning::Settled);
    reader.control().set_batch_size(None);
    assert_eq!(writer.batch_size(), None);
    // Each size is reported once when it is asked for, so that the tool knows of programs that never ask.
    assert_eq!(describe_marks(&reader.drain()), ["batch_size:96"]);
    for size in [96, 48] {
        reader.control().set_batch_size(NonZeroU64::new(size));
        for _ in 0..3 {
            assert_eq!(writer.batch_size(), NonZeroU64::new(size));
        }
    }
    assert_eq!(describe_marks(&reader.drain()), ["batch_size:48"]);
}

#[test]
fn a_serving_program_reports_its_batches_and_queue() {
    let parent = folder();
    let mut reader = Reader::create_in(parent.path()).unwrap();
    let writer = Writer::open(reader.folder()).unwrap();
    writer.batch(32, Duration::from_millis(250));
    writer.latency(Duration::from_millis(500));
    writer.queue(3);
    writer.arrivals(20.0);
    writer.out_of_memory(64);
    let expected = [
        "batch_s:0.25",
        "32",
        "latency_s:0.5",
        "queue_length:3",
        "arrivals_per_s:20",
        "out_of_memory:64",
    ];
    assert_eq!(describe_marks(&reader.drain()), expected);
}

#[test]
fn a_batch_size_that_did_not_fit_is_not_returned_again() {
    let parent = folder();
    let reader = Reader::create_in(parent.path()).unwrap();
    let writer = Writer::open(reader.folder()).unwrap();
    let asked = |size: u64| {
        reader.control().set_batch_size(NonZeroU64::new(size));
        writer.batch_size().map(NonZeroU64::get)
    };
    assert_eq!(asked(64), Some(64));
    writer.out_of_memory(64);
    assert_eq!(
        (asked(64), asked(128), asked(48)),
        (Some(32), Some(32), Some(48))
    );
    writer.out_of_memory(32);
    writer.out_of_memory(64);
    assert_eq!((asked(64), asked(8)), (Some(16), Some(8)));
    writer.out_of_memory(1);
    assert_eq!((asked(64), asked(1)), (Some(1), Some(1)));
}

#[test]
fn a_folder_has_one_tool_and_is_private() {
    let parent = folder();
    let first = Reader::create_in(parent.path()).unwrap();
    let mode = first.folder().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let second = Reader::open(first.folder());
    assert!(matches!(second, Err(LinkError::Busy { .. })), "{second:?}");

    let open = parent.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    let refused = Reader::open(&open);
    assert!(matches!(refused, Err(LinkError::NotPrivate { .. })));

    let link = parent.path().join("link");
    std::os::unix::fs::symlink(first.folder(), &link).unwrap();
    assert!(matches!(Reader::open(&link), Err(LinkError::Folder { .. })));
    let nowhere = Reader::create_in(&parent.path().join("no/such"));
    assert!(matches!(nowhere, Err(LinkError::Folder { .. })));
}

#[test]
fn abandoned_folders_are_removed_and_used_ones_are_not() {
    let parent = folder();
    let used = Reader::create_in(parent.path()).unwrap();
    let left = parent.path().join("sweetspot-link-0-1-1");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("control"), "").unwrap();
    let outside = parent.path().join("outside");
    std::fs::write(&outside, "kept").unwrap();
    std::os::unix::fs::symlink(&outside, left.join("ring-1-1-1")).unwrap();
    let _next = Reader::create_in(parent.path()).unwrap();
    assert!(!left.exists());
    assert!(used.folder().exists());
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "kept");
}

#[test]
fn an_existing_folder_stays_without_the_links_files() {
    let parent = folder();
    let path = parent.path().join("mine");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(path.join("notes"), "").unwrap();
    let reader = Reader::open(&path).unwrap();
    let _writer = Writer::open(&path).unwrap();
    drop(reader);
    let left: Vec<_> = path.read_dir().unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_workload_without_a_tool_gets_an_error() {
    let parent = folder();
    let refused = Writer::open(parent.path());
    assert!(matches!(refused, Err(LinkError::NoTool { .. })));
    std::fs::write(parent.path().join("control"), [0; 320]).unwrap();
    let refused = Writer::open(parent.path());
    assert!(matches!(refused, Err(LinkError::Malformed { .. })));
    std::fs::write(parent.path().join("control"), "x").unwrap();
    assert!(matches!(
        Writer::open(parent.path()),
        Err(LinkError::File { .. })
    ));
}
