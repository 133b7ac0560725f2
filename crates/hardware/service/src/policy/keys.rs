//! The keys of a policy file, with what they mean: for messages, and for the page `docs/reference/policy-keys.md`.

/// A key of a policy file.
#[derive(Clone, Copy, Debug)]
pub struct PolicyKey {
    /// The name of the key.
    pub name: &'static str,
    /// What its value says, in Markdown.
    pub value: &'static str,
    /// What holds if the key is absent, in Markdown.
    pub if_absent: &'static str,
}

/// All keys of a rule.
pub const RULE_KEYS: [PolicyKey; 13] = [
    PolicyKey {
        name: "users",
        value: "a list of users by name or id: `[\"alice\", 1001]`",
        if_absent: "no user by name",
    },
    PolicyKey {
        name: "groups",
        value: "a list of groups by name or id: `[\"students\", 1005]`",
        if_absent: "no group",
    },
    PolicyKey {
        name: "everyone",
        value: "`true`: the rule is for all users",
        if_absent: "`false`",
    },
    PolicyKey {
        name: "gpus",
        value: "a list of GPUs: indices, UUIDs or beginnings of UUIDs: `[0, \"GPU-72f4549c\"]`",
        if_absent: "all GPUs",
    },
    PolicyKey {
        name: "power-cap",
        value: "a range of power caps: `\"150..250 W\"`; `true` for any value",
        if_absent: "not allowed",
    },
    PolicyKey {
        name: "core-clock",
        value: "a range of core clocks: `\"900..1400 MHz\"`; `true` for any value",
        if_absent: "not allowed",
    },
    PolicyKey {
        name: "memory-clock",
        value: "a range of memory clocks: `\"1500..2619 MHz\"`; `true` for any value; on boards with [clock offsets](devices.md#how-settings-are-set) never above the default",
        if_absent: "not allowed",
    },
    PolicyKey {
        name: "longest-lease",
        value: "the longest time for which settings may be changed: `\"24h\"`, `\"90m\"`, `\"2h 30m\"`",
        if_absent: "`\"24h\"`, which is also the maximum",
    },
    PolicyKey {
        name: "shared-gpus",
        value: "`true`: settings may be changed although another user's process runs on the GPU",
        if_absent: "`false`",
    },
    PolicyKey {
        name: "persistence",
        value: "`true`: persistence mode may be switched",
        if_absent: "`false`",
    },
    PolicyKey {
        name: "processor-cap",
        value: "`true`: the power of the processors may be capped",
        if_absent: "`false`",
    },
    PolicyKey {
        name: "processor-energy",
        value: "`true`: [named counters](metrics.md#named-counters) also have the energy of the processors, from one reading a second",
        if_absent: "`false`",
    },
    PolicyKey {
        name: "ceiling",
        value: "`true`: a ceiling may be set, a power cap under which the user's own settings must stay; a ceiling of root binds all users",
        if_absent: "`false`",
    },
];

/// All keys of the part `[slurm]`.
pub const SLURM_KEYS: [PolicyKey; 5] = [
    PolicyKey {
        name: "refused-jobs",
        value: "`\"run\"`, or `\"cancel\"`: the prolog cancels the job with `scancel`",
        if_absent: "`\"run\"`",
    },
    PolicyKey {
        name: "admin-comment",
        value: "`true`: what was set goes to the job's admin comment, and after its end the energy too, by `sacctmgr`, where the site has an accounting database",
        if_absent: "`false`",
    },
    PolicyKey {
        name: "all-jobs",
        value: "`true`: the energy of all jobs with GPUs is recorded, not only of those that ask for something",
        if_absent: "`false`",
    },
    PolicyKey {
        name: "folder",
        value: "the folder of root with the records of jobs",
        if_absent: "`/var/lib/sweetspot/jobs`",
    },
    PolicyKey {
        name: "choices",
        value: "a folder with choices of `tune` for all users",
        if_absent: "only those of the user",
    },
];

/// The names of keys, for messages.
pub(super) fn names(keys: &[PolicyKey]) -> String {
    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    names.join(", ")
}
