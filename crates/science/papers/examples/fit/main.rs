//! Fits the profiles of a study to its figures, through the simulator's own physics.
//!
//! `cargo run --release -p sweetspot-papers --example fit -- STUDY [--write] [--lean] [--caps] [--rounds N]` moves every key
//! that a profile of the study lists as `fitted`, prints the values found, and with `--write` puts them into
//! the profiles' files; with `--caps` best caps count as well,
//! for studies that share a GPU together (`A,B`); with `--lean` it starts at once with what brings the largest error down. `cargo run --release -- simulate --errors` then shows how far off they are.

mod caps;
mod settle;

use std::error::Error;
use std::path::{Path, PathBuf};

use sweetspot_papers::{Profiles, StudyDeviations, deviations_of};
use sweetspot_sim::{Workload, parse_gpu, parse_node, parse_workload};
use sweetspot_stats::{Bounds, Seed, fit};
use toml_edit::{DocumentMut, Item, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let study = arguments.next().ok_or("which study?")?;
    let rest: Vec<String> = arguments.collect();
    let rounds = match rest.iter().position(|argument| argument == "--rounds") {
        Some(place) => rest.get(place + 1).ok_or("how many rounds?")?.parse()?,
        None => 20,
    };
    if rest.iter().any(|argument| argument == "--caps") {
        let write = rest.iter().any(|argument| argument == "--write");
        return settle::run(&study, 100 * rounds, write);
    }
    let files = files_of(&study)?;
    let places = places(&files)?;
    println!("# {study}: {} free parameters", places.len());
    let start: Vec<f64> = places.iter().map(|place| place.start).collect();
    let bounds: Vec<Bounds> = places.iter().map(|place| place.bounds).collect();
    let built_in = Profiles::built_in()?;
    let residuals = |parameters: &[f64]| -> Vec<f64> {
        let files = with(&files, &places, parameters);
        let compared = profiles(&built_in, &study, &files)
            .and_then(|profiles| Ok(deviations_of(&study, &profiles)?.ok_or("no such study")?));
        match compared {
            Ok(deviations) => off(&deviations),
            Err(_) => vec![f64::NAN; 1],
        }
    };
    let count = residuals(&start).len();
    let checked = |parameters: &[f64]| {
        let residuals = residuals(parameters);
        if residuals.len() == count {
            residuals
        } else {
            vec![1e6; count]
        }
    };
    let lean = rest.iter().any(|argument| argument == "--lean");
    let squares = match lean {
        true => start,
        false => fit(checked, &start, &bounds, rounds).parameters,
    };
    let found = lower(checked, squares, &bounds, 50 * rounds);
    let written: Vec<f64> = found.iter().map(|value| rounded(*value)).collect();
    let files = with(&files, &places, &written);
    for (place, value) in places.iter().zip(&written) {
        let name = files[place.file].path.file_name().unwrap_or_default();
        println!(
            "{} {} = {value} {}",
            name.display(),
            place.keys.join("."),
            place.unit
        );
    }
    let profiles = profiles(&built_in, &study, &files)?;
    let deviations = deviations_of(&study, &profiles)?.ok_or("no such study")?;
    let (met, judged) = deviations.met();
    println!("# {met} of {judged} values are near enough");
    if rest.iter().any(|argument| argument == "--write") {
        for file in &files {
            std::fs::write(&file.path, file.document.to_string())?;
        }
    }
    Ok(())
}

/// Brings the largest error down by small random steps: best settings jump, which no derivative follows.
fn lower(
    residuals: impl Fn(&[f64]) -> Vec<f64>,
    start: Vec<f64>,
    bounds: &[Bounds],
    steps: usize,
) -> Vec<f64> {
    let largest = |parameters: &[f64]| {
        let residuals = residuals(parameters);
        let squares: f64 = residuals.iter().map(|r| r * r).sum();
        // Among equals in the largest, the one with the smaller rest.
        residuals.iter().fold(0f64, |most, r| most.max(r.abs())) + 1e-3 * squares.sqrt()
    };
    let (mut best, mut reached) = (start.clone(), largest(&start));
    for step in 0..steps {
        let seed = Seed::new(1).number(step as u64);
        let size = [0.003, 0.01, 0.03, 0.1][step % 4];
        let mut trial = best.clone();
        for (index, (value, bound)) in trial.iter_mut().zip(bounds).enumerate() {
            let draw = seed.number(index as u64);
            if draw.label("moves").uniform() < 0.5 {
                let moved = *value + size * value.abs().max(0.01 * bound.high) * draw.normal();
                *value = moved.clamp(bound.low, bound.high);
            }
        }
        let at_trial = largest(&trial);
        if at_trial < reached {
            (best, reached) = (trial, at_trial);
        }
    }
    println!("# largest error: {reached:.3} of what is allowed");
    best
}

#[derive(Clone)]
enum Kind {
    Gpu,
    Node,
    Workload,
}

#[derive(Clone)]
struct File {
    kind: Kind,
    path: PathBuf,
    document: DocumentMut,
}

impl File {
    fn stem(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

/// The workloads of a study, the GPUs they are known on, and its node.
fn files_of(study: &str) -> Result<Vec<File>, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../simulate/sim/profiles");
    let read = |kind, path: PathBuf| -> Result<File, Box<dyn Error>> {
        let document = std::fs::read_to_string(&path)?.parse()?;
        Ok(File {
            kind,
            path,
            document,
        })
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root.join("workloads").join(study))? {
        files.push(read(Kind::Workload, entry?.path())?);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    for entry in std::fs::read_dir(root.join("gpus"))? {
        let file = read(Kind::Gpu, entry?.path())?;
        if file.document.get("study").and_then(Item::as_str) == Some(study) {
            files.push(file);
        }
    }
    let node = root.join("nodes").join(study).with_extension("toml");
    if node.exists() {
        files.push(read(Kind::Node, node)?);
    }
    Ok(files)
}

/// A number in a file that may move.
struct Place {
    file: usize,
    keys: Vec<String>,
    unit: String,
    start: f64,
    bounds: Bounds,
}

fn places(files: &[File]) -> Result<Vec<Place>, Box<dyn Error>> {
    let mut places = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let mut add = |keys: Vec<String>| -> Result<(), Box<dyn Error>> {
            let item = at(&file.document, &keys).ok_or_else(|| keys.join("."))?;
            let (start, unit) = number(item).ok_or_else(|| keys.join("."))?;
            let name = keys.last().cloned().unwrap_or_default();
            places.push(Place {
                file: index,
                bounds: bounds_of(&name, start),
                unit,
                start,
                keys,
            });
            Ok(())
        };
        let fitted_here = fitted(file.document.get("fitted"));
        // A curve is chosen by hand among plausible ones, and counted.
        let numbers = fitted_here.iter().filter(|key| *key != "supply.efficiency");
        for key in numbers {
            let keys: Vec<&str> = match key.as_str() {
                "phase.share" => vec!["phase", "0", "core"],
                "phase.switching" => vec!["phase", "1", "switching"],
                key => key.split('.').collect(),
            };
            add(keys.into_iter().map(str::to_owned).collect())?;
        }
        let on = file.document.get("on").and_then(Item::as_array_of_tables);
        for (entry, table) in on.into_iter().flatten().enumerate() {
            for key in fitted(table.get("fitted")) {
                add(vec!["on".to_owned(), entry.to_string(), key])?;
            }
        }
    }
    Ok(places)
}

fn fitted(item: Option<&Item>) -> Vec<String> {
    let keys = item.and_then(Item::as_array).into_iter().flatten();
    keys.filter_map(|key| key.as_str().map(str::to_owned))
        .collect()
}

/// Where a parameter may lie, in the unit it is written in.
fn bounds_of(key: &str, start: f64) -> Bounds {
    let (low, high) = match key {
        "voltage_floor" => (60.0, 99.0),
        "voltage_knee" => (0.5 * start, 1.5 * start),
        "switching" => (1.0, 280.0),
        "memory_activity" => (0.0, 150.0),
        "share" => (10.0, 60.0),
        "half_speed_batch" => (0.0, 200.0),
        "context" => (0.0, 70.0),
        "overlap" | "activity" => (0.0, 100.0),
        "fans" => (0.0, 700.0),
        "idle" | "per_gpu" => (0.0, 4.0 * start),
        "core" if start > 10.0 => (5.0, 90.0),
        _ => (0.0, 5.0 * start.max(0.01)),
    };
    Bounds { low, high }
}

fn at<'a>(document: &'a DocumentMut, keys: &[String]) -> Option<&'a Item> {
    let mut item = document.as_item();
    for key in keys {
        item = match key.parse::<usize>() {
            Ok(index) => item.get(index)?,
            Err(_) => item.get(key)?,
        };
    }
    Some(item)
}

fn set(document: &mut DocumentMut, keys: &[String], to: Value) {
    let mut item = document.as_item_mut();
    for key in keys {
        item = match key.parse::<usize>() {
            Ok(index) => &mut item[index],
            Err(_) => &mut item[key],
        };
    }
    *item = Item::Value(to);
}

fn number(item: &Item) -> Option<(f64, String)> {
    if let Some(number) = item.as_float() {
        return Some((number, String::new()));
    }
    let (number, unit) = item.as_str()?.split_once(' ')?;
    Some((number.parse().ok()?, unit.to_owned()))
}

/// To four decimals, or five digits where that is more.
fn rounded(value: f64) -> f64 {
    let scale = 10f64.powi(4 - value.abs().max(1e-9).log10().floor().min(0.0) as i32);
    (value * scale).round() / scale
}

fn with(files: &[File], places: &[Place], parameters: &[f64]) -> Vec<File> {
    let mut files = files.to_vec();
    for (place, value) in places.iter().zip(parameters) {
        let document = &mut files[place.file].document;
        let text = |value: f64| -> Value {
            match place.unit.as_str() {
                "" => Value::from(value),
                unit => Value::from(format!("{value} {unit}")),
            }
        };
        set(document, &place.keys, text(*value));
        // Two phases share core and memory work alike.
        if place.keys[0] == "phase" && place.keys[2] == "core" {
            let key = |index: &str, of: &str| ["phase", index, of].map(str::to_owned);
            set(document, &key("0", "memory"), text(*value));
            set(document, &key("1", "core"), text(100.0 - value));
            set(document, &key("1", "memory"), text(100.0 - value));
        }
    }
    files
}

/// The profiles in the program with these in their place.
fn profiles(built_in: &Profiles, study: &str, files: &[File]) -> Result<Profiles, Box<dyn Error>> {
    let mut profiles = built_in.clone();
    let of_study = format!("@{study}");
    profiles
        .workloads
        .retain(|workload| !workload.name.ends_with(&of_study));
    for file in files {
        let (stem, text) = (file.stem(), file.document.to_string());
        match file.kind {
            Kind::Gpu => {
                profiles.gpus.insert(stem.clone(), parse_gpu(&stem, &text)?);
            }
            Kind::Node => {
                profiles
                    .nodes
                    .insert(stem.clone(), parse_node(&stem, &text)?);
            }
            Kind::Workload => {
                let network = stem.split('.').next().unwrap_or_default();
                profiles.workloads.push(Workload {
                    name: format!("{network}{of_study}"),
                    profile: parse_workload(&stem, &text)?,
                });
            }
        }
    }
    Ok(profiles)
}

/// How far off each value is, against how far off it may be; what is not judged counts for little.
fn off(deviations: &StudyDeviations) -> Vec<f64> {
    // A best setting jumps: nothing to follow.
    let smooth = deviations
        .tables
        .iter()
        .filter(|table| !table.title.ends_with("caps"));
    let values = smooth.flat_map(|table| table.values());
    let values = values.map(|(value, how)| match value.tolerance {
        Some(0.0) => 0.0,
        Some(tolerance) => value.off(how) / tolerance,
        None => 0.05 * value.off(how),
    });
    values.collect()
}
