//! Runs commands from start to exit, without devices.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_link::Writer;
use sweetspot_workload::{
    CommandExit, CommandSpec, NoHandler, OutputTarget, Progress, ProgressReader, Reporter,
    RunHandler, RunInProgress, RunLimits, RunOutcome, SignalSource, WorkloadError, WorkloadEvent,
    run_until_exit,
};

fn shell(script: &str) -> CommandSpec {
    CommandSpec {
        output: OutputTarget::Hidden,
        no_input: true,
        ..CommandSpec::new(["sh", "-c", script].map(OsString::from).to_vec())
    }
}

/// Only one test may run a command at a time, because ending a command ends all descendants of the process.
static ONE_COMMAND: Mutex<()> = Mutex::new(());

fn run(command: &CommandSpec, limits: RunLimits) -> Result<RunOutcome, WorkloadError> {
    let _alone = ONE_COMMAND.lock().unwrap_or_else(PoisonError::into_inner);
    let signals = SignalSource::listen()?;
    let mut reader = ProgressReader::without_link();
    run_until_exit(command, limits, None, &signals, &mut reader, &mut NoHandler)
}

#[test]
fn the_exit_and_the_last_output_are_known() {
    let outcome = run(
        &shell("echo out; echo err >&2; exit 3"),
        RunLimits::default(),
    )
    .unwrap();
    assert_eq!(
        (outcome.ended, outcome.exit_code()),
        (CommandExit::Code(3), 3)
    );
    assert!(outcome.output.contains("out") && outcome.output.contains("err"));
    let outcome = run(&shell("kill -KILL $$"), RunLimits::default()).unwrap();
    assert_eq!(
        (outcome.ended, outcome.exit_code()),
        (CommandExit::Signal(9), 137)
    );
}

#[test]
fn a_missing_program_is_named() {
    let missing = CommandSpec::new(vec!["no-such-program".into()]);
    match run(&missing, RunLimits::default()) {
        Err(WorkloadError::NotStarted {
            program,
            is_missing: true,
            ..
        }) => assert_eq!(program, "no-such-program"),
        other => panic!("{other:?}"),
    }
    let not_executable = CommandSpec::new(vec!["/etc/passwd".into()]);
    match run(&not_executable, RunLimits::default()) {
        Err(WorkloadError::NotStarted {
            is_missing: false, ..
        }) => {}
        other => panic!("{other:?}"),
    }
    assert!(run(&CommandSpec::new(Vec::new()), RunLimits::default()).is_err());
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let limits = RunLimits {
        timeout: Some(Duration::from_millis(200)),
        ..RunLimits::default()
    };
    let begun = Instant::now();
    let outcome = run(&shell("trap '' TERM; sleep 60"), limits).unwrap();
    assert!(outcome.timed_out);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// A handler that records the reports, and reports items over the link itself.
struct Recorder {
    writer: Option<Writer>,
    progress: Vec<Progress>,
    has_exited: bool,
    polls_after_exit: usize,
}

impl RunHandler for Recorder {
    type Error = WorkloadError;

    fn poll(
        &mut self,
        _: &mut RunInProgress<'_, '_>,
        events: Vec<WorkloadEvent>,
    ) -> Result<(), WorkloadError> {
        for event in events {
            if let WorkloadEvent::Progress(progress) = event {
                self.progress.push(progress);
            }
        }
        if let Some(writer) = self.writer.take() {
            writer.progress(100);
            writer.progress(100);
        }
        self.polls_after_exit += usize::from(self.has_exited);
        Ok(())
    }

    fn exited(&mut self) {
        self.has_exited = true;
    }
}

fn recorded(command: &CommandSpec, reader: &mut ProgressReader, link: Option<&Path>) -> Recorder {
    let mut recorder = Recorder {
        writer: link.map(|folder| Writer::open(folder).unwrap()),
        progress: Vec::new(),
        has_exited: false,
        polls_after_exit: 0,
    };
    let _alone = ONE_COMMAND.lock().unwrap_or_else(PoisonError::into_inner);
    let signals = SignalSource::listen().unwrap();
    let limits = RunLimits::default();
    run_until_exit(command, limits, None, &signals, reader, &mut recorder).unwrap();
    assert_eq!(recorder.polls_after_exit, 1);
    recorder
}

#[test]
fn the_last_output_counts() {
    let mut command = shell("for i in 1 2 3 1 2; do echo $i; done; printf 5");
    command.progress = r"^(\d+)$".parse().unwrap();
    let mut reader = ProgressReader::without_link();
    let recorder = recorded(&command, &mut reader, None);
    assert_eq!(reader.counter().items(), Some(3.0 + 5.0));
    let sum: f64 = recorder
        .progress
        .iter()
        .map(|progress| progress.items)
        .sum();
    assert_eq!(sum, 8.0);
}

#[test]
fn reports_over_the_link_take_precedence_over_the_output() {
    let mut command = shell("for i in 1 2 3 4; do echo $i; sleep 0.1; done");
    command.progress = r"^(\d+)$".parse().unwrap();
    let mut reader = ProgressReader::with_link().unwrap();
    let folder = reader.link_folder().unwrap().to_owned();
    let recorder = recorded(&command, &mut reader, Some(&folder));
    assert_eq!(reader.counter().items(), Some(200.0));
    let by_link = |progress: &&Progress| matches!(progress.reporter, Reporter::Link(_));
    assert_eq!(recorder.progress.iter().filter(by_link).count(), 2);
}

#[test]
fn progress_is_recognised_on_both_streams() {
    let mut command = shell(
        r"for i in 1 2 3 4 5 6; do echo step $i: loss 0.5; done;
          for i in 1 2 3; do printf '\rEpoch 0: 10%%|#  | %s/3 [00:00<00:09, 1.0it/s]' $i >&2; done",
    );
    command.progress = "auto".parse().unwrap();
    let mut reader = ProgressReader::without_link();
    let recorder = recorded(&command, &mut reader, None);
    // The bar of a known program takes precedence over plain lines.
    assert_eq!(reader.counter().items(), Some(3.0));
    let found = reader.recognised().unwrap();
    assert_eq!(found.to_string(), "tqdm, counted in `it`");
    assert!(
        recorder
            .progress
            .iter()
            .all(|one| reader.counter().counts(one.reporter))
    );
    command.progress = "steps".parse().unwrap();
    let mut reader = ProgressReader::without_link();
    recorded(&command, &mut reader, None);
    assert_eq!(reader.counter().items(), Some(6.0));
    command.progress = "none".parse().unwrap();
    let mut reader = ProgressReader::without_link();
    recorded(&command, &mut reader, None);
    assert_eq!(reader.counter().items(), None);
}

#[test]
fn the_order_of_both_streams_is_kept() {
    let mut command = shell("for i in 1 2 3 4 5 6 7 8; do echo out $i; echo err $i >&2; done");
    command.progress = "auto".parse().unwrap();
    let outcome = run(&command, RunLimits::default()).unwrap();
    let expected: String = (1..=8).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(outcome.output, expected);
}
