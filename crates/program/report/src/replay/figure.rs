//! The figure that compares search strategies.

use sweetspot_fit::Replay;

use crate::figure::{Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle};

/// Draws the mean regret after each evaluation, a line for each strategy.
pub fn replay_figures(replays: &[Replay], objective: &str) -> Vec<Figure> {
    let curves = replays.first().map_or(0, |replay| replay.curves.len());
    let line = |(index, replay): (usize, &Replay)| Line {
        label: replay.strategy.to_string(),
        colour: Colour::of(index),
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
        style: LineStyle::PointsAndLine,
    };
    vec![Figure {
        id: "regret-by-evaluations".to_owned(),
        title: "Regret after each evaluation".to_owned(),
        caption: format!(
            "Mean over {curves} curves of how much worse {objective} is at the choice than at the best recorded point. After a strategy has ended, its last choice counts; the guided strategy does not stop early here."
        ),
        charts: vec![Chart {
            title: "Mean regret".to_owned(),
            x: ChartAxis {
                label: "Evaluations".to_owned(),
                ..ChartAxis::default()
            },
            y: ChartAxis::from_zero("Mean regret [%]"),
            lines: replays.iter().enumerate().map(line).collect(),
            is_wide: true,
            ..Chart::default()
        }],
    }]
}
