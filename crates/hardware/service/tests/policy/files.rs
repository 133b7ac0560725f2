//! Policy files that are refused, with the line, and how files are loaded.

use std::cell::RefCell;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use sweetspot_service::policy::{Policy, PolicyError, PolicySource};

use crate::{FILE, TestAccounts, account, cap, hours, policy, set};

/// The message for a policy text that is refused, without the name of the file.
fn refusal(text: &str) -> String {
    let error = Policy::from_text(text, FILE, &TestAccounts).unwrap_err();
    let message = error.to_string();
    message.strip_prefix(FILE).unwrap().to_owned()
}

/// Checks that a text is refused with a message that begins and contains so.
#[track_caller]
fn refused(text: &str, start: &str, part: &str) {
    let message = refusal(text);
    assert!(message.starts_with(start), "{message}\n{text}");
    assert!(message.contains(part), "{message}\n{text}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

/// Checks a line of a rule that is otherwise right: it is line 4 of the file.
#[track_caller]
fn refused_line(line: &str, part: &str) {
    let key = line.split([' ', '=']).next().unwrap();
    let text = format!("# A rule\n[[allow]]\nceiling = true\n{line}\n");
    refused(&text, &format!(":4: `{key}`: "), part);
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_line() {
    refused(
        "[[allow]]\nusers = [\"alice\"\n",
        ":2: ",
        "not valid TOML: unclosed array",
    );
    refused("[[allow]]\n\nwhat is this\n", ":3: ", "not valid TOML");
    refused("\n[[allow]\n", ":2: ", "not valid TOML");
    refused("a = 'b\n", ":1: ", "not valid TOML");
}

#[test]
fn duplicate_keys_are_refused() {
    let text = "[[allow]]\nusers = [\"alice\"]\npower-cap = true\nusers = [\"bob\"]\n";
    refused(text, ":4: ", "duplicate key");
}

#[test]
fn a_rule_begins_with_two_brackets() {
    refused(
        "[allow]\nusers = [\"alice\"]\n",
        ":1: `allow`: ",
        "[[allow]]",
    );
    refused("\nallow = true\n", ":2: `allow`: ", "[[allow]]");
    refused("allow = [\n  1,\n]\n", ":2: `allow`: ", "[[allow]]");
}

#[test]
fn unknown_keys_are_refused() {
    refused(
        "users = [\"alice\"]\n",
        ":1: unknown key `users`",
        "after a line `[[allow]]`",
    );
    refused("\n\n[[deny]]\n", ":3: unknown key `deny`", "[[allow]]");
    let rule = |key: &str| format!("[[allow]]\neveryone = true\n{key} = true\n");
    refused(
        &rule("power_cap"),
        ":3: unknown key `power_cap`",
        "write `power-cap`",
    );
    refused(
        &rule("Power-Cap"),
        ":3: unknown key `Power-Cap`",
        "write `power-cap`",
    );
    refused(
        &rule("powercap"),
        ":3: unknown key `powercap`",
        "use one of users, groups",
    );
    refused(
        &rule("\"\\u001b[31m\""),
        ":3: unknown key `\\u{1b}[31m`",
        "use one of",
    );
    // The first mistake in the file is reported, not the first in the alphabet.
    refused("[[allow]]\nzzz = 1\naaa = 1\n", ":2: unknown key `zzz`", "");
}

#[test]
fn unknown_users_and_groups_are_refused() {
    refused_line(
        "users = [\"mallory\"]",
        "no user `mallory` on this machine: correct the name",
    );
    refused_line("groups = [\"nowhere\"]", "no group `nowhere`");
    refused_line("groups = [\"\"]", "no group ``");
    refused_line("users = [\"*\"]", "write `everyone = true`");
    refused_line("groups = [\"*\"]", "write `everyone = true`");
    refused_line(
        "users = [\"1001\"]",
        "in quotes: write the id of a user without them",
    );
    refused_line("users = [-1]", "`-1` is not a user id");
    refused_line("groups = [4294967295]", "`4294967295` is not a group id");
    refused_line("users = [99999999999999999999999]", "is not a user id");
    refused_line("users = [\"alice\", \"alice\"]", "given twice");
    refused_line(
        "users = []",
        "the list is empty: write a list such as [\"alice\", 1001]",
    );
    refused_line(
        "users = \"alice\"",
        "text in quotes is not allowed here: write a list such as",
    );
    refused_line("users = [true]", "names or ids, as in [\"alice\", 1001]");
    refused_line("groups = [[\"students\"]]", "a list is not allowed here");
    // The line is that of the name, not of the key.
    let text = "[[allow]]\nusers = [\n  \"alice\",\n  \"mallory\",\n]\npower-cap = true\n";
    refused(text, ":4: `users`: ", "no user `mallory`");
}

#[test]
fn root_is_not_named_because_the_policy_does_not_restrict_root() {
    for line in [
        "users = [\"root\"]",
        "users = [0]",
        "users = [\"alice\", \"toor\"]",
    ] {
        refused_line(line, "root may do everything");
    }
}

#[test]
fn wrong_values_are_refused() {
    refused_line(
        "power-cap = \"250..150 W\"",
        "reversed: write \"150 W..250 W\"",
    );
    refused_line(
        "core-clock = \"..\"",
        "only one end: write both, such as \"900..1400 MHz\"",
    );
    refused_line("core-clock = \"100..200 W\"", "`200 W` is not a frequency");
    refused_line("memory-clock = \"\"", "is not a range");
    refused_line(
        "power-cap = 250",
        "a number without quotes is not allowed here: write a range in quotes",
    );
    refused_line("power-cap = [150, 250]", "a list is not allowed here");
    refused_line("power-cap = { low = 150 }", "a table is not allowed here");
    refused_line("gpus = []", "the list is empty");
    refused_line("gpus = [\"all\"]", "neither the index of a GPU");
    refused_line("gpus = [\"0\"]", "without them");
    refused_line("gpus = [-1]", "`-1` is not the index of a GPU");
    refused_line(
        "gpus = [0.5]",
        "a number without quotes is not allowed here",
    );
    refused_line("gpus = [0, 1, 0]", "given twice");
    refused_line("gpus = 0", "write a list such as [0, \"GPU-72f4549c\"]");
    refused_line(
        "everyone = \"yes\"",
        "text in quotes is not allowed here: write true or false",
    );
    refused_line("shared-gpus = 1", "write true or false");
    refused_line("persistence = \"true\"", "write true or false");
    refused_line("processor-cap = \"100..200 W\"", "write true or false");
    refused_line(
        "longest-lease = \"25h\"",
        "longer than the longest possible lease",
    );
    refused_line("longest-lease = \"soon\"", "not a length of time");
    refused_line("longest-lease = 24", "a length of time in quotes");
    refused_line(
        "longest-lease = 07:30:00",
        "a date or time is not allowed here",
    );
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    let rule = |lines: &str| format!("[[allow]]\n{lines}\n");
    refused(
        &rule("power-cap = true"),
        ":1: this rule applies to nobody",
        "`everyone = true`",
    );
    refused(
        &rule("everyone = false\npower-cap = true"),
        ":1: this rule applies to nobody",
        "",
    );
    let both = "everyone = true\npower-cap = true\ngroups = [\"students\"]";
    refused(&rule(both), ":4: `groups`: ", "remove one of the two keys");
    refused(
        &rule("everyone = true"),
        ":1: this rule allows nothing",
        "add `power-cap`",
    );
    let off = "everyone = true\npower-cap = false\npersistence = false\nshared-gpus = true";
    refused(&rule(off), ":1: this rule allows nothing", "");
    let lease = "everyone = true\npersistence = true\nlongest-lease = \"1h\"";
    refused(&rule(lease), ":4: `longest-lease`: ", "remove it");
    let processors = "everyone = true\ngpus = [0]\nprocessor-cap = true";
    refused(
        &rule(processors),
        ":4: `processor-cap`: ",
        "a rule without `gpus`",
    );
    let energy = "everyone = true\ngpus = [0]\nprocessor-energy = true";
    refused(
        &rule(energy),
        ":4: `processor-energy`: ",
        "a rule without `gpus`",
    );
    // The line is that of the rule with the mistake.
    let second = "[[allow]]\neveryone = true\nceiling = true\n\n[[allow]]\nceiling = true\n";
    refused(second, ":5: this rule applies to nobody", "");
}

#[test]
fn messages_are_short_and_have_no_control_characters() {
    let escapes = ["\\u001b[31m", "\\n", "\\u0000", "\\r"];
    for escape in escapes {
        for value in [
            escape.to_owned(),
            format!("{escape}..5 W"),
            format!("1..x{escape}2 W"),
        ] {
            let message = refusal(&format!(
                "[[allow]]\neveryone = true\npower-cap = \"{value}\"\n"
            ));
            assert!(!message.contains(char::is_control), "{message:?}");
        }
    }
    let long = "9".repeat(100_000);
    for value in [format!("\"{long}\""), format!("\"1..{long} W\"")] {
        let message = refusal(&format!(
            "[[allow]]\neveryone = true\npower-cap = {value}\n"
        ));
        assert!(message.len() < 200, "{message}");
    }
}

/// Loads a policy file whose owner is right.
fn load(path: &Path) -> Result<Policy, PolicyError> {
    Policy::load(path, &TestAccounts, |_| Ok(()))
}

#[test]
fn a_file_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    std::fs::write(&path, "[[allow]]\nusers = [\"alice\"]\npower-cap = true\n").unwrap();
    let policy = load(&path).unwrap();
    let file = path.display().to_string();
    assert_eq!(policy.source(), &PolicySource::File { file: file.clone() });
    assert_eq!(policy.source().to_string(), file);
    assert_eq!(
        set(&policy, &account(1001, &[]), &cap(200.0), hours(1)),
        Ok(())
    );
}

#[test]
fn without_a_file_the_default_policy_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/policy.toml");
    let checked = RefCell::new(Vec::<PathBuf>::new());
    let policy = Policy::load(&path, &TestAccounts, |path| {
        checked.borrow_mut().push(path.to_owned());
        Ok(())
    });
    let source = policy.unwrap().source().to_string();
    assert_eq!(
        source,
        format!("the default policy (there is no {})", path.display())
    );
    // Whoever can write to the nearest folder could have removed the file.
    assert_eq!(checked.into_inner(), [folder.path()]);
    let refused = Policy::load(&path, &TestAccounts, |_| Err("bob owns it".to_owned()));
    assert!(matches!(refused, Err(PolicyError::NotOnlyRoot { .. })));
    let relative = Path::new("no-such-policy.toml");
    let refused = Policy::load(relative, &TestAccounts, |path| {
        Err(path.display().to_string())
    });
    let message = refused.unwrap_err().to_string();
    assert!(message.ends_with("could change it: ."), "{message}");
}

#[test]
fn a_file_that_others_could_change_is_refused_unread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    std::fs::write(&path, "not TOML").unwrap();
    let error = Policy::load(&path, &TestAccounts, |path| {
        Err(format!("{} belongs to bob", path.display()))
    });
    let file = path.display();
    assert_eq!(
        error.unwrap_err().to_string(),
        format!(
            "{file}: not used, because users other than root could change it: {file} belongs to bob"
        )
    );
}

#[test]
fn files_that_are_no_text_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    let message = |path: &Path| load(path).unwrap_err().to_string();
    let file = path.display().to_string();
    std::fs::write(&path, b"# one\n# two\n# \xff three\n").unwrap();
    assert!(
        message(&path).starts_with(&format!("{file}:3: not UTF-8")),
        "{}",
        message(&path)
    );
    std::fs::write(&path, "#".repeat(1024 * 1024 + 1)).unwrap();
    assert!(
        message(&path).contains("larger than 1048576 bytes"),
        "{}",
        message(&path)
    );
    std::fs::write(&path, "#".repeat(1024 * 1024)).unwrap();
    assert!(load(&path).is_ok());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(
        message(&path),
        format!("cannot read {file}: it is not a regular file")
    );
    let below_a_file = folder.path().join("file/policy.toml");
    std::fs::write(folder.path().join("file"), "").unwrap();
    assert!(message(&below_a_file).starts_with("cannot read "));
}

#[test]
fn a_named_pipe_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let message = load(&path).unwrap_err().to_string();
    assert!(message.ends_with("it is not a regular file"), "{message}");
}

#[test]
fn a_link_to_nothing_does_not_mean_the_default_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    symlink(folder.path().join("missing"), &path).unwrap();
    assert!(matches!(load(&path), Err(PolicyError::Unreadable { .. })));
}

#[test]
fn every_form_of_a_rule_is_read() {
    let text = "
        allow = [
            { users = [0x3e9, \"bob\"], groups = [1_005], gpus = [0, \"GPU-0c3b\"], power-cap = \"0.15..0.25 kW\" },
            { everyone = true, memory-clock = true, longest-lease = \"2h 30m\", shared-gpus = true },
        ]";
    let policy = policy(text);
    for allowed in [account(1001, &[]), account(1002, &[]), account(7, &[1005])] {
        assert_eq!(set(&policy, &allowed, &cap(250.0), hours(24)), Ok(()));
    }
    assert!(set(&policy, &account(7, &[]), &cap(250.0), hours(1)).is_err());
}
