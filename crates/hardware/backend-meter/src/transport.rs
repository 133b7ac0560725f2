//! Connections that carry lines of text: serial ports, network sockets, USB measurement devices, programs.

mod usbtmc;

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::error::Problem;
use crate::spec::Target;

/// A connection to a meter that answers line by line. Tests put a scripted meter with a virtual clock in its place.
pub(crate) trait Transport: Send {
    /// Sends a line; the end of the line is added.
    fn send(&mut self, line: &str) -> Result<(), Error>;

    /// Waits for the next line, without its end. An answer that takes longer than `timeout` is an error.
    fn receive(&mut self, timeout: Duration) -> Result<String, Error>;

    /// Discards what the meter has sent so far.
    fn clear(&mut self) {}
}

/// The longest line that a meter may send.
const MAX_LINE: usize = 4096;
/// The longest wait for a network connection.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// The speed of a serial port, unless it is configured.
const USUAL_BAUD: u32 = 9600;

/// Connects to a meter. `command` is the program whose output is read, for [`Target::Command`].
pub(crate) fn connect(
    target: &Target,
    baud: Option<u32>,
    command: &[String],
) -> Result<Box<dyn Transport>, Error> {
    Ok(match target {
        Target::Tcp(address) => Box::new(Stream::new(connect_tcp(address)?.into())),
        Target::Serial(path) => {
            Box::new(Stream::new(open_serial(path, baud.unwrap_or(USUAL_BAUD))?))
        }
        Target::Usbtmc(path) => Box::new(usbtmc::Usbtmc::open(path)?),
        Target::Command => Box::new(Program::start(command)?),
    })
}

/// Explains why a meter could not be connected.
pub(crate) fn explain(target: &Target, error: Error) -> Problem {
    let path = match target {
        Target::Usbtmc(path) | Target::Serial(path) => path.display(),
        Target::Tcp(_) | Target::Command => return error.into(),
    };
    match (error.kind(), target) {
        (ErrorKind::NotFound, Target::Usbtmc(_)) => Problem::Failed(format!(
            "there is no {path}: check with `lsusb` that the meter is connected and on, and load its driver with `modprobe usbtmc`; `ls /dev/usbtmc*` names those that are there"
        )),
        (ErrorKind::NotFound, _) => Problem::Failed(format!(
            "there is no {path}: check that the meter is connected; `ls /dev/ttyUSB* /dev/ttyACM* /dev/ttyS*` names the ports that are there"
        )),
        _ => error.into(),
    }
}

/// A connection whose bytes come in order and are divided into lines here.
struct Stream {
    file: File,
    received: Vec<u8>,
}

impl Stream {
    fn new(file: OwnedFd) -> Self {
        Self {
            file: file.into(),
            received: Vec::new(),
        }
    }
}

impl Transport for Stream {
    fn send(&mut self, line: &str) -> Result<(), Error> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    fn receive(&mut self, timeout: Duration) -> Result<String, Error> {
        let until = Instant::now() + timeout;
        loop {
            if let Some(line) = take_line(&mut self.received)? {
                return Ok(line);
            }
            wait_readable(&self.file, until.saturating_duration_since(Instant::now()))?;
            let mut bytes = [0; 1024];
            match self.file.read(&mut bytes) {
                Ok(0) => {
                    return Err(Error::new(
                        ErrorKind::UnexpectedEof,
                        "the connection was closed",
                    ));
                }
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn clear(&mut self) {
        self.received.clear();
        let mut bytes = [0; 1024];
        while wait_readable(&self.file, Duration::ZERO).is_ok()
            && self.file.read(&mut bytes).is_ok_and(|count| count > 0)
        {}
    }
}

/// Removes the first line from the received bytes; `None` if no line is complete yet.
fn take_line(received: &mut Vec<u8>) -> Result<Option<String>, Error> {
    let Some(end) = received.iter().position(|byte| *byte == b'\n') else {
        return match received.len() > MAX_LINE {
            true => {
                received.clear();
                Err(Error::new(
                    ErrorKind::InvalidData,
                    "its answer has no end of line",
                ))
            }
            false => Ok(None),
        };
    };
    let line: Vec<u8> = received.drain(..=end).collect();
    Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()))
}

/// Waits until a file can be read.
fn wait_readable(file: &File, timeout: Duration) -> Result<(), Error> {
    let timeout = Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    let mut files = [PollFd::new(file, PollFlags::IN)];
    match poll(&mut files, Some(&timeout)) {
        Ok(0) => Err(ErrorKind::TimedOut.into()),
        Ok(_) => Ok(()),
        Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Connects to a network address.
fn connect_tcp(address: &str) -> Result<TcpStream, Error> {
    let mut problem = Error::new(ErrorKind::NotFound, "its address is unknown");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIME) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

/// Opens a serial port without conversions of any kind.
fn open_serial(path: &Path, baud: u32) -> Result<OwnedFd, Error> {
    // Without `NONBLOCK`, opening a port waits for a modem's carrier.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let port = rustix::fs::open(path, flags, Mode::empty())?;
    if !rustix::termios::isatty(&port) {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "it is not a serial port",
        ));
    }
    let mut settings = tcgetattr(&port)?;
    settings.make_raw();
    settings.set_speed(baud)?;
    tcsetattr(&port, OptionalActions::Flush, &settings)?;
    rustix::fs::fcntl_setfl(&port, OFlags::RDWR)?;
    Ok(port)
}

/// A program whose output is read; it is ended with the connection.
struct Program {
    child: Child,
    output: Stream,
}

impl Program {
    fn start(command: &[String]) -> Result<Self, Error> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "it has no command"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
        Ok(Self {
            child,
            output: Stream::new(output.into()),
        })
    }
}

impl Transport for Program {
    fn send(&mut self, _: &str) -> Result<(), Error> {
        Err(Error::new(
            ErrorKind::Unsupported,
            "a command takes no requests",
        ))
    }

    fn receive(&mut self, timeout: Duration) -> Result<String, Error> {
        self.output.receive(timeout)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_whole_and_in_order() {
        let mut received = b"1.5,2\r\n3".to_vec();
        assert_eq!(take_line(&mut received).unwrap().as_deref(), Some("1.5,2"));
        assert_eq!(take_line(&mut received).unwrap(), None);
        received.extend(std::iter::repeat_n(b'x', MAX_LINE));
        assert!(take_line(&mut received).is_err());
    }

    #[test]
    fn a_program_is_read_and_ended() {
        let command = ["sh", "-c", "echo 12 W; sleep 100"].map(str::to_owned);
        let mut program = connect(&Target::Command, None, &command).unwrap();
        assert_eq!(program.receive(Duration::from_secs(5)).unwrap(), "12 W");
        let late = program.receive(Duration::from_millis(5)).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_device_that_is_not_there_is_explained() {
        let target = Target::Usbtmc("/dev/usbtmc97".into());
        let error = connect(&target, None, &[]).err().unwrap();
        let text = explain(&target, error).text().to_owned();
        assert!(
            text.starts_with("there is no /dev/usbtmc97: check with `lsusb`"),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_is_no_serial_port_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let problem = connect(&Target::Serial(file.path().into()), None, &[])
            .err()
            .unwrap();
        assert_eq!(problem.to_string(), "it is not a serial port");
    }
}
