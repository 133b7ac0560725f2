//! Describes for people what a policy allows a user, and why.

use std::fmt::Display;

use sweetspot_device::Knob;

use super::rule::{Allowed, AppliesBecause, Gpu, Right, Rule, knob_key};
use super::values::length_text;
use super::{Account, DEFAULT_GROUP, Policy, PolicySource};

/// The most names of users or groups that are shown for a rule that does not apply.
const MAX_NAMES: usize = 5;

/// A row of the description of a GPU.
struct Row {
    /// What may be set; empty if it is the same as in the row above.
    what: String,
    /// What is allowed.
    allowed: String,
    /// The rule that allows it, or the key that would.
    by: String,
}

/// Describes what a policy allows a user on these GPUs: the rules that apply and why, what may be set in which range
/// and for how long, and which keys would allow the rest. `user` is the user's name.
pub fn explain(policy: &Policy, user: &str, account: &Account, gpus: &[Gpu<'_>]) -> String {
    let mut lines = vec![
        format!("Policy: {}", policy.source),
        format!("User:   {user} ({})", ids_text(account)),
        String::new(),
    ];
    if account.is_root() {
        lines.push(
            "Root may set everything that the devices support: no policy restricts root.".into(),
        );
        return finish(lines);
    }
    let (apply, others): (Vec<&Rule>, Vec<&Rule>) = policy
        .rules
        .iter()
        .partition(|rule| rule.applies_to(account).is_some());
    list_rules(&mut lines, user, account, gpus, &apply, &others);
    if apply.is_empty() {
        lines.extend([String::new(), advice(policy, user)]);
        return finish(lines);
    }
    let mut sections = gpu_sections(&apply, gpus);
    let mut machine = right_rows(&apply, Right::ProcessorCap);
    let readers = apply.iter().filter(|rule| rule.processor_energy);
    let readers = readers.map(|rule| ("allowed".to_owned(), rule_name(rule)));
    machine.extend(named_rows(
        "processor energy",
        readers.collect(),
        "processor-energy = true",
    ));
    sections.push((vec!["Processors".to_owned()], machine));
    write_sections(&mut lines, &sections);
    if gpus.is_empty() {
        lines.extend([
            String::new(),
            "No GPU was found on this machine.".to_owned(),
        ]);
    }
    if apply.iter().filter(|rule| rule.allows_any_knob()).count() > 1 {
        lines.extend([
            String::new(),
            "A request is allowed if one rule allows all of it: every value, the length of the"
                .to_owned(),
            "lease, and the use of a shared GPU.".to_owned(),
        ]);
    }
    if let PolicySource::Default { file, .. } = &policy.source {
        lines.extend([
            String::new(),
            format!("To allow more, write {file}, which replaces the default policy."),
        ]);
    }
    finish(lines)
}

/// Joins the lines of a description.
fn finish(lines: Vec<String>) -> String {
    lines.join("\n") + "\n"
}

/// The ids of a user and the user's groups.
fn ids_text(account: &Account) -> String {
    let groups: Vec<String> = account.groups.iter().map(u32::to_string).collect();
    let word = match groups.len() {
        0 => return format!("id {}", account.uid),
        1 => "group",
        _ => "groups",
    };
    format!("id {}, {word} {}", account.uid, groups.join(", "))
}

/// The name of a rule: its line in the file.
fn rule_name(rule: &Rule) -> String {
    match rule.line {
        Some(line) => format!("line {line}"),
        None => "default".to_owned(),
    }
}

/// Lists the rules that apply to a user, with the reason, and those that do not.
fn list_rules(
    lines: &mut Vec<String>,
    user: &str,
    account: &Account,
    gpus: &[Gpu<'_>],
    apply: &[&Rule],
    others: &[&Rule],
) {
    let all = apply.iter().chain(others);
    let width = all.map(|rule| rule_name(rule).len()).max().unwrap_or(0);
    let line = |rule: &Rule, text: String| format!("  {:width$}  {text}", rule_name(rule));
    lines.push(match apply.len() {
        0 => format!("No rule applies to {user}."),
        1 => "1 rule applies:".to_owned(),
        count => format!("{count} rules apply:"),
    });
    lines.extend(apply.iter().map(|rule| {
        let because = match rule.applies_to(account) {
            Some(AppliesBecause::User) => format!("the rule names {user}"),
            Some(AppliesBecause::Group(group)) => format!("{user} is in the group {group}"),
            Some(AppliesBecause::Everyone) | None => "the rule is for everyone".to_owned(),
        };
        line(rule, because + &gpus_text(rule, gpus))
    }));
    if others.is_empty() {
        if apply.is_empty() {
            lines.push("The file has no rule at all.".to_owned());
        }
        return;
    }
    lines.push(match (apply.len(), others.len()) {
        (0, _) => "The rules are for others:".to_owned(),
        (_, 1) => "1 rule does not:".to_owned(),
        (_, count) => format!("{count} rules do not:"),
    });
    lines.extend(others.iter().map(|rule| line(rule, subjects_text(rule))));
}

/// The GPUs of a rule, as the end of a line; empty if the rule is about all GPUs.
fn gpus_text(rule: &Rule, gpus: &[Gpu<'_>]) -> String {
    let Some(patterns) = &rule.gpus else {
        return String::new();
    };
    let names: Vec<String> = patterns
        .iter()
        .map(
            |pattern| match gpus.iter().any(|gpu| pattern.matches(*gpu)) {
                true => pattern.to_string(),
                false => format!("{pattern} (not in this machine)"),
            },
        )
        .collect();
    format!("; only GPU {}", names.join(", "))
}

/// The users and groups to whom a rule applies.
fn subjects_text(rule: &Rule) -> String {
    let mut texts = Vec::new();
    for (one, many, named) in [
        ("user", "users", &rule.users),
        ("group", "groups", &rule.groups),
    ] {
        let names = named
            .iter()
            .take(MAX_NAMES)
            .map(|named| named.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        match named.len() {
            0 => {}
            1 => texts.push(format!("{one} {names}")),
            count if count > MAX_NAMES => {
                texts.push(format!("{many} {names} and {} more", count - MAX_NAMES));
            }
            _ => texts.push(format!("{many} {names}")),
        }
    }
    match texts.is_empty() {
        // Only the rule of the default policy names nobody.
        true => format!("group {DEFAULT_GROUP}, which does not exist"),
        false => texts.join("; "),
    }
}

/// What to do so that a user to whom no rule applies may change settings.
fn advice(policy: &Policy, user: &str) -> String {
    match &policy.source {
        PolicySource::File { file } => format!(
            "{user} may change nothing. To allow it, add `users = [\"{user}\"]` to a rule in\n{file}, \
             or add {user} to a group that a rule names."
        ),
        PolicySource::Default { group_exists, .. } => {
            let create = match group_exists {
                true => String::new(),
                false => format!("  sudo groupadd --system {DEFAULT_GROUP}\n"),
            };
            format!(
                "{user} may change nothing. To allow it:\n{create}  sudo usermod -aG {DEFAULT_GROUP} {user}\n\
                 {user} must then log in again."
            )
        }
    }
}

/// The headings and rows for all GPUs. GPUs to which the same rules apply share their rows.
fn gpu_sections(apply: &[&Rule], gpus: &[Gpu<'_>]) -> Vec<(Vec<String>, Vec<Row>)> {
    let mut groups: Vec<(Vec<bool>, Vec<String>)> = Vec::new();
    for gpu in gpus {
        let heading = format!("GPU {}  {}", gpu.index, gpu.id);
        let covered: Vec<bool> = apply.iter().map(|rule| rule.covers(*gpu)).collect();
        match groups.iter_mut().find(|(same, _)| *same == covered) {
            Some((_, headings)) => headings.push(heading),
            None => groups.push((covered, vec![heading])),
        }
    }
    let sections = groups.into_iter().map(|(covered, headings)| {
        let rules = apply.iter().zip(covered).filter(|(_, covered)| *covered);
        let rules: Vec<&Rule> = rules.map(|(rule, _)| *rule).collect();
        match rules.is_empty() {
            true => {
                let nothing = "  nothing may be set: none of these rules is about this GPU";
                let headings = headings.into_iter().chain([nothing.to_owned()]);
                (headings.collect(), Vec::new())
            }
            false => (headings, gpu_rows(&rules)),
        }
    });
    sections.collect()
}

/// The rows for a GPU to which these rules apply.
fn gpu_rows(rules: &[&Rule]) -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(knob_rows(rules, Knob::PowerCap, |rule| rule.power_cap));
    rows.extend(knob_rows(rules, Knob::CoreClock, |rule| rule.core_clock));
    rows.extend(knob_rows(rules, Knob::MemoryClock, |rule| {
        rule.memory_clock
    }));
    let knob_rules = || rules.iter().filter(|rule| rule.allows_any_knob());
    let lengths = knob_rules().map(|rule| (length_text(rule.longest_lease), rule_name(rule)));
    let lengths: Vec<_> = lengths.collect();
    if !lengths.is_empty() {
        rows.extend(named_rows("longest lease", lengths, ""));
        let shared = knob_rules().filter(|rule| rule.shared_gpus);
        let shared = shared.map(|rule| ("allowed".to_owned(), rule_name(rule)));
        rows.extend(named_rows(
            "shared GPU",
            shared.collect(),
            "shared-gpus = true",
        ));
    }
    rows.extend(right_rows(rules, Right::Persistence));
    rows.extend(right_rows(rules, Right::Ceiling));
    rows
}

/// The rows for a knob: one for each rule that allows it.
fn knob_rows<Q: Display>(
    rules: &[&Rule],
    knob: Knob,
    allowed: impl Fn(&Rule) -> Allowed<Q>,
) -> Vec<Row> {
    let by_rule = rules.iter().filter_map(|rule| match allowed(rule) {
        Allowed::Nothing => None,
        allowed => Some((allowed.to_string(), rule_name(rule))),
    });
    named_rows(&knob.to_string(), by_rule.collect(), knob_key(knob))
}

/// The rows for a right: one for each rule that gives it.
fn right_rows(rules: &[&Rule], right: Right) -> Vec<Row> {
    let given = rules.iter().filter(|rule| rule.gives(right));
    let given = given.map(|rule| ("allowed".to_owned(), rule_name(rule)));
    let key = format!("{} = true", right.key());
    named_rows(&right.to_string(), given.collect(), &key)
}

/// The rows of what rules allow, each given with its rule. If there is none, the row names the key that would allow it.
fn named_rows(what: &str, by_rule: Vec<(String, String)>, key: &str) -> Vec<Row> {
    if by_rule.is_empty() {
        return vec![Row {
            what: what.to_owned(),
            allowed: "not allowed".to_owned(),
            by: format!("needs `{key}`"),
        }];
    }
    let rows = by_rule.into_iter().enumerate();
    let rows = rows.map(|(index, (allowed, by))| Row {
        what: if index == 0 { what } else { "" }.to_owned(),
        allowed,
        by,
    });
    rows.collect()
}

/// Writes headings and rows, in columns of the same width.
fn write_sections(lines: &mut Vec<String>, sections: &[(Vec<String>, Vec<Row>)]) {
    let rows = || sections.iter().flat_map(|(_, rows)| rows);
    let what = rows().map(|row| row.what.len()).max().unwrap_or(0);
    let allowed = rows().map(|row| row.allowed.len()).max().unwrap_or(0);
    for (headings, rows) in sections {
        lines.push(String::new());
        lines.extend(headings.iter().cloned());
        lines.extend(
            rows.iter()
                .map(|row| format!("  {:what$}  {:allowed$}  {}", row.what, row.allowed, row.by)),
        );
    }
}
