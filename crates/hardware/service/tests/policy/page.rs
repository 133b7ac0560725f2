//! The page `docs/reference/policy-keys.md`, made from the keys that the code knows.

use std::fmt::Write;
use std::path::Path;

use sweetspot_service::policy::{PolicyKey, RULE_KEYS, SLURM_KEYS};

fn table(text: &mut String, keys: &[PolicyKey]) {
    text.push_str("| key | value | if it is absent |\n|---|---|---|\n");
    for key in keys {
        let PolicyKey {
            name,
            value,
            if_absent,
        } = key;
        let _ = writeln!(text, "| `{name}` | {value} | {if_absent} |");
    }
}

#[test]
fn the_page_of_keys_matches_the_code() {
    let mut text = "# Keys of the policy\n\n<!-- Made from the code by `SNAPSHOTS=overwrite cargo test --release -p \
        sweetspot-service the_page_of_keys`; do not edit. -->\n\n\
        The keys of `/etc/sweetspot/policy.toml`. [policy.md](policy.md) explains them with examples.\n\n\
        ## Rules\n\nBelow a line `[[allow]]`:\n\n"
        .to_owned();
    table(&mut text, &RULE_KEYS);
    text.push_str(
        "\n## Jobs of Slurm\n\nBelow the line `[slurm]` ([slurm.md](slurm.md#installation)):\n\n",
    );
    table(&mut text, &SLURM_KEYS);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/policy-keys.md");
    snapbox::assert_data_eq!(text, snapbox::Data::read_from(&page, None).raw());
}
