//! Placeholders in a command: `{batch}` becomes the batch size of the configuration.

use std::collections::BTreeMap;

use crate::{BATCH_PARAMETER, Configuration};

/// Why the placeholders of a command cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// No axis has the name of a placeholder.
    #[error(
        "the command has the placeholder {{{name}}}, but there is no axis of that name: add an axis {name}, or write {{{{{name}}}}} for the text itself (known: {known})"
    )]
    Unknown {
        /// The name of the placeholder.
        name: String,
        /// The names of the placeholders that can be filled, separated by commas.
        known: String,
    },
    /// The batch size is not a multiple of the number of GPUs.
    #[error(
        "a batch of {batch} cannot be divided among {gpus} GPUs: use multiples of the number of GPUs"
    )]
    Share {
        /// The batch size that cannot be divided.
        batch: String,
        /// The number of GPUs of the job.
        gpus: u64,
    },
}

/// Fills the placeholders of a command with the values of a configuration.
pub fn fill_placeholders(
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

/// The environment variables of a run. Each parameter is a variable of the same name, so a program that already reads
/// such a variable needs no change.
pub fn run_environment(configuration: &Configuration) -> Vec<(String, String)> {
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
        (
            "SWEETSPOT_CPU_POWER_CAP_W",
            configuration.cpu_power_cap.map(|cap| cap.get()),
        ),
        ("SWEETSPOT_GPUS", Some(configuration.gpus as f64)),
    ];
    let knobs = knobs
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_string())));
    parameters.chain(knobs).collect()
}

/// The values of the placeholders of a configuration, by name.
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
    if let Some(cap) = configuration.cpu_power_cap {
        values.insert("cpu_power_cap", cap.get().to_string());
    }
    for (name, value) in &configuration.parameters {
        values.insert(name, value.clone());
    }
    if let Some(batch) = configuration
        .parameters
        .get(BATCH_PARAMETER)
        .filter(|_| shared)
    {
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

/// Fills the placeholders in one argument of the command. Only a name in braces is a placeholder: awk programs and JSON
/// are unchanged.
fn fill_word(word: &str, values: &BTreeMap<&str, String>) -> Result<String, TemplateError> {
    let mut filled = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        let name = rest[1..].split('}').next().unwrap_or_default();
        let is_closed = rest[1..].len() > name.len();
        if filled.ends_with('$') {
            // `${batch}` is a variable of the shell, which reads it from the environment.
            filled.push('{');
            rest = &rest[1..];
        } else if let Some(text) = rest[1..].strip_prefix('{')
            && let Some(end) = text.find("}}")
            && is_parameter_name(&text[..end])
        {
            filled.push_str(&format!("{{{}}}", &text[..end]));
            rest = &text[end + 2..];
        } else if is_closed && is_parameter_name(name) {
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

/// Whether a text can be the name of a parameter.
pub fn is_parameter_name(text: &str) -> bool {
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
        fill_placeholders(&[word.to_owned()], &configuration)
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
    fn a_batch_that_cannot_be_divided_is_an_error() {
        let configuration = Configuration::on(3).with_batch(64);
        let fill = |word: &str| fill_placeholders(&[word.to_owned()], &configuration);
        assert!(fill("{batch}").is_ok());
        assert!(
            fill("{batch_per_gpu}")
                .unwrap_err()
                .to_string()
                .contains("3 GPUs")
        );
    }
}
