//! Reports the progress of `sim-workload`, as a training program does.

use std::io::Write;
use std::time::Instant;

use super::StandInError;
use super::marks::PhaseMarks;

/// Reports the progress of `sim-workload`: at once over the shared-memory link, and once a second as a line
/// of text.
pub struct ProgressPrinter<'a, W> {
    out: &'a mut W,
    started: Instant,
    /// When the newest items were completed, and the total number of items then.
    newest: (Instant, u64),
    /// The value of `newest` when the last line was printed.
    printed: (Instant, u64),
    /// The second since the start in which the last line was printed.
    printed_second: u64,
    /// The words for items and for their rate.
    words: [&'static str; 2],
    link: Option<&'a PhaseMarks>,
    /// The number of items that were reported over the shared-memory link.
    reported: u64,
}

impl<'a, W: Write> ProgressPrinter<'a, W> {
    /// Creates a printer that writes lines to `out` and, if there is a shared-memory link, reports items over
    /// it.
    pub fn new(out: &'a mut W, link: Option<&'a PhaseMarks>) -> Self {
        let now = Instant::now();
        Self {
            out,
            started: now,
            newest: (now, 0),
            printed: (now, 0),
            printed_second: 0,
            words: ["items", "images/sec"],
            link,
            reported: 0,
        }
    }

    /// Creates a printer of generated tokens, without a link.
    pub fn for_tokens(out: &'a mut W) -> Self {
        Self {
            words: ["tokens", "tokens/sec"],
            ..Self::new(out, None)
        }
    }

    /// Reports the total number of items over the shared-memory link.
    pub fn report(&mut self, items: u64) {
        if let Some(link) = &self.link
            && items > self.reported
        {
            link.progress(items - self.reported);
            self.reported = items;
        }
    }

    /// Reports items over the shared-memory link, and prints a line at the end of a step if the second has changed. A line
    /// in the middle of a step would state items that were completed a while ago, and a reader would measure a wrong rate.
    pub fn update(&mut self, iterations: u64, items: u64) -> Result<(), StandInError> {
        self.report(items);
        if items <= self.newest.1 {
            return Ok(());
        }
        self.newest = (Instant::now(), items);
        let seconds = self.started.elapsed().as_secs();
        if seconds <= self.printed_second {
            return Ok(());
        }
        self.printed_second = seconds;
        // The present rate, as training programs print it: a mean since the start would hide every change.
        let before = std::mem::replace(&mut self.printed, self.newest);
        let took = self.newest.0.duration_since(before.0).as_secs_f64();
        let rate = (self.newest.1 - before.1) as f64 / took;
        let [unit, rate_unit] = self.words;
        writeln!(
            self.out,
            "step {iterations}: {items} {unit}, {rate_unit}: {rate:.1}"
        )
        .and_then(|()| self.out.flush())
        .map_err(StandInError::Print)
    }
}
