//! Whether a published value is predicted, or was used to make the profiles.

/// Where the simulated value beside a published one comes from. Only a predicted value is evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueOrigin {
    /// The published value follows from other published values, so that it is neither judged nor counted.
    Derived,
    /// The profiles were fitted to the published value.
    Fitted,
    /// The published value is itself a parameter of a profile, so that both agree by construction.
    Input,
    /// No parameter of a profile was derived from the published value.
    Predicted,
}

impl ValueOrigin {
    /// The name of the origin in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Derived => "derived",
            Self::Fitted => "fitted",
            Self::Input => "input",
            Self::Predicted => "predicted",
        }
    }
}

impl std::fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// How many values have each origin; values of unknown origin are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OriginCounts {
    /// The number of values that follow from other published values.
    pub derived: usize,
    /// The number of values that profiles were fitted to.
    pub fitted: usize,
    /// The number of values that are parameters of a profile.
    pub inputs: usize,
    /// The number of values that are predicted.
    pub predicted: usize,
}

impl std::fmt::Display for OriginCounts {
    /// Writes the counts that are not zero: `1 predicted, 2 inputs (parameters of a profile, not judged)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = [
            (self.predicted, "predicted"),
            (
                self.fitted,
                "fitted (a profile was chosen with them in view)",
            ),
            (
                self.inputs,
                match self.inputs {
                    1 => "input (a parameter of a profile, not judged)",
                    _ => "inputs (parameters of a profile, not judged)",
                },
            ),
            (self.derived, "derived (from others)"),
        ];
        let known = counts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = known
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        f.write_str(&parts.join(", "))
    }
}

impl OriginCounts {
    /// Counts the origins of some values.
    pub fn of(origins: impl IntoIterator<Item = Option<ValueOrigin>>) -> Self {
        let mut counts = Self::default();
        for origin in origins.into_iter().flatten() {
            match origin {
                ValueOrigin::Derived => counts.derived += 1,
                ValueOrigin::Fitted => counts.fitted += 1,
                ValueOrigin::Input => counts.inputs += 1,
                ValueOrigin::Predicted => counts.predicted += 1,
            }
        }
        counts
    }
}
