//! Sets the power caps that the control algorithm asks for.

use sweetspot_control::budget::{BudgetAction, BudgetEvent, Budgeter};
use sweetspot_device::Settings;
use sweetspot_guard::GuardError;
use sweetspot_quantity::Watts;
use sweetspot_workload::{Lease, SignalSource};

use super::{BudgetLoop, BudgetedGpu};
use crate::SessionError;
use crate::budget::error::BudgetError;
use crate::budget::messages::notice_message;
use crate::observer::Observer;

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
                    let event = self.set(gpu, cap, lease, signals, observer)?;
                    budgeter.step(self.now, event);
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
    fn set(
        &mut self,
        number: usize,
        cap: Watts,
        lease: &mut Lease<'_>,
        signals: &SignalSource,
        observer: &mut dyn Observer,
    ) -> Result<BudgetEvent, SessionError> {
        let gpu = &mut self.gpus[number];
        // Whole watts, rounded down so that the sum stays below the budget.
        let cap = Watts::new(cap.get().floor()).max(gpu.device.min_cap);
        let hold = gpu.program.as_ref().and_then(|program| program.hold);
        let is_lower = gpu.asked.is_none_or(|asked| cap < asked);
        let limit = hold.map(|hold| (hold, self.limit_of_hold(hold, number, cap)));
        let mut unanswered = None;
        if let Some((hold, limit)) = limit.filter(|_| is_lower)
            && !self.holds.limit(hold, limit)
        {
            unanswered = Some(hold);
        }
        let gpu = &mut self.gpus[number];
        let settings = Settings {
            power_cap: Some(cap),
            ..Settings::default()
        };
        if let Some(hold) = unanswered.filter(|_| gpu.is_leased)
            && !std::mem::replace(&mut gpu.is_hold_silent, true)
        {
            let name = gpu.name();
            self.notify(
                observer,
                format!(
                    "{name}: the hold with pid {hold} did not accept its new limit in time; the power cap is lowered all the same"
                ),
            );
        }
        let gpu = &mut self.gpus[number];
        if !gpu.is_leased {
            return Ok(self.limit_by_hold(number, limit, cap));
        }
        let id = gpu.gpu.descriptor().id.clone();
        match lease.set(&id, &settings) {
            Ok(_) => {
                gpu.asked = Some(cap);
                if let Some((hold, limit)) = limit.filter(|_| !is_lower) {
                    self.holds.limit(hold, limit);
                }
                Ok(BudgetEvent::Applied { gpu: number, cap })
            }
            Err(GuardError::Refused(refusal)) if signals.received().is_none() => {
                gpu.device.is_settable = false;
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

    /// The limit of a hold if a GPU gets a cap: a hold on several GPUs limits their sum.
    fn limit_of_hold(&self, hold: u32, number: usize, cap: Watts) -> Watts {
        let others = self.gpus.iter().enumerate().filter(|(other, gpu)| {
            let own = gpu.program.as_ref().and_then(|program| program.hold);
            *other != number && own == Some(hold)
        });
        let others: Watts = others
            .map(|(_, gpu)| gpu.asked.unwrap_or(gpu.device.max_cap))
            .sum();
        cap + others
    }

    /// Limits a GPU that another process has leased by the `hold` that runs there.
    fn limit_by_hold(
        &mut self,
        number: usize,
        limit: Option<(u32, Watts)>,
        cap: Watts,
    ) -> BudgetEvent {
        let gpu = &mut self.gpus[number];
        if limit.is_some_and(|(hold, limit)| self.holds.limit(hold, limit)) {
            gpu.asked = Some(cap);
            return BudgetEvent::Applied { gpu: number, cap };
        }
        gpu.device.is_settable = false;
        BudgetEvent::Rejected { gpu: number }
    }
}
