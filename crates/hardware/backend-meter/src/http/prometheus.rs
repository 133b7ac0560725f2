//! Any metric in Prometheus' text format: a gauge of power, or a counter of energy.

use super::{Client, Values};
use crate::error::Problem;
use crate::line::LineUnit;

/// A metric of a page: its name and the labels that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Metric {
    url: String,
    name: String,
    labels: Vec<(String, String)>,
    unit: LineUnit,
}

/// What the end of a metric's name says about its unit, and metrics that people know without such an end.
const UNITS: [(&str, &str); 16] = [
    ("_milliwatts", "mW"),
    ("_microwatts", "uW"),
    ("_kilowatts", "kW"),
    ("_watts", "W"),
    ("_watt", "W"),
    ("_power_w", "W"),
    ("_millijoules", "mJ"),
    ("_microjoules", "uJ"),
    ("_joules", "J"),
    ("_joule", "J"),
    ("_kwh", "kWh"),
    ("_kilowatt_hours", "kWh"),
    ("_wh", "Wh"),
    ("_watt_hours", "Wh"),
    ("DCGM_FI_DEV_POWER_USAGE", "W"),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "mJ"),
];

impl Metric {
    /// Parses `URL#METRIC{LABEL="VALUE"}`. The unit is the user's, or follows from the metric's name.
    pub fn parse(text: &str, unit: Option<LineUnit>) -> Result<Self, Problem> {
        let (url, metric) = text.split_once('#').unwrap_or((text, ""));
        let (name, labels) = match metric.split_once('{') {
            None => (metric, Some(Vec::new())),
            Some((name, rest)) => (
                name,
                rest.trim_end().strip_suffix('}').and_then(parse_labels),
            ),
        };
        let labels = labels.ok_or_else(|| {
            Problem::Refused(format!(
                "the labels of `{metric}` must have the form {{name=\"value\"}}"
            ))
        })?;
        let stem = name.strip_suffix("_total").unwrap_or(name);
        let known = UNITS
            .iter()
            .find(|(end, _)| stem.ends_with(end))
            .and_then(|(_, unit)| unit.parse().ok());
        let unit = unit.or(known).ok_or_else(|| {
            Problem::Refused(format!("the unit of the metric {name} is unknown: name it in meters.toml, with unit = \"W\" or unit = \"J\""))
        })?;
        Ok(Self {
            url: url.to_owned(),
            name: name.to_owned(),
            labels,
            unit,
        })
    }

    pub fn read(&self, client: &Client) -> Result<Values, Problem> {
        let page = client.get(&self.url)?;
        let page = page
            .ok_or_else(|| Problem::Refused("it has no such page: check the address".to_owned()))?;
        self.values(&page)
    }

    /// The value of the metric in a page.
    fn values(&self, page: &str) -> Result<Values, Problem> {
        let mut found = page.lines().filter_map(|line| self.value_in(line));
        let value = found
            .next()
            .ok_or_else(|| Problem::Failed(format!("its page has no metric {self}")))?;
        if found.next().is_some() {
            let count = 2 + found.count();
            return Err(Problem::Refused(format!(
                "its page has {count} metrics {self}: add a label that only one has, such as {}{{instance=\"1\"}}, or add them up with sum in meters.toml",
                self.name
            )));
        }
        if !value.is_finite() {
            return Err(Problem::Failed(format!(
                "its metric {self} has the value {value}"
            )));
        }
        let (power, energy) = self.unit.convert(value);
        Ok(Values { power, energy })
    }

    /// The value of the metric if this line is about it.
    fn value_in(&self, line: &str) -> Option<f64> {
        let rest = line.trim_start().strip_prefix(&self.name)?;
        let (labels, value) = match rest.strip_prefix('{') {
            // A brace may be part of a label's value; the last one ends the labels.
            Some(rest) => {
                let (labels, value) = rest.rsplit_once('}')?;
                (parse_labels(labels)?, value)
            }
            None => (Vec::new(), rest.strip_prefix([' ', '\t'])?),
        };
        let is_meant = self.labels.iter().all(|label| labels.contains(label));
        let value = value.split_whitespace().next()?.parse().ok()?;
        is_meant.then_some(value)
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let labels: Vec<String> = self
            .labels
            .iter()
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        match labels.is_empty() {
            true => f.write_str(&self.name),
            false => write!(f, "{}{{{}}}", self.name, labels.join(",")),
        }
    }
}

/// Parses labels, `a="1",b="2"`; a backslash protects the next character.
fn parse_labels(text: &str) -> Option<Vec<(String, String)>> {
    let mut labels = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start().strip_prefix('"')?;
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.push((name.trim().to_owned(), value));
        rest = after[end + 1..]
            .trim_start()
            .trim_start_matches(',')
            .trim_start();
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sweetspot_quantity::{Joules, Watts};

    const PAGE: &str = "# HELP x power\n# TYPE outlet_watts gauge\noutlet_watts{outlet=\"1\",name=\"a}b\"} 12.5 1700000000\noutlet_watts{outlet=\"2\"} 7e1\noutlet_watts_max 9\nnode_joules_total 1500\nbroken_watts NaN\n";

    fn read(metric: &str) -> Result<Values, Problem> {
        Metric::parse(&format!("http://h/metrics#{metric}"), None)?.values(PAGE)
    }

    #[test]
    fn metrics_are_found_by_name_and_label() {
        assert_eq!(
            read("outlet_watts{outlet=\"2\"}").unwrap().power,
            Some(Watts::new(70.0))
        );
        assert_eq!(
            read("outlet_watts{name=\"a}b\"}").unwrap().power,
            Some(Watts::new(12.5))
        );
        assert_eq!(
            read("node_joules_total").unwrap().energy,
            Some(Joules::new(1500.0))
        );
    }

    #[test]
    fn what_is_missing_or_ambiguous_is_said() {
        let text = |metric| read(metric).unwrap_err().text().to_owned();
        assert!(text("outlet_watts").contains("has 2 metrics outlet_watts"));
        assert!(text("none_watts").contains("has no metric none_watts"));
        assert!(text("outlet").contains("the unit of the metric outlet is unknown"));
        assert!(text("broken_watts").contains("has the value NaN"));
        assert!(text("outlet_watts{outlet=2}").contains("must have the form"));
    }

    proptest! {
        #[test]
        fn no_page_is_a_fault(page in "\\PC{0,200}") {
            let metric = Metric::parse("http://h#a_watts{b=\"c\"}", None).unwrap();
            let _ = metric.values(&page);
            let _ = Metric::parse(&format!("http://h#a_watts{{{page}}}"), None);
        }
    }
}
