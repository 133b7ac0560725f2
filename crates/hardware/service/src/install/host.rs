//! The parts of an installation that concern the running system: the group, and systemd.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{GROUP, InstallError, Installation, PROGRAM};

/// The name of the service to systemd.
const SERVICE: &str = "sweetspot.service";

/// The folders in which the system's tools are. The caller's PATH may name others.
const TOOL_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The system that the service is installed on.
pub(super) struct Host {
    /// The folders with the system's tools; `None` if files are installed into a folder and nothing else is done.
    pub(super) tools: Option<Vec<PathBuf>>,
    /// Whether systemd runs.
    pub(super) has_systemd: bool,
    /// Whether the service's group exists.
    pub(super) has_group: bool,
}

impl Host {
    /// This machine, if the service is installed on it.
    pub(super) fn of(options: &Installation) -> Self {
        let folders = TOOL_FOLDERS.map(PathBuf::from).to_vec();
        Self {
            tools: options.is_for_this_machine().then_some(folders),
            has_systemd: Path::new("/run/systemd/system").is_dir(),
            has_group: uzers::get_group_by_name(GROUP).is_some(),
        }
    }

    /// Creates the service's group if it is missing.
    pub(super) fn make_group(&self) -> Result<Option<String>, InstallError> {
        if self.tools.is_none() || self.has_group {
            return Ok(None);
        }
        let advice = "create the system group sweetspot by hand, then install again";
        // groupadd is the usual one; Alpine has the addgroup of BusyBox.
        let (tool, option) = match (self.find("groupadd"), self.find("addgroup")) {
            (Some(tool), _) => (tool, "--system"),
            (None, Some(tool)) => (tool, "-S"),
            (None, None) => return Err(self.missing("groupadd or addgroup", advice)),
        };
        run(&tool, &[option, GROUP], advice)?;
        Ok(Some(format!("The group {GROUP} is created.")))
    }

    /// Starts the service, now and at each boot. A running service is restarted only if something has changed, because
    /// a restart ends all leases.
    pub(super) fn start(
        &self,
        options: &Installation,
        has_changed: bool,
    ) -> Result<String, InstallError> {
        if self.tools.is_none() {
            return Ok(format!(
                "Files were installed below {}. The group {GROUP} and the start of the service are left to you.",
                options.root.display()
            ));
        }
        if !self.has_systemd {
            return Ok(format!(
                "systemd does not run here, so the service was not started: run `{PROGRAM} serve` as root, or let your init system run it."
            ));
        }
        self.reload()?;
        if !options.start {
            return Ok(format!(
                "The service was not started: run `systemctl enable --now {SERVICE}`."
            ));
        }
        self.systemctl(&["enable", SERVICE])?;
        match has_changed {
            true => {
                self.systemctl(&["restart", SERVICE])?;
                Ok("The service is started, and will be at each boot.".to_owned())
            }
            false => {
                self.systemctl(&["start", SERVICE])?;
                Ok("The service runs, and is started at each boot.".to_owned())
            }
        }
    }

    /// Stops the service, which restores all settings, and no longer starts it at boot.
    pub(super) fn stop(&self) -> Result<Option<String>, InstallError> {
        if self.tools.is_none() {
            return Ok(None);
        }
        if !self.has_systemd {
            return Ok(Some(
                "systemd does not run here: if the service still runs, end it with SIGTERM."
                    .to_owned(),
            ));
        }
        self.systemctl(&["disable", "--now", SERVICE])?;
        Ok(Some(
            "The service is stopped, and no longer starts at boot.".to_owned(),
        ))
    }

    /// Lets systemd read its units again.
    pub(super) fn reload(&self) -> Result<(), InstallError> {
        match self.tools.is_some() && self.has_systemd {
            true => self.systemctl(&["daemon-reload"]),
            false => Ok(()),
        }
    }

    /// Runs systemctl.
    fn systemctl(&self, arguments: &[&str]) -> Result<(), InstallError> {
        let tool = self
            .find("systemctl")
            .ok_or_else(|| self.missing("systemctl", "install systemd's tools"))?;
        let advice = "see `systemctl status sweetspot` and `journalctl -u sweetspot`";
        run(&tool, arguments, advice)
    }

    /// The path of a tool; `None` if it is not installed.
    fn find(&self, name: &str) -> Option<PathBuf> {
        let folders = self.tools.iter().flatten();
        folders
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())
    }

    /// The error for a tool that is not installed.
    fn missing(&self, names: &'static str, advice: &'static str) -> InstallError {
        let folders = self.tools.iter().flatten();
        let folders: Vec<String> = folders.map(|path| path.display().to_string()).collect();
        InstallError::MissingTool {
            names,
            folders: folders.join(", "),
            advice,
        }
    }
}

/// Runs a tool with an environment of its own, and waits for it.
fn run(tool: &Path, arguments: &[&str], advice: &'static str) -> Result<(), InstallError> {
    let failed = |reason: String| InstallError::FailedTool {
        command: format!("{} {}", tool.display(), arguments.join(" ")),
        reason,
        advice,
    };
    let output = Command::new(tool)
        .args(arguments)
        .env_clear()
        .env("PATH", TOOL_FOLDERS.join(":"))
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(match said.trim() {
        "" => output.status.to_string(),
        said => said.replace('\n', "; "),
    }))
}
