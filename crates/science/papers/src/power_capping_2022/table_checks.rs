//! Checks whether printed numbers agree with each other within their rounding.

use sweetspot_decide::{Objective, Outcome};

use super::tables::CapRow;

/// The largest rounding error of numbers that are printed with one decimal.
const HALF_TENTH: f64 = 0.05;
/// The largest rounding error of kilojoules that are printed with three decimals, in joules.
const HALF_JOULE: f64 = 0.5;

/// The range of values that round to a printed number.
#[derive(Clone, Copy)]
struct RoundedNumber {
    low: f64,
    high: f64,
}

impl RoundedNumber {
    /// The range of values that round to `printed`; `half` is the largest rounding error.
    fn new(printed: f64, half: f64) -> Self {
        Self {
            low: printed - half,
            high: printed + half,
        }
    }

    /// The range of this number divided by another one.
    fn over(self, other: Self) -> Self {
        Self {
            low: self.low / other.high,
            high: self.high / other.low,
        }
    }

    /// The range of this number times another one.
    fn times(self, other: Self) -> Self {
        Self {
            low: self.low * other.low,
            high: self.high * other.high,
        }
    }

    /// Whether both ranges have a common value.
    fn overlaps(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The range of a row's time in seconds.
fn time(row: &CapRow) -> RoundedNumber {
    RoundedNumber::new(row.time.get(), HALF_TENTH)
}

/// The range of a row's energy in joules.
fn energy(row: &CapRow) -> RoundedNumber {
    RoundedNumber::new(row.energy.get(), HALF_JOULE)
}

/// Returns a note if the printed percentage against the default contradicts the printed absolute values.
fn check_percent(
    printed: f64,
    own: RoundedNumber,
    default: RoundedNumber,
    exact: f64,
) -> Option<String> {
    let ratio = own.over(default);
    let computed = RoundedNumber {
        low: 100.0 * (ratio.low - 1.0),
        high: 100.0 * (ratio.high - 1.0),
    };
    let agrees = computed.overlaps(RoundedNumber::new(printed, HALF_TENTH));
    (!agrees).then(|| {
        format!(
            "error in the paper's table: its absolute values give {:+.1} %, printed is {printed:+.1} %",
            100.0 * (exact - 1.0)
        )
    })
}

/// Returns a note if the printed energy percentage contradicts the printed energies.
pub fn check_energy_percent(row: &CapRow, default: &CapRow) -> Option<String> {
    let exact = (row.energy / default.energy).get();
    check_percent(
        row.energy_vs_default_pct?,
        energy(row),
        energy(default),
        exact,
    )
}

/// Returns a note if the printed time percentage contradicts the printed times.
pub fn check_time_percent(row: &CapRow, default: &CapRow) -> Option<String> {
    let exact = (row.time / default.time).get();
    check_percent(row.time_vs_default_pct?, time(row), time(default), exact)
}

/// Returns a note if the printed energy is not the printed power times the printed time.
pub fn check_energy(row: &CapRow) -> Option<String> {
    let power = RoundedNumber::new(row.average_power.get(), HALF_TENTH);
    let product = power.times(time(row));
    let exact = row.average_power * row.time;
    (!product.overlaps(energy(row))).then(|| {
        format!(
            "error in the paper's table: its power times its time is {:.3} kJ, {:+.1} % from the printed energy",
            exact.get() / 1e3,
            100.0 * (exact / row.energy).get() - 100.0
        )
    })
}

/// Returns a note if another printed row of the same network is at least as good as the row that is printed as the
/// best.
pub fn check_best_cap(
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
        .filter(|other| value(other).is_some_and(|value| value <= own * (1.0 + METRIC_ROUNDING)))
        .collect();
    rivals.dedup_by_key(|rival| rival.power_cap);
    (!rivals.is_empty()).then(|| {
        let caps: Vec<String> = rivals
            .iter()
            .map(|rival| rival.power_cap.to_string())
            .collect();
        format!(
            "error in the paper's table: by its own numbers {} is as good ({objective})",
            caps.join(" and ")
        )
    })
}

/// The relative rounding error of a metric: times are printed with four digits.
const METRIC_ROUNDING: f64 = 5e-5;
