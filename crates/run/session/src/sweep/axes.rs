//! From axes as written to configurations.

use std::collections::BTreeMap;
use std::fmt::Display;

use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, KnobRange};
use sweetspot_quantity::{Megahertz, Quantity, Watts, parse_bare};
use sweetspot_study::{Axis, AxisError, AxisText, Configuration, Definition, parse_axis};

use crate::SessionError;

/// More runs than this in one study are a slip of the pen.
const MOST_RUNS: usize = 1_000_000;
/// The papers' step.
const USUAL_STEP: Watts = Watts::new(5.0);

/// What is tried: the axes, every combination of their values, and what they are compared with.
pub struct Tried {
    pub axes: Vec<Axis>,
    pub configurations: Vec<Configuration>,
    pub reference: Configuration,
}

/// What the devices offer, and what is known of the workload beforehand.
pub struct Offer<'a> {
    /// Those that may be used, in order; at least one.
    pub devices: &'a [Descriptor],
    /// As the user named them.
    pub names: &'a [String],
    /// Parameters with their usual values.
    pub usual: BTreeMap<String, String>,
}

impl Offer<'_> {
    fn is_mixed(&self) -> bool {
        self.names.iter().any(|name| *name != self.names[0])
    }

    fn range<Q: Quantity>(
        &self,
        knob: Knob,
        pick: impl Fn(&KnobDescriptor) -> Option<&KnobRange<Q>>,
    ) -> Result<&KnobRange<Q>, SessionError> {
        let found = self.devices[0].knob(knob).and_then(pick);
        found.ok_or_else(|| SessionError::Setting {
            device: self.devices[0].name.clone(),
            problem: format!("it has no {knob} that can be set"),
        })
    }

    fn caps(&self) -> Result<&KnobRange<Watts>, SessionError> {
        self.range(Knob::PowerCap, |knob| match knob {
            KnobDescriptor::PowerCap(range) => Some(range),
            _ => None,
        })
    }

    fn cores(&self) -> Result<&KnobRange<Megahertz>, SessionError> {
        self.range(Knob::CoreClock, |knob| match knob {
            KnobDescriptor::CoreClock(range) => Some(range),
            _ => None,
        })
    }

    fn memories(&self) -> Result<&KnobRange<Megahertz>, SessionError> {
        self.range(Knob::MemoryClock, |knob| match knob {
            KnobDescriptor::MemoryClock(range) => Some(range),
            _ => None,
        })
    }
}

/// Every combination of the axes, and the reference: the default settings on as many GPUs as there are on
/// the axis at most, with the usual value of each parameter, or its first.
pub fn tried(definition: &Definition, offer: &Offer<'_>) -> Result<Tried, SessionError> {
    let mut values = Values::read(definition, offer)?;
    let count = values.count();
    if count.saturating_mul(definition.repeat() as usize) > MOST_RUNS {
        return Err(SessionError::TooManyRuns {
            count: count.saturating_mul(definition.repeat() as usize),
            limit: MOST_RUNS,
        });
    }
    let reference = values.reference(definition, offer)?;
    let configurations = values.combinations();
    // A knob that only the reference sets is what sets it apart.
    let knobs = [
        Axis::Gpus,
        Axis::PowerCap,
        Axis::CoreClock,
        Axis::MemoryClock,
    ];
    for axis in knobs {
        let differs = axis.text(&reference) != axis.text(&configurations[0]);
        if differs && !values.axes.contains(&axis) {
            values.axes.push(axis);
        }
    }
    Ok(Tried {
        configurations,
        reference,
        axes: values.axes,
    })
}

struct Values {
    axes: Vec<Axis>,
    /// Each empty where the cap is left alone.
    caps: Vec<Vec<Watts>>,
    cores: Vec<Option<Megahertz>>,
    memories: Vec<Option<Megahertz>>,
    counts: Vec<u64>,
    parameters: Vec<(String, Vec<String>)>,
}

impl Values {
    fn read(definition: &Definition, offer: &Offer<'_>) -> Result<Self, SessionError> {
        let named = [
            ("--power-cap", &definition.power_cap),
            ("--core-clock", &definition.core_clock),
            ("--memory-clock", &definition.memory_clock),
        ];
        let first = named.iter().find(|(_, axis)| axis.is_some());
        if first.is_some() && definition.read_only() {
            return Err(SessionError::ReadOnly);
        }
        if let Some((flag, _)) = first
            && offer.is_mixed()
        {
            return Err(SessionError::Mixed {
                flag,
                gpus: offer.names.join(", "),
            });
        }
        let counts = counts(definition.gpus.as_ref(), offer.devices.len(), definition)?;
        let no_axis = named.iter().all(|(_, axis)| axis.is_none())
            && definition.gpus.is_none()
            && definition.axis.is_empty();
        if no_axis && definition.read_only() {
            return Err(SessionError::NoAxis);
        }
        let caps = match &definition.power_cap {
            Some(axis) => caps(&axis.0, offer, &counts)?,
            None if definition.read_only() || offer.is_mixed() => vec![Vec::new()],
            None if no_axis => caps("all", offer, &counts)?,
            // A cap that is nobody's affair is at its default, whatever is set now.
            None => match offer.caps() {
                Ok(range) => vec![vec![range.default]],
                Err(_) => vec![Vec::new()],
            },
        };
        let clocks = |flag, axis: Option<&AxisText>, range: Result<&KnobRange<Megahertz>, _>| {
            let Some(axis) = axis else {
                return Ok(vec![None]);
            };
            let values = read_axis(flag, &axis.0, &range?.domain, Megahertz::new(1.0), offer)?;
            Ok::<_, SessionError>(values.into_iter().map(Some).collect())
        };
        let cores = definition.core_clock.as_ref();
        let cores = clocks("--core-clock", cores, offer.cores())?;
        let memories = definition.memory_clock.as_ref();
        let memories = clocks("--memory-clock", memories, offer.memories())?;
        let parameters = definition.axis.iter();
        let parameters = parameters
            .map(|(name, axis)| Ok((name.clone(), parameter(name, axis)?)))
            .collect::<Result<Vec<_>, SessionError>>()?;
        let mut axes = Vec::new();
        axes.extend((counts.len() > 1).then_some(Axis::Gpus));
        axes.extend((definition.power_cap.is_some() || no_axis).then_some(Axis::PowerCap));
        axes.extend(definition.core_clock.is_some().then_some(Axis::CoreClock));
        axes.extend(
            definition
                .memory_clock
                .is_some()
                .then_some(Axis::MemoryClock),
        );
        let names = parameters.iter().map(|(name, _)| name.clone());
        axes.extend(names.map(Axis::Parameter));
        Ok(Self {
            axes,
            caps,
            cores,
            memories,
            counts,
            parameters,
        })
    }

    /// How many combinations there are.
    fn count(&self) -> usize {
        let knobs = [
            self.caps.len(),
            self.cores.len(),
            self.memories.len(),
            self.counts.len(),
        ];
        let parameters = self.parameters.iter().map(|(_, values)| values.len());
        knobs
            .into_iter()
            .chain(parameters)
            .fold(1, usize::saturating_mul)
    }

    fn combinations(&self) -> Vec<Configuration> {
        let mut all = vec![BTreeMap::new()];
        for (name, values) in &self.parameters {
            let with = |others: &BTreeMap<String, String>, value: &String| {
                let mut together = others.clone();
                together.insert(name.clone(), value.clone());
                together
            };
            all = all
                .iter()
                .flat_map(|others| values.iter().map(move |value| with(others, value)))
                .collect();
        }
        let mut configurations = Vec::new();
        for gpus in &self.counts {
            for parameters in &all {
                for memory_clock in &self.memories {
                    for core_clock in &self.cores {
                        for caps in &self.caps {
                            configurations.push(Configuration {
                                power_caps: caps.clone(),
                                core_clock: *core_clock,
                                memory_clock: *memory_clock,
                                gpus: *gpus,
                                parameters: parameters.clone(),
                            });
                        }
                    }
                }
            }
        }
        configurations
    }

    fn reference(
        &self,
        definition: &Definition,
        offer: &Offer<'_>,
    ) -> Result<Configuration, SessionError> {
        let default_cap = match self.caps.iter().any(|caps| !caps.is_empty()) {
            true => vec![offer.caps()?.default],
            false => Vec::new(),
        };
        // A clock that is on an axis is locked in the reference too, so that it is one of the points.
        let is_locked = |clocks: &[Option<Megahertz>]| clocks[0].is_some();
        let mut reference = Configuration {
            power_caps: default_cap,
            core_clock: match is_locked(&self.cores) {
                true => Some(offer.cores()?.default),
                false => None,
            },
            memory_clock: match is_locked(&self.memories) {
                true => Some(offer.memories()?.default),
                false => None,
            },
            gpus: self.counts.iter().copied().max().unwrap_or(1),
            parameters: BTreeMap::new(),
        };
        for (name, values) in &self.parameters {
            let usual = offer.usual.get(name).filter(|usual| values.contains(usual));
            let value = usual.unwrap_or(&values[0]).clone();
            reference.parameters.insert(name.clone(), value);
        }
        if let Some(text) = &definition.reference {
            name_reference(&mut reference, text, offer)?;
        }
        Ok(reference)
    }
}

/// `power-cap=250,batch=64`: the others stay.
fn name_reference(
    reference: &mut Configuration,
    text: &str,
    offer: &Offer<'_>,
) -> Result<(), SessionError> {
    let bad = |problem: String| SessionError::Reference {
        text: text.to_owned(),
        problem,
    };
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| bad(format!("`{part}` is no NAME=VALUE, such as power-cap=250W")))?;
        let (name, value) = (name.trim(), value.trim());
        match Axis::named(name) {
            Axis::PowerCap => {
                let gpus = [reference.gpus];
                let mut caps = caps(value, offer, &gpus)?;
                one(&caps).map_err(bad)?;
                reference.power_caps = caps.swap_remove(0);
            }
            Axis::CoreClock => {
                let range = &offer.cores()?.domain;
                let clock = read_axis("--reference", value, range, Megahertz::new(1.0), offer)?;
                one(&clock).map_err(bad)?;
                reference.core_clock = Some(clock[0]);
            }
            Axis::MemoryClock => {
                let range = &offer.memories()?.domain;
                let clock = read_axis("--reference", value, range, Megahertz::new(1.0), offer)?;
                one(&clock).map_err(bad)?;
                reference.memory_clock = Some(clock[0]);
            }
            Axis::Gpus => {
                let count: Option<u64> = value.parse().ok();
                let there = offer.devices.len() as u64;
                let count = count.filter(|count| (1..=there).contains(count));
                reference.gpus = count.ok_or_else(|| {
                    bad(format!("`{value}` is no number of GPUs from 1 to {there}"))
                })?;
            }
            Axis::Parameter(name) => {
                let known: Vec<&str> = reference.parameters.keys().map(String::as_str).collect();
                let known = match known.as_slice() {
                    [] => "there is no --axis".to_owned(),
                    known => format!("those of --axis are {}", known.join(", ")),
                };
                let place = reference.parameters.get_mut(&name);
                let place = place.ok_or_else(|| {
                    bad(format!("there is no axis `{name}`: it may be power-cap, core-clock, memory-clock, gpus; {known}"))
                })?;
                *place = value.to_owned();
            }
        }
    }
    Ok(())
}

fn one<T>(values: &[T]) -> Result<(), String> {
    match values.len() {
        1 => Ok(()),
        count => Err(format!("{count} values, and a reference has one of each")),
    }
}

fn read_axis<Q: Quantity + Display>(
    flag: &'static str,
    text: &str,
    domain: &Domain<Q>,
    step: Q,
    offer: &Offer<'_>,
) -> Result<Vec<Q>, SessionError> {
    parse_axis(text, domain, step, &offer.names[0])
        .map_err(|problem| SessionError::Axis { flag, problem })
}

/// Each value is one cap for all, or `250/200`: one for each GPU of the job.
fn caps(text: &str, offer: &Offer<'_>, counts: &[u64]) -> Result<Vec<Vec<Watts>>, SessionError> {
    let domain = &offer.caps()?.domain;
    let flag = "--power-cap";
    if !text.contains('/') {
        let caps = read_axis(flag, text, domain, USUAL_STEP, offer)?;
        return Ok(caps.into_iter().map(|cap| vec![cap]).collect());
    }
    let bad = |problem| SessionError::Axis { flag, problem };
    let mut all: Vec<Vec<Watts>> = Vec::new();
    for value in text.split(',').map(str::trim) {
        let mut each = Vec::new();
        for part in value.split('/') {
            let cap: Watts = parse_bare(part).map_err(|problem| {
                let axis = text.to_owned();
                bad(AxisError::Value { axis, problem })
            })?;
            if !domain.contains(cap) {
                return Err(bad(AxisError::NotOffered {
                    value: cap.to_string(),
                    device: offer.names[0].clone(),
                    offered: domain.describe_nearest(cap),
                }));
            }
            each.push(cap);
        }
        if each.len() > 1 && counts.iter().any(|count| *count != each.len() as u64) {
            return Err(SessionError::CapList {
                value: value.to_owned(),
                caps: each.len(),
                gpus: counts.to_vec(),
            });
        }
        if all.contains(&each) {
            let (axis, value) = (text.to_owned(), value.to_owned());
            return Err(bad(AxisError::Duplicate { axis, value }));
        }
        all.push(each);
    }
    Ok(all)
}

/// `1,2,4,8`, or all there are.
fn counts(
    axis: Option<&AxisText>,
    there: usize,
    definition: &Definition,
) -> Result<Vec<u64>, SessionError> {
    let Some(AxisText(axis)) = axis else {
        return Ok(vec![there as u64]);
    };
    let bad = |problem: String| SessionError::Count {
        axis: axis.clone(),
        problem,
    };
    let mut counts = Vec::new();
    for text in axis.split(',').map(str::trim) {
        let count = text.parse().ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| bad(format!("`{text}` is not a number of GPUs")))?;
        if count > there as u64 {
            return Err(bad(match definition.command {
                Some(_) => format!("there are {there}"),
                None => format!("there are {there}: write --simulate NAME:{count}"),
            }));
        }
        if counts.contains(&count) {
            return Err(bad(format!("{count} is there twice")));
        }
        counts.push(count);
    }
    Ok(counts)
}

/// More values than this of one parameter are a slip of the pen.
const MOST_VALUES: usize = 1_000;

fn parameter(name: &str, AxisText(text): &AxisText) -> Result<Vec<String>, SessionError> {
    let bad = |problem: String| SessionError::Parameter {
        name: name.to_owned(),
        problem,
    };
    if !sweetspot_study::is_name(name) {
        return Err(bad(
            "a name is made of letters, digits and _, and begins with no digit".to_owned(),
        ));
    }
    if let Axis::Gpus | Axis::PowerCap | Axis::CoreClock | Axis::MemoryClock = Axis::named(name) {
        let flag = Axis::named(name);
        return Err(bad(format!("it has a flag of its own: --{flag}")));
    }
    let upper = name.to_ascii_uppercase();
    let is_taken = ["PATH", "HOME", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"];
    if is_taken.contains(&upper.as_str())
        || upper.starts_with("SWEETSPOT_")
        || upper.starts_with("LD_")
        || name == "batch_per_gpu"
    {
        return Err(bad(
            "each parameter is a variable of the run's environment, and this one is taken: use another name".to_owned(),
        ));
    }
    if text.trim().is_empty() {
        return Err(bad(format!("no values: write --axis {name}=64,128")));
    }
    if text.contains("..") && !text.contains('/') {
        return Err(bad(format!(
            "`{text}` is a range, and a parameter takes a list: write {name}=64,128,256"
        )));
    }
    let values: Vec<String> = text
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect();
    if values.len() > MOST_VALUES {
        let count = values.len();
        return Err(bad(format!("{count} values, more than {MOST_VALUES}")));
    }
    for (index, value) in values.iter().enumerate() {
        if value.is_empty() || value.contains('\0') {
            return Err(bad("an empty value between commas".to_owned()));
        }
        if values[..index].contains(value) {
            return Err(bad(format!("{value} is there twice")));
        }
    }
    Ok(values)
}
