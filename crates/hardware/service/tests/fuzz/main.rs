//! Feeds a million damaged requests to the service: no panic, no leak, and no write that nobody asked for.
//!
//! By default there are 20,000 requests. `FUZZ=1000000` sets their number (scripts/torture), `FUZZ_SEED` the seed.
//! There is one test in this binary, because it counts the memory and the files of the whole process.

mod audit_log;
mod client;
mod device;
mod expected;
mod inputs;
mod memory;
mod random;

use std::collections::BTreeMap;
use std::path::Path;

use sweetspot_guard::{Journal, Leases, SettingsReply};
use sweetspot_service::policy::{Policy, SystemAccounts};
use sweetspot_service::{Audit, ServedGpu, Service};

use audit_log::AuditLog;
use client::{Client, Sockets};
use device::{GPUS, Gpus, PERSISTENCE, before, id_of};
use expected::{Asked, POLICY, is_restoration};
use inputs::{HELLO, Language};
use memory::{Counting, InUse};
use random::Random;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes by which the memory in use may grow after the first fifth of a pass. What the service remembers is
/// bounded: the last 256 leases that it ended, and a line or two for each user.
const MAX_GROWTH: isize = 128 << 10;

fn number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

/// What has happened in a pass.
#[derive(Debug, Default)]
struct Counts {
    connections: usize,
    replies: BTreeMap<String, usize>,
    writes: usize,
}

/// The service of a pass with its GPUs and its clients.
struct Pass<'a> {
    service: Service<'a>,
    gpus: &'a Gpus,
    sockets: &'a Sockets,
    random: Random,
    audit: AuditLog,
    counts: Counts,
    /// Whether the policy allows anything.
    is_allowed: bool,
}

fn new_service<'a>(folder: &Path, gpus: &'a Gpus, policy: &str) -> Service<'a> {
    let journal = Journal::open(&folder.join("journal")).unwrap();
    let leases = Leases::new(journal, |id| Ok(gpus.open(id)?));
    let served = (0..GPUS).map(|gpu| ServedGpu {
        device: gpus.open(&id_of(gpu)).unwrap(),
    });
    let policy = Policy::from_text(policy, "policy.toml", &SystemAccounts).unwrap();
    let audit = Audit::open(&folder.join("audit.jsonl")).unwrap();
    Service::new(leases, served.collect(), Some(policy), audit)
}

impl Pass<'_> {
    /// Sends about this many requests.
    fn run(&mut self, requests: u64) {
        let mut sent = 0;
        let mut at_rest = None;
        while sent < requests {
            if at_rest.is_none() && sent >= requests / 5 {
                at_rest = Some(self.at_rest());
            }
            sent += self.one_connection(requests - sent);
            if self.is_allowed && self.random.once_in(20) {
                self.change_sharing();
            }
        }
        let (before, after) = (at_rest.unwrap(), self.at_rest());
        println!(
            "{sent} requests: {:?}\n  {before:?}\n  {after:?}",
            self.counts
        );
        assert_eq!(before.files, after.files, "files are not closed");
        let growth = after.bytes - before.bytes;
        assert!(growth < MAX_GROWTH, "{growth} bytes more are in use");
    }

    /// Makes a connection and sends requests until either side has enough. Returns how many there were.
    fn one_connection(&mut self, most: u64) -> u64 {
        let language = match self.random.below(20) {
            0 => Language::Noise,
            1..12 => Language::Lines,
            _ => Language::Http,
        };
        let mut client = self.sockets.connect();
        self.counts.connections += 1;
        if language == Language::Lines && !self.random.once_in(30) {
            client.send(HELLO, &mut self.service, &mut self.random);
        }
        let damaged = [2, 4, 30][self.random.below(3)];
        let length = (1 + self.random.below(40) as u64).min(most);
        for sent in 0..length {
            let bytes = inputs::next(language, damaged, &mut self.random);
            client.send(&bytes, &mut self.service, &mut self.random);
            self.check_writes(&client);
            self.audit.forget();
            self.check_replies(&mut client);
            if !client.is_open || self.random.once_in(100) {
                return sent + 1;
            }
        }
        length
    }

    /// Checks that everything that was written is what this client has asked for and may ask for.
    fn check_writes(&mut self, client: &Client) {
        let mut asked = None;
        for gpu in 0..GPUS {
            let mut state = self.gpus.state(gpu);
            let ends_leases = !state.processes.is_empty();
            if !state.writes.is_empty() {
                self.audit.check_device(&id_of(gpu));
            }
            for (change, is_there) in std::mem::take(&mut state.writes) {
                self.counts.writes += 1;
                assert!(self.is_allowed, "GPU {gpu}: {change:?}");
                // The other knobs of a lease may be written again with one of them.
                if is_there || ends_leases && is_restoration(change) {
                    continue;
                }
                let asked = asked.get_or_insert_with(|| Asked::read(&client.sent));
                assert!(
                    asked.explains(gpu, change),
                    "GPU {gpu}: {change:?} after {:?}, which asks for {asked:?}",
                    String::from_utf8_lossy(&client.sent)
                );
            }
        }
    }

    /// Checks that the replies are well-formed, and that nothing is granted where nothing is allowed.
    fn check_replies(&mut self, client: &mut Client) {
        if client.sent.first() != Some(&b'{') {
            let text = String::from_utf8_lossy(&client.received).into_owned();
            assert!(text.is_empty() || text.starts_with("HTTP/1.1 "), "{text}");
            for status in text.split("HTTP/1.1 ").skip(1) {
                let status = status.get(..3).unwrap_or_default().to_owned();
                *self.counts.replies.entry(status).or_default() += 1;
            }
            client.received.clear();
            return;
        }
        for reply in client.replies().expect("replies are JSON") {
            let (name, is_granted) = match &reply {
                SettingsReply::Hello { .. } => ("hello", false),
                SettingsReply::Leased { .. } => ("leased", true),
                SettingsReply::Applied(_) => ("applied", true),
                SettingsReply::Restored => ("restored", true),
                SettingsReply::Settings(_) => ("settings", true),
                SettingsReply::Released { problems } => {
                    assert!(problems.is_empty(), "{problems:?}");
                    ("released", false)
                }
                SettingsReply::Pong => ("pong", false),
                SettingsReply::Refused(_) => ("refused", false),
            };
            assert!(self.is_allowed || !is_granted, "{reply:?}");
            *self.counts.replies.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Lets a process of root use a GPU for a while, which ends leases of others.
    fn change_sharing(&mut self) {
        let gpu = self.random.below(GPUS);
        let processes = match self.random.once_in(3) {
            true => vec![1],
            false => Vec::new(),
        };
        self.gpus.state(gpu).processes = processes;
        self.audit.forget();
        self.service.check_leases();
        for gpu in 0..GPUS {
            let mut state = self.gpus.state(gpu);
            if !state.writes.is_empty() {
                self.audit.check_device(&id_of(gpu));
            }
            for (change, is_there) in std::mem::take(&mut state.writes) {
                assert!(is_there || is_restoration(change), "GPU {gpu}: {change:?}");
            }
        }
    }

    /// Ends all leases, checks that the GPUs have the settings from before the test, and counts what is in use.
    fn at_rest(&mut self) -> InUse {
        for owner in self.service.owners() {
            assert!(self.service.release(&owner, "released").is_empty());
        }
        for gpu in 0..GPUS {
            let mut state = self.gpus.state(gpu);
            assert_eq!(state.settings, before(), "GPU {gpu}");
            assert_eq!(state.persistence, PERSISTENCE, "GPU {gpu}");
            state.writes.clear();
        }
        InUse::now()
    }

    fn count(&self, reply: &str) -> usize {
        self.counts.replies.get(reply).copied().unwrap_or_default()
    }
}

#[test]
fn damaged_requests_do_no_harm() {
    let (requests, seed) = (number("FUZZ", 20_000), number("FUZZ_SEED", 1));
    // The journal is written to disk before each change; memory is faster, and the disk is not the subject.
    let memory = Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let sockets = Sockets::new();
    for (is_allowed, policy) in [(false, ""), (true, POLICY)] {
        let gpus = Gpus::new();
        let policy = policy.replace("USER", &sockets.uid.to_string());
        let mut pass = Pass {
            service: new_service(folder.path(), &gpus, &policy),
            gpus: &gpus,
            sockets: &sockets,
            random: Random::new(seed),
            audit: AuditLog::new(&folder.path().join("audit.jsonl")),
            counts: Counts::default(),
            is_allowed,
        };
        pass.run(requests / 2);
        // The test is worth something only if the requests reach what they are for.
        let least = requests as usize / 400;
        assert!(pass.count("refused") > least && pass.count("400") > least);
        if is_allowed {
            assert!(pass.counts.writes > least);
            assert!(pass.count("applied") > least && pass.count("leased") > least);
            assert!(pass.count("200") > least);
        } else {
            assert_eq!(pass.counts.writes, 0);
            assert!(pass.count("403") > least);
        }
    }
}
