//! Placeholders in a command: `{batch}` becomes the value of the configuration at hand.

use std::collections::BTreeMap;

use crate::{BATCH, Configuration};

/// A command that cannot be made for a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A name that nothing gives a value to.
    #[error(
        "the command has {{{name}}}, and there is no axis of that name: add --axis {name}=VALUE,..., or write {{{{{name}}}}} for the text itself (known: {known})"
    )]
    Unknown {
        /// As written.
        name: String,
        /// What could be meant.
        known: String,
    },
    /// A batch that cannot be shared out.
    #[error(
        "a batch of {batch} cannot be shared by {gpus} GPUs: take multiples of the numbers of GPUs"
    )]
    Share {
        /// Items in a batch.
        batch: String,
        /// How many GPUs.
        gpus: u64,
    },
}

/// The command for a configuration.
pub fn fill(
    command: &[String],
    configuration: &Configuration,
) -> Result<Vec<String>, TemplateError> {
    let uses = |name: &str| {
        command
            .iter()
            .any(|word| word.contains(&format!("{{{name}}}")))
    };
    let values = values(configuration, uses("batch_per_gpu"))?;
    command
        .iter()
        .map(|word| fill_word(word, &values))
        .collect()
}

/// What a run is told in its environment: each parameter under its own name, so that a parameter can be a
/// variable that the program knows already.
pub fn environment(configuration: &Configuration) -> Vec<(String, String)> {
    let parameters = configuration.parameters.clone().into_iter();
    let settings = configuration.settings(0);
    let knobs = [
        (
            "SWEETSPOT_POWER_CAP_W",
            settings.power_cap.map(|cap| cap.get()),
        ),
        (
            "SWEETSPOT_CORE_CLOCK_MHZ",
            settings.core_clock.map(|clock| clock.get()),
        ),
        (
            "SWEETSPOT_MEMORY_CLOCK_MHZ",
            settings.memory_clock.map(|clock| clock.get()),
        ),
        ("SWEETSPOT_GPUS", Some(configuration.gpus as f64)),
    ];
    let knobs = knobs
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_string())));
    parameters.chain(knobs).collect()
}

fn values(
    configuration: &Configuration,
    shared: bool,
) -> Result<BTreeMap<&str, String>, TemplateError> {
    let mut values: BTreeMap<&str, String> = BTreeMap::new();
    let settings = configuration.settings(0);
    values.insert("gpus", configuration.gpus.to_string());
    if let Some(cap) = settings.power_cap {
        values.insert("power_cap", cap.get().to_string());
    }
    if let Some(clock) = settings.core_clock {
        values.insert("core_clock", clock.get().to_string());
    }
    if let Some(clock) = settings.memory_clock {
        values.insert("memory_clock", clock.get().to_string());
    }
    for (name, value) in &configuration.parameters {
        values.insert(name, value.clone());
    }
    if let Some(batch) = configuration.parameters.get(BATCH).filter(|_| shared) {
        let share = batch
            .parse::<u64>()
            .ok()
            .filter(|batch| batch.is_multiple_of(configuration.gpus.max(1)));
        let share = share.ok_or_else(|| TemplateError::Share {
            batch: batch.clone(),
            gpus: configuration.gpus,
        })?;
        values.insert(
            "batch_per_gpu",
            (share / configuration.gpus.max(1)).to_string(),
        );
    }
    Ok(values)
}

/// Only a name in braces is a placeholder: programs of awk and JSON stay as they are.
fn fill_word(word: &str, values: &BTreeMap<&str, String>) -> Result<String, TemplateError> {
    let mut filled = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        let name = rest[1..].split('}').next().unwrap_or_default();
        let is_closed = rest[1..].len() > name.len();
        if filled.ends_with('$') {
            // A shell's own variable, `${batch}`: the environment has it.
            filled.push('{');
            rest = &rest[1..];
        } else if let Some(text) = rest[1..].strip_prefix('{')
            && let Some(end) = text.find("}}")
            && is_name(&text[..end])
        {
            filled.push_str(&format!("{{{}}}", &text[..end]));
            rest = &text[end + 2..];
        } else if is_closed && is_name(name) {
            let value = values.get(name).ok_or_else(|| TemplateError::Unknown {
                name: name.to_owned(),
                known: values.keys().copied().collect::<Vec<_>>().join(", "),
            })?;
            filled.push_str(value);
            rest = &rest[name.len() + 2..];
        } else {
            filled.push('{');
            rest = &rest[1..];
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Whether it can be the name of a parameter.
pub fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(word: &str) -> Result<String, String> {
        let mut configuration = Configuration::on(2).with_batch(64);
        configuration
            .parameters
            .insert("precision".into(), "bf16".into());
        fill(&[word.to_owned()], &configuration)
            .map(|words| words.concat())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn names_in_braces_are_filled_and_nothing_else() {
        assert_eq!(filled("--batch={batch}x{gpus}").unwrap(), "--batch=64x2");
        assert_eq!(filled("{batch_per_gpu}{precision}").unwrap(), "32bf16");
        assert_eq!(
            filled("{print $1} {\"a\": {}} {").unwrap(),
            "{print $1} {\"a\": {}} {"
        );
        assert_eq!(filled("{{batch}} {{print}}").unwrap(), "{batch} {print}");
        assert_eq!(filled("${batch} ${HOME}").unwrap(), "${batch} ${HOME}");
        let unknown = filled("{epochs}").unwrap_err();
        assert!(
            unknown.contains("{epochs}") && unknown.contains("{{epochs}}"),
            "{unknown}"
        );
    }

    #[test]
    fn a_batch_that_cannot_be_shared_is_told() {
        let configuration = Configuration::on(3).with_batch(64);
        let fill = |word: &str| fill(&[word.to_owned()], &configuration);
        assert!(fill("{batch}").is_ok());
        assert!(
            fill("{batch_per_gpu}")
                .unwrap_err()
                .to_string()
                .contains("3 GPUs")
        );
    }
}
