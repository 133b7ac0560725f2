//! `sweetspot counter`, and the measuring process of the service.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use sweetspot_monitor::api::request;
use sweetspot_monitor::{MonitorRequest, PrivateGpus, run_monitor as serve_clients};
use sweetspot_session::service_socket;

use crate::args::{CounterArgs, CounterCommand, MonitorArgs};
use crate::documents::{Content, Documents, Format, print};
use crate::exit::Outcome;
use crate::serve::{check_addresses, parse_token};

/// Runs `sweetspot counter`.
pub fn run(args: &CounterArgs) -> Result<Outcome> {
    match &args.command {
        CounterCommand::Start { name, device } => start(name, device),
        CounterCommand::Stop { name, export_json } => {
            let documents = Documents::open([(Format::Json, export_json.as_deref())])?;
            let counter = ask("POST", &format!("/counters/{}/stop", escape(name)))?;
            show(&documents, &counter, None)
        }
        CounterCommand::Read {
            name,
            export_json,
            export_csv,
        } => read(name, export_json.as_deref(), export_csv.as_deref()),
        CounterCommand::List => list(),
        CounterCommand::Delete { name } => {
            request(
                &service_socket(),
                "DELETE",
                &format!("/counters/{}", escape(name)),
                &[],
            )?;
            Ok(Outcome::DONE)
        }
    }
}

/// Sends a request whose answer is JSON.
fn ask(method: &str, target: &str) -> Result<Value> {
    let answer = request(&service_socket(), method, target, &[])?;
    serde_json::from_str(&answer).context("the service gave an answer that is not JSON")
}

/// Escapes a name for a path: the service decides which names it accepts.
fn escape(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'.' | b'-' | b'_' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(byte).collect()
}

fn start(name: &str, device: &str) -> Result<Outcome> {
    let gpus = match device {
        "all" => String::new(),
        list => format!(
            "?gpus={}",
            list.split(',')
                .map(|one| escape(one.trim()))
                .collect::<Vec<_>>()
                .join(",")
        ),
    };
    let counter = ask("POST", &format!("/counters/{}/start{gpus}", escape(name)))?;
    let count = counter["devices"].as_array().map_or(0, Vec::len);
    let noun = if count == 1 { "GPU" } else { "GPUs" };
    print(format!(
        "Counter {name} counts the energy of {count} {noun}.\n"
    ))?;
    Ok(Outcome::DONE)
}

fn read(name: &str, json: Option<&Path>, csv: Option<&Path>) -> Result<Outcome> {
    let documents = Documents::open([(Format::Json, json), (Format::Csv, csv)])?;
    let counter = ask("GET", &format!("/counters/{}", escape(name)))?;
    let samples = match csv {
        Some(_) => Some(request(
            &service_socket(),
            "GET",
            &format!("/counters/{}/samples", escape(name)),
            &[],
        )?),
        None => None,
    };
    show(&documents, &counter, samples)
}

/// The time without samples at the beginning of a counter that is worth a remark, in seconds.
const MISSING_SAMPLES: f64 = 2.0;

/// Remarks about samples that the service no longer stores, for each GPU of a counter: it keeps means for six hours.
fn missing_samples(counter: &Value, csv: &str) -> Vec<String> {
    let time = counter["time_s"].as_f64().unwrap_or(0.0);
    let devices = counter["devices"].as_array().cloned().unwrap_or_default();
    let first_time = |index: &str| {
        let mut rows = csv.lines().skip(1).map(|row| row.split(','));
        rows.find_map(|mut row| {
            let time = row.next()?;
            (row.nth(1)? == index).then(|| time.parse::<f64>().ok())?
        })
    };
    let note = |device: &Value| {
        let index = device["index"].to_string();
        match first_time(&index) {
            None if time > MISSING_SAMPLES => Some(format!("GPU {index}: no samples are stored")),
            Some(first) if first > MISSING_SAMPLES => Some(format!(
                "GPU {index}: the samples begin {first:.0} s after the start of the counter; earlier ones are no longer stored"
            )),
            _ => None,
        }
    };
    devices.iter().filter_map(note).collect()
}

fn list() -> Result<Outcome> {
    let answer = ask("GET", "/counters")?;
    let counters = answer["counters"].as_array().cloned().unwrap_or_default();
    let mut text = String::new();
    for counter in &counters {
        let state = if counter["running"] == true {
            "running"
        } else {
            "stopped"
        };
        text += &format!(
            "{state}  {}\n",
            counter["name"].as_str().unwrap_or_default()
        );
    }
    if counters.is_empty() {
        text = "You have no counters.\n".to_owned();
    }
    print(text)?;
    Ok(Outcome::DONE)
}

/// Prints a counter, and writes its documents.
fn show(documents: &Documents, counter: &Value, samples: Option<String>) -> Result<Outcome> {
    let notes = counter["notes"].as_array().cloned().unwrap_or_default();
    let mut notes: Vec<String> = notes
        .iter()
        .filter_map(|note| note.as_str().map(str::to_owned))
        .collect();
    if let Some(samples) = &samples {
        notes.extend(missing_samples(counter, samples));
    }
    let mut content = Content::default()
        .text(|| counter_text(counter))
        .notes(notes.clone())
        .json(|| counter.clone());
    if let Some(samples) = samples {
        content = content.csv(|| anyhow::Ok(samples));
    }
    Ok(Outcome {
        is_met: notes.is_empty(),
        written: documents.write(content),
        ..Outcome::DONE
    })
}

/// A counter as text: its energy, its time and its mean power, and the energy of each GPU where there are several.
fn counter_text(counter: &Value) -> String {
    let number = |value: &Value| value.as_f64();
    let name = counter["name"].as_str().unwrap_or_default();
    let state = counter["state"].as_str().unwrap_or_default();
    let energy = number(&counter["energy_j"])
        .map_or_else(|| "unknown".to_owned(), |energy| format!("{energy:.1} J"));
    let interval = counter["interval95_j"].as_array().and_then(|ends| {
        let (low, high) = (ends.first()?.as_f64()?, ends.get(1)?.as_f64()?);
        Some(format!(" (95 % interval {low:.1} to {high:.1} J)"))
    });
    let mut text = format!(
        "Counter:     {name}, {state}\nEnergy:      {energy}{}\n",
        interval.unwrap_or_default()
    );
    if let Some(time) = number(&counter["time_s"]) {
        text += &format!("Time:        {time:.3} s\n");
    }
    if let Some(power) = number(&counter["average_power_w"]) {
        text += &format!("Mean power:  {power:.1} W\n");
    }
    let devices = counter["devices"].as_array().cloned().unwrap_or_default();
    for device in devices.iter().filter(|_| devices.len() > 1) {
        let energy = number(&device["energy_j"])
            .map_or_else(|| "unknown".to_owned(), |energy| format!("{energy:.1} J"));
        text += &format!("GPU {}:       {energy}\n", device["index"]);
    }
    if let Some(line) = processors_text(counter) {
        text += &line;
    }
    text
}

/// The energy of all processors of a counter in a line; `None` where it has none.
fn processors_text(counter: &Value) -> Option<String> {
    let parts = counter["processors"].as_array()?;
    let sum = |value: &dyn Fn(&Value) -> Option<f64>| -> Option<f64> {
        parts.iter().map(value).sum::<Option<f64>>()
    };
    let bound = |place: usize| sum(&|part| part["interval95_j"][place].as_f64());
    let energy = sum(&|part| part["energy_j"].as_f64())
        .zip(bound(0).zip(bound(1)))
        .map_or_else(
            || "unknown".to_owned(),
            |(energy, (low, high))| format!("{energy:.1} J (within {low:.1} to {high:.1} J)"),
        );
    Some(format!("Processors:  {energy}\n"))
}

/// Runs the measuring process of the service.
pub fn run_monitor(args: MonitorArgs) -> Result<Outcome> {
    check_addresses(&args.listen, args.token_file.is_some(), args.insecure)?;
    let token = args.token_file.as_deref().map(parse_token).transpose()?;
    serve_clients(&MonitorRequest {
        nvml: args.nvml,
        dcgm_names: args.dcgm_names,
        hosts: args.host_name,
        listen: args.listen,
        token,
        private: args.private.then_some(PrivateGpus {
            devices: args.device,
        }),
    })?;
    Ok(Outcome::DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_are_no_longer_stored_are_noted() {
        let counter = serde_json::json!({
            "time_s": 9000.0,
            "devices": [{"index": 0}, {"index": 1}, {"index": 2}],
        });
        let csv = "time_s,unix_s,gpu,power_w,mean_over_s\n0.01,5,0,80.00,0\n0.03,5,0,81.00,0\n400.5,405.5,1,80.00,1\n";
        assert_eq!(
            missing_samples(&counter, csv),
            [
                "GPU 1: the samples begin 400 s after the start of the counter; earlier ones are no longer stored",
                "GPU 2: no samples are stored",
            ]
        );
        let short = serde_json::json!({"time_s": 0.5, "devices": [{"index": 0}]});
        assert!(missing_samples(&short, "time_s,unix_s,gpu,power_w,mean_over_s\n").is_empty());
    }
}
