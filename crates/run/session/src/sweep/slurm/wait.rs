//! Waits for a command of Slurm, and never without end: the controller of a site may not respond.

use std::process::{Child, Output};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sweetspot_workload::SignalSource;

/// How long a command may take. Slurm's commands end by themselves before, unless a file system or a wrapper blocks them.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How long a command may take that a hook calls: the job on the node waits for it, and Slurm takes a node out of service
/// whose hooks take too long.
const HOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// The time between two checks for a signal.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// What a command does, on which depends how long it is waited for after a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It reads something.
    Query,
    /// It submits or cancels jobs, and its answer says what it has done.
    Change,
    /// A hook of Slurm called it.
    Hook,
}

impl Wait {
    /// How long the command may take.
    fn timeout(self) -> Duration {
        match self {
            Self::Query | Self::Change => TIMEOUT,
            Self::Hook => HOOK_TIMEOUT,
        }
    }

    /// How long the command may go on after a signal.
    fn after_signal(self) -> Duration {
        Duration::from_secs(match self {
            Self::Query => 1,
            Self::Change | Self::Hook => 5,
        })
    }
}

/// Waits for a command that leads a process group of its own. If it takes too long, or a signal arrives, the group is
/// killed, and the error says why.
pub fn wait_for(
    child: Child,
    wait: Wait,
    signals: Option<&SignalSource>,
) -> Result<Output, String> {
    let group = Pid::from_child(&child);
    let (sender, ended) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let mut deadline = Instant::now() + wait.timeout();
    let mut is_interrupted = false;
    loop {
        match ended.recv_timeout(CHECK_INTERVAL) {
            Ok(output) => return output.map_err(|problem| problem.to_string()),
            Err(RecvTimeoutError::Disconnected) => return Err("its output was lost".to_owned()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let signal = signals.and_then(SignalSource::received);
        if signal.is_some() && !is_interrupted {
            is_interrupted = true;
            deadline = deadline.min(Instant::now() + wait.after_signal());
        }
        let is_repeated = signals.is_some_and(SignalSource::is_repeated);
        if is_repeated || Instant::now() >= deadline {
            let _ = kill_process_group(group, Signal::KILL);
            return Err(match signal {
                Some(signal) => format!("it had not ended after signal {signal}"),
                None => format!("it did not respond within {} s", wait.timeout().as_secs()),
            });
        }
    }
}
