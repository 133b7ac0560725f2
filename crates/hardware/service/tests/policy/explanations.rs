//! The descriptions of policies, and the examples in the documentation.

use sweetspot_service::policy::{Account, Gpu, Policy, explain};

use crate::{FILE, NoAccounts, TestAccounts, account, policy, uuid};

/// The page of the documentation.
const PAGE: &str = include_str!("../../../../../docs/reference/policy.md");

/// Describes a policy for a machine with two GPUs.
fn describe(policy: &Policy, user: &str, account: &Account) -> String {
    let (first, second) = (uuid(0), uuid(1));
    let gpus = [
        Gpu {
            index: 0,
            id: &first,
        },
        Gpu {
            index: 1,
            id: &second,
        },
    ];
    explain(policy, user, account, &gpus)
}

/// The blocks of the documentation's page in one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let start = format!("```{language}\n");
    let blocks = PAGE.split(start.as_str()).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

/// Checks that a block of the page is this output of a command.
#[track_caller]
fn is_on_the_page(command: &str, output: &str) {
    let expected = format!("$ {command}\n{output}");
    let found = blocks("text").contains(&expected.as_str());
    assert!(
        found,
        "docs/reference/policy.md must have this block:\n{expected}"
    );
}

#[test]
fn the_examples_of_the_documentation_are_real() {
    let toml = blocks("toml");
    let example = policy(toml[0]);
    let alice = describe(&example, "alice", &account(1001, &[1001, 1005]));
    is_on_the_page("sweetspot policy check --user alice", &alice);
    let default = Policy::default_policy(FILE, &TestAccounts);
    let bob = describe(&default, "bob", &account(1002, &[1002, 990]));
    is_on_the_page("sweetspot policy check --user bob", &bob);
}

#[test]
fn the_default_policy_of_the_documentation_is_the_default_policy() {
    let documented = policy(blocks("toml")[1]);
    let default = Policy::default_policy(FILE, &TestAccounts);
    let member = account(1002, &[990]);
    // All but the source and the line of the rule are the same.
    let rows = |policy: &Policy| {
        let text = describe(policy, "bob", &member);
        let rows = text.lines().filter(|line| line.starts_with("  "));
        rows.map(|line| line.replace("line 1", "default"))
            .collect::<Vec<_>>()
    };
    let (documented, default) = (rows(&documented), rows(&default));
    let words = |rows: &[String]| {
        rows.join(" ")
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&documented), words(&default));
    assert!(documented.len() > 5, "{documented:?}");
}

#[test]
fn every_wrong_file_of_the_documentation_has_its_message() {
    let message = Policy::from_text(blocks("toml")[2], FILE, &TestAccounts).unwrap_err();
    let block = format!("{message}\n");
    assert!(
        blocks("text").contains(&block.as_str()),
        "docs/reference/policy.md must have this block:\n{block}"
    );
}

#[test]
fn root_is_not_restricted() {
    let text = describe(&policy(""), "root", &account(0, &[0]));
    assert_eq!(
        text,
        "Policy: /etc/sweetspot/policy.toml\nUser:   root (id 0, group 0)\n\n\
         Root may set everything that the devices support: no policy restricts root.\n"
    );
}

#[test]
fn a_user_to_whom_no_rule_applies_learns_what_to_do() {
    let rules = "[[allow]]\nusers = [\"alice\", \"bob\"]\ngroups = [\"operators\"]\npower-cap = true\n\n\
                 [[allow]]\nusers = [1, 2, 3, 4, 5, 6, 7]\npower-cap = true\n";
    let text = describe(&policy(rules), "carol", &account(1003, &[]));
    assert_eq!(
        text,
        "Policy: /etc/sweetspot/policy.toml
User:   carol (id 1003)

No rule applies to carol.
The rules are for others:
  line 1  users alice, bob; group operators
  line 6  users 1, 2, 3, 4, 5 and 2 more

carol may change nothing. To allow it, add `users = [\"carol\"]` to a rule in
/etc/sweetspot/policy.toml, or add carol to a group that a rule names.
"
    );
    let missing = Policy::default_policy(FILE, &NoAccounts);
    let text = describe(&missing, "carol", &account(1003, &[1003]));
    assert!(
        text.contains("default  group sweetspot, which does not exist"),
        "{text}"
    );
    assert!(
        text.contains("\n  sudo groupadd --system sweetspot\n  sudo usermod -aG sweetspot carol\n"),
        "{text}"
    );
    let empty = describe(&policy(""), "carol", &account(1003, &[1003]));
    assert!(empty.contains("The file has no rule at all."), "{empty}");
}

#[test]
fn gpus_that_a_rule_does_not_name_are_described_too() {
    let rules =
        "[[allow]]\neveryone = true\ngpus = [1, 7, \"GPU-0c3b\"]\ncore-clock = \"900..1400 MHz\"\n";
    let text = describe(&policy(rules), "carol", &account(1003, &[]));
    assert!(
        text.contains(
            "line 1  the rule is for everyone; only GPU 1, 7 (not in this machine), GPU-0c3b\n"
        ),
        "{text}"
    );
    let (first, second) = text.split_once("\nGPU 1  ").unwrap();
    assert!(
        !first.contains("900 MHz to 1400 MHz") && second.contains("900 MHz to 1400 MHz"),
        "{text}"
    );
    assert!(first.contains("nothing may be set"), "{text}");
}

#[test]
fn a_machine_without_gpus_is_described() {
    let policy = policy("[[allow]]\neveryone = true\nprocessor-cap = true\n");
    let text = explain(&policy, "carol", &account(1003, &[]), &[]);
    assert!(text.contains("No GPU was found on this machine."), "{text}");
    assert!(
        text.contains("  processor cap     allowed      line 1\n"),
        "{text}"
    );
}

#[test]
fn lines_fit_a_terminal() {
    let toml = blocks("toml");
    let policy = policy(toml[0]);
    for groups in [&[1005][..], &[1006], &[]] {
        let text = describe(&policy, "alice", &account(1001, groups));
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}
