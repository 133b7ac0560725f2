use super::*;
use crate::sweep::slurm::ledger::Ledger;

/// An array that Slurm has given the number `job`.
fn array(number: u32, job: Option<u64>, blocks: &[&[u64]]) -> ArrayRecord {
    let study = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(study.path().join("slurm")).unwrap();
    let blocks = blocks.iter().map(|block| block.to_vec()).collect();
    let mut array = Ledger::new(study.path(), "a")
        .begin(number, blocks, None)
        .unwrap();
    array.job = job;
    array
}

fn task(job: u64, index: usize, state: JobState) -> QueuedTask {
    QueuedTask {
        job,
        index: Some(index),
        state,
        node: "n1".to_owned(),
        name: "sweetspot-a-1".to_owned(),
        reason: "Resources".to_owned(),
    }
}

fn ended(word: &str) -> JobState {
    JobState::Ended(word.to_owned())
}

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_job_that_ends_without_a_result_is_lost_after_a_while() {
    let mut tracker = Tracker::default();
    tracker.add(array(1, Some(7), &[&[0, 1], &[2]]));
    let queue = [task(7, 0, JobState::Running), task(7, 1, JobState::Pending)];
    let summary = tracker.update(&queue, |_| false, at(0));
    assert_eq!((summary.running, summary.pending), (1, 1));
    assert_eq!(summary.reasons, ["Resources"]);
    // Run 0 has a result; the node of run 1 fails.
    let queue = [
        task(7, 0, ended("NODE_FAIL")),
        task(7, 1, JobState::Running),
    ];
    let summary = tracker.update(&queue, |run| run == 0, at(10));
    assert!(summary.lost.is_empty() && tracker.is_active(1) && !tracker.is_active(0));
    let summary = tracker.update(&queue, |run| run == 0, at(16));
    assert_eq!(summary.lost.len(), 1);
    let lost = &summary.lost[0];
    assert_eq!((lost.id, lost.attempts, lost.job), (1, 1, (1, 0)));
    assert_eq!(lost.state.as_deref(), Some("NODE_FAIL"));
    assert!(!tracker.is_active(1));
    // It is submitted again, and then lost again.
    tracker.add(array(2, Some(8), &[&[1]]));
    assert!(tracker.is_active(1));
    tracker.update(&[], |run| run == 0, at(20));
    let summary = tracker.update(&[], |run| run == 0, at(26));
    let attempts: Vec<_> = summary
        .lost
        .iter()
        .map(|lost| (lost.id, lost.attempts))
        .collect();
    assert_eq!(attempts, [(1, 2), (2, 1)]);
    assert!(tracker.is_idle());
}

#[test]
fn a_completed_job_has_more_time_to_show_its_result() {
    let mut tracker = Tracker::default();
    tracker.add(array(1, Some(7), &[&[0]]));
    let queue = [task(7, 0, ended("COMPLETED"))];
    tracker.update(&queue, |_| false, at(0));
    assert!(tracker.update(&queue, |_| false, at(59)).lost.is_empty());
    assert_eq!(tracker.update(&queue, |_| false, at(60)).lost.len(), 1);
}

#[test]
fn what_somebody_cancelled_is_not_submitted_again() {
    let mut tracker = Tracker::default();
    tracker.add(array(1, Some(7), &[&[0], &[1]]));
    let queue = [
        task(7, 0, ended("CANCELLED")),
        task(7, 1, JobState::Running),
    ];
    tracker.update(&queue, |_| false, at(0));
    let summary = tracker.update(&queue, |_| false, at(6));
    assert!(summary.lost.is_empty() && tracker.is_cancelled(0) && !tracker.is_active(0));
    assert_eq!(tracker.cancelled(), 1);
}

#[test]
fn jobs_that_were_cancelled_together_before_they_started_are_not_submitted_again() {
    let mut tracker = Tracker::default();
    tracker.add(array(1, Some(7), &[&[0], &[1], &[2]]));
    let together = QueuedTask {
        index: None,
        ..task(7, 0, ended("CANCELLED"))
    };
    let queue = [together, task(7, 0, JobState::Running)];
    tracker.update(&queue, |_| false, at(0));
    let summary = tracker.update(&queue, |_| false, at(6));
    assert!(summary.lost.is_empty() && tracker.is_active(0));
    assert!(tracker.is_cancelled(1) && tracker.is_cancelled(2));
}

#[test]
fn an_array_without_a_number_is_found_by_its_name() {
    let mut tracker = Tracker::default();
    tracker.add(array(1, None, &[&[0]]));
    let queue = [task(7, 0, JobState::Running)];
    assert_eq!(tracker.update(&queue, |_| false, at(0)).running, 1);
    assert_eq!(tracker.arrays()[0].job, Some(7));
    // One that was never submitted is lost after a while.
    let mut tracker = Tracker::default();
    tracker.add(array(2, None, &[&[0]]));
    tracker.update(&queue, |_| false, at(0));
    assert_eq!(tracker.update(&queue, |_| false, at(5)).lost.len(), 1);
}

#[test]
fn an_array_that_the_executor_withdraws_does_not_count_as_an_attempt() {
    let mut tracker = Tracker::default();
    tracker.add(array(1, Some(7), &[&[0]]));
    assert_eq!(tracker.open_arrays().count(), 1);
    tracker.withdraw(1).unwrap();
    assert!(tracker.is_idle() && tracker.open_arrays().count() == 0);
    tracker.add(array(2, Some(8), &[&[0]]));
    tracker.update(&[], |_| false, at(0));
    let summary = tracker.update(&[], |_| false, at(9));
    assert_eq!(summary.lost[0].attempts, 1);
}

#[test]
fn a_resumed_sweep_wants_what_was_cancelled_and_counts_attempts_anew() {
    let mut tracker = Tracker::default();
    tracker.add(array(1, Some(7), &[&[0], &[1], &[2], &[3]]));
    tracker.add(array(2, Some(8), &[&[1]]));
    let queue = [
        task(7, 0, ended("CANCELLED")),
        task(8, 0, ended("FAILED")),
        task(7, 2, JobState::Running),
        task(7, 3, ended("CANCELLED")),
    ];
    // Run 3 left its result before its job was cancelled.
    assert_eq!(tracker.resume(&queue, |run| run == 3), 1);
    assert!(!tracker.is_active(0) && tracker.is_active(1) && tracker.is_active(2));
    tracker.update(&queue, |run| run == 3, at(0));
    let summary = tracker.update(&queue, |run| run == 3, at(6));
    assert_eq!(tracker.cancelled(), 0);
    let lost: Vec<_> = summary
        .lost
        .iter()
        .map(|lost| (lost.id, lost.attempts))
        .collect();
    assert_eq!(lost, [(1, 0)]);
    // A job that goes on counts.
    tracker.update(&[], |run| run == 3, at(10));
    let summary = tracker.update(&[], |run| run == 3, at(20));
    assert_eq!((summary.lost[0].id, summary.lost[0].attempts), (2, 1));
}

#[test]
fn the_runs_of_a_withdrawn_array_are_not_under_way() {
    let mut withdrawn = array(1, Some(7), &[&[0]]);
    withdrawn.withdrawn = true;
    let mut tracker = Tracker::default();
    tracker.add(withdrawn);
    assert!(tracker.is_idle());
    tracker.update(&[task(7, 0, ended("CANCELLED"))], |_| false, at(0));
    assert_eq!(tracker.cancelled(), 0);
}
