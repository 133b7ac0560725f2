//! Contradictions within the printed tables of multi_gpu_2018.

use super::tables::StepCell;

/// Returns a note if the printed watts are not the printed joules divided by the printed seconds, or exceed what the
/// board can draw.
pub fn contradiction(cell: &StepCell) -> Option<String> {
    if cell.is_consistent() {
        return None;
    }
    let power = cell.energy / cell.time;
    let beyond = match power.get().max(cell.power.get()) >= 275.0 {
        true => ", and the board draws 250 W at most",
        false => "",
    };
    Some(format!(
        "error in the paper's table: its joules divided by its seconds are {:.0} W, but {:.0} W is printed{beyond}",
        power.get(),
        cell.power.get()
    ))
}

/// The reason why a cell has no tolerance; `None` if it has one.
pub fn why_unjudged(cell: &StepCell) -> Option<String> {
    (!cell.is_consistent()).then(|| {
        "no tolerance: the printed watts, joules and seconds contradict each other".to_owned()
    })
}
