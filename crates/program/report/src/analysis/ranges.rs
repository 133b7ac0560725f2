//! The settings that are better than the reference, by objective (power_capping_2022, sections 5.3 and 5.4).

use sweetspot_decide::{Evidence, Objective, Range};
use sweetspot_study::Axis;

use crate::analysis::choices::{TABLE_OBJECTIVES, objective_label};
use crate::analysis::view::StudyView;

/// The ranges along an axis in which an objective is better than at the reference.
pub struct BetterRanges {
    /// The axis to which the ranges belong.
    pub axis: Axis,
    /// The objective that is better within the ranges.
    pub objective: Objective,
    /// The ranges of the axis in which the mean is better, as in the paper; or why they are unknown.
    pub ranges: Result<Vec<Range<f64>>, String>,
    /// The ranges of the axis in which the objective is significantly better.
    pub significant: Vec<Range<f64>>,
}

/// Finds the better ranges of every numeric axis, for each objective of tables 2 and 3 of power_capping_2022. The other
/// axes have the values of the reference.
pub fn better_ranges(view: &StudyView<'_>) -> Vec<BetterRanges> {
    let own = view.criteria.objective;
    let own = (!TABLE_OBJECTIVES.contains(&own)).then_some(own);
    let reference = &view.study.reference.configuration;
    let mut found = Vec::new();
    for axis in view.varied.iter().filter(|axis| view.is_numeric(axis)) {
        let place = |index: usize| axis.number(&view.study.points[index].configuration);
        let slice: Vec<(f64, usize)> = view
            .slice(axis, reference)
            .into_iter()
            .filter_map(|index| Some((place(index)?, index)))
            .collect();
        if slice.len() < 2 {
            continue;
        }
        for objective in TABLE_OBJECTIVES.into_iter().chain(own) {
            let ranges = |evidence| {
                view.comparison
                    .better_than_reference(&slice, objective, evidence)
            };
            found.push(BetterRanges {
                axis: axis.clone(),
                objective,
                ranges: ranges(Evidence::Means).map_err(|reason| reason.to_string()),
                significant: ranges(Evidence::Significant).unwrap_or_default(),
            });
        }
    }
    found
}

impl BetterRanges {
    /// Whether the objective is nowhere better than at the reference.
    pub fn is_nowhere(&self) -> bool {
        matches!(&self.ranges, Ok(ranges) if ranges.is_empty())
    }

    /// The name of the objective as in the paper's table, such as `EDP`.
    pub fn name(&self) -> String {
        let label = objective_label(self.objective);
        label
            .trim_start_matches("min ")
            .trim_start_matches("max ")
            .to_owned()
    }

    /// Describes the ranges: `150 W to 295 W (significantly 150 W to 270 W)`.
    pub fn text(&self) -> String {
        let ranges = match &self.ranges {
            Ok(ranges) => ranges,
            Err(reason) => return format!("unknown: {reason}"),
        };
        if ranges.is_empty() {
            return "nowhere".to_owned();
        }
        let all = self.ends(ranges);
        match self.ends(&self.significant) {
            same if same == all => all,
            none if none.is_empty() => format!("{all} (nowhere significantly)"),
            fewer => format!("{all} (significantly {fewer})"),
        }
    }

    /// Writes the ends of some ranges with their unit.
    fn ends(&self, ranges: &[Range<f64>]) -> String {
        let unit = match self.axis {
            Axis::PowerCap | Axis::CpuPowerCap => " W",
            Axis::CoreClock | Axis::MemoryClock => " MHz",
            _ => "",
        };
        let ranges = ranges.iter().map(|range| match range.low == range.high {
            true => format!("{}{unit}", range.low),
            false => format!("{}{unit} to {}{unit}", range.low, range.high),
        });
        ranges.collect::<Vec<_>>().join(", ")
    }
}
