//! Reads what Slurm's commands print.

/// The columns that are asked of squeue, separated by `|`. The reason comes last, because it is free text.
pub const QUEUE_FORMAT: &str = "%F|%K|%T|%N|%j|%r";

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// The job waits to be started.
    Pending,
    /// The job runs, or is about to begin or to end.
    Running,
    /// The job is over; this is Slurm's word for how it ended.
    Ended(String),
}

impl JobState {
    /// Reads Slurm's word for a state. A word that is not known is that of a job which still exists.
    fn parse(word: &str) -> Self {
        /// The states of jobs that are over.
        const ENDED: [&str; 11] = [
            "COMPLETED",
            "FAILED",
            "TIMEOUT",
            "NODE_FAIL",
            "PREEMPTED",
            "CANCELLED",
            "OUT_OF_MEMORY",
            "BOOT_FAIL",
            "DEADLINE",
            "REVOKED",
            "LAUNCH_FAILED",
        ];
        // A state may be followed by who caused it.
        let word = word.split_whitespace().next().unwrap_or_default();
        match word {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT"
            | "RESV_DEL_HOLD" => Self::Pending,
            _ if ENDED.contains(&word) => Self::Ended(word.to_owned()),
            _ => Self::Running,
        }
    }
}

/// A job, or one task of a job array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedTask {
    /// The number of the job or of the array.
    pub job: u64,
    /// The number of the task in the array; `None` for a job that is not an array, and for all tasks of an array without a
    /// line of their own: squeue shows those together that were cancelled before they started.
    pub index: Option<usize>,
    /// The state of the job.
    pub state: JobState,
    /// The node on which the job runs or ran; empty before it starts.
    pub node: String,
    /// The name of the job.
    pub name: String,
    /// Why the job waits.
    pub reason: String,
}

/// Reads the lines that squeue prints in the format [`QUEUE_FORMAT`]; lines of another form are left out.
pub fn parse_queue(text: &str) -> Vec<QueuedTask> {
    text.lines().filter_map(parse_task).collect()
}

/// Reads one line of squeue.
fn parse_task(line: &str) -> Option<QueuedTask> {
    let mut columns = line.splitn(6, '|');
    let mut next = || columns.next();
    let (job, index, state) = (next()?, next()?, next()?);
    Some(QueuedTask {
        job: job.trim().parse().ok()?,
        index: match index.trim() {
            "N/A" => None,
            index => Some(index.parse().ok()?),
        },
        state: JobState::parse(state),
        node: next()?.trim().to_owned(),
        name: next()?.trim().to_owned(),
        reason: next()?.trim().to_owned(),
    })
}

/// The limits of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most tasks of an array, and the number that the index of a task stays below.
    pub array_size: usize,
    /// The most jobs that the controller keeps.
    pub job_count: usize,
}

impl Default for Limits {
    /// Slurm's own defaults.
    fn default() -> Self {
        Self {
            array_size: 1001,
            job_count: 10_000,
        }
    }
}

/// Reads the limits from what `scontrol show config` prints.
pub fn parse_limits(text: &str) -> Limits {
    let value = |key: &str| {
        let line = text.lines().find(|line| {
            line.split('=')
                .next()
                .is_some_and(|name| name.trim() == key)
        })?;
        line.split_once('=')?.1.trim().parse().ok()
    };
    let usual = Limits::default();
    Limits {
        array_size: value("MaxArraySize").unwrap_or(usual.array_size),
        job_count: value("MaxJobCount").unwrap_or(usual.job_count),
    }
}

/// Reads the nodes that are up from what sinfo prints as `NODE|STATE|PARTITION`. Without a partition they are those of the
/// default partition, which sinfo marks with an asterisk.
pub fn parse_nodes(text: &str, partition: Option<&str>) -> Vec<String> {
    let mut nodes: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut columns = line.split('|').map(str::trim);
        let (Some(node), Some(state), Some(of)) = (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let is_in_partition = match partition {
            Some(name) => name.split(',').any(|name| name == of.trim_end_matches('*')),
            None => of.ends_with('*'),
        };
        // What follows the word marks nodes that do not respond, are switched off, or are reserved.
        let is_up = ["idle", "mix", "alloc", "comp"].iter().any(|up| {
            state
                .strip_prefix(up)
                .is_some_and(|rest| rest.chars().all(char::is_alphabetic))
        });
        if is_in_partition && is_up && !nodes.iter().any(|known| known == node) {
            nodes.push(node.to_owned());
        }
    }
    nodes
}

/// Reads the exit code of a job from what `scontrol show job` prints; `None` if it is not there.
pub fn parse_exit_code(text: &str) -> Option<i32> {
    let code = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix("ExitCode="))?;
    code.split(':').next()?.parse().ok()
}

/// Reads the number of a job from what `sbatch --parsable` prints: `123` or `123;cluster`.
pub fn parse_job(text: &str) -> Option<u64> {
    text.lines().last()?.split(';').next()?.trim().parse().ok()
}

/// What a failed command of Slurm says, as one line without the name of the command.
pub fn parse_problem(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim();
        let line = line.split_once(": error: ").map_or(line, |(_, rest)| rest);
        line.strip_prefix("Batch job submission failed: ")
            .unwrap_or(line)
    });
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    match lines.as_slice() {
        [] => "it printed no reason".to_owned(),
        lines => lines.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_read_as_squeue_prints_it() {
        let text = "12|0|RUNNING|n1|sweetspot-a-1|None\n\
                    12|17|PENDING||sweetspot-a-1|(ReqNodeNotAvail, UnavailableNodes:n[1-4])\n\
                    13|N/A|COMPLETED|n2|x|None\n12|3|CANCELLED by 0|n1|x|None\n\
                    12|4|SOMETHING_NEW|n1|x|a|b\nslurm_load_jobs error: x\n\n12|[5-9%2]|PENDING||x|Priority\n";
        let queue = parse_queue(text);
        let shown: Vec<_> = queue
            .iter()
            .map(|task| (task.job, task.index, task.state.clone()))
            .collect();
        let ended = |word: &str| JobState::Ended(word.to_owned());
        assert_eq!(
            shown,
            [
                (12, Some(0), JobState::Running),
                (12, Some(17), JobState::Pending),
                (13, None, ended("COMPLETED")),
                (12, Some(3), ended("CANCELLED")),
                (12, Some(4), JobState::Running),
            ]
        );
        assert_eq!(
            queue[1].reason,
            "(ReqNodeNotAvail, UnavailableNodes:n[1-4])"
        );
        assert_eq!(queue[4].reason, "a|b");
    }

    #[test]
    fn limits_nodes_and_answers_are_read_as_slurm_prints_them() {
        let config =
            "MaxArraySize            = 1001\nMaxJobCount             = 300\nMaxJobId = 7\n";
        let limits = parse_limits(config);
        assert_eq!((limits.array_size, limits.job_count), (1001, 300));
        assert_eq!(parse_limits(""), Limits::default());
        let nodes = "n1|idle|gpu*\nn2|mix|gpu*\nn2|mix|long\nn3|down*|gpu*\nn4|idle*|gpu*\nn5|drain|gpu*\nn6|alloc|long\n";
        assert_eq!(parse_nodes(nodes, None), ["n1", "n2"]);
        assert_eq!(parse_nodes(nodes, Some("long")), ["n2", "n6"]);
        assert_eq!(parse_job("123\n"), Some(123));
        assert_eq!(parse_job("123;cluster"), Some(123));
        assert_eq!(parse_job("Submitted batch job"), None);
        assert_eq!(parse_exit_code("Restarts=0 ExitCode=127:0 x"), Some(127));
        let problem = "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed: Invalid partition name specified\n";
        assert_eq!(
            parse_problem(problem),
            "invalid partition specified: x; Invalid partition name specified"
        );
    }
}
