//! Contradictions within the printed tables of multi_gpu_2018.

use super::tables::StepCell;

/// A note if the printed watts are not the printed joules divided by seconds, or are more than the board can draw.
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
        "fault of the table: its joules over its seconds are {:.0} W, printed are {:.0} W{beyond}",
        power.get(),
        cell.power.get()
    ))
}

/// Why a cell has no tolerance; nothing if it has one.
pub fn why_unjudged(cell: &StepCell) -> Option<String> {
    match (cell.gpus, cell.is_consistent()) {
        (1, true) => None,
        (1, false) => {
            Some("not judged: its watts, joules and seconds contradict each other".into())
        }
        (2, _) => Some("not judged: follows from one GPU and the all-reduce alone".into()),
        _ => Some(
            "not judged: follows from the all-reduce alone; \"4 GPUs\" are 2 Pascal and 2 Maxwell"
                .into(),
        ),
    }
}
