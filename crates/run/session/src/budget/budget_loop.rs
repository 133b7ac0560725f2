//! The loop of `budget`: passes readings to the control algorithm, and sets the power caps that it returns.

use std::time::Duration;

use sweetspot_control::budget::{BudgetAction, BudgetEvent, BudgetedDevice, Budgeter, GpuReading};
use sweetspot_device::{Amount, Clock, Moment, MonotonicClock, SensorKind, Settings};
use sweetspot_guard::GuardError;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};
use sweetspot_workload::{Lease, SignalSource};

use super::error::BudgetError;
use super::holds::HoldLimits;
use super::messages::notice_message;
use super::programs::{GpuProgram, Programs};
use super::result::{BudgetResult, BudgetSlice, BudgetStatus, BudgetedGpuResult};
use crate::hold::cap::CapFile;
use crate::hold::power_reader::{DeviceReading, PowerReader};
use crate::hold::socket::ControlSocket;
use crate::host::Gpu;
use crate::measure::Machine;
use crate::observer::{Observer, Status};
use crate::{DevicesError, SessionError};

/// The time between two decisions.
const TICK: Duration = Duration::from_millis(100);
/// The ticks between two looks at which programs run.
const PROGRAM_TICKS: u64 = 5;
/// The ticks of a slice of the result.
const SLICE_TICKS: u64 = 10;
/// The most slices that are kept; longer runs have longer slices.
const MAX_SLICES: usize = 7200;

/// A GPU of the budget.
pub struct BudgetedGpu {
    gpu: Gpu,
    device: BudgetedDevice,
    reader: PowerReader,
    power: Option<Watts>,
    is_limited: bool,
    is_lost: bool,
    /// Whether this budget has leased the GPU. If not, only a `hold` that runs there can limit it.
    is_leased: bool,
    program: Option<GpuProgram>,
    /// The cap that this budget asked for last.
    asked: Option<Watts>,
    energy: Joules,
    busy: Seconds,
    /// The items of earlier programs and of the present one.
    items: (f64, f64),
    has_items: bool,
}

impl BudgetedGpu {
    pub fn new(gpu: Gpu, device: BudgetedDevice, is_leased: bool, reader: PowerReader) -> Self {
        Self {
            gpu,
            device,
            reader,
            power: None,
            is_limited: false,
            is_lost: false,
            is_leased,
            program: None,
            asked: None,
            energy: Joules::ZERO,
            busy: Seconds::ZERO,
            items: (0.0, 0.0),
            has_items: false,
        }
    }

    /// The index and the name of the GPU.
    fn name(&self) -> String {
        format!("GPU {}", self.gpu.index())
    }

    /// The ids of the processes that use the GPU; `None` if they are unknown.
    fn processes(&mut self) -> Option<Vec<u32>> {
        self.gpu.processes().ok()
    }

    /// Whether a program uses the GPU: it has processes, or its units work.
    fn is_busy(&mut self) -> bool {
        if self.program.is_some() {
            return true;
        }
        let used = self.gpu.read(SensorKind::Utilisation);
        used.is_ok_and(
            |reading| matches!(reading.amount, Amount::Share(share) if share > Ratio::ZERO),
        )
    }
}

/// A running budget.
pub struct BudgetLoop {
    gpus: Vec<BudgetedGpu>,
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
    slice: (f64, u64),
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
        Self {
            gpus,
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
            slice: (0.0, 0),
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
        self.budgets.push((Seconds::ZERO, budgeter.budget()));
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
            self.read_progress(budgeter);
            let actions = budgeter.step(self.now, BudgetEvent::Tick);
            self.act(budgeter, actions, lease, signals, observer)?;
            self.record(budgeter, observer);
            self.tick += 1;
        }
        Ok(())
    }

    /// Shows a message and keeps it for the result.
    fn notify(&mut self, observer: &mut dyn Observer, text: String) {
        observer.note(&text);
        self.notices.push((self.now, text));
    }

    /// Takes a new budget from the cap file or from `budget set`.
    fn read_new_budget(&mut self, budgeter: &mut Budgeter, observer: &mut dyn Observer) {
        match self.cap_file.as_mut().and_then(CapFile::read_change) {
            Some(Ok(budget)) => self.change_budget(budgeter, budget, "the cap file", observer),
            Some(Err(problem)) => {
                let stays = budgeter.budget().get();
                let text = format!("{problem}; the budget stays at {stays:.0} W");
                self.notify(observer, text);
            }
            None => {}
        }
        while let Some(request) = self.socket.as_ref().and_then(ControlSocket::next_request) {
            let (before, budget) = (budgeter.budget(), request.cap);
            self.change_budget(budgeter, budget, "budget set", observer);
            let lowest = budgeter.lowest_budget();
            let warning = match budget < lowest {
                true => format!(
                    "; the GPUs need {:.0} W even at their lowest power caps, which are set",
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
        if budget == budgeter.budget() {
            return;
        }
        budgeter.step(self.now, BudgetEvent::Budget(budget));
        self.budgets.push((self.now, budget));
        let text = format!("the budget is now {:.0} W (set by {from})", budget.get());
        self.notify(observer, text);
    }

    /// Looks at which programs use the GPUs.
    fn find_programs(&mut self, budgeter: &mut Budgeter) {
        if self.tick.is_multiple_of(PROGRAM_TICKS) {
            self.programs.refresh();
            self.holds.retain(self.programs.holds());
        }
        for number in 0..self.gpus.len() {
            let gpu = &mut self.gpus[number];
            let Some(pids) = gpu.processes().filter(|_| !gpu.is_lost) else {
                continue;
            };
            // A program with the same processes is looked at again now and then: its link may be new.
            if pids.is_empty() == gpu.program.is_none() && !self.tick.is_multiple_of(PROGRAM_TICKS)
            {
                continue;
            }
            let program = self.programs.find(&pids);
            let id = program.as_ref().map(|program| program.id);
            if id != gpu.program.as_ref().map(|program| program.id) {
                gpu.items = (gpu.items.0 + gpu.items.1, 0.0);
                let event = BudgetEvent::Program {
                    gpu: number,
                    program: id,
                };
                budgeter.step(self.now, event);
            }
            gpu.program = program;
        }
    }

    /// Reads the power of all GPUs.
    fn read_gpus(&mut self, budgeter: &mut Budgeter, observer: &mut dyn Observer) {
        for number in 0..self.gpus.len() {
            let gpu = &mut self.gpus[number];
            let (mut energy, mut time) = (Joules::ZERO, Seconds::ZERO);
            let mut found = None;
            for reading in gpu.reader.take_readings() {
                match reading {
                    DeviceReading::Power { reading, .. } => {
                        let span = reading.to - reading.from;
                        energy += reading.power * span;
                        time += span;
                    }
                    DeviceReading::Limit { limits, throttled } => {
                        gpu.is_limited = throttled;
                        found = Some(limits.requested);
                    }
                    DeviceReading::Lost => gpu.is_lost = true,
                }
            }
            if gpu.is_lost {
                if gpu.power.take().is_some() {
                    let lost = DevicesError::Lost(gpu.gpu.descriptor().name.clone());
                    let text = format!("{}: {lost}; the others share its power", gpu.name());
                    budgeter.step(self.now, BudgetEvent::Lost { gpu: number });
                    self.notify(observer, text);
                }
                continue;
            }
            if time > Seconds::ZERO {
                gpu.power = Some(energy / time);
            }
            // Another program has raised the cap: the control algorithm lowers it again.
            if let (Some(found), Some(asked)) = (found, gpu.asked)
                && found.get() > asked.get() + 0.5
            {
                budgeter.step(
                    self.now,
                    BudgetEvent::Applied {
                        gpu: number,
                        cap: found,
                    },
                );
            }
            let Some(power) = gpu.power else { continue };
            let is_busy = gpu.is_busy();
            let passed = self.now - self.last;
            gpu.energy += power * passed;
            if is_busy {
                gpu.busy += passed;
            }
            let reading = GpuReading {
                power,
                limited: Some(Ratio::new(f64::from(u8::from(gpu.is_limited)))),
                is_busy,
            };
            budgeter.step(
                self.now,
                BudgetEvent::Read {
                    gpu: number,
                    reading,
                },
            );
        }
    }

    /// Passes the progress of programs to the control algorithm.
    fn read_progress(&mut self, budgeter: &mut Budgeter) {
        let programs: Vec<Option<GpuProgram>> =
            self.gpus.iter().map(|gpu| gpu.program.clone()).collect();
        let zero = self.begin - Moment::from_nanos(0);
        for (link, at, items) in self.programs.progress(&programs) {
            for (number, gpu) in self.gpus.iter_mut().enumerate() {
                let own = gpu
                    .program
                    .as_ref()
                    .and_then(|program| program.link.as_ref());
                if own != Some(&link) {
                    continue;
                }
                gpu.items.1 = items;
                gpu.has_items = true;
                let event = BudgetEvent::Progress {
                    gpu: number,
                    at: at - zero,
                    items,
                };
                budgeter.step(self.now, event);
            }
        }
    }

    /// Carries out what the control algorithm asks for.
    fn act(
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
                    self.notify(observer, notice_message(&notice, &names));
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
        if let Some(hold) = hold.filter(|_| is_lower) {
            self.holds.limit(hold, cap);
        }
        let settings = Settings {
            power_cap: Some(cap),
            ..Settings::default()
        };
        if !gpu.is_leased {
            return Ok(self.limit_by_hold(number, hold, cap));
        }
        let id = gpu.gpu.descriptor().id.clone();
        match lease.set(&id, &settings) {
            Ok(_) => {
                gpu.asked = Some(cap);
                if let Some(hold) = hold.filter(|_| !is_lower) {
                    self.holds.limit(hold, cap);
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

    /// Limits a GPU that another process has leased by the `hold` that runs there.
    fn limit_by_hold(&mut self, number: usize, hold: Option<u32>, cap: Watts) -> BudgetEvent {
        let gpu = &mut self.gpus[number];
        if hold.is_some_and(|hold| self.holds.limit(hold, cap)) {
            gpu.asked = Some(cap);
            return BudgetEvent::Applied { gpu: number, cap };
        }
        gpu.device.is_settable = false;
        BudgetEvent::Rejected { gpu: number }
    }

    /// Records the present state, and shows it.
    fn record(&mut self, budgeter: &Budgeter, observer: &mut dyn Observer) {
        let power: Watts = self.gpus.iter().filter_map(|gpu| gpu.power).sum();
        let caps: Vec<Watts> = (0..self.gpus.len())
            .filter_map(|gpu| budgeter.cap(gpu))
            .collect();
        let status = BudgetStatus {
            elapsed: self.now,
            budget: budgeter.budget(),
            power,
            caps: caps.iter().copied().sum(),
            busy: (0..self.gpus.len())
                .filter(|gpu| budgeter.is_busy(*gpu))
                .count(),
            gpus: self.gpus.len(),
        };
        observer.status(&Status::Budget(&status));
        self.slice = (self.slice.0 + power.get(), self.slice.1 + 1);
        if self.slice.1 >= SLICE_TICKS && self.slices.len() < MAX_SLICES {
            let (sum, count) = std::mem::take(&mut self.slice);
            self.slices.push(BudgetSlice {
                at: self.now,
                budget: budgeter.budget(),
                power: Watts::new(sum / count as f64),
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
                mean_power: (time > Seconds::ZERO).then(|| gpu.energy / time),
                busy_share: share(gpu.busy),
                items: gpu.has_items.then_some(gpu.items.0 + gpu.items.1),
            });
        BudgetResult {
            gpus: gpus.collect(),
            machine: self.machine,
            budgets: self.budgets,
            time,
            above_share: statistics.above_share(),
            mean_power: statistics.mean_power(),
            highest_mean: statistics.highest(),
            used_share: statistics.used_share(),
            energy: statistics.energy(),
            changes: budgeter.changes(),
            over_time: self.slices,
            notices: self.notices,
            signal,
            restored,
        }
    }
}
