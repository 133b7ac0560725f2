//! Reads the keys of one rule.

use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use sweetspot_quantity::Quantity;
use toml::de::{DeInteger, DeTable, DeValue};

use super::file::{Entry, PolicyFile, Value, entries};
use super::keys::{RULE_KEYS, names};
use super::rule::{Allowed, GpuPattern, Named, Rule};
use super::values::{parse_gpu, parse_length, parse_range, quote};
use super::{Accounts, PolicyError};

/// Reads and checks a rule, which begins at this position of the file.
pub(super) fn read_rule(
    file: PolicyFile<'_>,
    start: Range<usize>,
    table: &DeTable<'_>,
    accounts: &dyn Accounts,
) -> Result<Rule, PolicyError> {
    const WATTS: &str = "\"150..250 W\"";
    const MEGAHERTZ: &str = "\"900..1400 MHz\"";
    let mut rule = Rule::empty(Some(file.line(&start)));
    let entries = entries(table);
    for entry in &entries {
        match entry.key {
            "users" => rule.users = read_named(file, entry, Kind::User, accounts)?,
            "groups" => rule.groups = read_named(file, entry, Kind::Group, accounts)?,
            "everyone" => rule.everyone = file.boolean(entry)?,
            "gpus" => rule.gpus = Some(read_gpus(file, entry)?),
            "power-cap" => rule.power_cap = read_allowed(file, entry, WATTS)?,
            "core-clock" => rule.core_clock = read_allowed(file, entry, MEGAHERTZ)?,
            "memory-clock" => rule.memory_clock = read_allowed(file, entry, MEGAHERTZ)?,
            "longest-lease" => rule.longest_lease = read_length(file, entry)?,
            "shared-gpus" => rule.shared_gpus = file.boolean(entry)?,
            "persistence" => rule.persistence = file.boolean(entry)?,
            "processor-cap" => rule.processor_cap = file.boolean(entry)?,
            "processor-energy" => rule.processor_energy = file.boolean(entry)?,
            "ceiling" => rule.ceiling = file.boolean(entry)?,
            unknown => {
                let message = unknown_key(unknown);
                return Err(file.error(&entry.span, None, message));
            }
        }
    }
    check_whole(file, &start, &entries, &rule)?;
    Ok(rule)
}

/// The message for a key that a rule does not have.
fn unknown_key(key: &str) -> String {
    let hyphens = key.to_lowercase().replace('_', "-");
    match RULE_KEYS.iter().any(|known| known.name == hyphens) {
        true => format!("unknown key {}: write `{hyphens}`", quote(key)),
        false => format!(
            "unknown key {}: use one of {}",
            quote(key),
            names(&RULE_KEYS)
        ),
    }
}

/// Checks the keys of a rule together.
fn check_whole(
    file: PolicyFile<'_>,
    start: &Range<usize>,
    entries: &[Entry<'_, '_>],
    rule: &Rule,
) -> Result<(), PolicyError> {
    let given = |names: &[&str]| entries.iter().find(|entry| names.contains(&entry.key));
    let wrong_key = |entry: &Entry<'_, '_>, message: &str| {
        Err(file.error(&entry.span, Some(entry.key), message.to_owned()))
    };
    let wrong_rule = |message: &str| Err(file.error(start, None, message.to_owned()));
    if rule.everyone {
        if let Some(entry) = given(&["users", "groups"]) {
            return wrong_key(
                entry,
                "`everyone = true` includes all users and groups: remove one of the two keys",
            );
        }
    } else if rule.users.is_empty() && rule.groups.is_empty() {
        return wrong_rule(
            "this rule applies to nobody: add `users`, `groups` or `everyone = true`",
        );
    }
    for (key, is_given) in [
        ("processor-cap", rule.processor_cap),
        ("processor-energy", rule.processor_energy),
    ] {
        if let Some(entry) = given(&[key]).filter(|_| is_given && rule.gpus.is_some()) {
            return wrong_key(
                entry,
                "processors belong to no GPU: move this key to a rule without `gpus`",
            );
        }
    }
    if rule.allows_any_knob() {
        return Ok(());
    }
    if !(rule.persistence || rule.processor_cap || rule.processor_energy || rule.ceiling) {
        return wrong_rule(
            "this rule allows nothing: add `power-cap`, `core-clock` or `memory-clock` with a range or true",
        );
    }
    match given(&["longest-lease", "shared-gpus"]) {
        Some(entry) => wrong_key(
            entry,
            "this key applies to power caps and clocks, which this rule does not allow: remove it",
        ),
        None => Ok(()),
    }
}

/// Whether a list names users or groups.
#[derive(Clone, Copy)]
enum Kind {
    User,
    Group,
}

impl Kind {
    /// The word for one of them in messages.
    const fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
        }
    }

    /// An example of a list.
    const fn example(self) -> &'static str {
        match self {
            Self::User => "[\"alice\", 1001]",
            Self::Group => "[\"students\", 1005]",
        }
    }

    /// The name of the database in which `getent` finds them.
    const fn database(self) -> &'static str {
        match self {
            Self::User => "passwd",
            Self::Group => "group",
        }
    }
}

/// Reads a list of names or ids.
fn read_named(
    file: PolicyFile<'_>,
    entry: &Entry<'_, '_>,
    kind: Kind,
    accounts: &dyn Accounts,
) -> Result<Vec<Named>, PolicyError> {
    let (word, example) = (kind.word(), kind.example());
    file.list(entry, example, |item| {
        let wrong = |message| file.error(&item.span(), Some(entry.key), message);
        let named = match item.get_ref() {
            DeValue::Integer(integer) => {
                // The largest number is the kernel's sign for "no id".
                let id = whole_number(integer).filter(|id| *id != u32::MAX);
                let id = id.ok_or_else(|| {
                    wrong(format!(
                        "`{integer}` is not a {word} id: write a number from 0 to {}",
                        u32::MAX - 1
                    ))
                })?;
                let name = id.to_string();
                Named { id, name }
            }
            DeValue::String(name) => Named {
                id: find_id(name, kind, accounts).map_err(wrong)?,
                name: name.to_string(),
            },
            _ => {
                let expected = format!("names or ids, as in {example}");
                return Err(file.wrong_type(entry.key, item, &expected));
            }
        };
        match (kind, named.id) {
            (Kind::User, 0) => Err(wrong(
                "root may do everything, whatever the policy says: remove root".to_owned(),
            )),
            _ => Ok(named),
        }
    })
}

/// The id of a user or group, or the message for a name that does not exist.
fn find_id(name: &str, kind: Kind, accounts: &dyn Accounts) -> Result<u32, String> {
    let word = kind.word();
    let quoted = quote(name);
    if name == "*" {
        return Err(format!(
            "`*` is not the name of a {word}: for all users write `everyone = true` instead of this list"
        ));
    }
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "{quoted} is in quotes: write the id of a {word} without them"
        ));
    }
    let id = match kind {
        Kind::User => accounts.user_id(name),
        Kind::Group => accounts.group_id(name),
    };
    id.ok_or_else(|| {
        format!(
            "there is no {word} {quoted} on this machine: correct the name (`getent {}` lists them), or write the \
             {word}'s id as a number",
            kind.database()
        )
    })
}

/// Reads the GPUs of a rule.
fn read_gpus(file: PolicyFile<'_>, entry: &Entry<'_, '_>) -> Result<Vec<GpuPattern>, PolicyError> {
    const EXAMPLE: &str = "[0, \"GPU-72f4549c\"]";
    file.list(entry, EXAMPLE, |item: &Value<'_>| {
        let wrong = |message| file.error(&item.span(), Some(entry.key), message);
        match item.get_ref() {
            DeValue::Integer(integer) => match whole_number(integer) {
                Some(index) => Ok(GpuPattern::Index(index)),
                None => Err(wrong(format!(
                    "`{integer}` is not the index of a GPU: write 0, for example"
                ))),
            },
            DeValue::String(text) => parse_gpu(text).map_err(wrong),
            _ => Err(file.wrong_type(
                entry.key,
                item,
                &format!("indices or UUIDs of GPUs, as in {EXAMPLE}"),
            )),
        }
    })
}

/// Reads the allowed values of a knob: a range, `true` or `false`.
fn read_allowed<Q>(
    file: PolicyFile<'_>,
    entry: &Entry<'_, '_>,
    example: &str,
) -> Result<Allowed<Q>, PolicyError>
where
    Q: Quantity + Display + FromStr<Err: Display>,
{
    match entry.value.get_ref() {
        DeValue::Boolean(true) => Ok(Allowed::Any),
        DeValue::Boolean(false) => Ok(Allowed::Nothing),
        DeValue::String(text) => parse_range(text, example)
            .map_err(|message| file.error(&entry.value.span(), Some(entry.key), message)),
        _ => {
            let expected = format!("a range in quotes, such as {example}, or true for any value");
            Err(file.wrong_type(entry.key, entry.value, &expected))
        }
    }
}

/// Reads the length of the longest lease.
fn read_length(file: PolicyFile<'_>, entry: &Entry<'_, '_>) -> Result<Duration, PolicyError> {
    match entry.value.get_ref() {
        DeValue::String(text) => parse_length(text)
            .map_err(|message| file.error(&entry.value.span(), Some(entry.key), message)),
        _ => {
            let expected = "a length of time in quotes, such as \"24h\" or \"90m\"";
            Err(file.wrong_type(entry.key, entry.value, expected))
        }
    }
}

/// The value of a whole number; `None` if it is negative or too large.
fn whole_number(integer: &DeInteger<'_>) -> Option<u32> {
    u32::from_str_radix(integer.as_str(), integer.radix()).ok()
}
