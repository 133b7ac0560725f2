//! How well a cap is held: `cargo run --release -p sweetspot-benchmarks --bin hold`.

use anyhow::Result;
use sweetspot_control::hold::{DeviceKnob, Mode, Terms};
use sweetspot_quantity::{Megahertz, Seconds};
use sweetspot_session::hold::{Conditions, Rig};
use sweetspot_session::published::batch_sizer_2021_jobs;
use sweetspot_sim::Variant;

const CLOCKS: [f64; 10] = [
    544.0, 632.0, 734.0, 835.0, 949.0, 1063.0, 1189.0, 1303.0, 1430.0, 1531.0,
];
const SIZES: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

fn main() -> Result<()> {
    let clocks: Vec<Megahertz> = CLOCKS.iter().map(|clock| Megahertz::new(*clock)).collect();
    for job in batch_sizer_2021_jobs()? {
        let variant = Variant {
            dataset: Some(job.dataset.clone()),
            ..Variant::default()
        };
        let rig = Rig::new("tesla_p40", job.network, &variant)?;
        print!(
            "{:2} {:15} {:8} {:4.0}",
            job.job,
            job.network,
            job.dataset,
            job.power_cap.get()
        );
        for mode in Mode::ALL {
            let knob = match mode.is_batch_only() {
                true => DeviceKnob::None,
                false => DeviceKnob::CoreClock(clocks.clone()),
            };
            let terms = Terms::of(mode, job.power_cap, SIZES.to_vec(), knob);
            let held = rig.hold(terms, &Conditions::steady(Seconds::new(600.0), 1))?;
            let s = &held.summary;
            print!(
                " | {} {:.0} {:.1}% b{:.0} w{:?} c{} {:?}",
                mode,
                s.items_per_s,
                100.0 * s.violation_share.map_or(f64::NAN, |share| share.get()),
                s.average_batch.unwrap_or(0.0),
                s.settle_windows,
                s.changes,
                (
                    held.last.batch,
                    held.last.core_clock.map(|clock| clock.get())
                ),
            );
        }
        println!();
    }
    Ok(())
}
