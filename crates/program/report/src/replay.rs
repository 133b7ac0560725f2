//! Strategies side by side: for people, as JSON, as CSV and as a figure.

use serde_json::{Map, Value, json};
use sweetspot_decide::search::StrategyName;
use sweetspot_fit::{Replay, ReplayedCurve};

use crate::figure::{Chart, Dot, Figure, Hue, Line, Look, Ruler};
use crate::table::Rows;
use crate::words::ended;

/// Curves that are shown one by one.
const SHOWN: usize = 40;

/// The strategies, then the regret after each evaluation, then the curves of a single strategy.
pub fn replay_text(replays: &[Replay]) -> String {
    parts(replays, Rows::terminal).join("\n\n") + "\n"
}

/// For a document.
pub fn replay_markdown(replays: &[Replay]) -> String {
    parts(replays, Rows::markdown).join("\n\n") + "\n"
}

fn parts(replays: &[Replay], draw: fn(&Rows) -> String) -> Vec<String> {
    let mut parts = vec![draw(&strategies(replays))];
    let notes = notes(replays);
    if !notes.is_empty() {
        parts.push(notes.join("\n"));
    }
    parts.push("Mean regret after each evaluation, had it not stopped:".to_owned());
    parts.push(draw(&by_evaluations(replays)));
    if let [replay] = replays
        && replay.curves.len() <= SHOWN
    {
        parts.push(draw(&curves(replay)));
    }
    parts
}

fn strategies(replays: &[Replay]) -> Rows {
    let mut rows = Rows::new(&[
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

/// Unknown where no curve can be judged.
fn within(replay: &Replay, regret: f64) -> Option<f64> {
    (replay.curves_with_optimum() > 0).then(|| replay.share_within(regret))
}

/// What of the record cannot be searched, or not judged; it is the same for every strategy.
fn notes(replays: &[Replay]) -> Vec<String> {
    let Some(replay) = replays.first() else {
        return Vec::new();
    };
    let of = |is: &dyn Fn(&ReplayedCurve) -> bool, what: &str| {
        let found: Vec<String> = replay
            .curves
            .iter()
            .filter(|curve| is(curve))
            .map(name)
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
            "no recorded point keeps to every limit; left out of the shares",
        ),
        of(
            &|curve| curve.points == 1,
            "one point, so that there is nothing to search",
        ),
        of(
            &|curve| curve.all_equal,
            "all points are equal, so that every choice is right",
        ),
    ];
    notes.into_iter().flatten().collect()
}

fn by_evaluations(replays: &[Replay]) -> Rows {
    let names: Vec<String> = replays
        .iter()
        .map(|replay| replay.strategy.to_string())
        .collect();
    let mut header = vec!["Evaluations"];
    header.extend(names.iter().map(String::as_str));
    let mut rows = Rows::new(&header);
    let regrets: Vec<Vec<f64>> = replays.iter().map(Replay::regret_by_evaluations).collect();
    let most = regrets.iter().map(Vec::len).max().unwrap_or(0).min(16);
    for number in 0..most {
        let mut row = vec![(number + 1).to_string()];
        let own = regrets.iter();
        row.extend(own.map(|regrets| percent(regrets.get(number).or(regrets.last()).copied(), 2)));
        rows.push(row);
    }
    rows
}

fn curves(replay: &Replay) -> Rows {
    let mut rows = Rows::new(&[
        "Curve",
        "Choice",
        "Optimum",
        "Evaluations",
        "Points",
        "Regret",
        "Share of gain",
    ])
    .with_texts(1);
    for curve in &replay.curves {
        let setting = |setting: &Option<Vec<(String, f64)>>| {
            setting.as_ref().map_or("none".to_owned(), |values| {
                let values = values.iter().map(|(_, value)| value.to_string());
                values.collect::<Vec<_>>().join(", ")
            })
        };
        rows.push(vec![
            name(curve),
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

fn name(curve: &ReplayedCurve) -> String {
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

fn percent(share: Option<f64>, digits: usize) -> String {
    share.map_or(String::new(), |share| {
        format!("{:.digits$} %", 100.0 * share)
    })
}

/// As `sweetspot.replay/1`: the guided strategy's curves, or those of the only one, and all side by side.
pub fn replay_json(replays: &[Replay], objective: &str) -> Value {
    let guided = |replay: &&Replay| replay.strategy == StrategyName::Guided;
    let Some(main) = replays.iter().find(guided).or(replays.first()) else {
        return json!({"schema": "sweetspot.replay/1", "curves": []});
    };
    let mut document = of_strategy(main);
    document.insert("schema".to_owned(), "sweetspot.replay/1".into());
    document.insert("objective".to_owned(), objective.into());
    let notes = notes(replays);
    if !notes.is_empty() {
        document.insert("notes".to_owned(), notes.into());
    }
    if replays.len() > 1 {
        let all = replays
            .iter()
            .map(|replay| Value::Object(of_strategy(replay)));
        document.insert("strategies".to_owned(), all.collect());
    }
    Value::Object(document)
}

fn of_strategy(replay: &Replay) -> Map<String, Value> {
    let mut summary = Map::new();
    summary.insert(
        "evaluations_median".to_owned(),
        replay.evaluations_median().into(),
    );
    summary.insert(
        "evaluations_most".to_owned(),
        replay.evaluations_max().into(),
    );
    summary.insert(
        "curves_judged".to_owned(),
        replay.curves_with_optimum().into(),
    );
    known(&mut summary, "within_1pct", within(replay, 0.01));
    known(&mut summary, "within_2pct", within(replay, 0.02));
    known(&mut summary, "regret_mean", replay.regret_mean());
    known(&mut summary, "gain_share_mean", replay.gain_share_mean());
    summary.insert(
        "regret_by_evaluations".to_owned(),
        replay.regret_by_evaluations().into(),
    );
    let mut object = Map::new();
    object.insert("strategy".to_owned(), replay.strategy.to_string().into());
    object.insert(
        "curves".to_owned(),
        replay.curves.iter().map(curve_json).collect(),
    );
    object.insert("summary".to_owned(), Value::Object(summary));
    object
}

fn curve_json(curve: &ReplayedCurve) -> Value {
    let setting = |values: &[(String, f64)]| -> Value {
        values
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(*value)))
            .collect::<Map<_, _>>()
            .into()
    };
    let group: Map<String, Value> = curve
        .group
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    let mut object = Map::new();
    object.insert("group".to_owned(), group.into());
    object.insert("points".to_owned(), curve.points.into());
    object.insert("evaluations".to_owned(), curve.evaluations.into());
    object.insert("ended".to_owned(), ended(curve.stop_reason).into());
    if let Some(choice) = &curve.choice {
        object.insert("choice".to_owned(), setting(choice));
    }
    if let Some(optimum) = &curve.optimum {
        object.insert("optimum".to_owned(), setting(optimum));
    }
    known(&mut object, "regret", curve.regret);
    known(&mut object, "gain_share", curve.gain_share);
    Value::Object(object)
}

fn known(object: &mut Map<String, Value>, name: &str, value: Option<f64>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), value.into());
    }
}

/// A line for each strategy and curve.
pub fn replay_csv(replays: &[Replay]) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let first = replays.iter().find_map(|replay| replay.curves.first());
    let groups = first.map_or(Vec::new(), |curve| {
        curve.group.iter().map(|(name, _)| name.as_str()).collect()
    });
    let mut header = vec!["strategy"];
    header.extend(groups);
    header.extend([
        "points",
        "evaluations",
        "choice",
        "optimum",
        "regret",
        "gain_share",
    ]);
    writer.write_record(&header)?;
    for replay in replays {
        for curve in &replay.curves {
            let setting = |values: &Option<Vec<(String, f64)>>| {
                let values = values.iter().flatten().map(|(_, value)| value.to_string());
                values.collect::<Vec<_>>().join("/")
            };
            let number =
                |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let mut row = vec![replay.strategy.to_string()];
            row.extend(curve.group.iter().map(|(_, value)| value.clone()));
            row.extend([
                curve.points.to_string(),
                curve.evaluations.to_string(),
                setting(&curve.choice),
                setting(&curve.optimum),
                number(curve.regret),
                number(curve.gain_share),
            ]);
            writer.write_record(&row)?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The mean regret after each evaluation, a line for each strategy.
pub fn replay_figures(replays: &[Replay], objective: &str) -> Vec<Figure> {
    let curves = replays.first().map_or(0, |replay| replay.curves.len());
    let line = |(index, replay): (usize, &Replay)| Line {
        label: replay.strategy.to_string(),
        hue: Hue::of(index),
        dots: replay
            .regret_by_evaluations()
            .into_iter()
            .enumerate()
            .take(16)
            .map(|(number, regret)| Dot {
                x: (number + 1) as f64,
                y: 100.0 * regret,
                span: None,
                text: format!(
                    "{}: {:.2} % after {} evaluations",
                    replay.strategy,
                    100.0 * regret,
                    number + 1
                ),
            })
            .collect(),
        look: Look::Dotted,
    };
    vec![Figure {
        id: "regret-by-evaluations".to_owned(),
        title: "Regret after each evaluation".to_owned(),
        caption: format!(
            "Mean over {curves} curves of how much worse {objective} is at the choice than at the best recorded place; a strategy that has ended keeps its choice, the guided one does not stop early here."
        ),
        charts: vec![Chart {
            title: "Mean regret".to_owned(),
            x: Ruler {
                label: "Evaluations".to_owned(),
                ..Ruler::default()
            },
            y: Ruler::from_zero("Mean regret [%]"),
            lines: replays.iter().enumerate().map(line).collect(),
            wide: true,
            ..Chart::default()
        }],
    }]
}
