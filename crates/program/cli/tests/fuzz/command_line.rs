//! Command lines with damaged words.

use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use super::{MAX_MEMORY_KB, MAX_TIME, cases, damage, run_cases};
use crate::common::limited;

/// Command lines that end quickly, whatever their words are.
const LINES: [&str; 8] = [
    "sweep --simulate v100 --network resnet50 --power-cap 150,300 --repeat 1 --no-study",
    "tune --simulate v100:2 --network resnet50 --limit time<=+5% --objective edp",
    "hold --simulate nvidia_h200 --network resnet50 --below 300W --batches 16,32",
    "network resnet50 --batch 8 --train",
    "simulate --list",
    "replay power-capping-2022 --strategy guided",
    "hold set 300W --pid 999999999",
    "report --objective eds:2.0 nothing",
];

#[test]
fn command_lines() {
    let folder = tempfile::tempdir().unwrap();
    run_cases(cases(60, 1000), |random| {
        let line = LINES[random.below(LINES.len())];
        let mut words: Vec<Vec<u8>> = line
            .split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        // The verb stays, so that no case runs anything but what it names.
        for _ in 0..=random.below(2) {
            let at = 1 + random.below(words.len() - 1);
            words[at] = damage(random, &words[at]);
            words[at].retain(|byte| *byte != 0);
            words[at].truncate(200);
        }
        // What a program may allocate is limited: more is a failure of the program.
        let mut child = limited(&format!("--data={}", 1000 * MAX_MEMORY_KB))
            .args(words.iter().map(|word| std::ffi::OsStr::from_bytes(word)))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = std::time::Instant::now();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if begun.elapsed() > MAX_TIME => {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    panic!("{:?} takes longer than {MAX_TIME:?}", text(&words));
                }
                None => std::thread::sleep(std::time::Duration::from_millis(2)),
            }
        };
        assert!(
            matches!(status, Some(0..=2 | 125)),
            "{status:?}: {:?}",
            text(&words)
        );
    });
}

fn text(words: &[Vec<u8>]) -> Vec<String> {
    let words = words.iter().map(|word| String::from_utf8_lossy(word));
    words.map(std::borrow::Cow::into_owned).collect()
}
