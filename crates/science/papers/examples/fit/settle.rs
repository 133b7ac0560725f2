//! Fits that best caps are part of: random steps within one profile at a time, for several studies together
//! where they share a GPU.

use std::error::Error;

use sweetspot_papers::Profiles;
use sweetspot_stats::Seed;

use crate::caps::{Part, loss, parts};
use crate::{File, Kind, Place, files_of, places, profiles, rounded, with};

/// A study's files and the numbers in them that may move.
struct Fitted {
    study: String,
    files: Vec<File>,
    places: Vec<Place>,
    values: Vec<f64>,
}

impl Fitted {
    fn read(study: &str) -> Result<Self, Box<dyn Error>> {
        let files = files_of(study)?;
        let places = places(&files)?;
        Ok(Self {
            study: study.to_owned(),
            values: places.iter().map(|place| place.start).collect(),
            files,
            places,
        })
    }

    /// The places of each part of each file: a workload on one GPU, a GPU, a node.
    fn blocks(&self) -> Vec<Vec<usize>> {
        let mut blocks: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, place) in self.places.iter().enumerate() {
            let entry = match place.keys[0].as_str() {
                "on" => place.keys[1].as_str(),
                _ => "",
            };
            let name = format!("{} {entry}", place.file);
            match blocks.iter_mut().find(|(known, _)| *known == name) {
                Some((_, places)) => places.push(index),
                None => blocks.push((name, vec![index])),
            }
        }
        blocks.into_iter().map(|(_, places)| places).collect()
    }

    /// Whether a part changes with a block.
    fn moves(&self, block: &[usize], part: &Part) -> bool {
        let place = &self.places[block[0]];
        let file = &self.files[place.file];
        let stem = file.stem();
        match file.kind {
            Kind::Gpu => part.depends_on(&self.study, None, Some(&stem)),
            Kind::Node => part.depends_on(&self.study, None, None),
            Kind::Workload => {
                let entry = place.keys.get(1).and_then(|key| key.parse::<usize>().ok());
                let on = file.document.get("on").and_then(|item| item.get(entry?));
                let gpu = on.and_then(|on| on.get("gpu")).and_then(|gpu| gpu.as_str());
                part.depends_on(&self.study, stem.split('.').next(), gpu)
            }
        }
    }
}

fn together(built_in: &Profiles, studies: &[Fitted]) -> Result<Profiles, Box<dyn Error>> {
    studies.iter().try_fold(built_in.clone(), |known, study| {
        let files = with(&study.files, &study.places, &study.values);
        profiles(&known, &study.study, &files)
    })
}

/// Moves everything that is fitted in these studies, by so many steps.
pub fn run(studies: &str, steps: usize, write: bool) -> Result<(), Box<dyn Error>> {
    let built_in = Profiles::built_in()?;
    let mut fitted = Vec::new();
    let mut judged = Vec::new();
    for study in studies.split(',') {
        fitted.push(Fitted::read(study)?);
        judged.extend(parts(study)?);
    }
    let start = together(&built_in, &fitted)?;
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
                let bounds = fitted[*study].places[*index].bounds;
                let value = &mut fitted[*study].values[*index];
                let moved = *value + size * value.abs().max(0.01 * bounds.high) * draw.normal();
                *value = moved.clamp(bounds.low, bounds.high);
            }
        }
        let moved: Vec<usize> = (0..judged.len())
            .filter(|part| fitted[*study].moves(block, &judged[*part]))
            .collect();
        let trial = together(&built_in, &fitted);
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
        for (place, value) in study.places.iter().zip(&study.values) {
            let name = study.files[place.file].stem();
            println!("{name} {} = {value} {}", place.keys.join("."), place.unit);
        }
        for file in with(&study.files, &study.places, &study.values) {
            if write {
                std::fs::write(&file.path, file.document.to_string())?;
            }
        }
    }
    Ok(())
}
