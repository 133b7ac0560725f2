//! Shows notices and a status line on the terminal while a command runs.

use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_report::{latency_text, setting_text};
use sweetspot_session::hold::HoldStatus;
use sweetspot_session::{Observer, Status};

use crate::live_line::LiveLine;

/// The time between two updates of the status line, which keeps recorded terminal sessions small.
const REFRESH_PERIOD: Seconds = Seconds::new(0.2);

/// Shows notices and the state of the command on standard error.
pub struct TerminalObserver {
    line: LiveLine,
    shown_at: Seconds,
    /// The approximate energy of the current run so far.
    energy: Joules,
    /// The time since the start of the run at which `energy` was last updated.
    added_at: Seconds,
}

impl TerminalObserver {
    pub fn new() -> Self {
        Self {
            line: LiveLine::new(),
            shown_at: Seconds::ZERO,
            energy: Joules::ZERO,
            added_at: Seconds::ZERO,
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

    /// Adds the energy since the last update, from the present power.
    fn add_energy(&mut self, elapsed: Seconds, power: Option<Watts>) {
        if elapsed < self.added_at {
            (self.energy, self.added_at) = (Joules::ZERO, Seconds::ZERO);
        }
        if let Some(power) = power {
            self.energy += power * (elapsed - self.added_at);
        }
        self.added_at = elapsed;
    }
}

impl Observer for TerminalObserver {
    fn note(&mut self, message: &str) {
        self.line.print_message(message);
    }

    fn status(&mut self, status: &Status<'_>) {
        match *status {
            Status::Measure {
                elapsed,
                power,
                items,
            } => {
                self.add_energy(elapsed, power);
                let energy = self.energy;
                self.show(elapsed, || measure_text(elapsed, power, energy, items));
            }
            Status::Hold(live) => self.show(live.elapsed, || hold_text(live)),
        }
    }

    fn clear(&mut self) {
        self.line.clear();
    }
}

/// The status line of a measured command.
fn measure_text(elapsed: Seconds, power: Option<Watts>, energy: Joules, items: f64) -> String {
    let power = power.map_or_else(|| "- W".to_owned(), |power| format!("{power:.0}"));
    let items = match items > 0.0 {
        true => format!("  {items:.0} items"),
        false => String::new(),
    };
    format!("{elapsed:.1}  {power}  about {energy:.0}{items}")
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
