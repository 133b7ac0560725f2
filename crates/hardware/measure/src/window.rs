//! The measurement window: the part of a run whose energy is measured.

use crate::math::Span;
use sweetspot_device::Moment;

/// The part of a run whose energy is measured: the measurement window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunWindow {
    /// The measurement window is the whole run.
    Run,
    /// The measurement window lasts from one progress report of the workload to another.
    Progress {
        /// The number of reports before the measurement window.
        skip: u64,
        /// The number of reports in the measurement window; `None` for all that follow.
        iterations: Option<u64>,
    },
    /// The measurement window lasts from the first beginning to the last end of the phase with this name.
    Phase(String),
    /// The measurement window is the steady state of a server, from its metrics page.
    Steady,
}

/// The error when a text does not describe a measurement window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown measurement window `{0}`: use run, progress, phase:NAME or steady")]
pub struct UnknownWindow(String);

impl std::str::FromStr for RunWindow {
    type Err = UnknownWindow;

    fn from_str(text: &str) -> Result<Self, UnknownWindow> {
        match (text, text.strip_prefix("phase:")) {
            ("run", _) => Ok(Self::Run),
            ("steady", _) => Ok(Self::Steady),
            ("progress", _) => Ok(Self::Progress {
                skip: 0,
                iterations: None,
            }),
            (_, Some(name)) if !name.is_empty() => Ok(Self::Phase(name.to_owned())),
            _ => Err(UnknownWindow(text.to_owned())),
        }
    }
}

impl std::fmt::Display for RunWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run => f.pad("run"),
            Self::Progress { .. } => f.pad("progress"),
            Self::Phase(name) => write!(f, "phase:{name}"),
            Self::Steady => f.pad("steady"),
        }
    }
}

impl RunWindow {
    /// Whether the measurement window begins or ends while the number of progress reports rises from `before`
    /// to `now`.
    pub fn has_edge(&self, before: u64, now: u64) -> bool {
        let Self::Progress { skip, iterations } = self else {
            return false;
        };
        let last = iterations.map(|count| skip.saturating_add(count).saturating_add(1));
        let passes = |report: u64| before < report && report <= now;
        passes(skip.saturating_add(1)) || last.is_some_and(passes)
    }

    /// Finds the measurement window in a finished run, given each thread's progress reports and the time from the first
    /// begin to the last end of the phase that is the window. With several threads the slowest decides. The error
    /// says why there is no such window.
    pub fn find_in<'a>(
        &self,
        run: &Span,
        reports: impl IntoIterator<Item = &'a ReportTimes>,
        phase: Option<Span>,
    ) -> Result<Span, String> {
        match self {
            Self::Run => Ok(*run),
            Self::Progress { skip, iterations } => {
                let mut window: Option<Span> = None;
                let mut reports = reports.into_iter().copied().peekable();
                let missing = reports.peek().is_none().then(ReportTimes::default);
                for reports in reports.chain(missing) {
                    let own = reports.between(*skip, *iterations)?;
                    window = Some(window.map_or(own, |window| {
                        Span::new(window.begin.max(own.begin), window.end.max(own.end))
                    }));
                }
                window.ok_or_else(|| "no progress was reported".to_owned())
            }
            Self::Steady => {
                Err("the steady state is found on a metrics page: give --metrics URL".to_owned())
            }
            Self::Phase(name) => phase
                .filter(|phase| phase.begin < phase.end)
                .ok_or_else(|| format!("the command never marked a phase '{name}'")),
        }
    }
}

/// The progress reports of one thread: their number, and the moments of those at which a measurement window begins and
/// ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReportTimes {
    count: u64,
    begin: Option<Moment>,
    end: Option<Moment>,
}

impl ReportTimes {
    /// Adds a report; returns whether the measurement window begins or ends with it.
    pub fn add(&mut self, at: Moment, window: &RunWindow) -> bool {
        self.count = self.count.saturating_add(1);
        let RunWindow::Progress { skip, iterations } = window else {
            return false;
        };
        let begins = self.count == skip.saturating_add(1);
        if begins {
            self.begin = Some(at);
        }
        let ends = iterations.is_some_and(|iterations| {
            self.count == skip.saturating_add(iterations).saturating_add(1)
        });
        if ends || iterations.is_none() {
            self.end = Some(at);
        }
        begins || ends
    }

    /// The measurement window between two progress reports. A report marks the end of an iteration, so the window
    /// begins with the report before its first iteration.
    fn between(&self, skip: u64, iterations: Option<u64>) -> Result<Span, String> {
        let reported = self.count;
        let wanted = iterations.map_or(reported, |count| {
            skip.saturating_add(count).saturating_add(1)
        });
        let is_enough = reported >= 2 && skip.saturating_add(1) < reported && wanted <= reported;
        let ends = self.begin.zip(self.end).filter(|_| is_enough);
        ends.map(|(begin, end)| Span::new(begin, end))
            .ok_or_else(|| {
                format!(
                    "progress was reported {reported} times, which is too few: {}",
                    if reported == 0 {
                        "call sweetspot.progress() in the program, or give a progress pattern"
                            .to_owned()
                    } else {
                        format!(
                            "the measurement window needs {} reports",
                            wanted.max(skip.saturating_add(2))
                        )
                    }
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn iterations_lie_between_reports() {
        let run = Span::new(at(0), at(100));
        let of = |skip, iterations| {
            let window = RunWindow::Progress { skip, iterations };
            let mut reports = ReportTimes::default();
            for second in 11..=20 {
                reports.add(at(second), &window);
            }
            window.find_in(&run, [&reports], None)
        };
        assert_eq!(of(0, None), Ok(Span::new(at(11), at(20))));
        assert_eq!(of(2, Some(5)), Ok(Span::new(at(13), at(18))));
        assert_eq!(of(0, Some(9)), Ok(Span::new(at(11), at(20))));
        assert!(of(0, Some(10)).is_err());
        assert!(of(9, None).is_err());
        assert!(of(u64::MAX, Some(u64::MAX)).is_err());
        let far = RunWindow::Progress {
            skip: u64::MAX,
            iterations: Some(1),
        };
        assert!(!far.has_edge(0, 10));
    }

    #[test]
    fn a_phase_is_taken_from_its_first_begin_to_its_last_end() {
        let run = Span::new(at(0), at(100));
        let window = RunWindow::Phase("train".to_owned());
        let phase = Span::new(at(10), at(30));
        assert_eq!(window.find_in(&run, [], Some(phase)), Ok(phase));
        let missing = window.find_in(&run, [], None);
        assert_eq!(
            missing,
            Err("the command never marked a phase 'train'".to_owned())
        );
    }
}
