//! Fits profiles with their best caps by random steps in one profile at a time, for several studies together if they
//! share a GPU.

use std::error::Error;

use sweetspot_papers::Profiles;
use sweetspot_stats::Seed;

use crate::caps::{Part, loss, parts};
use crate::{
    File, FittedNumber, ProfileKind, files_of, parameters, profiles, rounded, with_values,
};

/// The profiles of a study and the numbers in them that are fitted.
struct StudyProfiles {
    study: String,
    files: Vec<File>,
    parameters: Vec<FittedNumber>,
    values: Vec<f64>,
}

impl StudyProfiles {
    fn read(study: &str) -> Result<Self, Box<dyn Error>> {
        let files = files_of(study)?;
        let parameters = parameters(&files)?;
        Ok(Self {
            study: study.to_owned(),
            values: parameters.iter().map(|parameter| parameter.start).collect(),
            files,
            parameters,
        })
    }

    /// The indices of the parameters of each block: a workload on one GPU, a GPU, a node.
    fn blocks(&self) -> Vec<Vec<usize>> {
        let mut blocks: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, parameter) in self.parameters.iter().enumerate() {
            let entry = match parameter.keys[0].as_str() {
                "on" => parameter.keys[1].as_str(),
                _ => "",
            };
            let name = format!("{} {entry}", parameter.file);
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
    fn affects(&self, block: &[usize], part: &Part) -> bool {
        let parameter = &self.parameters[block[0]];
        let file = &self.files[parameter.file];
        let stem = file.stem();
        match file.kind {
            ProfileKind::Gpu => part.depends_on(&self.study, None, Some(&stem)),
            ProfileKind::Node => part.depends_on(&self.study, None, None),
            ProfileKind::Workload => {
                let entry = parameter
                    .keys
                    .get(1)
                    .and_then(|key| key.parse::<usize>().ok());
                let on = file.document.get("on").and_then(|item| item.get(entry?));
                let gpu = on.and_then(|on| on.get("gpu")).and_then(|gpu| gpu.as_str());
                part.depends_on(&self.study, stem.split('.').next(), gpu)
            }
        }
    }
}

/// The built-in profiles with those of the studies replaced.
fn with_studies(
    built_in: &Profiles,
    studies: &[StudyProfiles],
) -> Result<Profiles, Box<dyn Error>> {
    studies.iter().try_fold(built_in.clone(), |known, study| {
        let files = with_values(&study.files, &study.parameters, &study.values);
        profiles(&known, &study.study, &files)
    })
}

/// Fits everything in these studies by a number of random steps.
pub fn run(studies: &str, steps: usize, write: bool) -> Result<(), Box<dyn Error>> {
    let built_in = Profiles::built_in()?;
    let mut fitted = Vec::new();
    let mut judged = Vec::new();
    for study in studies.split(',') {
        fitted.push(StudyProfiles::read(study)?);
        judged.extend(parts(study)?);
    }
    let start = with_studies(&built_in, &fitted)?;
    let of = |part: &Part, profiles: &Profiles| loss(part, profiles).unwrap_or(f64::INFINITY);
    let mut losses: Vec<f64> = judged.iter().map(|part| of(part, &start)).collect();
    let blocks: Vec<(usize, Vec<usize>)> = fitted
        .iter()
        .enumerate()
        .flat_map(|(study, fitted)| fitted.blocks().into_iter().map(move |block| (study, block)))
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
                let bounds = fitted[*study].parameters[*index].bounds;
                let value = &mut fitted[*study].values[*index];
                let moved = *value + size * value.abs().max(0.01 * bounds.high) * draw.normal();
                *value = moved.clamp(bounds.low, bounds.high);
            }
        }
        let moved: Vec<usize> = (0..judged.len())
            .filter(|part| fitted[*study].affects(block, &judged[*part]))
            .collect();
        let trial = with_studies(&built_in, &fitted);
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
    for study in &mut fitted {
        study.values = study.values.iter().map(|value| rounded(*value)).collect();
        for (parameter, value) in study.parameters.iter().zip(&study.values) {
            let name = study.files[parameter.file].stem();
            println!(
                "{name} {} = {value} {}",
                parameter.keys.join("."),
                parameter.unit
            );
        }
        for file in with_values(&study.files, &study.parameters, &study.values) {
            if write {
                std::fs::write(&file.path, file.document.to_string())?;
            }
        }
    }
    Ok(())
}
