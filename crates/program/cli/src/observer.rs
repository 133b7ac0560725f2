//! What a person sees while a command runs: notes, and one line on the terminal.

use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_report::{latency_text, setting_text};
use sweetspot_session::hold::HoldStatus;
use sweetspot_session::{Observer, Status};

use crate::live_line::LiveLine;

/// Often enough for an eye, seldom enough for a log that a terminal keeps.
const SHOW_EVERY: Seconds = Seconds::new(0.2);

/// Shows notes on standard error and the state of the command on its last line.
pub struct TerminalObserver {
    line: LiveLine,
    shown_at: Seconds,
    /// The energy so far of a command that is measured, about.
    energy: Joules,
    last: Seconds,
}

impl TerminalObserver {
    pub fn new() -> Self {
        Self {
            line: LiveLine::new(),
            shown_at: Seconds::ZERO,
            energy: Joules::ZERO,
            last: Seconds::ZERO,
        }
    }

    fn show(&mut self, elapsed: Seconds, text: impl FnOnce() -> String) {
        // The time of another run begins anew.
        let is_due = elapsed < self.shown_at || elapsed - self.shown_at >= SHOW_EVERY;
        if self.line.is_wanted() && is_due {
            self.shown_at = elapsed;
            self.line.show(&text());
        }
    }

    fn add_energy(&mut self, elapsed: Seconds, power: Option<Watts>) {
        if elapsed < self.last {
            (self.energy, self.last) = (Joules::ZERO, Seconds::ZERO);
        }
        if let Some(power) = power {
            self.energy += power * (elapsed - self.last);
        }
        self.last = elapsed;
    }
}

impl Observer for TerminalObserver {
    fn note(&mut self, message: &str) {
        self.line.tell(message);
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

fn measure_text(elapsed: Seconds, power: Option<Watts>, energy: Joules, items: f64) -> String {
    let power = power.map_or_else(|| "- W".to_owned(), |power| format!("{power:.0}"));
    let items = match items > 0.0 {
        true => format!("  {items:.0} items"),
        false => String::new(),
    };
    format!("{elapsed:.1}  {power}  about {energy:.0}{items}")
}

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
