//! Properties of all policies: decisions agree with a slow oracle, and no text makes the reader panic.

use std::fmt::Write;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use sweetspot_device::Settings;
use sweetspot_quantity::{Megahertz, Watts};
use sweetspot_service::policy::{Gpu, LeaseRequest, Policy, Right, explain};

use crate::{FILE, TestAccounts, account, uuid};

/// The allowed values of a knob: none, any, or those between two numbers.
#[derive(Clone, Debug)]
enum Values {
    None,
    Any,
    Between(u32, u32),
}

impl Values {
    /// The value of the key in the file; `None` if the key is absent.
    fn text(&self, unit: &str) -> Option<String> {
        match self {
            Self::None => None,
            Self::Any => Some("true".to_owned()),
            Self::Between(low, high) => Some(format!("\"{low}..{high} {unit}\"")),
        }
    }

    /// Whether a value, in halves of the unit, is allowed: by listing all allowed ones.
    fn lists(&self, halves: u32) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Between(low, high) => (2 * low..=2 * high).any(|allowed| allowed == halves),
        }
    }
}

/// A rule as the oracle sees it.
#[derive(Clone, Debug)]
struct RuleSpec {
    everyone: bool,
    users: Vec<u32>,
    groups: Vec<u32>,
    gpus: Option<Vec<&'static str>>,
    knobs: [Values; 3],
    rights: [bool; 3],
    shared: bool,
    hours: u64,
}

/// A request as the oracle sees it; values are in halves of a unit.
#[derive(Clone, Debug)]
struct RequestSpec {
    uid: u32,
    groups: Vec<u32>,
    gpu: u32,
    knobs: [Option<u32>; 3],
    shared: bool,
    hours: u64,
}

const GPU_NAMES: [&str; 4] = ["0", "1", "\"GPU-72f4\"", "\"GPU-0c3b5d1e\""];
const RIGHTS: [Right; 3] = [Right::Persistence, Right::ProcessorCap, Right::Ceiling];

impl RuleSpec {
    /// Whether the file may give a length of leases and shared GPUs, which belong to knobs.
    fn has_knob(&self) -> bool {
        self.knobs
            .iter()
            .any(|values| !matches!(values, Values::None))
    }

    /// Makes a rule that the file may have of one that may contradict itself.
    fn valid(mut self) -> Self {
        if self.everyone {
            (self.users, self.groups) = (Vec::new(), Vec::new());
        } else if self.users.is_empty() && self.groups.is_empty() {
            self.users = vec![1];
        }
        if self.gpus.is_some() {
            self.rights[1] = false;
        }
        if !self.has_knob() && self.rights == [false; 3] {
            self.knobs[0] = Values::Any;
        }
        self
    }

    /// The rule in a policy file.
    fn text(&self) -> String {
        let mut text = "[[allow]]\n".to_owned();
        let mut key = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                writeln!(text, "{key} = {value}").unwrap();
            }
        };
        let list = |ids: &[u32]| (!ids.is_empty()).then(|| format!("{ids:?}"));
        key("everyone", self.everyone.then(|| "true".to_owned()));
        key("users", list(&self.users));
        key("groups", list(&self.groups));
        key(
            "gpus",
            self.gpus
                .as_ref()
                .map(|gpus| format!("[{}]", gpus.join(", "))),
        );
        key("power-cap", self.knobs[0].text("W"));
        key("core-clock", self.knobs[1].text("MHz"));
        key("memory-clock", self.knobs[2].text("MHz"));
        for (given, right) in self.rights.iter().zip(RIGHTS) {
            key(right.key(), Some(given.to_string()));
        }
        if self.has_knob() {
            key("shared-gpus", Some(self.shared.to_string()));
            key("longest-lease", Some(format!("\"{}h\"", self.hours)));
        }
        text
    }

    /// Whether the rule is for the user of a request.
    fn is_for(&self, request: &RequestSpec) -> bool {
        let in_group = |group| request.groups.iter().any(|own| own == group);
        self.everyone || self.users.contains(&request.uid) || self.groups.iter().any(in_group)
    }

    /// Whether the rule is about the GPU of a request.
    fn is_about(&self, request: &RequestSpec) -> bool {
        let names = match request.gpu {
            0 => ["0", "\"GPU-72f4\""],
            _ => ["1", "\"GPU-0c3b5d1e\""],
        };
        let gpus = self.gpus.as_ref();
        gpus.is_none_or(|gpus| gpus.iter().any(|gpu| names.contains(gpu)))
    }

    /// Whether the rule allows all of a request.
    fn allows(&self, request: &RequestSpec) -> bool {
        let mut knobs = self.knobs.iter().zip(request.knobs);
        self.is_for(request)
            && self.is_about(request)
            && self.has_knob()
            && knobs.all(|(values, value)| value.is_none_or(|value| values.lists(value)))
            && (self.shared || !request.shared)
            && request.hours <= self.hours
    }
}

impl RequestSpec {
    fn settings(&self) -> Settings {
        let half = |value: Option<u32>| value.map(|halves| f64::from(halves) / 2.0);
        Settings {
            power_cap: half(self.knobs[0]).map(Watts::new),
            core_clock: half(self.knobs[1]).map(Megahertz::new),
            memory_clock: half(self.knobs[2]).map(Megahertz::new),
        }
    }

    fn lease(&self) -> LeaseRequest {
        LeaseRequest {
            length: Duration::from_secs(3600 * self.hours),
            shared: self.shared,
        }
    }
}

fn values() -> impl Strategy<Value = Values> {
    prop_oneof![
        1 => Just(Values::None),
        1 => Just(Values::Any),
        3 => (0..6u32, 0..5u32).prop_map(|(low, more)| Values::Between(low, (low + more).max(1))),
    ]
}

fn rule() -> impl Strategy<Value = RuleSpec> {
    let subjects = (
        prop::bool::weighted(0.3),
        subsequence(vec![1, 2, 3], 0..=2),
        subsequence(vec![1, 2, 3], 0..=2),
        option::of(subsequence(GPU_NAMES.to_vec(), 1..=3)),
    );
    let terms = (any::<[bool; 3]>(), any::<bool>(), 1..=24u64);
    (subjects, [values(), values(), values()], terms).prop_map(|(subjects, knobs, terms)| {
        let (everyone, users, groups, gpus) = subjects;
        let (rights, shared, hours) = terms;
        let rule = RuleSpec {
            everyone,
            users,
            groups,
            gpus,
            knobs,
            rights,
            shared,
            hours,
        };
        rule.valid()
    })
}

fn request() -> impl Strategy<Value = RequestSpec> {
    let value = || option::of(0..16u32);
    let who = (1..=4u32, subsequence(vec![1, 2, 3, 4], 0..=2), 0..=1u32);
    let lease = (
        prop::bool::weighted(0.2),
        prop_oneof![3 => 0..=3u64, 1 => 0..=25u64],
    );
    (who, [value(), value(), value()], lease).prop_map(|(who, knobs, lease)| {
        let (uid, groups, gpu) = who;
        let (shared, hours) = lease;
        RequestSpec {
            uid,
            groups,
            gpu,
            knobs,
            shared,
            hours,
        }
    })
}

/// Text that looks like a policy file, with mistakes.
fn almost_policy() -> impl Strategy<Value = String> {
    let pieces = vec![
        "[[allow]]",
        "[allow]",
        "allow",
        "\n",
        "\n",
        " = ",
        "=",
        "users",
        "groups",
        "everyone",
        "gpus",
        "power-cap",
        "core-clock",
        "longest-lease",
        "shared-gpus",
        "ceiling",
        "true",
        "false",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "\"alice\"",
        "\"150..250 W\"",
        "\"..\"",
        "\"é..é\"",
        "\"24h\"",
        "\"9é\"",
        "\"GPU-7\"",
        "\"GPU-é\"",
        "0",
        "-1",
        "1e400",
        "nan",
        ",",
        "#",
        ".",
        "'",
        "\\u00",
        "é",
        "\r",
        "\0",
        "18446744073709551616",
        "07:00:00",
    ];
    vec(select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

/// Reads a text and, if it is a policy, asks it everything.
fn use_policy(text: &str) {
    let id = uuid(0);
    let gpu = Gpu { index: 0, id: &id };
    match Policy::from_text(text, FILE, &TestAccounts) {
        Ok(policy) => {
            for user in [account(0, &[]), account(1001, &[1005]), account(7, &[])] {
                let _ = policy.lease(&user, gpu);
                let shared = LeaseRequest {
                    length: Duration::MAX,
                    shared: true,
                };
                let _ = policy.settings(&user, gpu, &Settings::default(), shared);
                assert!(!explain(&policy, "alice", &user, &[gpu]).is_empty());
            }
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with(FILE), "{message}");
            assert!(
                !message.contains(['\n', '\r', '\u{1b}', '\0']),
                "{message:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn decisions_agree_with_the_oracle(
        rules in vec(rule(), 0..7),
        requests in vec(request(), 20),
    ) {
        let text: String = rules.iter().map(RuleSpec::text).collect();
        let policy = Policy::from_text(&text, FILE, &TestAccounts);
        let policy = policy.unwrap_or_else(|error| panic!("{error}\n{text}"));
        for request in &requests {
            let user = account(request.uid, &request.groups);
            let id = uuid(request.gpu);
            let gpu = Gpu { index: request.gpu, id: &id };
            let decision = policy.settings(&user, gpu, &request.settings(), request.lease());
            let expected = rules.iter().any(|rule| rule.allows(request));
            prop_assert_eq!(decision.is_ok(), expected, "{:?}\n{:?}\n{}", decision, request, text);

            let leasing = rules.iter().filter(|rule| {
                rule.is_for(request) && rule.is_about(request) && rule.has_knob()
            });
            let longest = leasing.clone().map(|rule| rule.hours).max();
            let shared = leasing.clone().any(|rule| rule.shared);
            let terms = policy.lease(&user, gpu).ok();
            let hours = terms.map(|terms| terms.longest.unwrap().as_secs() / 3600);
            prop_assert_eq!(hours, longest, "{}", text);
            prop_assert_eq!(terms.is_some_and(|terms| terms.shared), shared, "{}", text);

            for (index, right) in RIGHTS.into_iter().enumerate() {
                let expected = rules.iter().any(|rule| {
                    rule.is_for(request) && rule.rights[index] && (index == 1 || rule.is_about(request))
                });
                prop_assert_eq!(policy.right(&user, gpu, right).is_ok(), expected, "{}", text);
            }
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        use_policy(&text);
    }

    #[test]
    fn no_text_like_a_policy_panics(text in almost_policy()) {
        use_policy(&text);
    }

    #[test]
    fn no_value_of_a_key_panics(key in select(vec!["users", "gpus", "power-cap", "longest-lease"]), value in any::<String>()) {
        let quoted = serde_json::to_string(&value).unwrap();
        for value in [quoted.clone(), format!("[{quoted}]")] {
            use_policy(&format!("[[allow]]\neveryone = true\nceiling = true\n{key} = {value}\n"));
        }
    }

    #[test]
    fn no_damaged_policy_panics(rules in vec(rule(), 1..4), place in any::<prop::sample::Index>(), insert in any::<char>()) {
        let mut text: String = rules.iter().map(RuleSpec::text).collect();
        let place = place.index(text.len());
        text.replace_range(place..=place, &insert.to_string());
        use_policy(&text);
    }
}
