//! The loop of `budget`: passes readings to the control algorithm, and sets the power caps that it returns.

mod caps;
mod gpu;
mod power;
mod readings;

use std::collections::BTreeMap;
use std::time::Duration;

use sweetspot_control::ReadingGaps;
use sweetspot_control::budget::{BudgetEvent, Budgeter};
use sweetspot_device::{Clock, Moment, MonotonicClock};
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_workload::{Lease, SignalSource};

pub use self::gpu::{BudgetedGpu, Reservation};
use super::holds::HoldLimits;
use super::node::NodeBudget;
use super::programs::Programs;
use super::result::{BudgetResult, BudgetSlice, BudgetStatus, BudgetedGpuResult};
use crate::SessionError;
use crate::hold::cap::CapFile;
use crate::hold::socket::ControlSocket;
use crate::measure::Machine;
use crate::observer::{Observer, Status};

/// The time between two decisions.
const TICK: Duration = Duration::from_millis(100);
/// The ticks of a slice of the result.
const SLICE_TICKS: u64 = 10;
/// The most slices that are kept, which are those of about the first 7,200 s. No slice is added after that.
const MAX_SLICES: usize = 7200;
/// The most messages that are kept for the result.
const MAX_NOTICES: usize = 1000;
/// The sums of powers at the beginning of a slice.
const NO_SUMS: (Option<f64>, Option<f64>, u64) = (Some(0.0), Some(0.0), 0);

/// A running budget.
pub struct BudgetLoop {
    gpus: Vec<BudgetedGpu>,
    /// The meters of the whole machine, if the budget is kept there.
    pub(super) node: Option<NodeBudget>,
    cap_file: Option<CapFile>,
    socket: Option<ControlSocket>,
    machine: Machine,
    begin: Moment,
    time: Option<Seconds>,
    programs: Programs,
    holds: HoldLimits,
    tick: u64,
    now: Seconds,
    last: Seconds,
    budgets: Vec<(Seconds, Watts)>,
    slices: Vec<BudgetSlice>,
    /// The sums of the powers of the GPUs and of the whole machine since the last slice, as far as they are known, and
    /// their number.
    slice: (Option<f64>, Option<f64>, u64),
    /// The time without a reading of each GPU.
    together: ReadingGaps,
    /// The power caps that wait for the answer of a hold, by the number of their GPU.
    waiting: BTreeMap<usize, Watts>,
    notices: Vec<(Seconds, String)>,
    /// The first problem with setting a cap.
    problem: Option<String>,
}

impl BudgetLoop {
    pub fn new(
        gpus: Vec<BudgetedGpu>,
        cap_file: Option<CapFile>,
        socket: Option<ControlSocket>,
        machine: Machine,
        begin: Moment,
        time: Option<Seconds>,
    ) -> Self {
        let mut together = ReadingGaps::default();
        together.start(Seconds::ZERO);
        Self {
            gpus,
            node: None,
            cap_file,
            socket,
            machine,
            begin,
            time,
            programs: Programs::default(),
            holds: HoldLimits::default(),
            tick: 0,
            now: Seconds::ZERO,
            last: Seconds::ZERO,
            budgets: Vec::new(),
            slices: Vec::new(),
            slice: NO_SUMS,
            together,
            waiting: BTreeMap::new(),
            notices: Vec::new(),
            problem: None,
        }
    }

    /// Keeps the budget until a signal arrives or the time is over.
    pub fn run(
        &mut self,
        budgeter: &mut Budgeter,
        lease: &mut Lease<'_>,
        signals: &SignalSource,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        self.budgets.push((Seconds::ZERO, self.budget(budgeter)));
        while signals.received().is_none() {
            std::thread::sleep(TICK);
            self.last = self.now;
            self.now = MonotonicClock.now() - self.begin;
            if self.time.is_some_and(|time| self.now >= time) {
                break;
            }
            self.read_new_budget(budgeter, observer);
            self.find_programs(budgeter);
            self.read_gpus(budgeter, observer);
            self.read_node(budgeter, observer);
            self.read_progress(budgeter);
            self.set_waiting(budgeter, lease, signals, observer)?;
            self.take_free_gpus(budgeter, lease, observer)?;
            let actions = budgeter.step(self.now, BudgetEvent::Tick);
            self.act(budgeter, actions, lease, signals, observer)?;
            self.record(budgeter, observer);
            self.tick += 1;
        }
        Ok(())
    }

    /// The budget that the user gave: of the whole machine, or of the GPUs.
    fn budget(&self, budgeter: &Budgeter) -> Watts {
        let node = self.node.as_ref();
        node.map_or(budgeter.budget(), |node| node.budget)
    }

    /// Shows a message and keeps it for the result, with the last ones of many left out.
    fn notify(&mut self, observer: &mut dyn Observer, text: String) {
        observer.note(&text);
        if self.notices.len() < MAX_NOTICES {
            self.notices.push((self.now, text));
        }
    }

    /// Takes a new budget from the cap file or from `budget set`.
    fn read_new_budget(&mut self, budgeter: &mut Budgeter, observer: &mut dyn Observer) {
        match self.cap_file.as_mut().and_then(CapFile::read_change) {
            Some(Ok(budget)) => self.change_budget(budgeter, budget, "the cap file", observer),
            Some(Err(problem)) => {
                let stays = self.budget(budgeter).get();
                let text = format!("{problem}; the budget stays at {stays:.0} W");
                self.notify(observer, text);
            }
            None => {}
        }
        while let Some(request) = self.socket.as_ref().and_then(ControlSocket::next_request) {
            let (before, budget) = (self.budget(budgeter), request.cap);
            self.change_budget(budgeter, budget, "budget set", observer);
            let lowest = budgeter.lowest_budget();
            let warning = match budget < lowest {
                true => format!(
                    "; the GPUs need at least {:.0} W, so that their lowest power caps are set",
                    lowest.get()
                ),
                false => String::new(),
            };
            request.answer(Ok(format!(
                "the budget was {:.0} W and is now {:.0} W{warning}",
                before.get(),
                budget.get()
            )));
        }
    }

    /// Changes the budget, if it differs from the present one.
    fn change_budget(
        &mut self,
        budgeter: &mut Budgeter,
        budget: Watts,
        from: &str,
        observer: &mut dyn Observer,
    ) {
        match &mut self.node {
            Some(node) if budget == node.budget => return,
            // What is left for the GPUs changes with the next reading.
            Some(node) => node.budget = budget,
            None if budget == budgeter.budget() => return,
            None => {
                budgeter.step(self.now, BudgetEvent::Budget(budget));
            }
        }
        self.budgets.push((self.now, budget));
        let text = format!("the budget is now {:.0} W (set by {from})", budget.get());
        self.notify(observer, text);
    }

    /// Reads the meters of the whole machine, and gives the GPUs what is left for them.
    fn read_node(&mut self, budgeter: &mut Budgeter, observer: &mut dyn Observer) {
        let gpus = self.sum_of_powers();
        let now = self.now;
        let Some(node) = &mut self.node else {
            return;
        };
        let message = node.read(now, gpus);
        if let Some(left) = node.new_share(budgeter.budget()) {
            budgeter.step(now, BudgetEvent::Budget(left));
        }
        if let Some(text) = message {
            self.notify(observer, text);
        }
    }

    /// Records the present state, and shows it.
    fn record(&mut self, budgeter: &Budgeter, observer: &mut dyn Observer) {
        let power = self.sum_of_powers();
        let caps: Vec<Watts> = (0..self.gpus.len())
            .filter_map(|gpu| budgeter.cap(gpu))
            .collect();
        let budget = self.budget(budgeter);
        let is_node = self.node.is_some();
        let wall = self.node.as_ref().and_then(|node| node.wall);
        let status = BudgetStatus {
            elapsed: self.now,
            budget,
            power: if is_node { wall } else { power },
            caps: caps.iter().copied().sum(),
            busy: (0..self.gpus.len())
                .filter(|gpu| budgeter.is_busy(*gpu))
                .count(),
            gpus: self.gpus.len(),
        };
        observer.status(&Status::Budget(&status));
        let add = |sum: Option<f64>, power: Option<Watts>| Some(sum? + power?.get());
        let (gpus, node, count) = self.slice;
        self.slice = (add(gpus, power), add(node, wall), count + 1);
        if self.slice.2 >= SLICE_TICKS && self.slices.len() < MAX_SLICES {
            let (gpus, node, count) = std::mem::replace(&mut self.slice, NO_SUMS);
            let mean = |sum: f64| Watts::new(sum / count as f64);
            self.slices.push(BudgetSlice {
                at: self.now,
                budget,
                power: gpus.map(mean),
                node: node.map(mean),
                left: is_node.then(|| budgeter.budget()),
                caps,
            });
        }
    }

    /// Gives running holds the caps that their users chose.
    pub fn restore_holds(&mut self) {
        self.holds.restore_all();
    }

    /// The result of the run.
    pub fn into_result(
        self,
        budgeter: &Budgeter,
        signal: Option<i32>,
        restored: bool,
    ) -> BudgetResult {
        let statistics = budgeter.statistics();
        let time = self.now;
        let share = |part: Seconds| (time > Seconds::ZERO).then(|| part / time);
        let gpus = self
            .gpus
            .iter()
            .enumerate()
            .map(|(number, gpu)| BudgetedGpuResult {
                index: gpu.gpu.index(),
                device: gpu.gpu.descriptor().clone(),
                is_settable: gpu.device.is_settable,
                first_cap: Some(gpu.device.max_cap),
                cap: budgeter.cap(number),
                energy: gpu.energy(time),
                mean_power: gpu.energy(time).map(|energy| energy / time),
                unread: gpu.power.unread(time),
                busy_share: share(gpu.busy),
                items: gpu.has_items.then_some(gpu.items.0 + gpu.items.1),
            });
        let gpus: Vec<BudgetedGpuResult> = gpus.collect();
        let energy: Option<Joules> = gpus.iter().map(|gpu| gpu.energy).sum();
        BudgetResult {
            energy,
            mean_power: energy.map(|energy| energy / time),
            unread: self.together.unread_until(time),
            gpus,
            machine: self.machine,
            budgets: self.budgets,
            time,
            node: self.node.as_ref().map(|node| node.result(time)),
            above_share: statistics.above_share(),
            highest_mean: statistics.highest(),
            used_share: statistics.used_share(),
            changes: budgeter.changes(),
            over_time: self.slices,
            notices: self.notices,
            signal,
            restored,
        }
    }
}
