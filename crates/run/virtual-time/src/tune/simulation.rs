//! Simulates a job, and passes its events to a tuner.

use std::collections::VecDeque;
use std::sync::Arc;

use sweetspot_control::tune::{TuneAction, TuneEvent, TuneNotice, TuneSpace, Tuner};
use sweetspot_device::{Actuator, Knob, VirtualClock};
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_sim::{AllReduce, SimulatedGpu, Stretch, StretchSink, Variation};
use sweetspot_stats::Seed;

use super::JobSequence;
use super::energy_counter::EnergyCounter;
use super::limit_counters::LimitCounters;
use crate::{SimulatedJob, SimulationError};

/// A job is simulated in parts of this many seconds. New settings take effect between two parts.
const PART_TIME: f64 = 0.1;

/// The counters of the simulated GPUs.
pub struct Counters {
    pub energy: EnergyCounter,
    limits: LimitCounters,
}

impl StretchSink for Counters {
    fn record(&mut self, rank: usize, stretch: &Stretch) {
        self.energy.record(rank, stretch);
        self.limits.record(rank, stretch);
    }
}

/// A tuner and the simulated GPUs that it acts on.
pub struct TuneSimulation<'a> {
    gpus: Vec<SimulatedGpu>,
    clock: Arc<VirtualClock>,
    pub counters: Counters,
    pub tuner: Tuner,
    space: &'a TuneSpace,
    on_notice: &'a mut dyn FnMut(Seconds, &TuneNotice),
    is_clock_locked: bool,
    pub now: Seconds,
    pub items: f64,
    /// The total power of all GPUs between updates of their energy counters, with the times.
    pub power: Vec<(Seconds, Watts)>,
    /// The last update of the energy counters: its time and their sum.
    last_energy: (Seconds, Joules),
}

impl<'a> TuneSimulation<'a> {
    /// Creates the simulation at the start of its first job.
    pub fn new(
        gpus: Vec<SimulatedGpu>,
        clock: Arc<VirtualClock>,
        tuner: Tuner,
        space: &'a TuneSpace,
        on_notice: &'a mut dyn FnMut(Seconds, &TuneNotice),
    ) -> Self {
        Self {
            counters: Counters {
                energy: EnergyCounter::new(gpus.len()),
                limits: LimitCounters::new(gpus.len()),
            },
            gpus,
            clock,
            tuner,
            space,
            on_notice,
            is_clock_locked: false,
            now: Seconds::ZERO,
            items: 0.0,
            power: Vec::new(),
            last_energy: (Seconds::ZERO, Joules::ZERO),
        }
    }

    /// Runs a job from its first iteration to its last.
    pub fn run_job(
        &mut self,
        sequence: &JobSequence,
        job: &SimulatedJob,
        seed: Seed,
    ) -> Result<(), SimulationError> {
        let all_reduce = AllReduce::of_node(job.node.as_ref());
        let exchange = job.exchange(&all_reduce, self.gpus.len());
        let whole = sequence.part(job, None, Variation::NONE)?;
        let (mut left, mut iterations, mut length) = (whole[0].iterations().1, 1, PART_TIME);
        let batch: u64 = whole.iter().map(|part| part.batch).sum();
        let mut number = 0;
        while left > 0 {
            iterations = iterations.clamp(1, left);
            let noise = sequence.noise * (1.0 / length.max(1e-3).sqrt());
            let variation = Variation::draw(noise, seed.number(number));
            let parts = sequence.part(job, Some(iterations), variation)?;
            let together =
                SimulatedGpu::run_together(&mut self.gpus, &parts, exchange, &mut self.counters)
                    .map_err(|problem| SimulationError::Device {
                        device: job.gpus[0].profile.name.clone(),
                        problem: problem.to_string(),
                    })?;
            self.clock.advance(together.time);
            self.items += (batch * iterations) as f64;
            self.send_readings(together.time);
            left -= iterations;
            number += 1;
            // Settings take effect between two parts.
            length = together.time.get();
            let each = length / iterations as f64;
            iterations = (PART_TIME / each) as u64;
        }
        Ok(())
    }

    /// Passes the events of the simulated part to the tuner, in order of time.
    fn send_readings(&mut self, time: Seconds) {
        let end = self.now + time;
        for (at, totals) in self.counters.energy.new_values() {
            let total = totals.iter().copied().sum();
            let (before, was) = self.last_energy;
            if at > before {
                self.power.push((at, (total - was) / (at - before)));
            }
            self.last_energy = (at, total);
            self.now = at.max(self.now);
            if totals.len() > 1 {
                self.send(TuneEvent::EnergyOfEach { at, totals });
            }
            self.send(TuneEvent::Energy { at, total });
        }
        self.now = end;
        if let Some(span) = self.counters.limits.read(end, &mut self.gpus) {
            self.send(TuneEvent::Limits(span));
        }
        let total = self.items;
        self.send(TuneEvent::Progress { at: end, total });
    }

    /// Sends an event to the tuner, and applies the settings that the tuner requests.
    pub fn send(&mut self, event: TuneEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.tuner.step(self.now, event) {
                match action {
                    TuneAction::Set(point) => events.push_back(self.set(point)),
                    TuneAction::Notify(notice) => (self.on_notice)(self.now, &notice),
                    TuneAction::ReportState(_) => {}
                }
            }
        }
    }

    /// Applies a point of the search space to the GPUs, and returns the confirmation for the tuner.
    fn set(&mut self, point: usize) -> TuneEvent {
        let each = self.tuner.settings_of_each(point);
        let each = each.unwrap_or_else(|| &self.space.of_gpus[point]).to_vec();
        for (gpu, settings) in self.gpus.iter_mut().zip(&each) {
            // A clock that was never locked is not reset: that may be denied.
            let freed = match settings.core_clock {
                None if self.is_clock_locked => gpu.reset(Knob::CoreClock),
                _ => Ok(()),
            };
            if let Err(problem) = freed.and_then(|()| gpu.apply(settings).map(drop)) {
                let reason = problem.to_string();
                return TuneEvent::Rejected { point, reason };
            }
        }
        self.is_clock_locked = each.iter().any(|own| own.core_clock.is_some());
        TuneEvent::Applied(point)
    }
}
