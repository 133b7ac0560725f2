//! What policies allow and deny, and the messages.

use std::time::Duration;

use sweetspot_device::Settings;
use sweetspot_quantity::{Megahertz, Watts};
use sweetspot_service::policy::{Denied, Gpu, LeaseRequest, LeaseTerms, Policy, Right};

use crate::{FILE, NoAccounts, TestAccounts, account, cap, core, hours, policy, set, uuid};

const RIGHTS: [Right; 3] = [Right::Persistence, Right::ProcessorCap, Right::Ceiling];

/// Settings with a value for each knob.
fn all_knobs() -> Settings {
    Settings {
        power_cap: Some(Watts::new(200.0)),
        core_clock: Some(Megahertz::new(900.0)),
        memory_clock: Some(Megahertz::new(2619.0)),
    }
}

#[test]
fn the_default_policy_is_for_members_of_one_group() {
    let policy = Policy::default_policy(FILE, &TestAccounts);
    let (id, member) = (uuid(0), account(1001, &[1001, 990]));
    let gpu = Gpu { index: 0, id: &id };
    let terms = policy.lease(&member, gpu).unwrap();
    let day = Some(Duration::from_secs(86400));
    assert_eq!(
        terms,
        LeaseTerms {
            longest: day,
            shared: false
        }
    );
    assert_eq!(set(&policy, &member, &all_knobs(), hours(24)), Ok(()));
    assert_eq!(
        set(&policy, &member, &all_knobs(), hours(25)).unwrap_err(),
        "user 1001 may not change these settings of GPU 0 for 25 h: the default policy (there is no \
         /etc/sweetspot/policy.toml) allows 24 h at most"
    );
    let shared = LeaseRequest {
        shared: true,
        ..hours(1)
    };
    assert_eq!(
        set(&policy, &member, &Settings::default(), shared).unwrap_err(),
        "user 1001 may not change these settings of GPU 0 while another user's process runs on it: wait for that \
         process to end, or for a rule with `shared-gpus = true` in /etc/sweetspot/policy.toml"
    );
    for right in RIGHTS {
        assert!(policy.right(&member, gpu, right).is_err());
    }
    let other = account(1001, &[1001]);
    assert_eq!(
        policy.lease(&other, gpu).unwrap_err().to_string(),
        "user 1001 may not change GPU settings: without /etc/sweetspot/policy.toml only members of the group \
         sweetspot may; add the user with `sudo usermod -aG sweetspot USER` and log in again"
    );
    assert!(set(&policy, &other, &cap(200.0), hours(1)).is_err());
}

#[test]
fn without_the_default_group_only_root_may() {
    let policy = Policy::default_policy(FILE, &NoAccounts);
    // A user whose id or group is the usual one of the group that does not exist here.
    let denied = set(&policy, &account(990, &[990]), &cap(200.0), hours(1)).unwrap_err();
    assert!(
        denied.contains("create the group with `sudo groupadd --system sweetspot`"),
        "{denied}"
    );
    assert_eq!(
        set(&policy, &account(0, &[0]), &cap(200.0), hours(1)),
        Ok(())
    );
}

#[test]
fn root_may_do_everything_under_every_policy() {
    let (id, root) = (uuid(0), account(0, &[]));
    let gpu = Gpu { index: 0, id: &id };
    let empty = policy("");
    let narrow =
        policy("[[allow]]\neveryone = true\npower-cap = \"100..101 W\"\nlongest-lease = \"1s\"\n");
    for policy in [Policy::default_policy(FILE, &TestAccounts), empty, narrow] {
        let unlimited = LeaseTerms {
            longest: None,
            shared: true,
        };
        assert_eq!(policy.lease(&root, gpu), Ok(unlimited));
        let lease = LeaseRequest {
            length: Duration::MAX,
            shared: true,
        };
        assert_eq!(policy.settings(&root, gpu, &all_knobs(), lease), Ok(()));
        for right in RIGHTS {
            assert_eq!(policy.right(&root, gpu, right), Ok(()));
        }
    }
}

#[test]
fn a_file_without_rules_allows_nobody_anything() {
    for text in ["", "# nothing\n", "allow = []\n"] {
        let policy = policy(text);
        // Membership in the default group does not help if there is a file.
        let denied = set(&policy, &account(1001, &[990]), &cap(200.0), hours(1));
        assert_eq!(
            denied.unwrap_err(),
            "user 1001 may not change GPU settings: no rule in /etc/sweetspot/policy.toml applies to this user; an \
             administrator can add one"
        );
    }
}

#[test]
fn users_and_groups_are_not_mixed_up() {
    let policy = policy("[[allow]]\nusers = [1005]\ngroups = [1001]\npower-cap = true\n");
    let may =
        |uid, groups: &[u32]| set(&policy, &account(uid, groups), &cap(1.0), hours(1)).is_ok();
    assert!(may(1005, &[]) && may(7, &[3, 1001]));
    assert!(!may(1001, &[]) && !may(7, &[1005]));
}

#[test]
fn values_outside_the_range_are_denied_with_the_range() {
    let policy = policy(
        "[[allow]]\nusers = [\"alice\"]\npower-cap = \"150..250 W\"\n\
         [[allow]]\neveryone = true\npower-cap = \"300..350 W\"\n",
    );
    let alice = account(1001, &[]);
    for watts in [150.0, 250.0, 300.0] {
        assert_eq!(set(&policy, &alice, &cap(watts), hours(1)), Ok(()));
    }
    assert_eq!(
        set(&policy, &alice, &cap(275.0), hours(1)).unwrap_err(),
        "user 1001 may not set the power cap of GPU 0 to 275 W: /etc/sweetspot/policy.toml allows 150 W to 250 W or \
         300 W to 350 W"
    );
    let denied = set(&policy, &account(1002, &[]), &cap(200.0), hours(1)).unwrap_err();
    assert!(denied.ends_with("allows 300 W to 350 W"), "{denied}");
    assert_eq!(
        set(&policy, &alice, &core(900.0), hours(1)).unwrap_err(),
        "user 1001 may not set the core clock of GPU 0: no rule in /etc/sweetspot/policy.toml that applies to the \
         user has the key `core-clock`"
    );
    for watts in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(set(&policy, &alice, &cap(watts), hours(1)).is_err());
    }
}

#[test]
fn one_rule_must_allow_the_whole_request() {
    let policy = policy(
        "[[allow]]\neveryone = true\npower-cap = \"100..200 W\"\ncore-clock = \"900..1400 MHz\"\nlongest-lease = \"2h\"\n\
         [[allow]]\neveryone = true\npower-cap = \"200..300 W\"\nlongest-lease = \"8h\"\n\
         [[allow]]\neveryone = true\ncore-clock = \"500..600 MHz\"\nlongest-lease = \"1h\"\nshared-gpus = true\n",
    );
    let user = account(1001, &[]);
    let both = |watts, mhz| Settings {
        core_clock: core(mhz).core_clock,
        ..cap(watts)
    };
    assert_eq!(set(&policy, &user, &both(200.0, 900.0), hours(2)), Ok(()));
    assert_eq!(
        set(&policy, &user, &both(300.0, 900.0), hours(1)).unwrap_err(),
        "user 1001 may not set power cap 300 W and core clock 900 MHz of GPU 0 at the same time: each is allowed, but \
         no single rule in /etc/sweetspot/policy.toml allows them together"
    );
    // The second rule allows 8 h, but no core clock.
    let denied = set(&policy, &user, &core(900.0), hours(8)).unwrap_err();
    assert!(
        denied.contains("for 8 h") && denied.ends_with("allows 2 h at most"),
        "{denied}"
    );
    assert_eq!(set(&policy, &user, &cap(200.0), hours(8)), Ok(()));
    // The third rule allows shared GPUs, but no power cap, and only 1 h.
    let shared = |hours_| LeaseRequest {
        shared: true,
        ..hours(hours_)
    };
    assert_eq!(set(&policy, &user, &core(500.0), shared(1)), Ok(()));
    assert!(
        set(&policy, &user, &cap(200.0), shared(1))
            .unwrap_err()
            .contains("another user's process")
    );
    let denied = set(&policy, &user, &Settings::default(), shared(2)).unwrap_err();
    assert!(denied.ends_with("allows 1 h at most"), "{denied}");
    // The terms of a lease are the most generous ones.
    let id = uuid(0);
    let terms = policy.lease(&user, Gpu { index: 0, id: &id }).unwrap();
    let longest = Some(Duration::from_secs(8 * 3600));
    assert_eq!(
        terms,
        LeaseTerms {
            longest,
            shared: true
        }
    );
}

#[test]
fn rules_are_about_the_gpus_that_they_name() {
    let policy = policy(
        "[[allow]]\neveryone = true\ngpus = [1]\npower-cap = true\n\
         [[allow]]\neveryone = true\ngpus = [\"GPU-72f4\"]\ncore-clock = true\npersistence = true\n",
    );
    let user = account(1001, &[]);
    let (first, second) = (uuid(0), uuid(1));
    let may = |index, id, settings: &Settings| {
        policy
            .settings(&user, Gpu { index, id }, settings, hours(1))
            .is_ok()
    };
    assert!(may(1, &second, &cap(200.0)) && !may(0, &first, &cap(200.0)));
    assert!(may(0, &first, &core(900.0)) && !may(1, &second, &core(900.0)));
    // The UUID stays the same if the driver counts the GPUs in another order; the index does not.
    assert!(may(1, &first, &core(900.0)) && may(1, &first, &cap(200.0)));
    let denied = policy
        .lease(
            &user,
            Gpu {
                index: 2,
                id: &second,
            },
        )
        .unwrap_err();
    assert_eq!(
        denied.to_string(),
        "user 1001 may not change settings of GPU 2: no rule in /etc/sweetspot/policy.toml that applies to the user \
         allows it"
    );
    assert!(
        policy
            .right(
                &user,
                Gpu {
                    index: 0,
                    id: &first
                },
                Right::Persistence
            )
            .is_ok()
    );
    assert!(
        policy
            .right(
                &user,
                Gpu {
                    index: 1,
                    id: &second
                },
                Right::Persistence
            )
            .is_err()
    );
}

#[test]
fn a_right_is_given_only_by_its_own_key() {
    let id = uuid(0);
    let gpu = Gpu { index: 0, id: &id };
    let user = account(1001, &[]);
    for given in RIGHTS {
        let policy = policy(&format!(
            "[[allow]]\neveryone = true\n{} = true\n",
            given.key()
        ));
        for right in RIGHTS {
            assert_eq!(policy.right(&user, gpu, right).is_ok(), right == given);
        }
        // A right alone is no permission to set power caps or clocks, nor to lease a GPU.
        assert!(matches!(
            policy.lease(&user, gpu),
            Err(Denied::NoRuleForGpu { .. })
        ));
        assert!(set(&policy, &user, &Settings::default(), hours(0)).is_err());
    }
    let knobs = policy("[[allow]]\neveryone = true\npower-cap = true\n");
    assert_eq!(
        knobs
            .right(&user, gpu, Right::Persistence)
            .unwrap_err()
            .to_string(),
        "user 1001 may not set the persistence mode of GPU 0: no rule in /etc/sweetspot/policy.toml that applies to \
         the user has `persistence = true`"
    );
    let denied = knobs
        .right(&user, gpu, Right::ProcessorCap)
        .unwrap_err()
        .to_string();
    assert!(
        denied.starts_with("user 1001 may not set the processor cap: "),
        "{denied}"
    );
}

#[test]
fn processor_energy_is_read_by_policy_alone() {
    let rules = "[[allow]]\nusers = [1001]\nprocessor-energy = true\n\n\
         [[allow]]\neveryone = true\npower-cap = true\nprocessor-energy = false\n";
    let policy = policy(rules);
    for (uid, may_read) in [(0, true), (1001, true), (1002, false)] {
        let account = account(uid, &[]);
        assert_eq!(policy.may_read_processors(&account), may_read, "{uid}");
    }
    // The right to read them is not one to set anything.
    let id = uuid(0);
    let gpu = Gpu { index: 0, id: &id };
    let user = account(1001, &[]);
    assert!(policy.right(&user, gpu, Right::ProcessorCap).is_err());
    let default = Policy::default_policy(FILE, &TestAccounts);
    assert!(!default.may_read_processors(&account(1002, &[990])));
}

#[test]
fn a_right_does_not_lengthen_leases() {
    let policy = policy(
        "[[allow]]\neveryone = true\npersistence = true\n\
         [[allow]]\neveryone = true\npower-cap = true\nlongest-lease = \"2h\"\n",
    );
    let id = uuid(0);
    let terms = policy
        .lease(&account(1001, &[]), Gpu { index: 0, id: &id })
        .unwrap();
    assert_eq!(terms.longest, Some(Duration::from_secs(7200)));
}

#[test]
fn denials_cross_the_socket() {
    let narrow =
        policy("[[allow]]\neveryone = true\npower-cap = \"100..200 W\"\nlongest-lease = \"1h\"\n");
    let default = Policy::default_policy(FILE, &TestAccounts);
    let id = uuid(0);
    let (gpu, user) = (Gpu { index: 0, id: &id }, account(1001, &[]));
    let denials = [
        default.lease(&user, gpu).unwrap_err(),
        narrow
            .settings(&user, gpu, &cap(300.0), hours(1))
            .unwrap_err(),
        narrow
            .settings(&user, gpu, &core(900.0), hours(1))
            .unwrap_err(),
        narrow
            .settings(&user, gpu, &cap(200.0), hours(2))
            .unwrap_err(),
        narrow.right(&user, gpu, Right::Ceiling).unwrap_err(),
        narrow.right(&user, gpu, Right::ProcessorCap).unwrap_err(),
    ];
    for denied in denials {
        let sent = serde_json::to_string(&denied).unwrap();
        let received: Denied = serde_json::from_str(&sent).unwrap();
        assert_eq!(received, denied, "{sent}");
        assert_eq!(denied.to_string().lines().count(), 1);
    }
}
