//! Shows notices and a status line on the terminal while a command runs.

use sweetspot_quantity::Seconds;
use sweetspot_report::{latency_text, setting_text};
use sweetspot_session::budget::BudgetStatus;
use sweetspot_session::hold::HoldStatus;
use sweetspot_session::{Observer, Status};

use crate::job_reporter::JobReporter;
use crate::live_line::LiveLine;
use crate::run_status::{REFRESH_PERIOD, RunStatus};

/// Shows notices and the state of the command on standard error.
pub struct TerminalObserver {
    line: LiveLine,
    shown_at: Seconds,
    run: RunStatus,
    reporter: JobReporter,
}

impl TerminalObserver {
    pub fn new() -> Self {
        Self {
            reporter: JobReporter::start(),
            line: LiveLine::new(),
            shown_at: Seconds::ZERO,
            run: RunStatus::default(),
        }
    }

    /// Updates the status line if enough time has passed since the last update.
    fn show(&mut self, elapsed: Seconds, text: impl FnOnce() -> String) {
        // The elapsed time starts again at zero with each run.
        let is_due = elapsed < self.shown_at || elapsed - self.shown_at >= REFRESH_PERIOD;
        if self.line.is_shown() && is_due {
            self.shown_at = elapsed;
            self.line.show(&text());
        }
    }
}

impl Observer for TerminalObserver {
    fn note(&mut self, message: &str) {
        self.line.print_message(message);
    }

    fn status(&mut self, status: &Status<'_>) {
        self.reporter.report(status);
        match *status {
            Status::Measure {
                elapsed,
                power,
                items,
            } => {
                self.run.update(elapsed, power, items);
                let text = self.run.text();
                self.show(elapsed, || text);
            }
            Status::Hold(live) => self.show(live.elapsed, || hold_text(live)),
            Status::Queue(_) => {}
            Status::Budget(live) => self.show(live.elapsed, || budget_text(live)),
            // The notices of the tuner are shown instead.
            Status::Tune(_) => {}
        }
    }

    fn clear(&mut self) {
        self.line.clear();
    }
}

/// The status line of a budget.
fn budget_text(live: &BudgetStatus) -> String {
    let power = live
        .power
        .map_or_else(|| "-".to_owned(), |power| format!("{:.0}", power.get()));
    format!(
        "{:.1} s  {power} of {:.0} W  caps {:.0} W  {} of {} GPUs busy",
        live.elapsed.get(),
        live.budget.get(),
        live.caps.get(),
        live.busy,
        live.gpus,
    )
}

/// The status line of a run with `hold`.
fn hold_text(live: &HoldStatus) -> String {
    let power = live
        .power
        .map_or_else(|| "-".to_owned(), |power| format!("{:.0}", power.get()));
    let rate = live.items_per_s.map(|rate| format!("  {rate:.0} items/s"));
    let p99 = live.p99.map(|p99| format!("  p99 {}", latency_text(p99)));
    format!(
        "{:.1} s  {power} of {:.0} W  {}{}{}",
        live.elapsed.get(),
        live.cap.get(),
        setting_text(&live.setting),
        rate.unwrap_or_default(),
        p99.unwrap_or_default(),
    )
}
