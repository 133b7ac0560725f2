//! Search strategies side by side, for a terminal and as Markdown.

use sweetspot_fit::{Replay, ReplayedCurve};

use crate::table::Table;
use crate::text::{Line, Role, Text};

/// The largest number of curves for which each curve gets its own row.
const MAX_CURVES: usize = 40;

/// Makes the text for a terminal: the strategies, the regret after each evaluation, the curves of a single strategy.
pub fn replay_text(replays: &[Replay]) -> Text {
    let heading = |text: &str| Text::from(Line::with_role_of(Role::Heading, text));
    let mut parts: Vec<Text> = vec![strategies(replays).into()];
    let notes = notes(replays);
    if !notes.is_empty() {
        parts.push(notes.iter().map(Line::new).collect());
    }
    parts.push(heading(
        "Mean regret after each evaluation, if the strategy had not stopped early:",
    ));
    let regret = by_evaluations(replays, 2, Replay::regret_by_evaluations);
    parts.push(regret.into());
    parts.push(heading(
        "Share of the curves within 1 % of the best point after each evaluation:",
    ));
    let within = |replay: &Replay| replay.share_within_by_evaluations(0.01);
    parts.push(by_evaluations(replays, 1, within).into());
    parts.extend(replays.iter().filter_map(bounds).map(Text::from));
    if let [replay] = replays
        && replay.curves.len() <= MAX_CURVES
    {
        parts.push(curves(replay).into());
    }
    Text::from_parts(parts)
}

/// Makes the Markdown document of `sweetspot replay`.
pub fn replay_markdown(replays: &[Replay]) -> String {
    replay_text(replays).to_markdown()
}

/// Makes the table that compares the strategies.
fn strategies(replays: &[Replay]) -> Table {
    let mut rows = Table::new(&[
        "Strategy",
        "Evaluations (median)",
        "Most",
        "Within 1 %",
        "Within 2 %",
        "Mean regret",
        "Share of gain",
    ]);
    for replay in replays {
        rows.push(vec![
            replay.strategy.to_string(),
            format!("{}", replay.evaluations_median()),
            replay.evaluations_max().to_string(),
            percent(within(replay, 0.01), 1),
            percent(within(replay, 0.02), 1),
            percent(replay.regret_mean(), 2),
            percent(replay.gain_share_mean(), 1),
        ]);
    }
    rows
}

/// The share of curves with at most this regret; `None` if no curve has an optimum.
pub(super) fn within(replay: &Replay, regret: f64) -> Option<f64> {
    (replay.curves_with_optimum() > 0).then(|| replay.share_within(regret))
}

/// Describes curves that cannot be searched or have no optimum; they are the same for every strategy.
pub(super) fn notes(replays: &[Replay]) -> Vec<String> {
    let Some(replay) = replays.first() else {
        return Vec::new();
    };
    let of = |is: &dyn Fn(&ReplayedCurve) -> bool, what: &str| {
        let found: Vec<String> = replay
            .curves
            .iter()
            .filter(|curve| is(curve))
            .map(curve_name)
            .collect();
        let which = match found.as_slice() {
            [] => return None,
            [one] => one.clone(),
            [first, ..] => format!(
                "{} of {} curves, the first {first}",
                found.len(),
                replay.curves.len()
            ),
        };
        Some(format!("{which}: {what}."))
    };
    let notes = [
        of(
            &|curve| curve.optimum.is_none(),
            "no recorded point meets every limit; left out of the shares",
        ),
        of(
            &|curve| curve.points == 1,
            "one point, so there is nothing to search",
        ),
        of(
            &|curve| curve.all_equal,
            "all points are equal, so every choice is right",
        ),
    ];
    notes.into_iter().flatten().collect()
}

/// Says how often the bounds of the regret that a strategy states hold; `None` if it states none.
fn bounds(replay: &Replay) -> Option<String> {
    Some(format!(
        "{} states a bound of the regret that holds in 90 %: it holds on {} of the curves, and its median is {}.",
        replay.strategy,
        percent(Some(replay.bounds_held()?), 1),
        percent(replay.bound_median(), 2),
    ))
}

/// Makes a table of a share after each evaluation, one column for each strategy.
fn by_evaluations(
    replays: &[Replay],
    digits: usize,
    shares: impl Fn(&Replay) -> Vec<f64>,
) -> Table {
    let names: Vec<String> = replays
        .iter()
        .map(|replay| replay.strategy.to_string())
        .collect();
    let mut header = vec!["Evaluations"];
    header.extend(names.iter().map(String::as_str));
    let mut rows = Table::new(&header);
    let columns: Vec<Vec<f64>> = replays.iter().map(shares).collect();
    let most = columns.iter().map(Vec::len).max().unwrap_or(0).min(16);
    for number in 0..most {
        let mut row = vec![(number + 1).to_string()];
        let own = columns.iter();
        row.extend(own.map(|own| percent(own.get(number).or(own.last()).copied(), digits)));
        rows.push(row);
    }
    rows
}

/// Makes the table of a strategy's result on each curve.
fn curves(replay: &Replay) -> Table {
    let mut rows = Table::new(&[
        "Curve",
        "Choice",
        "Optimum",
        "Evaluations",
        "Points",
        "Regret",
        "Share of gain",
    ])
    .with_text_columns(1);
    for curve in &replay.curves {
        let setting = |setting: &Option<Vec<(String, f64)>>| {
            setting.as_ref().map_or("none".to_owned(), |values| {
                let values = values.iter().map(|(_, value)| value.to_string());
                values.collect::<Vec<_>>().join(", ")
            })
        };
        rows.push(vec![
            curve_name(curve),
            setting(&curve.choice),
            setting(&curve.optimum),
            curve.evaluations.to_string(),
            curve.points.to_string(),
            percent(curve.regret, 2),
            percent(curve.gain_share, 1),
        ]);
    }
    rows
}

/// The name of a curve: the values that identify it.
fn curve_name(curve: &ReplayedCurve) -> String {
    let values: Vec<&str> = curve
        .group
        .iter()
        .map(|(_, value)| value.as_str())
        .collect();
    match values.is_empty() {
        true => "all rows".to_owned(),
        false => values.join(" "),
    }
}

/// Formats a share as a percentage.
fn percent(share: Option<f64>, digits: usize) -> String {
    share.map_or(String::new(), |share| {
        format!("{:.digits$} %", 100.0 * share)
    })
}
