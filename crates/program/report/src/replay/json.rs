//! The document of search strategies on recorded curves, `sweetspot.replay/1`.

use sweetspot_decide::search::StrategyName;
use sweetspot_document::common::{Named, SchemaName};
use sweetspot_document::replay as document;
use sweetspot_fit::{Replay, ReplayedCurve};

use super::text::{notes, within};
use crate::study::search_end;

/// Makes the document of a replay: the guided strategy, or the only one; and all strategies if there are several.
pub fn replay_json(replays: &[Replay], objective: &str) -> document::Replay {
    let is_guided = |replay: &&Replay| replay.strategy == StrategyName::Guided;
    let main = replays.iter().find(is_guided).or(replays.first());
    document::Replay {
        main: main.map(strategy),
        schema: SchemaName::REPLAY,
        objective: objective.to_owned(),
        notes: notes(replays),
        strategies: match replays.len() {
            0 | 1 => Vec::new(),
            _ => replays.iter().map(strategy).collect(),
        },
    }
}

/// Makes the entry of one strategy.
fn strategy(replay: &Replay) -> document::StrategyReplay {
    document::StrategyReplay {
        strategy: replay.strategy.to_string(),
        curves: replay.curves.iter().map(curve).collect(),
        summary: document::ReplaySummary {
            evaluations_median: replay.evaluations_median(),
            evaluations_most: replay.evaluations_max(),
            curves_judged: replay.curves_with_optimum(),
            within_1pct: within(replay, 0.01),
            within_2pct: within(replay, 0.02),
            regret_mean: replay.regret_mean(),
            gain_share_mean: replay.gain_share_mean(),
            bounds_held: replay.bounds_held(),
            regret_bound_median: replay.bound_median(),
            regret_by_evaluations: replay.regret_by_evaluations(),
            within_1pct_by_evaluations: replay.share_within_by_evaluations(0.01),
            bounds_held_by_evaluations: match replay.bounds_held() {
                Some(_) => replay.bounds_held_by_evaluations(),
                None => Vec::new(),
            },
        },
    }
}

/// Makes the entry of one curve.
fn curve(curve: &ReplayedCurve) -> document::Curve {
    let setting = |values: &Vec<(String, f64)>| -> Named<f64> { values.iter().cloned().collect() };
    document::Curve {
        group: curve.group.iter().cloned().collect(),
        points: curve.points,
        evaluations: curve.evaluations,
        ended: search_end(curve.stop_reason),
        choice: curve.choice.as_ref().map(setting),
        optimum: curve.optimum.as_ref().map(setting),
        regret: curve.regret,
        regret_bound: curve.regret_bound,
        gain_share: curve.gain_share,
    }
}
