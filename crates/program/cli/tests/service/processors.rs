//! Users without root cap the processors if the policy gives them that right.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::served_host::{ALICE, Account, BOB, ServedHost};
use crate::common::text;
use crate::processors::MadeTree;

const POLICY: &str = "[[allow]]\nusers = [64001]\nprocessor-cap = true\n\n[[allow]]\neveryone = true\npower-cap = true\n";
const LIMIT: &str = "powercap/intel-rapl:0/constraint_0_power_limit_uw";

#[test]
fn the_right_to_cap_processors_is_one_of_its_own() {
    let mut served = ServedHost::new("v100", POLICY);
    let tree = MadeTree::server_in(&served.folder);
    std::fs::set_permissions(tree.root(), Permissions::from_mode(0o755)).unwrap();
    let mut serve = served.serve();
    serve.arg("--sysfs").arg(tree.root());
    served.start_with(&mut serve);
    let limit = tree.path(LIMIT).display().to_string();
    let run = |account: Account| {
        let mut command = served.sweetspot_as(account);
        command.env("SWEETSPOT_SYSFS", tree.root());
        command.args(["run", "--cpu-power-cap", "120", "--", "cat", &limit]);
        command.output().unwrap()
    };
    let allowed = run(ALICE);
    assert_eq!(
        text(&allowed.stdout).trim(),
        "120000000",
        "{}",
        text(&allowed.stderr)
    );
    assert_eq!(tree.read(LIMIT), "205000000");
    let refused = run(BOB);
    assert_eq!(refused.status.code(), Some(125));
    assert!(
        text(&refused.stderr).contains("processor"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(tree.read(LIMIT), "205000000");
}
