//! Removes the folder of a simulated host whose program was killed.

use std::io::{self, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A process that waits for the end of this one. If this process was killed, it removes a folder.
#[derive(Debug)]
pub(crate) struct FolderRemover {
    /// The end of the pipe that the kernel closes when this process is killed.
    pipe: PipeWriter,
}

/// The shell's background process reads one line: none comes if this process was killed. It is no child of this process,
/// which might otherwise count it among the processes of the command, and signals from the terminal do not end it.
const SCRIPT: &str = r#"exec 3<&0; (trap '' HUP INT TERM; read -r line <&3 || rm -rf -- "$1") &"#;

impl FolderRemover {
    /// Starts the process.
    pub fn start(folder: &Path) -> io::Result<Self> {
        let (waiting, pipe) = io::pipe()?;
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(folder)
            .stdin(waiting)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .status()?;
        match shell.success() {
            true => Ok(Self { pipe }),
            false => Err(io::Error::other("/bin/sh failed")),
        }
    }
}

impl Drop for FolderRemover {
    /// Tells the process that there is nothing left to remove.
    fn drop(&mut self) {
        let _ = self.pipe.write_all(b"done\n");
    }
}
