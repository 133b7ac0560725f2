//! The plan of a paper for the user's GPU.

use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor};
use sweetspot_sim::find_gpu;
use sweetspot_study::EnergyOf;

use super::{OwnOrigin, PaperPlan, Swept, find_paper};

/// How the user changes the plan of a paper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanOptions {
    /// The network of the paper to compare with; the paper's first if `None`.
    pub network: Option<String>,
    /// The number of runs of each configuration; the paper's if `None`.
    pub repeat: Option<u32>,
    /// The largest number of caps, clocks or batch sizes; all of the paper's if `None`.
    pub points: Option<usize>,
    /// Whose energy is compared; as in the paper if `None`.
    pub energy_of: Option<EnergyOf>,
}

/// A plan: the values of the axes as the user of `sweep` writes them.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnPlan {
    /// What is reproduced.
    pub origin: OwnOrigin,
    /// The power caps of a GPU.
    pub power_cap: Option<String>,
    /// The core clocks.
    pub core_clock: Option<String>,
    /// The numbers of GPUs.
    pub gpus: Option<String>,
    /// The batch sizes.
    pub batch: Option<String>,
    /// The number of runs of each configuration.
    pub repeat: u32,
    /// Whose energy is compared.
    pub energy_of: EnergyOf,
    /// How the plan differs from that of the paper.
    pub notes: Vec<String>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnPlanError {
    /// The paper has no plan for a GPU of the user.
    #[error("{name} has no plan for your own GPU; these have one: {}", PaperPlan::NAMES.join(", "))]
    NoPlan {
        /// The name that the user gave.
        name: String,
    },
    /// The paper did not use this network.
    #[error("{paper} did not use the network {network}: it used {known}")]
    NoNetwork {
        /// The name of the paper.
        paper: String,
        /// The network.
        network: String,
        /// Those that it used.
        known: String,
    },
    /// The GPU lacks the knob that the paper used.
    #[error("{paper} sets the {knob}, and {device} does not let it be set")]
    NoKnob {
        /// The name of the paper.
        paper: String,
        /// The knob.
        knob: Knob,
        /// The user's GPU.
        device: String,
    },
    /// There is no GPU.
    #[error("there is no GPU to run the study on")]
    NoGpu,
    /// The text in a study does not say what it reproduces.
    #[error("`{0}` does not say what a study reproduces")]
    BadOrigin(String),
}

/// Makes the plan of a paper for these GPUs.
pub fn plan_for(
    paper: &str,
    devices: &[Descriptor],
    options: &PlanOptions,
) -> Result<OwnPlan, OwnPlanError> {
    let name = paper.replace('_', "-");
    let plan = find_paper(&name).ok_or(OwnPlanError::NoPlan { name })?;
    let device = devices.first().ok_or(OwnPlanError::NoGpu)?;
    let network = options
        .network
        .clone()
        .unwrap_or_else(|| plan.networks[0].to_owned());
    if !plan.networks.contains(&network.as_str()) {
        return Err(OwnPlanError::NoNetwork {
            paper: plan.name.to_owned(),
            network,
            known: plan.networks.join(", "),
        });
    }
    let same = |(gpu, _): &&(&'static str, Swept)| {
        find_gpu(gpu).is_ok_and(|(_, known)| known.name == device.name)
    };
    let found = plan.gpus.iter().find(same);
    let is_same = found.is_some();
    let Some((gpu, swept)) = found.or(plan.gpus.first()) else {
        return Err(OwnPlanError::NoGpu);
    };
    let mut notes = Vec::new();
    let swept = thin(swept, options.points, &mut notes);
    let mut own = OwnPlan {
        origin: OwnOrigin {
            paper: plan.name.to_owned(),
            network,
            gpu: (*gpu).to_owned(),
        },
        power_cap: None,
        core_clock: None,
        gpus: None,
        batch: None,
        repeat: options.repeat.unwrap_or(plan.repeat),
        energy_of: options.energy_of.unwrap_or(plan.energy_of),
        notes: Vec::new(),
    };
    let no_knob = |knob| OwnPlanError::NoKnob {
        paper: plan.name.to_owned(),
        knob,
        device: device.name.clone(),
    };
    match &swept {
        Swept::PowerCap(caps) => {
            let (low, default) = cap_range(device).ok_or_else(|| no_knob(Knob::PowerCap))?;
            let scale = CapScale::new(caps_of(&plan, gpu), (low, default));
            if !scale.is_identity() {
                notes.push(format!(
                    "your {} has power caps from {low:.0} W to {default:.0} W by default, the paper's {gpu} from {:.0} W to {:.0} W: caps are at the same share of the range",
                    device.name, scale.paper.0, scale.paper.1
                ));
            }
            own.power_cap = Some(list(caps.iter().map(|cap| scale.to_own(*cap).round())));
        }
        Swept::CoreClock(clocks, default) => {
            let levels = core_clocks(device).ok_or_else(|| no_knob(Knob::CoreClock))?;
            if levels.default != *default {
                notes.push(format!(
                    "the default core clock of your {} is {:.0} MHz, that of the paper's {gpu} {default:.0} MHz: clocks are at the same share of it",
                    device.name, levels.default
                ));
            }
            let wanted = clocks
                .iter()
                .map(|clock| levels.nearest(clock / default * levels.default));
            let (values, missing): (Vec<_>, Vec<_>) = wanted.partition(Option::is_some);
            if !missing.is_empty() {
                notes.push(format!(
                    "{} of the paper's core clocks are outside what {} supports",
                    missing.len(),
                    device.name
                ));
            }
            own.core_clock = Some(list(values.into_iter().flatten()));
            notes.push("memory clocks stay as they are".to_owned());
        }
        Swept::Batch(batches) => own.batch = Some(list(batches.iter().map(|batch| *batch as f64))),
    }
    if !is_same {
        notes.push(format!(
            "the paper has no {}: published and simulated values are of {gpu}",
            device.name
        ));
    }
    if !plan.counts.is_empty() {
        let counts = plan
            .counts
            .iter()
            .filter(|count| **count as usize <= devices.len());
        own.gpus = Some(list(counts.map(|count| *count as f64)));
        let most = plan.counts.last().copied().unwrap_or(1);
        if most as usize > devices.len() {
            notes.push(format!(
                "the paper used up to {most} GPUs, and here are {}",
                devices.len()
            ));
        }
    }
    if own.repeat != plan.repeat {
        let runs = if own.repeat == 1 { "run" } else { "runs" };
        notes.push(format!(
            "{} {runs} of each configuration in place of the paper's {}",
            own.repeat, plan.repeat
        ));
    }
    if own.energy_of != plan.energy_of {
        notes.push(format!(
            "the energy of {} is compared in place of the paper's {}",
            own.energy_of, plan.energy_of
        ));
    }
    own.notes = notes;
    Ok(own)
}

/// The caps that a paper set on one of its GPUs.
pub(super) fn caps_of<'a>(plan: &'a PaperPlan, gpu: &str) -> &'a [f64] {
    match plan.swept(gpu) {
        Some(Swept::PowerCap(caps)) => caps,
        _ => &[],
    }
}

/// Leaves out values in between, so that at most `points` remain; the reference and the other end stay.
fn thin(swept: &Swept, points: Option<usize>, notes: &mut Vec<String>) -> Swept {
    fn pick<T: Copy>(all: &[T], points: Option<usize>) -> Vec<T> {
        let Some(points) = points.filter(|points| *points >= 2 && *points < all.len()) else {
            return all.to_vec();
        };
        let place = |index: usize| (index * (all.len() - 1) + (points - 1) / 2) / (points - 1);
        (0..points).map(|index| all[place(index)]).collect()
    }
    let (thinned, before, after) = match swept {
        Swept::PowerCap(caps) => {
            let picked = pick(caps, points);
            (Swept::PowerCap(picked.clone()), caps.len(), picked.len())
        }
        Swept::CoreClock(clocks, default) => {
            let mut picked = pick(clocks, points);
            // The default clock is the reference, and not an end on a board that can be raised above it.
            if !picked.contains(default)
                && let Some(near) = picked
                    .iter_mut()
                    .min_by(|a, b| (**a - default).abs().total_cmp(&(**b - default).abs()))
            {
                *near = *default;
            }
            let count = picked.len();
            (Swept::CoreClock(picked, *default), clocks.len(), count)
        }
        Swept::Batch(batches) => {
            let picked = pick(batches, points);
            (Swept::Batch(picked.clone()), batches.len(), picked.len())
        }
    };
    if after < before {
        notes.push(format!("{after} of the paper's {before} settings"));
    }
    thinned
}

/// Values as the text of an axis, without repetitions.
fn list(values: impl Iterator<Item = f64>) -> String {
    let mut texts: Vec<String> = Vec::new();
    for value in values {
        let text = value.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(",")
}

/// The lowest and the default power cap of a GPU, in watts.
pub(super) fn cap_range(device: &Descriptor) -> Option<(f64, f64)> {
    let Some(KnobDescriptor::PowerCap(range)) = device.knob(Knob::PowerCap) else {
        return None;
    };
    let low = match &range.domain {
        Domain::Range { min, .. } => min.get(),
        Domain::Levels(levels) => levels.first()?.get(),
    };
    (low < range.default.get()).then_some((low, range.default.get()))
}

/// The core clocks of a GPU, in MHz.
pub(super) struct CoreClocks {
    levels: Domain<sweetspot_quantity::Megahertz>,
    pub default: f64,
}

impl CoreClocks {
    /// The supported clock that is nearest; `None` beyond the ends.
    fn nearest(&self, clock: f64) -> Option<f64> {
        // The highest level may be a fraction below the clock that is computed.
        let near = |clock: f64| {
            self.levels
                .nearest(sweetspot_quantity::Megahertz::new(clock))
        };
        near(clock)
            .or_else(|| near(clock.floor()))
            .map(|level| level.get())
    }
}

/// The core clocks of a GPU; `None` if they cannot be set.
pub(super) fn core_clocks(device: &Descriptor) -> Option<CoreClocks> {
    match device.knob(Knob::CoreClock) {
        Some(KnobDescriptor::CoreClock(range)) => Some(CoreClocks {
            levels: range.domain.clone(),
            default: range.default.get(),
        }),
        _ => None,
    }
}

/// The relation between the caps of the paper's GPU and those of the user's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CapScale {
    pub paper: (f64, f64),
    own: (f64, f64),
}

impl CapScale {
    /// The scale from the caps that the paper set, in ascending order, to the user's lowest and default cap.
    pub fn new(caps: &[f64], own: (f64, f64)) -> Self {
        let paper = (
            caps.first().copied().unwrap_or(own.0),
            caps.last().copied().unwrap_or(own.1),
        );
        Self { paper, own }
    }

    /// Whether the caps are the same.
    pub fn is_identity(&self) -> bool {
        self.paper == self.own
    }

    /// The user's cap for one of the paper.
    pub fn to_own(self, cap: f64) -> f64 {
        let share = (cap - self.paper.0) / (self.paper.1 - self.paper.0);
        self.own.0 + share * (self.own.1 - self.own.0)
    }

    /// The paper's cap for one of the user.
    pub fn to_paper(self, cap: f64) -> f64 {
        let share = (cap - self.own.0) / (self.own.1 - self.own.0);
        self.paper.0 + share * (self.paper.1 - self.paper.0)
    }
}
