//! Caps that jobs ask for, set by the prolog and restored by the epilog.

use std::os::unix::fs::chown;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::cluster::{Cluster, wait_for};
use super::records::mode;
use crate::common::text;

/// A user whom the policy allows caps, and one to whom no rule applies: accounts of every Debian system, because Slurm
/// runs no jobs of users without an account.
const ALLOWED: u32 = 65_534;
const STRANGER: u32 = 5;
/// A user to whom the policy allows the default cap too, from which `tune` starts.
const TUNER: u32 = 4;

const POLICY: &str = "[slurm]\nadmin-comment = true\nchoices = \"/CHOICES\"\n[[allow]]\nusers = [65534]\npower-cap = \"100..250 W\"\ncore-clock = true\n[[allow]]\nusers = [4]\npower-cap = \"100..300 W\"\n";

/// The settings of the GPUs of a node on which nothing is set.
const UNSET: [(f64, Option<f64>); 2] = [(300.0, None), (300.0, None)];

/// A cluster with one node, and a folder of the allowed user.
struct Site {
    cluster: Cluster,
    home: PathBuf,
}

impl Site {
    fn start() -> Self {
        let choices = tempfile::tempdir().unwrap().keep();
        let policy = POLICY.replace("/CHOICES", choices.to_str().unwrap());
        let cluster = Cluster::start(1, Some(&policy));
        let home = cluster.path("home");
        std::fs::create_dir(&home).unwrap();
        chown(&home, Some(ALLOWED), None).unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&choices, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { cluster, home }
    }

    /// Submits a job of a user that asks with a comment, and returns its number.
    fn submit(&self, user: u32, comment: &str, script: &str) -> String {
        let file = self.cluster.path("job.sh");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mut sbatch = self.cluster.command("setpriv", &self.home);
        sbatch
            .args([format!("--reuid={user}"), format!("--regid={user}")])
            .args([
                "--clear-groups",
                "sbatch",
                "--parsable",
                "--gres=gpu:1",
                "--output=/dev/null",
            ])
            .arg(format!("--comment={comment}"))
            .arg(&file);
        let output = sbatch.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    /// Calls a hook for a job of the allowed user with the first GPU, which Slurm does not know.
    fn call_hook(&self, hook: &str, job: &str, comment: &str) {
        let status = self
            .cluster
            .command("sh", &self.home)
            // A daemon may have no umask.
            .args(["-c", "umask 0; exec \"$0\""])
            .arg(self.cluster.path(&format!("site-{hook}")))
            .envs([
                ("SLURM_JOB_ID", job),
                ("SLURM_JOB_UID", "65534"),
                ("SLURM_JOB_GPUS", "0"),
                ("SLURMD_NODENAME", "n1"),
                ("SLURM_JOB_COMMENT", comment),
            ])
            .status();
        assert!(status.unwrap().success());
    }

    fn settings(&self) -> Vec<(f64, Option<f64>)> {
        self.cluster.settings("n1")
    }

    /// Waits until the GPU of the only job has this cap; the other GPU stays as it is.
    fn wait_for_cap(&self, cap: f64) {
        wait_for(&format!("a cap of {cap} W"), || {
            self.settings() == [(cap, None), (300.0, None)]
        });
    }

    /// Waits until the epilog of a job has run, and returns the record of the job.
    fn record(&self, job: &str) -> Value {
        let file = self.cluster.path(&format!("jobs/n1/ended/{job}.json"));
        wait_for(&format!("the record of job {job}"), || file.exists());
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    }

    /// What `scontrol` says about a job.
    fn shown(&self, job: &str) -> String {
        self.cluster.slurm(&["scontrol", "show", "job", job])
    }
}

#[test]
#[ignore = "needs Slurm"]
fn caps_of_jobs_are_set_on_their_gpus_alone_and_restored() {
    let mut site = Site::start();
    caps_nest(&site);
    tuning_inside_a_job_stays_below_its_cap(&site);
    every_ending_restores(&site);
    what_is_not_allowed_is_refused_and_the_job_runs(&site);
    a_very_long_comment_is_refused(&site);
    a_job_that_shares_a_gpu_does_not_end_the_cap_of_another(&site);
    an_epilog_that_never_ran_is_made_up_for(&site);
    a_stored_choice_answers_an_objective(&site);
    a_crash_of_the_service_loses_nothing(&mut site);
    a_policy_can_cancel_refused_jobs(&site);
}

/// Inside the job, its user can go below the cap and not above it.
fn caps_nest(site: &Site) {
    let folder = site.cluster.folder.display();
    let inside = format!(
        "export SWEETSPOT_SOCKET={folder}/n1/run/socket HOME=$PWD
          {folder}/sweetspot run --device 0 --power-cap 170W -- {folder}/sweetspot devices >below 2>&1
         {folder}/sweetspot run --device 0 --power-cap 240W -- {folder}/sweetspot devices >above 2>&1
         sleep 1"
    );
    let job = site.submit(ALLOWED, "sweetspot:power-cap=200", &inside);
    site.wait_for_cap(200.0);
    let record = site.record(&job);
    assert_eq!(
        record["outcome"],
        json!({"applied": {"power_cap": "200 W"}}),
        "{record}"
    );
    assert!(
        record["gpus"][0]["energy_j"].as_f64().unwrap() > 0.0,
        "{record}"
    );
    assert_eq!(record["gpus"].as_array().unwrap().len(), 1);
    let read = |name: &str| std::fs::read_to_string(site.home.join(name)).unwrap();
    assert!(
        read("below").contains("170 W requested"),
        "{}",
        read("below")
    );
    assert!(
        read("above").contains("200 W requested"),
        "{}",
        read("above")
    );
    // The user has the record too.
    let copy = format!("sweetspot-{job}-n1.json");
    wait_for("the copy of the user", || {
        serde_json::from_str::<Value>(&read(&copy)).is_ok_and(|copy| copy == record)
    });
    assert!(
        site.shown(&job)
            .contains("AdminComment=sweetspot: power cap 200 W"),
        "{}",
        site.shown(&job)
    );
    assert_eq!(site.settings(), UNSET);
}

/// `tune` explores caps below that of the job, and says that its savings are those against the job's cap.
fn tuning_inside_a_job_stays_below_its_cap(site: &Site) {
    let home = site.cluster.path("tuner");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(TUNER), None).unwrap();
    let folder = site.cluster.folder.display();
    let inside = format!(
        "cd {folder}/tuner; export SWEETSPOT_SOCKET={folder}/n1/run/socket HOME=$PWD
         {folder}/sweetspot tune --device 0 --objective energy --export-json tuned.json -- {folder}/sweetspot sim-workload --network resnet50 --batch 32 --seconds 16 >out 2>&1"
    );
    let job = site.submit(TUNER, "sweetspot:power-cap=200", &inside);
    wait_for("a cap below that of the job", || {
        site.settings()[0].0 < 200.0
    });
    site.record(&job);
    let printed = std::fs::read_to_string(home.join("out")).unwrap();
    assert!(
        printed.contains("savings are those against 200 W, because the reference of 300 W is not enforced (a budget or the scheduler allows no more)"),
        "{printed}"
    );
    let tuned = std::fs::read(home.join("tuned.json")).unwrap();
    let tuned: Value = serde_json::from_slice(&tuned).unwrap();
    assert!(tuned["windows"].as_array().unwrap().len() >= 2, "{tuned}");
    assert_eq!(site.settings(), UNSET);
}

/// Success, failure, cancellation and requeue.
fn every_ending_restores(site: &Site) {
    let job = site.submit(ALLOWED, "sweetspot:core-clock=1200", "sleep 1; exit 3");
    wait_for("a clock", || site.settings()[0].1.is_some());
    site.record(&job);
    assert_eq!(site.settings(), UNSET);
    let job = site.submit(ALLOWED, "mine sweetspot:power-cap=180", "sleep 60");
    site.wait_for_cap(180.0);
    site.cluster.slurm(&["scancel", &job]);
    site.record(&job);
    assert_eq!(site.settings(), UNSET);
    let job = site.submit(ALLOWED, "sweetspot:power-cap=190", "sleep 60");
    site.wait_for_cap(190.0);
    site.cluster.slurm(&["scontrol", "requeue", &job]);
    site.record(&job);
    assert_eq!(site.settings(), UNSET);
    site.cluster.slurm(&["scancel", &job]);
}

/// A user outside the policy, a value outside the range, and injections.
fn what_is_not_allowed_is_refused_and_the_job_runs(site: &Site) {
    let marker = site.home.join("marker");
    let injection = format!("sweetspot:power-cap=200; touch {}", marker.display());
    let cases = [
        (STRANGER, "sweetspot:power-cap=200", "no rule in"),
        (ALLOWED, "sweetspot:power-cap=280", "allows 100 W to 250 W"),
        (ALLOWED, "sweetspot:power-cap=120", "150 W"),
        (ALLOWED, injection.as_str(), "the character ;"),
        (
            ALLOWED,
            "sweetspot:power-cap=200\nsweetspot:power-cap=100",
            "the character \\n",
        ),
        (ALLOWED, "sweetspot:power-cap=$(id)", "the character $"),
        (
            ALLOWED,
            "sweetspot:objective=energy",
            "no choice for the objective energy",
        ),
    ];
    let jobs: Vec<String> = cases
        .iter()
        .map(|(user, comment, _)| site.submit(*user, comment, "true"))
        .collect();
    for (job, (_, comment, expected)) in jobs.iter().zip(cases) {
        let record = site.record(job);
        let reason = record["outcome"]["refused"].as_str();
        let reason = reason.unwrap_or_else(|| panic!("{comment}: {record}"));
        assert!(reason.contains(expected), "{comment}: {reason}");
        wait_for("the end of the job", || {
            site.shown(job).contains("JobState=COMPLETED")
        });
        let log = std::fs::read_to_string(site.cluster.path("jobs/n1/log.jsonl")).unwrap();
        let is_it =
            |line: &str| line.contains("\"refused\"") && line.contains(&format!("\"job\":{job},"));
        assert!(log.lines().any(is_it), "{job}: {log}");
    }
    assert!(!marker.exists());
    assert_eq!(site.settings(), UNSET);
    // The node still takes jobs: a hook that failed would have taken it out of service.
    wait_for("an idle node", || {
        let states = site.cluster.slurm(&["sinfo", "--noheader", "--format=%t"]);
        states.contains("idle")
    });
}

/// Slurm itself accepts no comment of 10 kB, so the prolog is called without it.
fn a_very_long_comment_is_refused(site: &Site) {
    let comment = format!("sweetspot:power-cap=200 {}", "x".repeat(10_000));
    for hook in ["prolog", "epilog"] {
        site.call_hook(hook, "99999", &comment);
        assert_eq!(site.settings(), UNSET);
    }
    let record = site.record("99999");
    let reason = record["outcome"]["refused"].as_str().unwrap();
    assert!(reason.contains("the comment has 10024 bytes"), "{reason}");
    assert_eq!(mode(&site.cluster.path("jobs/n1/ended/99999.json")), 0o644);
}

/// With shards, MPS or an oversubscribed partition several jobs have a GPU: the first that asks has its setting.
fn a_job_that_shares_a_gpu_does_not_end_the_cap_of_another(site: &Site) {
    let job = site.submit(ALLOWED, "sweetspot:power-cap=200", "sleep 5");
    site.wait_for_cap(200.0);
    let open = site.cluster.path(&format!("jobs/n1/{job}.json"));
    for hook in ["prolog", "epilog"] {
        site.call_hook(hook, "99998", "sweetspot:power-cap=220");
        assert_eq!(site.settings()[0].0, 200.0);
        assert!(open.exists());
    }
    let other = site.record("99998");
    assert!(other["outcome"]["refused"].is_string(), "{other}");
    site.record(&job);
    assert_eq!(site.settings(), UNSET);
}

/// After a crash of a node no epilog has run. The next job on the GPU restores it, and so does the same job when it starts
/// again.
fn an_epilog_that_never_ran_is_made_up_for(site: &Site) {
    site.call_hook("prolog", "99997", "sweetspot:power-cap=180");
    assert_eq!(site.settings()[0].0, 180.0);
    let job = site.submit(ALLOWED, "sweetspot:power-cap=210", "sleep 1");
    site.wait_for_cap(210.0);
    assert_eq!(site.record("99997")["progress"], "ended");
    site.record(&job);
    assert_eq!(site.settings(), UNSET);
    for cap in [180.0, 190.0] {
        site.call_hook("prolog", "99996", &format!("sweetspot:power-cap={cap}"));
        assert_eq!(site.settings()[0].0, cap);
    }
    assert_eq!(site.record("99996")["progress"], "ended");
    site.call_hook("epilog", "99996", "");
    let record = site.record("99996-restart-1");
    assert_eq!(
        record["outcome"],
        json!({"applied": {"power_cap": "190 W"}})
    );
    assert_eq!(site.settings(), UNSET);
}

/// The time limit of a job has a resolution of a minute.
#[test]
#[ignore = "needs Slurm and two minutes"]
fn a_job_that_reaches_its_time_limit_is_restored() {
    let site = Site::start();
    let job = site.submit(ALLOWED, "sweetspot:power-cap=200", "sleep 300");
    site.wait_for_cap(200.0);
    let limit = ["scontrol", "update", &format!("JobId={job}"), "TimeLimit=1"];
    site.cluster.slurm(&limit);
    let begun = std::time::Instant::now();
    while !site.shown(&job).contains("JobState=TIMEOUT") {
        assert!(begun.elapsed().as_secs() < 150, "{}", site.shown(&job));
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    site.record(&job);
    assert_eq!(site.settings(), UNSET);
}

/// What `tune` has chosen before.
fn a_stored_choice_answers_an_objective(site: &Site) {
    let policy = std::fs::read_to_string(site.cluster.path("policy.toml")).unwrap();
    let folder = policy
        .lines()
        .find_map(|line| line.strip_prefix("choices = "))
        .unwrap();
    let choice = json!({
        "schema": "sweetspot.choice/1",
        "job": {"gpu": "Tesla V100-SXM2-16GB", "gpus": 1, "simulated": true, "workload": "python train.py",
                "knob": "power-cap", "objective": "edp", "limits": []},
        "choice": {"settings": {"power_cap": "210 W"}, "gain": 0.1, "time_s": 60.0},
    });
    let file = PathBuf::from(folder.trim_matches('"')).join("a.json");
    std::fs::write(file, choice.to_string()).unwrap();
    let job = site.submit(
        ALLOWED,
        "sweetspot:objective=edp,workload=train.py",
        "sleep 1",
    );
    site.wait_for_cap(210.0);
    site.record(&job);
    assert_eq!(site.settings(), UNSET);
}

/// A service that is killed takes up the lease; an epilog without a service leaves it to the next hook.
fn a_crash_of_the_service_loses_nothing(site: &mut Site) {
    let job = site.submit(ALLOWED, "sweetspot:power-cap=200", "sleep 3");
    site.wait_for_cap(200.0);
    site.cluster.kill_services();
    site.cluster.start_service("n1");
    assert_eq!(site.settings()[0].0, 200.0);
    site.record(&job);
    assert_eq!(site.settings(), UNSET);
    let job = site.submit(ALLOWED, "sweetspot:power-cap=200", "sleep 1");
    site.wait_for_cap(200.0);
    site.cluster.kill_services();
    let open = site.cluster.path(&format!("jobs/n1/{job}.json"));
    wait_for("an epilog without a service", || {
        std::fs::read_to_string(&open).is_ok_and(|text| text.contains("not-restored"))
    });
    site.cluster.start_service("n1");
    site.submit(ALLOWED, "nothing", "true");
    assert_eq!(site.record(&job)["progress"], "ended");
    assert_eq!(site.settings(), UNSET);
}

/// The policy decides what happens to refused jobs.
fn a_policy_can_cancel_refused_jobs(site: &Site) {
    let file = site.cluster.path("policy.toml");
    let policy = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        policy.replace("[slurm]\n", "[slurm]\nrefused-jobs = \"cancel\"\n"),
    )
    .unwrap();
    let job = site.submit(ALLOWED, "sweetspot:power-cap=1", "sleep 30");
    wait_for("the end of the job", || {
        site.shown(&job).contains("JobState=CANCELLED")
    });
    site.cluster.wait_until_idle();
}
