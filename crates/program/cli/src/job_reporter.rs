//! Reports a running command to the service, which shows it on the live page, in `top` and in the metrics.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use sweetspot_document::live::{LiveFigure, LiveJob};
use sweetspot_monitor::api::{ApiError, request};
use sweetspot_quantity::Seconds;
use sweetspot_report::setting_text;
use sweetspot_session::{Status, TuneStatus, service_socket};
use sweetspot_study::{RunEnding, RunRecord, SweepProgress};

use crate::config::Config;
use crate::progress::queue_text;

/// The time between two reports.
const REPORT_PERIOD: Duration = Duration::from_secs(1);
/// The most points of a figure.
const MAX_POINTS: usize = 240;
/// Joules in a kWh.
const JOULES_PER_KWH: f64 = 3.6e6;

/// Reports a running command to the service, if it runs. A service that does not answer keeps nobody waiting: a thread of
/// its own sends the reports, and one that is late is left out.
pub struct JobReporter {
    reports: Option<SyncSender<LiveJob>>,
    begun: Instant,
    reported: Option<Instant>,
    /// The time and items of the report before, for the speed.
    before: Option<(Seconds, f64)>,
    points: Vec<[f64; 2]>,
    /// The time and energy of the runs of a sweep.
    runs: Vec<[f64; 2]>,
    phase: Option<String>,
    price_per_kwh: Option<f64>,
    currency: Option<String>,
}

impl JobReporter {
    /// Begins to report, if there is a service.
    pub fn start() -> Self {
        let socket = service_socket();
        let reports = socket.exists().then(|| start_sender(socket)).flatten();
        let config = reports.as_ref().and_then(|_| Config::load().ok());
        let config = config.unwrap_or_default();
        Self {
            reports,
            begun: Instant::now(),
            reported: None,
            before: None,
            points: Vec::new(),
            runs: Vec::new(),
            phase: None,
            price_per_kwh: config.price_per_kwh,
            currency: config.currency,
        }
    }

    /// Reports the state of the command, at most once a second.
    pub fn report(&mut self, status: &Status<'_>) {
        let is_early = self.reported.is_some_and(|at| at.elapsed() < REPORT_PERIOD);
        if self.reports.is_none() || is_early {
            return;
        }
        self.reported = Some(Instant::now());
        let mut job = self.job(status);
        job.verb = std::env::args().nth(1).unwrap_or_default();
        job.elapsed_s = self.begun.elapsed().as_secs_f64();
        job.phase = job.phase.or_else(|| self.phase.clone());
        let price = self.price_per_kwh.zip(job.saved_energy_j);
        job.saved_money = price.map(|(price, saved)| price * saved / JOULES_PER_KWH);
        job.currency = self.currency.clone();
        if let Some(reports) = &self.reports {
            // A report that does not fit is late.
            let _ = reports.try_send(job);
        }
    }

    /// Adds a finished run of a sweep to its figure.
    pub fn add_run(&mut self, progress: &SweepProgress<'_>, run: &RunRecord) {
        self.phase = Some(format!("{} of {} runs", progress.done, progress.planned));
        if let RunEnding::Done(result) = &run.end
            && let Some(energy) = &result.energies.job_gpus
        {
            add_run_point(&mut self.runs, [result.time.get(), energy.value.get()]);
        }
    }

    /// What the live page shows of a command in this state.
    fn job(&mut self, status: &Status<'_>) -> LiveJob {
        match *status {
            Status::Measure {
                elapsed,
                power,
                items,
            } => {
                let speed = self.speed(elapsed, items);
                self.add_power(elapsed, power.map(|power| power.get()));
                LiveJob {
                    items_per_s: speed,
                    energy_per_item_j: power.zip(speed).map(|(power, speed)| power.get() / speed),
                    figure: Some(self.figure()),
                    ..LiveJob::default()
                }
            }
            Status::Hold(live) => {
                let power = live.power.map(|power| power.get());
                self.add_power(live.elapsed, power);
                let speed = live.items_per_s.filter(|speed| *speed > 0.0);
                LiveJob {
                    phase: Some(setting_text(&live.setting)),
                    items_per_s: speed,
                    energy_per_item_j: power.zip(speed).map(|(power, speed)| power / speed),
                    cap_w: Some(live.cap.get()),
                    figure: Some(self.figure()),
                    ..LiveJob::default()
                }
            }
            Status::Budget(live) => {
                self.add_power(live.elapsed, live.power.map(|power| power.get()));
                LiveJob {
                    phase: Some(format!("{} of {} GPUs busy", live.busy, live.gpus)),
                    cap_w: Some(live.budget.get()),
                    figure: Some(self.figure()),
                    ..LiveJob::default()
                }
            }
            Status::Queue(queue) => LiveJob {
                phase: Some(queue_text(queue)),
                ..LiveJob::default()
            },
            Status::Tune(live) => tuned_job(live),
        }
    }

    /// The items in a second since the report before; `None` if none were completed.
    fn speed(&mut self, elapsed: Seconds, items: f64) -> Option<f64> {
        let (before, done) = self.before.replace((elapsed, items)).unwrap_or_default();
        let passed = (elapsed - before).get();
        (passed > 0.0 && items > done).then(|| (items - done) / passed)
    }

    /// Adds a power reading to the figure. The time starts again at zero with each run.
    fn add_power(&mut self, elapsed: Seconds, power: Option<f64>) {
        let Some(power) = power else {
            return;
        };
        if self
            .points
            .last()
            .is_some_and(|point| point[0] > elapsed.get())
        {
            self.points.clear();
        }
        if self.points.len() == MAX_POINTS {
            self.points.remove(0);
        }
        self.points.push([elapsed.get(), power]);
    }

    /// The figure of a command: the runs of a sweep, or power over time.
    fn figure(&self) -> LiveFigure {
        let (x, y, points) = match self.runs.len() > 1 {
            true => ("time of a run (s)", "energy (J)", &self.runs),
            false => ("time (s)", "power (W)", &self.points),
        };
        LiveFigure {
            x: x.to_owned(),
            y: y.to_owned(),
            points: points.clone(),
        }
    }
}

/// Adds a run to the figure of a sweep. Where there are too many, every second point is left out, so that early and late
/// runs are both shown.
fn add_run_point(points: &mut Vec<[f64; 2]>, point: [f64; 2]) {
    if points.len() >= MAX_POINTS {
        let mut place = 0;
        points.retain(|_| {
            place += 1;
            place % 2 == 1
        });
    }
    points.push(point);
}

/// What the live page shows of a job that is tuned: its figure has the energy of an item at each tried setting.
fn tuned_job(live: &TuneStatus) -> LiveJob {
    let mut tried: BTreeMap<u64, f64> = BTreeMap::new();
    for (label, energy) in &live.tried {
        let digits = label
            .split(|letter: char| !letter.is_ascii_digit())
            .find(|text| !text.is_empty());
        if let Some(value) = digits.and_then(|digits| digits.parse().ok()) {
            tried.insert(value, *energy);
        }
    }
    LiveJob {
        phase: (!live.setting.is_empty()).then(|| live.setting.clone()),
        items_per_s: live.items_per_s,
        energy_per_item_j: live.energy_per_item.map(|energy| energy.get()),
        saved_energy_j: live.saved.map(|saved| saved.get()),
        figure: Some(LiveFigure {
            x: "setting".to_owned(),
            y: "energy of an item (J)".to_owned(),
            points: tried
                .into_iter()
                .map(|(setting, energy)| [setting as f64, energy])
                .collect(),
        }),
        ..LiveJob::default()
    }
}

/// Starts the thread that sends reports.
fn start_sender(socket: PathBuf) -> Option<SyncSender<LiveJob>> {
    let (sender, reports) = sync_channel::<LiveJob>(1);
    let send = move || {
        for job in reports {
            let Ok(body) = serde_json::to_vec(&job) else {
                continue;
            };
            if let Err(ApiError::NotFound(reason)) = request(&socket, "POST", "/job", &body) {
                tracing::info!(reason, "the service does not show this command");
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("job-reporter".to_owned());
    thread.spawn(send).ok().map(|_| sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_of_a_long_sweep_has_its_first_and_its_newest_run() {
        let mut points = Vec::new();
        for run in 0..1000 {
            add_run_point(&mut points, [f64::from(run), 1.0]);
            assert_eq!(points[0][0], 0.0);
            assert_eq!(points.last().unwrap()[0], f64::from(run));
            assert!(points.len() <= MAX_POINTS);
        }
        assert!(points.windows(2).all(|pair| pair[0][0] < pair[1][0]));
    }
}
