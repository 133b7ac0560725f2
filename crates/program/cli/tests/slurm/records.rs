//! The records of jobs, which decide what the hooks restore; the hooks are called without Slurm.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::bad_input::write_script;
use crate::common::text;
use crate::host::TestHost;

/// The permission bits of a file or folder.
pub fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777
}

/// A folder of root for a hook that is called without Slurm, whose service is at `socket` in it.
struct HookFolder(PathBuf);

impl HookFolder {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(format!("/run/sweetspot-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("the tests run as root");
        let jobs = folder.join("made/jobs");
        let policy = format!("[slurm]\nfolder = \"{}\"\n", jobs.display());
        std::fs::write(folder.join("policy.toml"), policy).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Calls a hook for job 7 on a host, with an umask of 0, and returns its messages.
    fn call(&self, hook: &str, host: &TestHost) -> String {
        self.call_with(hook, host, &[])
    }

    /// Does the same with other variables.
    fn call_with(&self, hook: &str, host: &TestHost, variables: &[(&str, &str)]) -> String {
        let output = host
            .command("sh")
            .args(["-c", "umask 0; exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_sweetspot"))
            .args(["slurm", hook, "--socket"])
            .arg(self.path("socket"))
            .arg("--policy")
            .arg(self.path("policy.toml"))
            .current_dir("/")
            .envs([
                ("SLURM_JOB_ID", "7"),
                ("SLURM_JOB_UID", "65534"),
                ("SLURM_JOB_GPUS", "0"),
                ("SLURMD_NODENAME", "n1"),
                ("SLURM_JOB_COMMENT", "sweetspot:power-cap=200"),
            ])
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert!(output.status.success());
        text(&output.stderr)
    }

    /// A record of this node.
    fn record(&self, name: &str) -> Value {
        let text = std::fs::read(self.path("made/jobs/n1").join(name)).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

impl Drop for HookFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A record decides which leases a hook ends, so that nobody else may be able to write one, whatever the umask of the
/// daemon that calls the hook is. A folder that others can write to is not used.
#[test]
#[ignore = "needs root"]
fn records_of_jobs_belong_to_root_alone() {
    let (folder, host) = (HookFolder::new("records"), TestHost::new("v100"));
    let message = folder.call("prolog", &host);
    for path in ["made", "made/jobs", "made/jobs/n1"] {
        assert_eq!(mode(&folder.path(path)), 0o755, "{path}: {message}");
    }
    for file in ["7.json", "log.jsonl"] {
        assert_eq!(mode(&folder.path("made/jobs/n1").join(file)), 0o644);
    }
    // Where no service was ever reached, nothing can be left.
    folder.call("epilog", &host);
    assert!(folder.path("made/jobs/n1/ended/7.json").exists());
    use std::os::unix::fs::PermissionsExt;
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path("made/jobs"), open).unwrap();
    let message = folder.call("prolog", &host);
    assert!(
        message.contains("the folder with the records of jobs"),
        "{message}"
    );
}

/// A service that was asked and has not answered may set the cap later, so that the job is not over before a hook has
/// asked it to release what the job has.
#[test]
#[ignore = "needs root"]
fn a_job_is_not_over_while_it_is_unknown_what_the_service_has_set() {
    let (folder, host) = (HookFolder::new("unknown"), TestHost::new("v100"));
    let listener = std::os::unix::net::UnixListener::bind(folder.path("socket")).unwrap();
    // It accepts connections and ends without an answer.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let message = folder.call("prolog", &host);
    assert!(message.contains("refused"), "{message}");
    let message = folder.call("epilog", &host);
    assert!(message.contains("not restored"), "{message}");
    let record = std::fs::read(folder.path("made/jobs/n1/7.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["progress"], "not-restored", "{record}");
    assert!(record["outcome"]["refused"].is_string(), "{record}");
}

/// A setting is applied to all GPUs of a job or to none, and a GPU that is not there cannot have it.
#[test]
#[ignore = "needs root"]
fn a_job_with_a_gpu_that_is_not_found_is_refused() {
    let (folder, host) = (HookFolder::new("missing"), TestHost::new("v100"));
    folder.call_with("prolog", &host, &[("SLURM_JOB_GPUS", "0,5")]);
    let record = folder.record("7.json");
    let reason = record["outcome"]["refused"].as_str().unwrap();
    assert!(
        reason.starts_with("GPU 5 of the job was not found"),
        "{record}"
    );
}

/// Also where Slurm does not tell the hook how often the job was requeued.
#[test]
#[ignore = "needs root"]
fn a_job_that_is_requeued_keeps_the_records_of_its_earlier_starts() {
    let (folder, host) = (HookFolder::new("requeued"), TestHost::new("v100"));
    for _ in 0..2 {
        folder.call("prolog", &host);
        folder.call("epilog", &host);
    }
    assert_eq!(folder.record("ended/7.json")["restarts"], 0);
    assert_eq!(folder.record("ended/7-restart-1.json")["restarts"], 1);
    // A start without an epilog is over when the job starts again.
    folder.call("prolog", &host);
    folder.call_with("prolog", &host, &[("SLURM_JOB_RESTART_COUNT", "3")]);
    assert_eq!(folder.record("ended/7-restart-2.json")["progress"], "ended");
    assert_eq!(folder.record("7.json")["restarts"], 3);
}

/// Jobs on the node wait for a hook, so that it waits for a controller only for a while.
#[test]
#[ignore = "needs root"]
fn a_controller_that_does_not_respond_does_not_block_a_hook() {
    let (folder, host) = (HookFolder::new("silent"), TestHost::new("v100"));
    let policy = std::fs::read_to_string(folder.path("policy.toml")).unwrap();
    std::fs::write(
        folder.path("policy.toml"),
        policy + "admin-comment = true\n",
    )
    .unwrap();
    write_script(&folder.path("scontrol"), "exec sleep 300");
    let path = format!("{}:{}", folder.0.display(), std::env::var("PATH").unwrap());
    let begun = std::time::Instant::now();
    let message = folder.call_with("prolog", &host, &[("PATH", &path)]);
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    assert!(
        message.contains("`scontrol` did not answer: it did not respond within 10 s"),
        "{message}"
    );
    assert!(folder.record("7.json")["outcome"]["refused"].is_string());
}

/// A job that shares a GPU may have no step on the node at the moment; Slurm then says whether it runs there.
#[test]
#[ignore = "needs root"]
fn a_job_on_the_same_gpu_is_over_unless_slurm_says_that_it_runs() {
    let (folder, host) = (HookFolder::new("shared"), TestHost::new("v100"));
    let path = format!("{}:{}", folder.0.display(), std::env::var("PATH").unwrap());
    // Numbers that no job of another test's cluster on this machine has.
    let first = [("SLURM_JOB_ID", "99907")];
    let next = [("SLURM_JOB_ID", "99908"), ("PATH", &path)];
    folder.call_with("prolog", &host, &first);
    let asked = folder.path("asked");
    let squeue = format!("echo \"$@\" >>{}; echo 99907", asked.display());
    write_script(&folder.path("squeue"), &squeue);
    folder.call_with("prolog", &host, &next);
    assert_eq!(folder.record("99907.json")["progress"], "running");
    let asked = std::fs::read_to_string(asked).unwrap();
    assert!(
        asked.contains("--jobs=99907") && asked.contains("--nodelist=n1"),
        "{asked}"
    );
    write_script(&folder.path("squeue"), "exit 0");
    folder.call_with("epilog", &host, &next);
    assert_eq!(folder.record("ended/99907.json")["progress"], "ended");
    assert_eq!(folder.record("ended/99908.json")["progress"], "ended");
}
