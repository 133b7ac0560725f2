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
    let notes: Vec<String> = notes
        .iter()
        .filter_map(|note| note.as_str().map(str::to_owned))
        .collect();
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
    text
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
