//! Fits the profiles of a study to its published values with the simulator.
//!
//! `cargo run --release -p sweetspot-papers --example fit -- STUDY [--write] [--lean] [--caps] [--rounds N]
//! [--least-squares] [--without TEXT]` fits every key that a profile of the study lists as `fitted` and prints the
//! values. `--write` writes them into the profiles' files. `--least-squares` skips the random steps that reduce the
//! largest error afterwards. `--without` leaves out the rows whose label begins with the text, such as `8 GPUs`.
//! `--caps` fits the best caps too, for studies that share a GPU together (`A,B`). `--lean` skips the least squares and
//! only reduces the largest error. `cargo run --release -- simulate --errors` then shows the deviations.

mod caps;
mod random_search;
mod residuals;

use std::error::Error;
use std::path::{Path, PathBuf};

use sweetspot_papers::{Profiles, deviations_of};
use sweetspot_sim::{Workload, parse_gpu, parse_node, parse_workload};
use sweetspot_stats::{Bounds, Seed, fit};
use toml_edit::{DocumentMut, Item, Value};

use residuals::{print_rows, residuals_without};

/// The number of fits by least squares that start near the best one so far.
const STARTS: u64 = 6;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let study = arguments.next().ok_or("which study?")?;
    let rest: Vec<String> = arguments.collect();
    let rounds = match rest.iter().position(|argument| argument == "--rounds") {
        Some(index) => rest.get(index + 1).ok_or("how many rounds?")?.parse()?,
        None => 20,
    };
    if rest.iter().any(|argument| argument == "--caps") {
        let write = rest.iter().any(|argument| argument == "--write");
        return random_search::run(&study, 100 * rounds, write);
    }
    let without = match rest.iter().position(|argument| argument == "--without") {
        Some(index) => rest.get(index + 1).ok_or("without which rows?")?.clone(),
        None => String::new(),
    };
    let files = files_of(&study)?;
    let parameters = parameters(&files)?;
    println!("# {study}: {} free parameters", parameters.len());
    let start: Vec<f64> = parameters.iter().map(|parameter| parameter.start).collect();
    let bounds: Vec<Bounds> = parameters
        .iter()
        .map(|parameter| parameter.bounds)
        .collect();
    let built_in = Profiles::built_in()?;
    let residuals = |values: &[f64]| -> Vec<f64> {
        let files = with_values(&files, &parameters, values);
        let compared = profiles(&built_in, &study, &files)
            .and_then(|profiles| Ok(deviations_of(&study, &profiles)?.ok_or("no such study")?));
        match compared {
            Ok(deviations) => residuals_without(&deviations, &without),
            Err(_) => vec![f64::NAN; 1],
        }
    };
    let count = residuals(&start).len();
    let checked = |values: &[f64]| {
        let residuals = residuals(values);
        if residuals.len() == count {
            residuals
        } else {
            vec![1e6; count]
        }
    };
    let lean = rest.iter().any(|argument| argument == "--lean");
    let squares = match lean {
        true => start,
        false => least_squares(checked, &start, &bounds, rounds),
    };
    let found = match rest.iter().any(|argument| argument == "--least-squares") {
        true => squares,
        false => reduce_largest_error(checked, squares, &bounds, 50 * rounds),
    };
    let squares = sum_of_squares(&checked(&found));
    println!("# sum of squares, relative to the tolerances: {squares:.4}");
    let written: Vec<f64> = found.iter().map(|value| rounded(*value)).collect();
    let files = with_values(&files, &parameters, &written);
    for (parameter, value) in parameters.iter().zip(&written) {
        let name = files[parameter.file].path.file_name().unwrap_or_default();
        println!(
            "{} {} = {value} {}",
            name.display(),
            parameter.keys.join("."),
            parameter.unit
        );
    }
    let profiles = profiles(&built_in, &study, &files)?;
    let deviations = deviations_of(&study, &profiles)?.ok_or("no such study")?;
    let (met, judged) = deviations.count_met();
    println!("# {met} of {judged} values are within their tolerance");
    if !without.is_empty() {
        print_rows(&deviations, &without);
    }
    if rest.iter().any(|argument| argument == "--write") {
        for file in &files {
            std::fs::write(&file.path, file.document.to_string())?;
        }
    }
    Ok(())
}

fn sum_of_squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|residual| residual * residual).sum()
}

/// The parameters with the least sum of squares that fits from several starts find. Best settings jump, so that one fit
/// may end at a local minimum.
fn least_squares(
    residuals: impl Fn(&[f64]) -> Vec<f64> + Copy,
    start: &[f64],
    bounds: &[Bounds],
    rounds: usize,
) -> Vec<f64> {
    let squares = |values: &[f64]| sum_of_squares(&residuals(values));
    let mut best = fit(residuals, start, bounds, rounds).parameters;
    for number in 0..STARTS {
        let seed = Seed::new(3).number(number);
        let near = best
            .iter()
            .zip(bounds)
            .enumerate()
            .map(|(index, (value, bound))| {
                let moved = value * (0.3 * seed.number(index as u64).normal()).exp();
                moved.clamp(bound.low, bound.high)
            });
        let found = fit(residuals, &near.collect::<Vec<_>>(), bounds, rounds).parameters;
        if squares(&found) < squares(&best) {
            best = found;
        }
    }
    best
}

/// Reduces the largest error by small random steps, because best settings jump, so that there is no derivative.
fn reduce_largest_error(
    residuals: impl Fn(&[f64]) -> Vec<f64>,
    start: Vec<f64>,
    bounds: &[Bounds],
    steps: usize,
) -> Vec<f64> {
    let largest = |parameters: &[f64]| {
        let residuals = residuals(parameters);
        let squares: f64 = residuals.iter().map(|r| r * r).sum();
        // The sum of squares decides between equal largest errors.
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
    println!("# largest error: {reached:.3} of the tolerance");
    best
}

#[derive(Clone)]
enum ProfileKind {
    Gpu,
    Node,
    Workload,
}

#[derive(Clone)]
struct File {
    kind: ProfileKind,
    path: PathBuf,
    document: DocumentMut,
}

impl File {
    fn stem(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

/// Reads the profiles of a study: its workloads, their GPUs, and its node.
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
        files.push(read(ProfileKind::Workload, entry?.path())?);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    for entry in std::fs::read_dir(root.join("gpus"))? {
        let file = read(ProfileKind::Gpu, entry?.path())?;
        if file.document.get("study").and_then(Item::as_str) == Some(study) {
            files.push(file);
        }
    }
    let node = root.join("nodes").join(study).with_extension("toml");
    if node.exists() {
        files.push(read(ProfileKind::Node, node)?);
    }
    Ok(files)
}

/// A number in a file that is fitted.
struct FittedNumber {
    file: usize,
    keys: Vec<String>,
    unit: String,
    start: f64,
    bounds: Bounds,
}

fn parameters(files: &[File]) -> Result<Vec<FittedNumber>, Box<dyn Error>> {
    let mut parameters = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let mut add = |keys: Vec<String>| -> Result<(), Box<dyn Error>> {
            let item = at(&file.document, &keys).ok_or_else(|| keys.join("."))?;
            let (start, unit) = number(item).ok_or_else(|| keys.join("."))?;
            let name = keys.last().cloned().unwrap_or_default();
            parameters.push(FittedNumber {
                file: index,
                bounds: bounds_of(&name, start),
                unit,
                start,
                keys,
            });
            Ok(())
        };
        let fitted_here = fitted(file.document.get("fitted"));
        // The efficiency curve of a power supply is chosen by hand, and only counted.
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
    Ok(parameters)
}

fn fitted(item: Option<&Item>) -> Vec<String> {
    let keys = item.and_then(Item::as_array).into_iter().flatten();
    keys.filter_map(|key| key.as_str().map(str::to_owned))
        .collect()
}

/// The bounds of a parameter, in the unit in which it is written.
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
        "bandwidth" => (0.1, 100.0),
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

/// Rounds to four decimals, or to five digits if those are more.
fn rounded(value: f64) -> f64 {
    let scale = 10f64.powi(4 - value.abs().max(1e-9).log10().floor().min(0.0) as i32);
    (value * scale).round() / scale
}

/// The files with these values of the fitted numbers.
fn with_values(files: &[File], parameters: &[FittedNumber], values: &[f64]) -> Vec<File> {
    let mut files = files.to_vec();
    for (parameter, value) in parameters.iter().zip(values) {
        let document = &mut files[parameter.file].document;
        let text = |value: f64| -> Value {
            match parameter.unit.as_str() {
                "" => Value::from(value),
                unit => Value::from(format!("{value} {unit}")),
            }
        };
        set(document, &parameter.keys, text(*value));
        // Two phases have the same shares of core and memory work.
        if parameter.keys[0] == "phase" && parameter.keys[2] == "core" {
            let key = |index: &str, of: &str| ["phase", index, of].map(str::to_owned);
            set(document, &key("0", "memory"), text(*value));
            set(document, &key("1", "core"), text(100.0 - value));
            set(document, &key("1", "memory"), text(100.0 - value));
        }
    }
    files
}

/// The built-in profiles with those of the study replaced by these files.
fn profiles(built_in: &Profiles, study: &str, files: &[File]) -> Result<Profiles, Box<dyn Error>> {
    let mut profiles = built_in.clone();
    let of_study = format!("@{study}");
    profiles
        .workloads
        .retain(|workload| !workload.name.ends_with(&of_study));
    for file in files {
        let (stem, text) = (file.stem(), file.document.to_string());
        match file.kind {
            ProfileKind::Gpu => {
                profiles.gpus.insert(stem.clone(), parse_gpu(&stem, &text)?);
            }
            ProfileKind::Node => {
                profiles
                    .nodes
                    .insert(stem.clone(), parse_node(&stem, &text)?);
            }
            ProfileKind::Workload => {
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
