//! Tests of the policy: files, decisions, descriptions.

mod decisions;
mod explanations;
mod files;
mod page;
mod properties;

use std::time::Duration;

use sweetspot_device::{DeviceId, Settings};
use sweetspot_quantity::{Megahertz, Watts};
use sweetspot_service::policy::{Account, Accounts, Gpu, LeaseRequest, Policy};

/// The users and groups of an imagined machine.
struct TestAccounts;

impl Accounts for TestAccounts {
    fn user_id(&self, name: &str) -> Option<u32> {
        match name {
            "root" | "toor" => Some(0),
            "alice" => Some(1001),
            "bob" => Some(1002),
            "carol" => Some(1003),
            _ => None,
        }
    }

    fn group_id(&self, name: &str) -> Option<u32> {
        match name {
            "sweetspot" => Some(990),
            "students" => Some(1005),
            "operators" => Some(1006),
            _ => None,
        }
    }
}

/// A machine on which no user and no group has a name.
struct NoAccounts;

impl Accounts for NoAccounts {
    fn user_id(&self, _: &str) -> Option<u32> {
        None
    }

    fn group_id(&self, _: &str) -> Option<u32> {
        None
    }
}

/// The file name in messages.
const FILE: &str = "/etc/sweetspot/policy.toml";

fn policy(text: &str) -> Policy {
    Policy::from_text(text, FILE, &TestAccounts).unwrap()
}

fn account(uid: u32, groups: &[u32]) -> Account {
    Account {
        uid,
        groups: groups.to_vec(),
    }
}

/// The UUID of GPU 0 or 1.
fn uuid(index: u32) -> DeviceId {
    DeviceId::new(match index {
        0 => "GPU-72f4549c-b587-f09a-a79f-9a005f4bf333",
        _ => "GPU-0c3b5d1e-4a66-7c1f-92d8-3e1f60a7b2c4",
    })
}

/// A lease of some hours of a GPU that no other user uses.
fn hours(hours: u64) -> LeaseRequest {
    LeaseRequest {
        length: Duration::from_secs(hours * 3600),
        shared: false,
    }
}

fn cap(watts: f64) -> Settings {
    Settings {
        power_cap: Some(Watts::new(watts)),
        ..Settings::default()
    }
}

fn core(mhz: f64) -> Settings {
    Settings {
        core_clock: Some(Megahertz::new(mhz)),
        ..Settings::default()
    }
}

/// Whether a user may apply settings to GPU 0; the error as text.
fn set(
    policy: &Policy,
    account: &Account,
    settings: &Settings,
    lease: LeaseRequest,
) -> Result<(), String> {
    let id = uuid(0);
    let gpu = Gpu { index: 0, id: &id };
    let decision = policy.settings(account, gpu, settings, lease);
    decision.map_err(|denied| denied.to_string())
}
