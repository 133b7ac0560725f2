//! Measures the cost of a phase for its workload: `cargo run --release -p sweetspot-link --example cost`.

use std::error::Error;
use std::time::Instant;

use sweetspot_link::{Moment, Reader, Writer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut reader = Reader::create()?;
    let writer = Writer::open(reader.folder())?;
    let (rounds, phases) = (101, 10_000);
    let median = |mut each: Vec<f64>| {
        each.sort_by(f64::total_cmp);
        each[each.len() / 2]
    };
    let mut phase = Vec::new();
    let mut clock = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..phases {
            writer.begin("forward");
            writer.end("forward");
        }
        phase.push(start.elapsed().as_nanos() as f64 / f64::from(phases));
        let start = Instant::now();
        for _ in 0..phases {
            std::hint::black_box(Moment::now());
        }
        clock.push(start.elapsed().as_nanos() as f64 / f64::from(phases));
        reader.drain();
    }
    println!("begin_end_ns {:.1}", median(phase));
    println!("of which the clock twice_ns {:.1}", 2.0 * median(clock));
    println!("lost {}", writer.lost());
    Ok(())
}
