//! The scripts that jobs run, and the options with which they are submitted.

use std::path::Path;

use super::arrays::array_option;
use super::commands::JobRequest;
use super::ledger::{ArrayRecord, Ledger};

/// The script and the options of an array. Options of the user come last, so that they win.
pub fn array_job(
    study: &Path,
    ledger: &Ledger,
    array: &ArrayRecord,
    program: &Path,
    max_jobs: Option<usize>,
    user: &[String],
) -> JobRequest {
    let output = ledger.output_file(array.number, "%a");
    let mut options = vec![
        format!("--job-name={}", array.name),
        array_option(array.blocks.len(), max_jobs),
        // A file name of Slurm's has patterns that begin with a percent sign.
        format!("--output={}", output.display()),
        // A lost run is submitted again by the sweep, which counts how often.
        "--no-requeue".to_owned(),
    ];
    options.extend(user.iter().cloned());
    options.extend(on_node(array.node.as_deref()));
    let script = format!(
        "#!/bin/sh\n{}runs=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" {})\nexec \"$program\" task {} ${{runs:?no runs}}\n",
        find_program(program),
        quoted(&ledger.runs_file(array.number)),
        quoted(study),
    );
    JobRequest { options, script }
}

/// The script and the options of the job that checks whether a folder is shared.
pub fn probe_job(folder: &Path, name: &str, program: &Path, user: &[String]) -> JobRequest {
    let mut options = vec![
        format!("--job-name={name}"),
        // A folder that is not there must not keep the job from saying so.
        "--output=/dev/null".to_owned(),
        "--chdir=/".to_owned(),
        "--no-requeue".to_owned(),
    ];
    options.extend(user.iter().cloned());
    let script = format!(
        "#!/bin/sh\n{}exec \"$program\" slurm probe {}\n",
        find_program(program),
        quoted(folder)
    );
    JobRequest { options, script }
}

/// The options that ask for a node.
fn on_node(node: Option<&str>) -> Vec<String> {
    node.map_or(Vec::new(), |node| {
        vec![format!("--nodelist={node}"), "--nodes=1".to_owned()]
    })
}

/// The lines that find the program on a node: at the same path as here, or in a folder of PATH.
fn find_program(program: &Path) -> String {
    let program = quoted(program);
    format!("program={program}\n[ -x \"$program\" ] || program=sweetspot\n")
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_survives_any_folder_name() {
        let folder = tempfile::tempdir().unwrap();
        let study = folder.path().join("it's $(a) \"study\"; x");
        std::fs::create_dir_all(study.join("slurm")).unwrap();
        let ledger = Ledger::new(&study, "abc");
        let array = ledger.begin(1, vec![vec![1], vec![5, 6]], Some("n2".to_owned()));
        let array = array.unwrap();
        // The stand-in for the program prints its arguments, one per line.
        let program = folder.path().join("pro gram");
        std::fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let user = ["--partition=gpu".to_owned()];
        let job = array_job(&study, &ledger, &array, &program, Some(3), &user);
        assert_eq!(job.options[1], "--array=0-1%3");
        assert_eq!(
            job.options[4..],
            ["--partition=gpu", "--nodelist=n2", "--nodes=1"]
        );
        let output = std::process::Command::new("sh")
            .args(["-c", &job.script])
            .env("SLURM_ARRAY_TASK_ID", "1")
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, format!("task\n{}\n5\n6\n", study.display()));
    }
}
