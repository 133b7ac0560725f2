//! Merges several studies of one workload into one.

use std::path::{Path, PathBuf};

use super::{Store, StoreError, samples_file};
use crate::{Outline, Plan, RunRecord, Task};

/// Merges the runs of studies into a new study and returns their number. Runs of the same configuration become
/// its repeats; a run that is in two studies (copies of one study on two machines) counts once.
pub fn merge(folders: &[PathBuf], output: &Path) -> Result<usize, StoreError> {
    let mut parts = Vec::new();
    for folder in folders {
        let store = Store::open(folder)?;
        parts.push((folder, store.outline()?, store.runs()?));
    }
    let Some((first, outline, _)) = parts.first() else {
        return Ok(0);
    };
    let mut merged = Outline {
        merged: true,
        ..outline.clone()
    };
    for (folder, other, _) in &parts[1..] {
        check_mergeable(outline, other).map_err(|problem| StoreError::Merge {
            one: (*first).clone(),
            other: (*folder).clone(),
            problem,
        })?;
        merged.plan = merge_plans(merged.plan, &other.plan);
    }
    let mut runs: Vec<(usize, RunRecord, PathBuf)> = Vec::new();
    let mut counts = vec![0u32; merged.plan.configurations.len()];
    for (part, (folder, other, records)) in parts.iter().enumerate() {
        for (id, run) in records {
            let configuration = &other.plan.configurations[run.task.configuration];
            let index = merged
                .plan
                .configurations
                .iter()
                .position(|c| c == configuration);
            let Some(index) = index else { continue };
            let is_copy = |(of, there, _): &(usize, RunRecord, PathBuf)| {
                *of != part
                    && there.task.configuration == index
                    && there.end == run.end
                    && there.started_unix_s == run.started_unix_s
            };
            if runs.iter().any(is_copy) {
                continue;
            }
            let task = Task {
                configuration: index,
                repeat: counts[index],
            };
            counts[index] += 1;
            let run = RunRecord {
                task,
                ..run.clone()
            };
            runs.push((part, run, samples_file(folder, *id)));
        }
    }
    merged.plan.repeat = counts.iter().copied().max().unwrap_or(0).max(1);
    let mut store = Store::create(output, &merged)?;
    let numbered: Vec<(u64, RunRecord)> = runs
        .iter()
        .map(|(_, run, _)| (merged.plan.id(run.task), run.clone()))
        .collect();
    for ((id, _), (_, _, samples)) in numbered.iter().zip(&runs) {
        if samples.exists() {
            std::fs::copy(samples, store.samples_file(*id))
                .map_err(|problem| StoreError::folder(output, problem))?;
        }
    }
    store.record(&numbered)?;
    Ok(numbered.len())
}

/// Checks that two studies measured the same workload, in the same way, on the same devices.
fn check_mergeable(one: &Outline, other: &Outline) -> Result<(), String> {
    let (a, b) = (&one.subject, &other.subject);
    if a.workload != b.workload {
        return Err(match a.workload.name == b.workload.name {
            true => format!(
                "the two studies ran {} with different options, such as items or batch size",
                a.workload.name
            ),
            false => format!(
                "one study measured {}, the other {}",
                a.workload.name, b.workload.name
            ),
        });
    }
    if one.fingerprint != other.fingerprint {
        return Err(
            "the two studies used different profiles of simulated GPUs or workloads".to_owned(),
        );
    }
    let how = |outline: &Outline| {
        let definition = &outline.definition;
        (
            definition.window.clone(),
            definition.method,
            definition.progress.clone(),
        )
    };
    if how(one) != how(other) {
        return Err(
            "the two studies were measured differently (window, method or progress)".to_owned(),
        );
    }
    let names = |outline: &Outline| -> Vec<String> {
        let devices = outline.subject.devices.iter();
        devices.map(|device| device.name.clone()).collect()
    };
    if names(one) != names(other) {
        return Err(format!(
            "one study ran on {}, the other on {}",
            a.device_name, b.device_name
        ));
    }
    let reference = |plan: &Plan| plan.configurations[plan.reference].clone();
    if reference(&one.plan) != reference(&other.plan) {
        return Err("the references of the two studies differ".to_owned());
    }
    Ok(())
}

/// Combines two plans into one with the configurations of both.
fn merge_plans(plan: Plan, other: &Plan) -> Plan {
    let reference = plan.configurations[plan.reference].clone();
    let mut configurations = plan.configurations;
    configurations.truncate(plan.on_axes);
    for configuration in &other.configurations[..other.on_axes] {
        if !configurations.contains(configuration) {
            configurations.push(configuration.clone());
        }
    }
    let mut axes = plan.axes;
    for axis in &other.axes {
        if !axes.contains(axis) {
            axes.push(axis.clone());
        }
    }
    let mut merged = Plan::new(
        axes,
        configurations,
        reference,
        plan.repeat.max(other.repeat),
        plan.seed,
        plan.subject,
    );
    merged.order = plan.order;
    merged
}
