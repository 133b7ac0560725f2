//! What printed numbers say of each other, within their rounding.

use sweetspot_decide::{Objective, Outcome};

use super::tables::CapRow;

/// Half of the last printed digit.
const TENTH: f64 = 0.05;
/// Of kilojoules, in joules.
const JOULE: f64 = 0.5;

/// A number and how far it may be from what was printed.
#[derive(Clone, Copy)]
struct Rounded {
    low: f64,
    high: f64,
}

impl Rounded {
    fn new(printed: f64, half: f64) -> Self {
        Self {
            low: printed - half,
            high: printed + half,
        }
    }

    fn over(self, other: Self) -> Self {
        Self {
            low: self.low / other.high,
            high: self.high / other.low,
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            low: self.low * other.low,
            high: self.high * other.high,
        }
    }

    fn meets(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

fn time(row: &CapRow) -> Rounded {
    Rounded::new(row.time.get(), TENTH)
}

fn energy(row: &CapRow) -> Rounded {
    Rounded::new(row.energy.get(), JOULE)
}

/// Where the printed per cent against the default is not that of the printed absolutes.
fn percent(printed: f64, own: Rounded, default: Rounded, exact: f64) -> Option<String> {
    let ratio = own.over(default);
    let computed = Rounded {
        low: 100.0 * (ratio.low - 1.0),
        high: 100.0 * (ratio.high - 1.0),
    };
    let agrees = computed.meets(Rounded::new(printed, TENTH));
    (!agrees).then(|| {
        format!(
            "fault of the table: its absolutes give {:+.1} %, printed is {printed:+.1} %",
            100.0 * (exact - 1.0)
        )
    })
}

/// Of the printed energy against the default.
pub fn energy_percent(row: &CapRow, default: &CapRow) -> Option<String> {
    let exact = (row.energy / default.energy).get();
    percent(
        row.energy_vs_default_pct?,
        energy(row),
        energy(default),
        exact,
    )
}

/// Of the printed time against the default.
pub fn time_percent(row: &CapRow, default: &CapRow) -> Option<String> {
    let exact = (row.time / default.time).get();
    percent(row.time_vs_default_pct?, time(row), time(default), exact)
}

/// Where the printed energy is not the printed power by the printed time.
pub fn energy_of_power(row: &CapRow) -> Option<String> {
    let power = Rounded::new(row.average_power.get(), TENTH);
    let product = power.times(time(row));
    let exact = row.average_power * row.time;
    (!product.meets(energy(row))).then(|| {
        format!(
            "fault of the table: its power by its time is {:.3} kJ, {:+.1} % from the printed energy",
            exact.get() / 1e3,
            100.0 * (exact / row.energy).get() - 100.0
        )
    })
}

/// Where another printed row of the same network is as good as the row that is said to be best, or better.
pub fn best(
    row: &CapRow,
    default: &CapRow,
    others: &[&CapRow],
    objective: Objective,
) -> Option<String> {
    let reference = Outcome::new(default.time, default.energy);
    let value = |row: &CapRow| {
        let outcome = Outcome::new(row.time, row.energy);
        objective.value(&outcome, &reference).ok()
    };
    let own = value(row)?;
    let mut rivals: Vec<&CapRow> = others
        .iter()
        .copied()
        .filter(|other| other.power_cap != row.power_cap)
        .filter(|other| value(other).is_some_and(|value| value <= own * (1.0 + ALIKE)))
        .collect();
    rivals.dedup_by_key(|rival| rival.power_cap);
    (!rivals.is_empty()).then(|| {
        let caps: Vec<String> = rivals
            .iter()
            .map(|rival| rival.power_cap.to_string())
            .collect();
        format!(
            "fault of the table: by its own numbers {} is as good ({objective})",
            caps.join(" and ")
        )
    })
}

/// Two metrics nearer than this are one: times are printed to four digits.
const ALIKE: f64 = 5e-5;
