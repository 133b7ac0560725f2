//! The results of search strategies as CSV.

use sweetspot_fit::Replay;

/// Writes a line for each strategy and curve.
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
        "regret_bound",
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
                number(curve.regret_bound),
            ]);
            writer.write_record(&row)?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
