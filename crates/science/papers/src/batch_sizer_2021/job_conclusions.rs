//! What the paper concludes from the jobs of table 2, and whether it holds here.

use sweetspot_control::hold::HoldMode;

use super::controller::Controller;
use super::jobs::JobResult;
use crate::row::{Conclusion, Judgement, Label, ReproducedRow, Rows, ValueKind};

/// The share of the readings, or of the time, that may be above the cap.
const ALLOWED_EXCESS: f64 = 0.01;

/// The number of jobs in which a control algorithm is faster than the paper's clock search (DVFS).
const JOBS_AHEAD: ValueKind = ValueKind::difference("jobs_ahead", "jobs faster than DVFS", 1.0, 0);
/// The largest gain over DVFS.
const LARGEST_GAIN: ValueKind = ValueKind::difference("largest_gain", "largest gain [%]", 100.0, 1);
/// The number of the job with the largest gain.
const LARGEST_GAIN_JOB: ValueKind =
    ValueKind::difference("largest_gain_job", "job of the largest gain", 1.0, 0);
/// The largest loss to DVFS, or the smallest gain.
const LARGEST_LOSS: ValueKind = ValueKind::difference("largest_loss", "largest loss [%]", 100.0, 1);
/// The number of the job with the largest loss.
const LARGEST_LOSS_JOB: ValueKind =
    ValueKind::difference("largest_loss_job", "job of the largest loss", 1.0, 0);
/// The number of jobs that are above the cap for 1 % of what it binds, or more.
const JOBS_OVER_CAP: ValueKind =
    ValueKind::difference("jobs_over_cap", "jobs over the cap 1 % or longer", 1.0, 0);

/// The gains of a control algorithm over DVFS, in all jobs.
struct Figure5 {
    jobs: usize,
    /// The number of jobs with a gain.
    ahead: usize,
    /// The largest gain as a fraction, and the number of its job.
    highest: (f64, u64),
    /// The largest loss, or the smallest gain, and the number of its job.
    lowest: (f64, u64),
}

impl Figure5 {
    fn new(jobs: &[JobResult], controller: Controller) -> Self {
        let gains: Vec<(f64, u64)> = jobs
            .iter()
            .filter_map(|job| Some((job.gain(controller)?, job.job)))
            .collect();
        let by_gain = |a: &&(f64, u64), b: &&(f64, u64)| a.0.total_cmp(&b.0);
        Self {
            jobs: gains.len(),
            ahead: gains.iter().filter(|(gain, _)| *gain > 0.0).count(),
            highest: gains.iter().max_by(by_gain).copied().unwrap_or_default(),
            lowest: gains.iter().min_by(by_gain).copied().unwrap_or_default(),
        }
    }
}

/// What the paper concludes from figure 5, for each control algorithm that sets batch sizes.
pub(super) fn figure_5_by_mode(jobs: &[JobResult]) -> Vec<ReproducedRow> {
    let controllers = [HoldMode::Paper, HoldMode::Text, HoldMode::Windowed].map(Controller::of);
    let mut rows = Rows::new("figure 5, by mode");
    for controller in controllers
        .into_iter()
        .chain([Controller::ROBUST_ON_READINGS])
    {
        let labels: [(&'static str, Label); 1] = [("mode", controller.name().into())];
        let figure = Figure5::new(jobs, controller);
        for (kind, here) in [
            (JOBS_AHEAD, figure.ahead as f64),
            (LARGEST_GAIN, figure.highest.0),
            (LARGEST_GAIN_JOB, figure.highest.1 as f64),
            (LARGEST_LOSS, figure.lowest.0),
            (LARGEST_LOSS_JOB, figure.lowest.1 as f64),
            (JOBS_OVER_CAP, over_the_cap(jobs, controller).len() as f64),
        ] {
            rows.add(&labels, kind, None, Some(here), Judgement::Shown);
        }
    }
    rows.rows
}

/// The conclusions about the jobs of table 2: those of figure 5, for the paper's algorithm as its text intends it and
/// for the default algorithm with the same cap, and further requirements on the control algorithms of `hold`.
pub(super) fn job_conclusions(jobs: &[JobResult]) -> Vec<Conclusion> {
    let robust = Controller::of(HoldMode::Robust);
    let behind = jobs_behind(jobs);
    let figure_5 = [
        figure_5_conclusions(
            jobs,
            Controller::of(HoldMode::Windowed),
            "the paper's algorithm as intended (windowed)",
        ),
        figure_5_conclusions(
            jobs,
            Controller::ROBUST_ON_READINGS,
            "the default algorithm (robust) with the cap on readings",
        ),
    ];
    let beyond = [
        Conclusion::new(
            "the robust algorithm is below every cap 99 % of the time",
            over_the_cap(jobs, robust).is_empty(),
            list_jobs(
                "over the cap for 1 % of the time or longer",
                &over_the_cap(jobs, robust),
            ),
        ),
        Conclusion::new(
            "with the cap on readings no other algorithm for batch sizes that is below the cap is over 1 % faster than robust, and joint is as fast as the faster of robust and DVFS, within 1 %",
            behind.is_empty(),
            list_jobs("slower", &behind),
        ),
    ];
    figure_5.into_iter().flatten().chain(beyond).collect()
}

/// The conclusions of figure 5 for one control algorithm. A simulated value confirms a printed value if it rounds to
/// it.
fn figure_5_conclusions(jobs: &[JobResult], controller: Controller, name: &str) -> Vec<Conclusion> {
    let figure = Figure5::new(jobs, controller);
    let of_job = |number| jobs.iter().find(|job| job.job == number);
    let gain_in = |number| of_job(number).and_then(|job| job.gain(controller));
    let over = over_the_cap(jobs, controller);
    let cost = match over.is_empty() {
        true => String::new(),
        false => format!(
            "; {}",
            list_jobs("1 % of the readings or more are above the cap", &over)
        ),
    };
    let here = |(gain, job): (f64, u64)| format!("{:+.2} % in job {job}", 100.0 * gain);
    let beside = |(gain, job): (f64, u64), number| match job == number {
        true => here((gain, job)),
        false => format!(
            "{}, {}",
            here((gain, job)),
            here((gain_in(number).unwrap_or(f64::NAN), number))
        ),
    };
    vec![
        Conclusion::new(
            &format!("{name} beats DVFS in most jobs"),
            2 * figure.ahead > figure.jobs,
            format!("in {} of {} jobs{cost}", figure.ahead, figure.jobs),
        ),
        Conclusion::new(
            &format!("{name} gains up to 29 %"),
            (100.0 * figure.highest.0).round() == 29.0,
            here(figure.highest),
        ),
        Conclusion::new(
            &format!("{name} gains most in job 19"),
            figure.highest.1 == 19,
            beside(figure.highest, 19),
        ),
        Conclusion::new(
            &format!("{name} loses at most 8 %"),
            figure.lowest.0 >= -0.08,
            here(figure.lowest),
        ),
        Conclusion::new(
            &format!("{name} loses most in job 5"),
            figure.lowest.1 == 5,
            beside(figure.lowest, 5),
        ),
    ]
}

/// Text that lists the jobs to which `what` applies.
fn list_jobs(what: &str, jobs: &[u64]) -> String {
    match jobs {
        [] => format!("{what} in no job"),
        jobs => format!("{what} in jobs {jobs:?}"),
    }
}

/// The share of a job's readings, or of its time, in which its power exceeds the cap under a control algorithm.
fn violation_share(job: &JobResult, controller: Controller) -> f64 {
    let result = job.of(controller);
    let share = result.and_then(|result| result.summary.violation_share);
    share.map_or(0.0, |share| share.get())
}

/// The numbers of the jobs whose power exceeds the cap for at least 1 % under a control algorithm.
fn over_the_cap(jobs: &[JobResult], controller: Controller) -> Vec<u64> {
    let is_over = |job: &&JobResult| violation_share(job, controller) >= ALLOWED_EXCESS;
    jobs.iter().filter(is_over).map(|job| job.job).collect()
}

/// The numbers of the jobs in which the robust or the joint algorithm is slower than another algorithm that keeps the
/// cap, if the cap binds every reading for all of them.
fn jobs_behind(jobs: &[JobResult]) -> Vec<u64> {
    let speed = |job: &JobResult, controller| {
        let result = job.of(controller);
        result.map_or(0.0, |result| result.summary.items_per_s)
    };
    let fastest_of = |job: &JobResult, modes: &[HoldMode]| {
        let controllers = modes.iter().map(|mode| Controller::of(*mode));
        let keep_cap = controllers.filter(|one| violation_share(job, *one) < ALLOWED_EXCESS);
        keep_cap.map(|one| speed(job, one)).fold(0.0, f64::max)
    };
    let behind = jobs.iter().filter(|job| {
        let robust = speed(job, Controller::ROBUST_ON_READINGS);
        let others = [HoldMode::Paper, HoldMode::Text, HoldMode::Windowed];
        let either = robust.max(fastest_of(job, &[HoldMode::Dvfs]));
        robust < 0.99 * fastest_of(job, &others)
            || speed(job, Controller::JOINT_ON_READINGS) < 0.99 * either
    });
    behind.map(|job| job.job).collect()
}
