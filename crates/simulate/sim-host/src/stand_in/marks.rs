//! Marks the phases of `sim-workload` over the shared-memory link, as an instrumented training program does.

use std::cell::RefCell;

use sweetspot_link::{Moment, Writer};
use sweetspot_quantity::Seconds;
use sweetspot_sim::{Job, Load, Phase};

/// The phase in which the host prepares a batch and copies it to the GPU.
const COPY: &str = "copy";
/// The phase in which the weights are updated.
const UPDATE: &str = "update";
/// The phase in which a rank waits for slower ranks.
const WAIT: &str = "wait";
/// The phase in which the ranks exchange the gradients that the backward pass has not hidden.
const EXCHANGE: &str = "exchange";
/// The backward pass, whose end the other ranks wait for.
const BACKWARD: &str = "backward";

/// The share of the backward pass that is marked as the update of the weights, and of the forward pass that is marked
/// as the copy of the batch if the profile has no time of the host. Assumed: multi_gpu_2018 (section 4.3) says that
/// forward and backward steps take more than 95 % of the time, and studies do not tabulate the rest.
const SMALL_SHARE: f64 = 0.02;

/// A phase of an iteration under the name that is marked.
pub struct NamedPhase {
    pub name: String,
    pub phase: Phase,
}

/// The phases of an iteration under the names that a training program would use: the host's time is `copy`, and the
/// last part of the backward pass is `update`. Their total time is unchanged.
pub fn name_phases(job: &Job, phases: &[Phase]) -> Vec<NamedPhase> {
    let names = job.phase_names();
    let name_of = |phase: &Phase| match phase.name {
        0 => COPY.to_owned(),
        index => names.get(index).cloned().unwrap_or_else(|| EXCHANGE.into()),
    };
    let is_empty =
        |phase: &Phase| matches!(phase.load, Load::Waiting { host } if host <= Seconds::ZERO);
    let mut named: Vec<NamedPhase> = phases
        .iter()
        .filter(|phase| !is_empty(phase))
        .map(|phase| NamedPhase {
            name: name_of(phase),
            phase: phase.clone(),
        })
        .collect();
    let Some(backward) = named.iter().rposition(|one| one.name == BACKWARD) else {
        return named;
    };
    let (rest, update) = divide(&named[backward].phase, 1.0 - SMALL_SHARE);
    named[backward].phase = rest;
    named.push(NamedPhase {
        name: UPDATE.to_owned(),
        phase: update,
    });
    if named[0].name != COPY {
        let (copy, rest) = divide(&named[0].phase, SMALL_SHARE);
        named[0].phase = rest;
        let name = COPY.to_owned();
        named.insert(0, NamedPhase { name, phase: copy });
    }
    named
}

/// Divides a phase of kernels into a first part with this share of the work, and the rest.
fn divide(phase: &Phase, first: f64) -> (Phase, Phase) {
    let part = |share: f64| Phase {
        name: phase.name,
        load: match phase.load {
            Load::Kernels {
                launch,
                core,
                memory,
                switching,
                memory_activity,
            } => Load::Kernels {
                launch: launch * share,
                core: core * share,
                memory: memory * share,
                switching,
                memory_activity,
            },
            other => other,
        },
    };
    (part(first), part(1.0 - first))
}

/// A phase that has ended, with its times in nanoseconds.
struct Ended {
    name: String,
    begin: u64,
    end: u64,
}

/// Marks the phases of one rank. Without a link it does nothing.
pub struct PhaseMarks {
    link: Option<Writer>,
    /// Whether the rank has others, for which it waits: its iterations are marked when all have finished.
    is_together: bool,
    state: RefCell<MarkState>,
}

#[derive(Default)]
struct MarkState {
    /// The names of the phases of an iteration that was granted last.
    names: Vec<String>,
    /// The number of phases that have been read since iterations were granted.
    known: u64,
    /// The end of the last phase that was read.
    reached: u64,
    /// The phases of the iteration in progress, in order; neighbours with the same name are one.
    phases: Vec<Ended>,
}

impl PhaseMarks {
    /// Creates the marks of a rank; `rank` is `None` if the program has only one.
    pub fn new(rank: Option<u32>) -> Result<Self, sweetspot_link::LinkError> {
        Ok(Self {
            link: match rank {
                Some(_) => Writer::from_env_as_rank(rank)?,
                None => Writer::from_env()?,
            },
            is_together: rank.is_some(),
            state: RefCell::default(),
        })
    }

    /// Creates the marks of a program that marks no phases.
    pub fn off() -> Self {
        Self {
            link: None,
            is_together: false,
            state: RefCell::default(),
        }
    }

    /// Whether anybody reads the marks.
    pub fn is_read(&self) -> bool {
        self.link.is_some()
    }

    /// Reports items that this rank has completed.
    pub fn progress(&self, items: u64) {
        if let Some(link) = &self.link {
            link.progress(items);
        }
    }

    /// Prepares for iterations with phases of these names, which were granted at `now`. The time since the last
    /// iteration is the host's, and belongs to the first phase if that is the copy.
    pub fn granted(&self, names: Vec<String>, now: u64) {
        let state = &mut *self.state.borrow_mut();
        if state.reached == 0 || names.first().is_none_or(|name| name != COPY) {
            state.reached = now;
        }
        state.names = names;
        state.known = 0;
        state.phases.clear();
    }

    /// The number of phases that have been read since iterations were granted.
    pub fn known(&self) -> u64 {
        self.state.borrow().known
    }

    /// Takes the numbers and ends of further phases, and marks the iterations that are complete, unless other ranks
    /// have to finish theirs first.
    pub fn ended(&self, ends: &[(u64, u64)]) {
        let state = &mut *self.state.borrow_mut();
        let count = state.names.len() as u64;
        for (number, end) in ends {
            if count == 0 {
                return;
            }
            // After a gap the start of the phase is unknown: the iteration is left out.
            if *number != state.known {
                state.phases.clear();
            }
            let is_first = number % count == 0;
            let is_begin_known = *number == state.known && (is_first || !state.phases.is_empty());
            let name = &state.names[(number % count) as usize];
            match state.phases.last_mut() {
                Some(last) if last.name == *name => last.end = *end,
                _ if is_begin_known => {
                    state.phases.push(Ended {
                        name: name.clone(),
                        begin: state.reached,
                        end: *end,
                    });
                }
                _ => {}
            }
            (state.known, state.reached) = (number + 1, *end);
            if (number + 1) % count == 0 && !self.is_together {
                mark(self.link.as_ref(), &state.phases);
                state.phases.clear();
            }
        }
    }

    /// The end of the backward pass of the last iteration; `None` if it has none.
    fn backward_end(&self) -> Option<u64> {
        let state = self.state.borrow();
        let backward = state.phases.iter().rfind(|one| one.name == BACKWARD)?;
        Some(backward.end)
    }

    /// The length of the last iteration's update, in nanoseconds.
    fn update_time(&self) -> u64 {
        let state = self.state.borrow();
        let update = state.phases.iter().filter(|one| one.name == UPDATE);
        update.map(|one| one.end - one.begin).sum()
    }

    /// Marks an iteration that all ranks have finished at `end`: after its backward pass a rank waits for the slowest
    /// one, and then all exchange gradients and update their weights.
    pub fn mark_together(all: &[&Self], end: u64) {
        let slowest = all.iter().filter_map(|marks| marks.backward_end()).max();
        let update = all.iter().map(|marks| marks.update_time()).max();
        for marks in all {
            let state = &mut *marks.state.borrow_mut();
            if let (Some(slowest), Some(update)) = (slowest, update) {
                let own = state.phases.iter().rposition(|one| one.name == BACKWARD);
                state.phases.truncate(own.map_or(0, |own| own + 1));
                let exchanged = end.saturating_sub(update).max(slowest);
                for (name, end) in [(WAIT, slowest), (EXCHANGE, exchanged), (UPDATE, end)] {
                    let begin = state.phases.last().map_or(end, |last| last.end);
                    let name = name.to_owned();
                    state.phases.push(Ended { name, begin, end });
                }
            }
            mark(marks.link.as_ref(), &state.phases);
            state.phases.clear();
            state.reached = end;
        }
    }
}

/// Writes phases to the link; those without any length are left out.
fn mark(link: Option<&Writer>, phases: &[Ended]) {
    let Some(link) = link else { return };
    for phase in phases.iter().filter(|phase| phase.begin < phase.end) {
        let (begin, end) = (
            Moment::from_nanos(phase.begin),
            Moment::from_nanos(phase.end),
        );
        link.phase_between(&phase.name, begin, end);
    }
}
