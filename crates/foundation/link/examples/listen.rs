//! Runs a command with a link and counts its records, for authors of clients: `cargo run --release -p
//! sweetspot-link --example listen -- python3 train.py`.

use std::error::Error;
use std::process::Command;
use std::time::Duration;

use sweetspot_link::{Event, LINK_VARIABLE, Reader, pair_phases};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or("give a command")?;
    let mut reader = Reader::create()?;
    let mut child = Command::new(program)
        .args(arguments)
        .env(LINK_VARIABLE, reader.folder())
        .spawn()?;
    let mut events = Vec::new();
    let mut ended = false;
    while !ended {
        ended = child.try_wait()?.is_some();
        std::thread::sleep(Duration::from_millis(10));
        events.extend(reader.drain());
    }
    // A ring ends when it is read and found empty.
    events.extend(reader.drain());
    let records = events.iter().filter(|it| matches!(it, Event::Record(_)));
    println!("{} records", records.count());
    for event in &events {
        if !matches!(event, Event::Record(_)) {
            println!("{event:?}");
        }
    }
    let (spans, irregular) = pair_phases(&events);
    println!("{} phases, {} irregularities", spans.len(), irregular.len());
    Ok(())
}
