//! The jobs that report to the measuring process, and the energy that they say they have saved.
//!
//! A report is the word of a user's process: every text and list in it is cut to a bound, and a saving that the GPUs of the
//! machine cannot have made while the process ran is left out.

use std::time::{Duration, Instant};

use sweetspot_document::live::LiveJob;
use sweetspot_quantity::{Seconds, Watts};

/// The time after which a job that no longer reports is not shown.
const MAX_JOB_AGE: Duration = Duration::from_secs(10);
/// The most jobs of one user, and of all.
const MAX_JOBS_OF_A_USER: usize = 32;
const MAX_JOBS: usize = 256;
/// The most ended jobs whose savings can still be told from each other.
const MAX_ENDED_JOBS: usize = 1024;
/// The most letters of a text in a report.
const MAX_TEXT: usize = 120;
/// The most letters of the name of a command.
const MAX_VERB: usize = 32;
/// The most GPUs of a job.
const MAX_GPUS: usize = 64;
/// The ticks in a second that the files of /proc count in, on x86-64 and aarch64.
const TICKS_PER_SECOND: f64 = 100.0;
/// The age of a process is known in steps, and its GPUs may for a moment draw more than their cap.
const AGE_SLACK: Seconds = Seconds::new(1.0);
/// The most points of a figure.
const MAX_POINTS: usize = 256;

/// The process that reports a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProcess {
    /// The user whom the process belongs to, as the kernel says.
    pub uid: u32,
    /// The id of the process, as the kernel says.
    pub pid: u32,
    /// When the process started, in ticks since the machine did; `None` if unknown. A later process may have the same id.
    pub started: Option<u64>,
}

impl JobProcess {
    /// The process with this user and id.
    pub fn find(uid: u32, pid: u32) -> Self {
        Self {
            uid,
            pid,
            started: start_ticks(pid),
        }
    }

    /// How long the process has run; `None` if unknown.
    pub fn age(&self) -> Option<Seconds> {
        let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
        let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
        Some(Seconds::new(
            uptime - self.started? as f64 / TICKS_PER_SECOND,
        ))
    }
}

/// When a process started, in ticks since the machine did.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// A job as it reported itself last.
#[derive(Debug)]
struct ReportedJob {
    process: JobProcess,
    job: LiveJob,
    first_reported: Instant,
    reported: Instant,
}

/// The jobs that report, and the savings of those that have ended.
#[derive(Debug)]
pub struct ReportedJobs {
    running: Vec<ReportedJob>,
    /// The savings of processes that no longer report, in joules. One that reports again replaces its own.
    ended: Vec<(JobProcess, f64)>,
    /// The savings of jobs that ended long ago, in joules.
    forgotten_j: f64,
    /// The most power that all GPUs together can save.
    gpu_power: Watts,
}

impl ReportedJobs {
    /// Begins without jobs, on a machine whose GPUs together draw at most this power.
    pub const fn new(gpu_power: Watts) -> Self {
        Self {
            running: Vec::new(),
            ended: Vec::new(),
            forgotten_j: 0.0,
            gpu_power,
        }
    }

    /// Stores what a process reports about itself. `age` is how long the process has run, if that is known.
    pub fn report(
        &mut self,
        process: JobProcess,
        age: Option<Seconds>,
        mut job: LiveJob,
    ) -> Result<(), &'static str> {
        self.end_old();
        let known = self.running.iter().position(|one| one.process == process);
        let known = known.map(|place| self.running.swap_remove(place));
        let own = self.running.iter();
        let own = own.filter(|one| one.process.uid == process.uid).count();
        if own >= MAX_JOBS_OF_A_USER || self.running.len() >= MAX_JOBS {
            return Err("too many jobs report: this one is not shown");
        }
        let now = Instant::now();
        let first_reported = known.map_or(now, |one| one.first_reported);
        let age = age.unwrap_or_else(|| Seconds::new(first_reported.elapsed().as_secs_f64()));
        bound_report(&mut job);
        job.pid = process.pid;
        job.user = crate::state::user_name(process.uid);
        let most = (self.gpu_power * (age + AGE_SLACK)).get();
        if job.saved_energy_j.is_some_and(|saved| saved.abs() > most) {
            job.saved_energy_j = None;
            job.saved_money = None;
        }
        self.ended.retain(|(ended, _)| *ended != process);
        self.running.push(ReportedJob {
            process,
            job,
            first_reported,
            reported: now,
        });
        Ok(())
    }

    /// The jobs that report, in the order of their processes.
    pub fn jobs(&self) -> Vec<&LiveJob> {
        let mut jobs: Vec<&LiveJob> = self.running.iter().map(|one| &one.job).collect();
        jobs.sort_by_key(|job| job.pid);
        jobs
    }

    /// The energy that all jobs have saved, in joules, those that have ended included.
    pub fn saved_energy_j(&self) -> f64 {
        let running = self.running.iter().filter_map(|one| one.job.saved_energy_j);
        let ended = self.ended.iter().map(|(_, saved)| saved);
        self.forgotten_j + ended.sum::<f64>() + running.sum::<f64>()
    }

    /// Ends jobs that no longer report, and keeps their savings.
    pub fn end_old(&mut self) {
        let ended = &mut self.ended;
        self.running.retain(|one| {
            let is_new = one.reported.elapsed() < MAX_JOB_AGE;
            if !is_new && let Some(saved) = one.job.saved_energy_j {
                ended.push((one.process, saved));
            }
            is_new
        });
        let old = self.ended.len().saturating_sub(MAX_ENDED_JOBS);
        self.forgotten_j += self.ended.drain(..old).map(|(_, saved)| saved).sum::<f64>();
    }
}

/// Cuts the texts and lists of a report to their bounds.
fn bound_report(job: &mut LiveJob) {
    cut_text(&mut job.verb, MAX_VERB);
    job.gpus.truncate(MAX_GPUS);
    for gpu in &mut job.gpus {
        cut_text(gpu, MAX_TEXT);
    }
    for text in [&mut job.phase, &mut job.currency].into_iter().flatten() {
        cut_text(text, MAX_TEXT);
    }
    if let Some(figure) = &mut job.figure {
        cut_text(&mut figure.x, MAX_TEXT);
        cut_text(&mut figure.y, MAX_TEXT);
        figure.points.truncate(MAX_POINTS);
    }
}

/// Cuts a text to so many letters. A letter may have several bytes, so a number of bytes may end within one.
fn cut_text(text: &mut String, letters: usize) {
    if let Some((end, _)) = text.char_indices().nth(letters) {
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_document::live::LiveFigure;

    use super::*;

    const PROCESS: JobProcess = JobProcess {
        uid: 1000,
        pid: 7,
        started: Some(5),
    };

    fn saving(joules: f64) -> LiveJob {
        LiveJob {
            saved_energy_j: Some(joules),
            saved_money: Some(1.0),
            ..LiveJob::default()
        }
    }

    #[test]
    fn texts_are_cut_between_letters() {
        let mut jobs = ReportedJobs::new(Watts::new(300.0));
        let text = || "aé漢🙂".repeat(100);
        let job = LiveJob {
            verb: text(),
            phase: Some(text()),
            currency: Some(text()),
            gpus: vec![text(); 100],
            figure: Some(LiveFigure {
                x: text(),
                y: text(),
                points: vec![[0.0, 1.0]; 1000],
            }),
            ..LiveJob::default()
        };
        jobs.report(PROCESS, None, job).unwrap();
        let job = jobs.jobs()[0].clone();
        assert_eq!(job.verb, "aé漢🙂".repeat(8));
        assert_eq!(job.phase.unwrap(), "aé漢🙂".repeat(30));
        assert_eq!((job.gpus.len(), job.gpus[0].chars().count()), (64, 120));
        assert_eq!(job.figure.unwrap().points.len(), 256);
    }

    #[test]
    fn a_saving_that_the_gpus_cannot_have_made_is_left_out() {
        let mut jobs = ReportedJobs::new(Watts::new(300.0));
        let age = Some(Seconds::new(10.0));
        for (claimed, shown) in [(1e300, None), (-1e300, None), (2900.0, Some(2900.0))] {
            jobs.report(PROCESS, age, saving(claimed)).unwrap();
            let job = jobs.jobs()[0];
            assert_eq!(
                (job.saved_energy_j, job.saved_money.is_some()),
                (shown, shown.is_some())
            );
            assert_eq!(jobs.saved_energy_j(), shown.unwrap_or(0.0));
        }
    }

    #[test]
    fn a_job_that_was_silent_is_counted_once() {
        let mut jobs = ReportedJobs::new(Watts::new(300.0));
        let age = Some(Seconds::new(100.0));
        jobs.report(PROCESS, age, saving(50.0)).unwrap();
        jobs.running[0].reported -= MAX_JOB_AGE;
        jobs.end_old();
        assert_eq!((jobs.jobs().len(), jobs.saved_energy_j()), (0, 50.0));
        jobs.report(PROCESS, age, saving(60.0)).unwrap();
        assert_eq!((jobs.jobs().len(), jobs.saved_energy_j()), (1, 60.0));
        // A later process with the same id is another job.
        let later = JobProcess {
            started: Some(6),
            ..PROCESS
        };
        jobs.running[0].reported -= MAX_JOB_AGE;
        jobs.report(later, age, saving(1.0)).unwrap();
        assert_eq!(jobs.saved_energy_j(), 61.0);
    }

    #[test]
    fn a_process_has_run_for_a_while() {
        let own = JobProcess::find(0, std::process::id());
        let age = own.age().unwrap().get();
        assert!((0.0..1e6).contains(&age), "{age}");
        assert_eq!(JobProcess::find(0, u32::MAX).age(), None);
    }
}
