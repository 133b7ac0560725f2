//! Writes the TOML file of a fitted workload profile.

use std::fmt::Write;

use sweetspot_quantity::{Bytes, Ratio, Seconds};
use sweetspot_sim::WorkloadProfile;

use super::FittedWorkload;

/// Rounds to five significant digits, which are more than any measured row has.
pub(crate) fn round_to_five_digits(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let text = format!("{value:.4e}");
    text.parse().unwrap_or(value)
}

/// The profile with its numbers rounded to the digits that its file contains.
pub(crate) fn rounded(mut profile: WorkloadProfile) -> WorkloadProfile {
    profile.half_speed_batch = round_to_five_digits(profile.half_speed_batch);
    profile.memory.per_item = Bytes::new(round_to_five_digits(profile.memory.per_item.get()));
    for on in &mut profile.on {
        for time in [
            &mut on.host,
            &mut on.launch,
            &mut on.core,
            &mut on.memory,
            &mut on.memory_per_batch,
        ] {
            *time = Seconds::new(round_to_five_digits(time.get()));
        }
        on.switching = Ratio::new(round_to_five_digits(on.switching.get()));
    }
    profile
}

/// The text of the profile's TOML file; comments say what was fitted and what is assumed.
pub fn workload_text(fitted: &FittedWorkload) -> String {
    let profile = &fitted.profile;
    let mut text = format!(
        "# Fitted to {} measured values with {} free parameters, named in `fitted`.\n\
         # Assumed, because the rows do not tell: the device memory a batch takes, the phases' shares,\n\
         # and every other key that is not named there.\n",
        fitted.values, fitted.parameters
    );
    write_workload(&mut text, profile, "");
    text
}

/// Writes the keys and tables of a workload. `section` is the prefix of the tables' names: empty, or `workload.`.
pub(crate) fn write_workload(text: &mut String, profile: &WorkloadProfile, section: &str) {
    let head = [
        ("network", quoted(&profile.network)),
        ("mode", quoted(mode(profile))),
        ("batch", profile.batch.to_string()),
        ("half_speed_batch", decimal(profile.half_speed_batch)),
    ];
    write_keys(text, &head);
    if !profile.fitted.is_empty() {
        write_keys(text, &[("fitted", list(&profile.fitted))]);
    }
    *text += &format!("\n[{section}memory]\n");
    let memory = &profile.memory;
    write_keys(
        text,
        &[
            ("fixed", quoted(memory.fixed)),
            ("per_item", quoted(memory.per_item)),
        ],
    );
    for phase in &profile.phases {
        *text += &format!("\n[[{section}phase]]\n");
        write_keys(
            text,
            &[
                ("name", quoted(&phase.name)),
                ("core", quoted(phase.core)),
                ("memory", quoted(phase.memory)),
            ],
        );
    }
    for on in &profile.on {
        *text += &format!("\n[[{section}on]]\n");
        let mut keys = vec![
            ("gpu", quoted(&on.gpu)),
            ("fitted", list(&on.fitted)),
            ("items", on.items.to_string()),
        ];
        if on.host_per_batch > Seconds::ZERO {
            keys.push(("host_per_batch", quoted(on.host_per_batch)));
        }
        keys.extend([
            ("host", quoted(on.host)),
            ("launch", quoted(on.launch)),
            ("core", quoted(on.core)),
            ("memory", quoted(on.memory)),
            ("memory_per_batch", quoted(on.memory_per_batch)),
            ("switching", quoted(on.switching)),
            ("memory_activity", quoted(on.memory_activity)),
        ]);
        write_keys(text, &keys);
    }
}

/// The value of the key `mode`: `train` or `infer`.
fn mode(profile: &WorkloadProfile) -> &'static str {
    match profile.mode {
        sweetspot_sim::Mode::Train => "train",
        sweetspot_sim::Mode::Infer => "infer",
    }
}

/// Writes keys and values, one on each line.
pub(crate) fn write_keys(text: &mut String, keys: &[(&str, String)]) {
    for (key, value) in keys {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key} = {value}");
    }
}

/// A TOML string. Quotes, backslashes and control characters are escaped, because names come from files and flags.
pub(crate) fn quoted(value: impl std::fmt::Display) -> String {
    let mut text = String::from("\"");
    for c in value.to_string().chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04X}", c as u32);
            }
            c => text.push(c),
        }
    }
    text + "\""
}

/// A TOML list of strings.
pub(crate) fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(quoted).collect();
    format!("[{}]", names.join(", "))
}

/// A TOML float, which needs a decimal point.
fn decimal(value: f64) -> String {
    format!("{value:?}")
}
