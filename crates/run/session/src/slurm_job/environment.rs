//! What Slurm tells a hook about its job.

use sweetspot_service::privileges::User;

/// The group of users whose group is unknown: that of `nobody`.
const NO_GROUP: u32 = 65_534;

/// A job, as Slurm describes it to its Prolog and Epilog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnvironment {
    /// The number of the job.
    pub id: u64,
    /// The id of the job's user.
    pub uid: u32,
    /// The id of the group with which the job runs.
    pub gid: u32,
    /// The node.
    pub node: String,
    /// The indices of the job's GPUs on the node.
    pub gpus: Vec<u32>,
    /// The comment of the job.
    pub comment: String,
    /// The folder in which the job runs; empty if it is unknown.
    pub folder: String,
    /// How often the job was requeued before; `None` if Slurm does not say it.
    pub restarts: Option<u32>,
}

impl JobEnvironment {
    /// Reads the description from environment variables, which `variable` looks up; `None` if this is not a job.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Self::read_with(variable, |uid| User::from_uid(uid).map(|user| user.gid))
    }

    /// Does the same with another list of accounts: `group` is the primary group of a user.
    fn read_with(
        variable: impl Fn(&str) -> Option<String>,
        group: impl Fn(u32) -> Option<u32>,
    ) -> Option<Self> {
        let number = |name: &str| variable(name)?.trim().parse().ok();
        let uid = number("SLURM_JOB_UID").or_else(|| number("SLURM_UID"))?;
        let gpus = variable("SLURM_JOB_GPUS").unwrap_or_default();
        let host = || {
            let name = rustix::system::uname().nodename().to_owned();
            name.to_string_lossy().into_owned()
        };
        Some(Self {
            id: variable("SLURM_JOB_ID")?.trim().parse().ok()?,
            uid,
            // A group with the number of the user may be somebody else's.
            gid: number("SLURM_JOB_GID")
                .or_else(|| group(uid))
                .unwrap_or(NO_GROUP),
            node: variable("SLURMD_NODENAME").unwrap_or_else(host),
            gpus: parse_list(&gpus),
            comment: variable("SLURM_JOB_COMMENT").unwrap_or_default(),
            folder: variable("SLURM_JOB_WORK_DIR").unwrap_or_default(),
            restarts: number("SLURM_JOB_RESTART_COUNT"),
        })
    }
}

/// Reads a list of indices, such as `0,2-3`.
fn parse_list(text: &str) -> Vec<u32> {
    /// The most GPUs of a node.
    const MAX_GPUS: u32 = 1024;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (last < MAX_GPUS).then_some(first..=last)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_read_from_the_variables_of_slurm() {
        let variables = [
            ("SLURM_JOB_ID", "12"),
            ("SLURM_JOB_UID", "1001"),
            ("SLURM_JOB_GPUS", "0,2-3"),
            ("SLURMD_NODENAME", "n1"),
            ("SLURM_JOB_COMMENT", "sweetspot:power-cap=200\n; rm"),
        ];
        let look_up = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let job = JobEnvironment::read_with(look_up, |_| Some(50)).unwrap();
        assert_eq!((job.id, job.uid, job.gid), (12, 1001, 50));
        let job = JobEnvironment::read_with(look_up, |_| None).unwrap();
        assert_eq!((job.gid, job.restarts), (NO_GROUP, None));
        assert_eq!(job.gpus, [0, 2, 3]);
        assert!(job.comment.contains('\n'));
        assert_eq!(JobEnvironment::read(|_| None), None);
        assert_eq!(parse_list("0-4294967295,x,,5-2"), Vec::<u32>::new());
    }
}
