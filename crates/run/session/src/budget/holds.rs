//! Running `hold` processes on the GPUs of a budget: they get their new limit before the power cap is lowered.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use sweetspot_quantity::Watts;

use crate::hold::cap::parse_cap;
use crate::hold::socket::{ControlledVerb, set_cap};

/// How long a cap waits for the answer of a hold. A running one answers within milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The answer of a hold to a new cap; `None` if it gave none or rejected it.
type Answer = Option<String>;

/// A request to a hold that is under way.
#[derive(Debug)]
struct Request {
    limit: Watts,
    since: Instant,
    answer: Receiver<Answer>,
}

/// What is known about a running `hold`.
#[derive(Debug, Default)]
struct HoldLimit {
    /// The cap that the user of the hold chose.
    own: Option<Watts>,
    /// The limit that this budget has set.
    set: Option<Watts>,
    /// The power that the hold is to stay below, as far as its user's cap is not lower.
    wanted: Option<Watts>,
    request: Option<Request>,
    /// Whether the hold did not accept the last request.
    has_failed: bool,
    /// Whether the hold has not answered in time: it is not waited for again until it answers.
    is_silent: bool,
}

/// Whether a hold has its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitState {
    /// The hold has confirmed it.
    Confirmed,
    /// The hold may answer soon.
    Waiting,
    /// The hold does not answer, or rejects it.
    Failed,
}

/// The limits of running `hold` processes, by their process ids. Holds are asked in threads of their own, so that one that
/// does not answer delays nothing.
#[derive(Debug, Default)]
pub struct HoldLimits {
    holds: HashMap<u32, HoldLimit>,
}

impl HoldLimits {
    /// Asks a hold to stay below a power, but never raises the cap that its user chose.
    pub fn ask(&mut self, pid: u32, power: Watts) -> LimitState {
        let hold = self.holds.entry(pid).or_default();
        hold.wanted = Some(power);
        hold.has_failed &= hold.request.is_some();
        self.state(pid)
    }

    /// Whether a hold has its limit by now. Asks it again if the limit has changed since the last request.
    pub fn state(&mut self, pid: u32) -> LimitState {
        let Some(hold) = self.holds.get_mut(&pid) else {
            return LimitState::Failed;
        };
        hold.take_answer();
        match &hold.request {
            Some(request) if hold.is_silent || request.since.elapsed() >= PATIENCE => {
                hold.is_silent = true;
                LimitState::Failed
            }
            Some(_) => LimitState::Waiting,
            None if hold.has_failed => LimitState::Failed,
            None if hold.limit() == hold.set => LimitState::Confirmed,
            None => {
                if let Some(limit) = hold.limit() {
                    hold.request = Request::send(pid, limit);
                    hold.has_failed = hold.request.is_none();
                }
                match hold.is_silent {
                    true => LimitState::Failed,
                    false => LimitState::Waiting,
                }
            }
        }
    }

    /// Changes the power that a hold was asked to stay below, without asking one again that has not accepted it.
    pub fn ask_if_waiting(&mut self, pid: u32, power: Watts) -> LimitState {
        if let Some(hold) = self.holds.get_mut(&pid) {
            hold.wanted = Some(power);
        }
        self.state(pid)
    }

    /// Takes the answers of all holds, and asks those again that have not answered.
    pub fn poll(&mut self) {
        let pids: Vec<u32> = self.holds.keys().copied().collect();
        for pid in pids {
            self.state(pid);
            if let Some(hold) = self.holds.get_mut(&pid).filter(|hold| hold.is_silent) {
                hold.has_failed &= hold.request.is_some();
            }
        }
    }

    /// Whether a hold accepts limits, as far as is known.
    pub fn accepts(&self, pid: u32) -> bool {
        self.holds.get(&pid).is_none_or(|hold| !hold.is_silent)
    }

    /// Gives all holds the caps that their users chose.
    pub fn restore_all(&mut self) {
        let holds = self.holds.drain();
        let owned = holds.filter_map(|(pid, mut hold)| {
            hold.take_answer();
            Some((pid, hold.own?))
        });
        let requests: Vec<_> = owned
            .filter_map(|(pid, own)| Request::send(pid, own))
            .collect();
        for request in requests {
            // A hold that has ended needs nothing.
            let _ = request.answer.recv();
        }
    }

    /// Forgets holds that have ended.
    pub fn retain(&mut self, running: &[u32]) {
        self.holds.retain(|pid, _| running.contains(pid));
    }
}

impl HoldLimit {
    /// The limit that the hold should have.
    fn limit(&self) -> Option<Watts> {
        let wanted = self.wanted?;
        Some(self.own.map_or(wanted, |own| own.min(wanted)))
    }

    /// Takes the answer to the request that is under way, if it has arrived.
    fn take_answer(&mut self) {
        let Some(request) = &self.request else { return };
        let answer = match request.answer.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => None,
        };
        let limit = request.limit;
        self.request = None;
        let Some(answer) = answer else {
            self.has_failed = true;
            return;
        };
        self.is_silent = false;
        // The hold says which cap it had: one that this budget did not set is its user's choice.
        if let Some(before) = earlier_cap(&answer)
            && self.set.is_none_or(|set| (set - before).get().abs() > 0.1)
        {
            self.own = Some(before);
        }
        self.set = Some(limit);
    }
}

impl Request {
    /// Asks a hold in a thread; `None` if there can be no thread.
    fn send(pid: u32, limit: Watts) -> Option<Self> {
        let (sender, answer) = channel();
        let ask = move || {
            let _ = sender.send(set_cap(ControlledVerb::Hold, limit, Some(pid)).ok());
        };
        let thread = std::thread::Builder::new().name("hold-limit".to_owned());
        thread.spawn(ask).ok().map(|_| Self {
            limit,
            since: Instant::now(),
            answer,
        })
    }
}

/// The cap that a hold had before, from its answer: `the power cap was 300.0 W and is now 200.0 W`.
fn earlier_cap(answer: &str) -> Option<Watts> {
    let (_, rest) = answer.split_once(" was ")?;
    let (before, _) = rest.split_once(" and ")?;
    parse_cap(before).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hold whose request is answered by the returned channel.
    fn asked(limit: f64, ago: Duration) -> (HoldLimits, std::sync::mpsc::Sender<Answer>) {
        let (sender, answer) = channel();
        let request = Request {
            limit: Watts::new(limit),
            since: Instant::now() - ago,
            answer,
        };
        let hold = HoldLimit {
            wanted: Some(Watts::new(limit)),
            request: Some(request),
            ..HoldLimit::default()
        };
        let holds = HashMap::from([(7, hold)]);
        (HoldLimits { holds }, sender)
    }

    #[test]
    fn a_hold_that_does_not_answer_is_not_waited_for() {
        let (mut holds, sender) = asked(200.0, Duration::ZERO);
        assert_eq!(holds.state(7), LimitState::Waiting);
        assert!(holds.accepts(7));
        let (mut late, _sender) = asked(200.0, PATIENCE);
        assert_eq!(late.ask(7, Watts::new(150.0)), LimitState::Failed);
        assert!(!late.accepts(7));
        let answer = "the power cap was 300.0 W and is now 200.0 W";
        sender.send(Some(answer.to_owned())).unwrap();
        assert_eq!(holds.state(7), LimitState::Confirmed);
        assert_eq!(holds.holds[&7].own, Some(Watts::new(300.0)));
    }

    #[test]
    fn a_hold_that_rejects_its_limit_has_failed() {
        let (mut holds, sender) = asked(200.0, Duration::ZERO);
        sender.send(None).unwrap();
        assert_eq!(holds.state(7), LimitState::Failed);
    }

    #[test]
    fn the_earlier_cap_is_in_the_answer_of_a_hold() {
        let answer = "the power cap was 300.5 W and is now 200.0 W";
        assert_eq!(earlier_cap(answer), Some(Watts::new(300.5)));
        assert_eq!(earlier_cap("refused"), None);
    }
}
