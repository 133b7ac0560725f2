//! A meter that answers lines of text, over a socket or a serial line.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Mutex, PoisonError};

use sweetspot_device::{Clock, MonotonicClock};

use super::Shared;
use crate::Wt310;

/// The longest line that the meter reads.
const MAX_LINE: usize = 4096;

/// Answers the lines of a client until it ends the connection, the meter does, or the stand-ins end.
pub(super) fn serve(
    stream: &mut (impl Read + Write),
    meter: &Mutex<Wt310>,
    shared: &Shared,
) -> io::Result<()> {
    let mut received = Vec::new();
    let mut bytes = [0; 1024];
    while !shared.has_ended() {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => received.extend_from_slice(&bytes[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        }
        while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = received.drain(..=end).collect();
            if !answer_line(&String::from_utf8_lossy(&line), stream, meter, shared)? {
                return Ok(());
            }
        }
        if received.len() > MAX_LINE {
            received.clear();
        }
    }
    Ok(())
}

/// Answers one line; `false` if the meter ends the connection.
fn answer_line(
    line: &str,
    stream: &mut impl Write,
    meter: &Mutex<Wt310>,
    shared: &Shared,
) -> io::Result<bool> {
    for message in split_after_wait(line) {
        let answer = {
            let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
            let node = shared.node.advance();
            meter.handle(message, MonotonicClock.now(), &*node)
        };
        shared.sleep_until(answer.ready_at);
        if answer.ends_connection {
            return Ok(false);
        }
        if let Some(text) = answer.text {
            stream.write_all(format!("{text}\n").as_bytes())?;
        }
    }
    Ok(true)
}

/// Splits a line after its commands that wait, because the commands after them are executed later.
fn split_after_wait(line: &str) -> Vec<&str> {
    let mut messages = Vec::new();
    let mut rest = line.trim();
    let is_wait = |command: &str| command.to_ascii_uppercase().contains(":WAIT");
    let mut searched = 0;
    while let Some(end) = rest[searched..].find(';').map(|found| searched + found) {
        if is_wait(&rest[searched..end]) {
            messages.push(&rest[..end]);
            (rest, searched) = (&rest[end + 1..], 0);
        } else {
            searched = end + 1;
        }
    }
    messages.push(rest);
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_after_waits() {
        let split = |line| split_after_wait(line);
        assert_eq!(split("*IDN?\r\n"), ["*IDN?"]);
        assert_eq!(split(":A 1;:B 2"), [":A 1;:B 2"]);
        assert_eq!(
            split(":A;:COMM:WAIT 1;:B?;:C?"),
            [":A;:COMM:WAIT 1", ":B?;:C?"]
        );
    }
}
