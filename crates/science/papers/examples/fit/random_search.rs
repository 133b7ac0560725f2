//! Fits profiles with their best caps by random steps in one profile at a time, for several studies together if they
//! share a GPU.

use std::error::Error;

use sweetspot_papers::{ParameterProfile, Profiles};
use sweetspot_stats::Seed;

use crate::candidate::{Candidate, rounded, stored_profiles};
use crate::caps::{Part, loss, parts};
use crate::write::write;

/// The indices of the parameters of each block: a workload on one GPU, a GPU, a node.
fn blocks(candidate: &Candidate) -> Vec<Vec<usize>> {
    let mut blocks: Vec<(String, Vec<usize>)> = Vec::new();
    for (index, parameter) in candidate.parameters.iter().enumerate() {
        let gpu = parameter.key.strip_prefix("on.").unwrap_or_default();
        let gpu = gpu.split('.').next().unwrap_or_default();
        let name = format!("{} {gpu}", parameter.profile);
        match blocks.iter_mut().find(|(known, _)| *known == name) {
            Some((_, parameters)) => parameters.push(index),
            None => blocks.push((name, vec![index])),
        }
    }
    blocks
        .into_iter()
        .map(|(_, parameters)| parameters)
        .collect()
}

/// Whether a part depends on a block.
fn affects(candidate: &Candidate, block: &[usize], part: &Part) -> bool {
    let parameter = &candidate.parameters[block[0]];
    let study = &candidate.study;
    match &parameter.profile {
        ParameterProfile::Gpu(gpu) => part.depends_on(study, None, Some(gpu)),
        ParameterProfile::Node(_) | ParameterProfile::Study(_) => {
            part.depends_on(study, None, None)
        }
        ParameterProfile::Workload(name, _) => {
            let gpu = parameter.key.strip_prefix("on.");
            let gpu = gpu.and_then(|rest| rest.split('.').next());
            part.depends_on(study, name.split('@').next(), gpu)
        }
    }
}

/// The built-in profiles with the candidates' values.
fn with_candidates(
    built_in: &Profiles,
    candidates: &[Candidate],
) -> Result<Profiles, Box<dyn Error>> {
    candidates
        .iter()
        .try_fold(built_in.clone(), |known, candidate| {
            candidate.profiles(&known)
        })
}

/// Fits everything in these studies by a number of random steps.
pub fn run(studies: &str, steps: usize, is_written: bool) -> Result<(), Box<dyn Error>> {
    let built_in = stored_profiles()?;
    let mut fitted = Vec::new();
    let mut judged = Vec::new();
    for study in studies.split(',') {
        fitted.push(Candidate::built_in(study)?);
        judged.extend(parts(study)?);
    }
    let start = with_candidates(&built_in, &fitted)?;
    let of = |part: &Part, profiles: &Profiles| loss(part, profiles).unwrap_or(f64::INFINITY);
    let mut losses: Vec<f64> = judged.iter().map(|part| of(part, &start)).collect();
    let blocks: Vec<(usize, Vec<usize>)> = fitted
        .iter()
        .enumerate()
        .flat_map(|(study, fitted)| blocks(fitted).into_iter().map(move |block| (study, block)))
        .collect();
    println!("# loss: {:.3}", losses.iter().sum::<f64>());
    for step in 0..steps {
        let (study, block) = &blocks[step % blocks.len()];
        let seed = Seed::new(2).number(step as u64);
        let size = [0.002, 0.006, 0.02, 0.06][(step / blocks.len()) % 4];
        let before = fitted[*study].values.clone();
        for index in block {
            let draw = seed.number(*index as u64);
            if draw.label("moves").uniform() < 0.7 {
                let bounds = fitted[*study].bounds[*index];
                let value = &mut fitted[*study].values[*index];
                let moved = *value + size * value.abs().max(0.01 * bounds.high) * draw.normal();
                *value = moved.clamp(bounds.low, bounds.high);
            }
        }
        let moved: Vec<usize> = (0..judged.len())
            .filter(|part| affects(&fitted[*study], block, &judged[*part]))
            .collect();
        let trial = with_candidates(&built_in, &fitted);
        let own = |part: &usize| match &trial {
            Ok(profiles) => of(&judged[*part], profiles),
            Err(_) => f64::INFINITY,
        };
        let now: Vec<f64> = moved.iter().map(own).collect();
        let was: f64 = moved.iter().map(|part| losses[*part]).sum();
        if now.iter().sum::<f64>() < was {
            for (part, loss) in moved.into_iter().zip(now) {
                losses[part] = loss;
            }
        } else {
            fitted[*study].values = before;
        }
        if step % 2000 == 1999 {
            let total: f64 = losses.iter().sum();
            println!("# loss: {total:.3} after {} steps", step + 1);
        }
    }
    for (part, loss) in judged.iter().zip(&losses) {
        println!("# {part:?}: {loss:.3}");
    }
    for candidate in &mut fitted {
        candidate.values = candidate
            .values
            .iter()
            .map(|value| rounded(*value))
            .collect();
        candidate.print();
        if is_written {
            let profiles = candidate.profiles(&built_in)?;
            write(&candidate.study, candidate, &profiles)?;
        }
    }
    Ok(())
}
