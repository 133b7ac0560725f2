//! Sets the power caps that the control algorithm asks for.

use sweetspot_control::budget::{BudgetAction, BudgetEvent, Budgeter};
use sweetspot_device::Settings;
use sweetspot_guard::GuardError;
use sweetspot_quantity::Watts;
use sweetspot_workload::{Lease, SignalSource};

use super::{BudgetLoop, BudgetedGpu, Reservation};
use crate::SessionError;
use crate::budget::error::BudgetError;
use crate::budget::holds::LimitState;
use crate::budget::messages::notice_message;
use crate::observer::Observer;

/// The ticks between two attempts to reserve a GPU that another command uses.
const RESERVATION_TICKS: u64 = 10;

impl BudgetLoop {
    /// Carries out what the control algorithm asks for.
    pub(super) fn act(
        &mut self,
        budgeter: &mut Budgeter,
        actions: Vec<BudgetAction>,
        lease: &mut Lease<'_>,
        signals: &SignalSource,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        for action in actions {
            if signals.received().is_some() {
                return Ok(());
            }
            match action {
                BudgetAction::Notify(notice) => {
                    let names: Vec<String> = self.gpus.iter().map(BudgetedGpu::name).collect();
                    let node = self.node.as_ref().map(|node| node.budget);
                    self.notify(observer, notice_message(&notice, &names, node));
                }
                BudgetAction::Set { gpu, cap } => {
                    if let Some(event) = self.set(gpu, cap, lease, signals, observer)? {
                        budgeter.step(self.now, event);
                    }
                }
            }
        }
        let is_any_settable = self.gpus.iter().any(|gpu| gpu.device.is_settable);
        match self.problem.clone() {
            Some(problem) if !is_any_settable => Err(BudgetError::NothingSettable(problem).into()),
            _ => Ok(()),
        }
    }

    /// Sets the power cap of a GPU. A hold on it gets its new limit before the cap is lowered, and after it is raised.
    /// Returns nothing while the hold has not answered.
    fn set(
        &mut self,
        number: usize,
        cap: Watts,
        lease: &mut Lease<'_>,
        signals: &SignalSource,
        observer: &mut dyn Observer,
    ) -> Result<Option<BudgetEvent>, SessionError> {
        let gpu = &self.gpus[number];
        // Whole watts, rounded down so that the sum stays below the budget.
        let cap = Watts::new(cap.get().floor()).max(gpu.device.min_cap);
        let is_own = gpu.reservation == Reservation::Own;
        let is_lower = gpu.asked.is_none_or(|asked| cap < asked);
        let Some(hold) = gpu.hold() else {
            return match is_own {
                true => self.write(number, cap, lease, signals, observer).map(Some),
                false => Ok(Some(self.reject(number))),
            };
        };
        if is_own && !is_lower {
            let written = self.write(number, cap, lease, signals, observer)?;
            self.holds.ask(hold, self.limit_of_hold(hold));
            return Ok(Some(written));
        }
        self.waiting.insert(number, cap);
        let state = self.holds.ask(hold, self.limit_of_hold(hold));
        self.after_answer(number, state, lease, signals, observer)
    }

    /// Sets the caps whose holds have answered, or do not answer in time.
    pub(super) fn set_waiting(
        &mut self,
        budgeter: &mut Budgeter,
        lease: &mut Lease<'_>,
        signals: &SignalSource,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        self.holds.poll();
        let numbers: Vec<usize> = self.waiting.keys().copied().collect();
        for number in numbers {
            let state = match self.gpus[number].hold() {
                // Another cap of the same hold may have changed since.
                Some(hold) => self.holds.ask_if_waiting(hold, self.limit_of_hold(hold)),
                None => LimitState::Failed,
            };
            if let Some(event) = self.after_answer(number, state, lease, signals, observer)? {
                budgeter.step(self.now, event);
            }
        }
        Ok(())
    }

    /// Sets a cap that waits for its hold, unless the hold may answer soon.
    fn after_answer(
        &mut self,
        number: usize,
        state: LimitState,
        lease: &mut Lease<'_>,
        signals: &SignalSource,
        observer: &mut dyn Observer,
    ) -> Result<Option<BudgetEvent>, SessionError> {
        if state == LimitState::Waiting {
            return Ok(None);
        }
        let Some(cap) = self.waiting.remove(&number) else {
            return Ok(None);
        };
        let is_own = self.gpus[number].reservation == Reservation::Own;
        if state == LimitState::Failed {
            self.note_silent_hold(number, is_own, observer);
        }
        let gpu = &mut self.gpus[number];
        match (is_own, state) {
            (true, _) => self.write(number, cap, lease, signals, observer).map(Some),
            (false, LimitState::Failed) => Ok(Some(self.reject(number))),
            (false, _) => {
                gpu.asked = Some(cap);
                Ok(Some(BudgetEvent::Applied { gpu: number, cap }))
            }
        }
    }

    /// Says once that the hold on a GPU does not accept its limit.
    fn note_silent_hold(&mut self, number: usize, is_own: bool, observer: &mut dyn Observer) {
        let gpu = &mut self.gpus[number];
        let Some(hold) = gpu.hold() else { return };
        if std::mem::replace(&mut gpu.is_hold_silent, true) {
            return;
        }
        let consequence = match is_own {
            true => "the power cap is lowered all the same",
            false => "its power counts, but this budget does not limit it until that hold answers",
        };
        let text = format!(
            "{}: the hold with pid {hold} did not accept its new limit in time; {consequence}",
            gpu.name()
        );
        self.notify(observer, text);
    }

    /// The cap of a GPU cannot be set at present.
    fn reject(&mut self, number: usize) -> BudgetEvent {
        self.gpus[number].device.is_settable = false;
        BudgetEvent::Rejected { gpu: number }
    }

    /// Sets the power cap of a GPU that this budget has reserved.
    fn write(
        &mut self,
        number: usize,
        cap: Watts,
        lease: &mut Lease<'_>,
        signals: &SignalSource,
        observer: &mut dyn Observer,
    ) -> Result<BudgetEvent, SessionError> {
        let gpu = &mut self.gpus[number];
        let id = gpu.gpu.descriptor().id.clone();
        let settings = Settings {
            power_cap: Some(cap),
            ..Settings::default()
        };
        match lease.set(&id, &settings) {
            Ok(_) => {
                gpu.asked = Some(cap);
                gpu.set_at = Some(self.now);
                Ok(BudgetEvent::Applied { gpu: number, cap })
            }
            Err(GuardError::Refused(refusal)) if signals.received().is_none() => {
                gpu.device.is_settable = false;
                gpu.reservation = Reservation::Refused;
                let name = gpu.name();
                self.problem.get_or_insert(refusal.to_string());
                let text = format!(
                    "{name}: {refusal}; its power counts, but this budget no longer caps it"
                );
                self.notify(observer, text);
                Ok(BudgetEvent::Rejected { gpu: number })
            }
            Err(GuardError::Refused(_)) => Ok(BudgetEvent::Tick),
            Err(error) => Err(error.into()),
        }
    }

    /// The limit of a hold: the sum of what its GPUs get.
    fn limit_of_hold(&self, hold: u32) -> Watts {
        let gpus = self.gpus.iter().enumerate();
        let own = gpus.filter(|(_, gpu)| gpu.hold() == Some(hold));
        own.map(|(number, gpu)| {
            let waiting = self.waiting.get(&number).copied();
            waiting.or(gpu.asked).unwrap_or(gpu.device.max_cap)
        })
        .sum()
    }

    /// Reserves GPUs that other commands have given up, and limits those on which a `hold` runs by now.
    pub(super) fn take_free_gpus(
        &mut self,
        budgeter: &mut Budgeter,
        lease: &mut Lease<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        if !self.tick.is_multiple_of(RESERVATION_TICKS) {
            return Ok(());
        }
        for number in 0..self.gpus.len() {
            let gpu = &mut self.gpus[number];
            if gpu.reservation != Reservation::Other || gpu.is_lost {
                continue;
            }
            let id = gpu.gpu.descriptor().id.clone();
            let refusal = lease.try_ceiling(&id, &mut |text| observer.note(text))?;
            let is_free = refusal.is_none();
            let is_held = gpu.hold().is_some_and(|hold| self.holds.accepts(hold));
            if is_free {
                gpu.reservation = Reservation::Own;
                gpu.asked = None;
                self.waiting.remove(&number);
                // Its owner has its own cap again.
                if let Ok(limits) = gpu.gpu.power_limits() {
                    gpu.device.max_cap = limits.requested.max(gpu.device.min_cap);
                }
                let text = format!(
                    "{}: no other command reserves it any more; this budget caps it now",
                    gpu.name()
                );
                self.notify(observer, text);
            } else if !is_held || gpu.device.is_settable {
                continue;
            }
            let gpu = &mut self.gpus[number];
            gpu.device.is_settable = true;
            gpu.is_hold_silent = false;
            let max_cap = gpu.device.max_cap;
            let event = BudgetEvent::Settable {
                gpu: number,
                max_cap,
            };
            budgeter.step(self.now, event);
        }
        Ok(())
    }
}
