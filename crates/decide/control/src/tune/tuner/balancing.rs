//! Gives each GPU of a job a setting of its own, after a setting for all GPUs was chosen.

use sweetspot_device::Settings;
use sweetspot_quantity::{Ratio, Seconds};

use super::super::balance::{Balancer, Levels};
use super::super::ladder::{GpuLadder, label};
use super::super::load::LoadSpace;
use super::super::notice::{BalanceFailure, TuneNotice};
use super::super::outcome::BalancedPoint;
use super::super::window::TuneWindow;
use super::{Task, Tuner};

/// The shortest and the longest measurement window of a trial, in seconds: a difference in speed of 1 % must be visible.
const TRIAL_WINDOW: (f64, f64) = (5.0, 8.0);
/// The same for the setting for all GPUs, with which all trials are compared.
const BASE_WINDOW: (f64, f64) = (9.0, 12.0);
/// The expected time for the trials of one GPU, in seconds.
const TIME_FOR_GPU: f64 = 20.0;
/// Settings of their own are worthwhile if at least this multiple of the expected time for trials is left.
const MIN_TIME_LEFT: f64 = 2.0;
/// The job counts as slowed down by the settings that were found if its speed is below this share of the speed before.
const MIN_SPEED: f64 = 0.991;
/// The settings that were found are used if they save at least this share of the energy.
const MIN_SAVING: f64 = 0.003;
/// The settings that were found are corrected at most this many times.
const MAX_CORRECTIONS: usize = 3;

/// The search for a setting of each GPU.
#[derive(Clone, Debug)]
pub(super) struct Balancing {
    /// The setting for all GPUs that the search began with.
    base: usize,
    /// The measurement at that setting, and the search; absent until it is measured.
    measured: Option<(TuneWindow, Balancer)>,
    /// Whether the settings that were found are being checked.
    is_check: bool,
    /// Whether those settings are the ones that an earlier search found.
    is_remembered: bool,
    corrections: usize,
    /// The point and the measurement of a check in which the job seemed slower, while the setting for all GPUs is
    /// measured again.
    doubted: Option<(usize, TuneWindow)>,
    /// Whether the setting for all GPUs was measured again.
    has_measured_again: bool,
    /// The time that the trials have cost the job so far, in seconds.
    lost: f64,
}

impl Tuner {
    /// The settings of each GPU at a point that gives GPUs settings of their own; `None` if the point gives all GPUs the
    /// same setting.
    pub fn settings_of_each(&self, point: usize) -> Option<&[Settings]> {
        let ladders = self.config.each.as_ref()?;
        let index = point.checked_sub(ladders.of_points.len())?;
        Some(&self.balanced.get(index)?.settings)
    }

    /// Starts to look for a setting of each GPU, if that is wanted and worthwhile; returns whether it does.
    pub(super) fn start_balancing(&mut self, now: f64, point: usize) -> bool {
        let is_wanted = self.config.each.is_some()
            && self.needs_progress
            && !self.load.is_balanced
            && !self.load.outside_limits;
        if !is_wanted {
            return false;
        }
        self.load.is_balanced = true;
        let needed = MIN_TIME_LEFT * TIME_FOR_GPU * self.config.gpus as f64;
        if self
            .job_time(now)
            .is_some_and(|job| job.get() - now < needed)
        {
            self.notify(now, TuneNotice::NotBalanced(BalanceFailure::TooShort));
            return false;
        }
        self.notify(
            now,
            TuneNotice::Balancing(Seconds::new(needed / MIN_TIME_LEFT)),
        );
        self.balancing = Some(Balancing {
            base: point,
            measured: None,
            is_check: false,
            is_remembered: false,
            corrections: 0,
            doubted: None,
            has_measured_again: false,
            lost: 0.0,
        });
        self.set(now, point, Task::Balance);
        true
    }

    /// The shortest and the longest measurement window of the present trial, in seconds.
    pub(super) fn balance_window(&self) -> (f64, f64) {
        match &self.balancing {
            Some(balancing) if balancing.measured.is_none() || balancing.doubted.is_some() => {
                BASE_WINDOW
            }
            _ => TRIAL_WINDOW,
        }
    }

    /// Evaluates a measurement window of the search, and goes on with the next one.
    pub(super) fn balance(&mut self, now: f64, point: usize, window: TuneWindow) {
        let Some(mut balancing) = self.balancing.take() else {
            return self.set(
                now,
                self.load.choice.unwrap_or(self.reference()),
                Task::Hold,
            );
        };
        let Some((before, mut balancer)) = balancing.measured.take() else {
            self.load.record_window(window.clone());
            let Some(mut balancer) = self.balancer(balancing.base, &window) else {
                return self.set(now, balancing.base, Task::Hold);
            };
            let remembered = self.load.remembered_each.take();
            if let Some(levels) = remembered.and_then(|settings| self.levels(&settings)) {
                balancing.is_remembered = true;
                balancer.finish_with(&levels);
            }
            balancing.measured = Some((window, balancer));
            return self.try_next_gpu(now, balancing);
        };
        if let Some((point, doubted)) = balancing.doubted.take() {
            let before = mean_of(&before, &window);
            self.load.record_window(window);
            return self.check_balance(now, point, balancing, (doubted, before, balancer));
        }
        if balancing.is_check {
            self.load.record_window(window.clone());
            return self.check_balance(now, point, balancing, (window, before, balancer));
        }
        let speed = speed(&window, &before);
        balancing.lost += (1.0 - speed).max(0.0) * (window.time() + self.config.settle).get();
        balancer.record(speed);
        balancing.measured = Some((before, balancer));
        self.try_next_gpu(now, balancing);
    }

    /// Measures the next trial, or checks the settings that were found.
    fn try_next_gpu(&mut self, now: f64, mut balancing: Balancing) {
        let Some((_, balancer)) = &balancing.measured else {
            return;
        };
        let job = self.job_time(now).unwrap_or(Seconds::new(now.max(600.0)));
        let is_affordable = balancing.lost <= self.config.budget.get() * job.get();
        let levels = match balancer.next().filter(|_| is_affordable) {
            Some(levels) => levels,
            None if balancer.has_lowered() => {
                balancing.is_check = true;
                balancer.found().clone()
            }
            None => {
                self.notify(now, TuneNotice::NotBalanced(BalanceFailure::NothingToSpare));
                return self.set(now, balancing.base, Task::Hold);
            }
        };
        let point = self.define_point(balancing.base, &levels);
        self.balancing = Some(balancing);
        self.set(now, point, Task::Balance);
    }

    /// Uses the settings that were found if they are as fast as the setting for all GPUs and save energy; corrects them
    /// if they are slower.
    fn check_balance(
        &mut self,
        now: f64,
        point: usize,
        mut balancing: Balancing,
        (window, before, mut balancer): (TuneWindow, TuneWindow, Balancer),
    ) {
        let speed = speed(&window, &before);
        let base_is_allowed = self.load.meets_limits(&self.config, balancing.base);
        let is_allowed = !base_is_allowed || self.load.meets_limits(&self.config, point);
        if (speed < MIN_SPEED || !is_allowed) && !balancing.has_measured_again {
            // The first measurement of the setting for all GPUs may have been too high, or the GPUs are warmer now.
            balancing.has_measured_again = true;
            balancing.doubted = Some((point, window));
            balancing.measured = Some((before, balancer));
            let base = balancing.base;
            self.balancing = Some(balancing);
            return self.set(now, base, Task::Balance);
        }
        // The job is as fast as before, so that power shows what is saved, with a smaller error than energy for each item.
        let saved = Ratio::new(1.0) - window.power / before.power;
        let is_slower = speed < MIN_SPEED || !is_allowed;
        if balancing.is_remembered && (is_slower || saved < Ratio::new(MIN_SAVING)) {
            // What an earlier search found does not hold any more.
            balancing.is_remembered = false;
            balancing.is_check = false;
            let balancer = self.balancer(balancing.base, &before);
            balancing.measured = balancer.map(|balancer| (before, balancer));
            return self.try_next_gpu(now, balancing);
        }
        if is_slower {
            balancing.corrections += 1;
            balancer.raise(speed.min(1.0));
            if balancing.corrections <= MAX_CORRECTIONS && balancer.has_lowered() {
                let point = self.define_point(balancing.base, balancer.found());
                balancing.measured = Some((before, balancer));
                self.balancing = Some(balancing);
                return self.set(now, point, Task::Balance);
            }
            self.notify(now, TuneNotice::NotBalanced(BalanceFailure::Slower));
            return self.set(now, balancing.base, Task::Hold);
        }
        if saved < Ratio::new(MIN_SAVING) {
            self.notify(now, TuneNotice::NotBalanced(BalanceFailure::NothingToSpare));
            return self.set(now, balancing.base, Task::Hold);
        }
        let label = self.label(point);
        self.notify(now, TuneNotice::Balanced { label, saved });
        self.load.common = Some(balancing.base);
        self.load.set_choice(point, self.load.expected_regret());
        self.set(now, point, Task::Hold);
    }

    /// The ladders of the GPUs for the knob of the present load.
    fn ladders(&self) -> Option<&Vec<GpuLadder>> {
        let ladders = self.config.each.as_ref()?;
        match (self.load.space, &ladders.clocks) {
            (LoadSpace::Clocks, Some(clocks)) => Some(clocks),
            _ => Some(&ladders.main),
        }
    }

    /// The levels of these settings of the GPUs; `None` if a GPU does not have one of them.
    fn levels(&self, settings: &[Settings]) -> Option<Levels> {
        let ladders = self.ladders()?;
        let level = |(ladder, own): (&GpuLadder, &Settings)| {
            ladder.settings.iter().position(|settings| settings == own)
        };
        let levels: Option<Levels> = ladders.iter().zip(settings).map(level).collect();
        levels.filter(|levels| levels.len() == ladders.len())
    }

    /// Creates the search for GPUs that have the setting of a point.
    fn balancer(&self, base: usize, window: &TuneWindow) -> Option<Balancer> {
        let ladders = self.ladders()?.clone();
        let settings = self.config.each.as_ref()?.of_points.get(base)?;
        let is_cap = ladders
            .iter()
            .all(|ladder| ladder.settings[0].core_clock.is_none())
            && ladders.iter().any(|ladder| {
                ladder
                    .settings
                    .last()
                    .is_some_and(|lowest| lowest.core_clock.is_none())
            });
        let first: Levels = ladders
            .iter()
            .zip(settings)
            .map(|(ladder, settings)| {
                let value = match is_cap {
                    true => settings.power_cap.map(|cap| cap.get()),
                    false => settings.core_clock.map(|clock| clock.get()),
                };
                value.map_or(0, |value| ladder.at_least(value))
            })
            .collect();
        let used: Vec<Option<f64>> = (0..ladders.len())
            .map(|gpu| {
                let power = self.monitor.gpu_power(gpu, window.begin, window.end);
                power.filter(|_| is_cap)
            })
            .collect();
        Some(Balancer::new(ladders, first, &used))
    }

    /// The point at which the GPUs have these settings; it is created if there is none yet.
    fn define_point(&mut self, base: usize, levels: &Levels) -> usize {
        let Some((ladders, each)) = self.ladders().zip(self.config.each.as_ref()) else {
            return base;
        };
        let settings = ladders.iter().zip(levels);
        let settings: Vec<Settings> = settings
            .map(|(ladder, level)| ladder.settings[*level])
            .collect();
        let count = each.of_points.len();
        if let Some(index) = self
            .balanced
            .iter()
            .position(|own| own.settings == settings)
        {
            return count + index;
        }
        let label = label(&settings);
        self.config.labels.push(label.clone());
        self.balanced.push(BalancedPoint {
            base,
            settings,
            label,
        });
        count + self.balanced.len() - 1
    }
}

/// The speed of the job in a measurement window, as a share of that in an earlier one.
fn speed(window: &TuneWindow, before: &TuneWindow) -> f64 {
    let rates = window.items_per_second.zip(before.items_per_second);
    rates.map_or(1.0, |(own, before)| own / before)
}

/// The mean of two measurements at one setting, as if they were one window.
fn mean_of(first: &TuneWindow, second: &TuneWindow) -> TuneWindow {
    let rates = first.items_per_second.zip(second.items_per_second);
    TuneWindow {
        power: (first.power + second.power) * 0.5,
        items_per_second: rates.map(|(first, second)| (first + second) / 2.0),
        ..second.clone()
    }
}
