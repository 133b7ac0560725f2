//! The points that a search may evaluate.

/// The kind of knob that a coordinate of a point is the value of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobKind {
    /// A power cap, in watts.
    PowerCap,
    /// A core clock, in megahertz.
    CoreClock,
    /// Any other parameter whose values have an order, such as a batch size.
    Level,
}

/// The points that can be evaluated, one of which is the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchSpace {
    knobs: Vec<KnobKind>,
    points: Vec<Vec<f64>>,
    reference: usize,
}

/// Why points cannot form a search space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchSpaceError {
    /// The list of points is empty.
    #[error("there is no configuration to evaluate")]
    Empty,
    /// The point with this index has too few or too many coordinates, or one that is not finite.
    #[error("the configuration with index {0} does not have a finite value for each knob")]
    Shape(usize),
    /// The point with this index equals an earlier one.
    #[error("the configuration with index {0} occurs twice")]
    Duplicate(usize),
    /// The index of the reference is out of range.
    #[error("the reference is not among the configurations")]
    NoReference,
}

impl SearchSpace {
    /// Creates a space. Each point has a value for each knob; `reference` is the index of the point that the others
    /// are compared with.
    pub fn new(
        knobs: Vec<KnobKind>,
        points: Vec<Vec<f64>>,
        reference: usize,
    ) -> Result<Self, SearchSpaceError> {
        if points.is_empty() {
            return Err(SearchSpaceError::Empty);
        }
        for (index, point) in points.iter().enumerate() {
            if point.len() != knobs.len() || point.iter().any(|value| !value.is_finite()) {
                return Err(SearchSpaceError::Shape(index));
            }
        }
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|a, b| compare_points(&points[*a], &points[*b]).then(a.cmp(b)));
        if let Some(pair) = order
            .windows(2)
            .find(|pair| points[pair[0]] == points[pair[1]])
        {
            return Err(SearchSpaceError::Duplicate(pair[1]));
        }
        if reference >= points.len() {
            return Err(SearchSpaceError::NoReference);
        }
        Ok(Self {
            knobs,
            points,
            reference,
        })
    }

    /// Creates a space of one knob, whose highest value is the reference.
    pub fn of_one_knob(knob: KnobKind, values: &[f64]) -> Result<Self, SearchSpaceError> {
        let points = values.iter().map(|value| vec![*value]).collect();
        let highest = (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b]));
        Self::new(vec![knob], points, highest.unwrap_or(0))
    }

    /// The kind of knob of each coordinate of the points.
    pub fn knobs(&self) -> &[KnobKind] {
        &self.knobs
    }

    /// The coordinates of all points: for each point, the value of each knob.
    pub fn points(&self) -> &[Vec<f64>] {
        &self.points
    }

    /// The index of the point that the others are compared with.
    pub fn reference(&self) -> usize {
        self.reference
    }

    /// The distance of two points: the largest difference in a knob, as a share of the knob's range.
    pub(crate) fn distance(&self, a: usize, b: usize) -> f64 {
        let (a, b) = (&self.points[a], &self.points[b]);
        let knobs = (0..self.knobs.len()).map(|knob| {
            let values = self.points.iter().map(|point| point[knob]);
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
            let range = if high > low { high - low } else { 1.0 };
            (a[knob] - b[knob]).abs() / range
        });
        knobs.fold(0.0, f64::max)
    }

    /// The point of `line` whose value of this knob is nearest to `value`.
    pub(crate) fn nearest(&self, line: &[usize], knob: usize, value: f64) -> Option<usize> {
        let distance = |point: &usize| (self.points[*point][knob] - value).abs();
        let order = |a: &&usize, b: &&usize| distance(a).total_cmp(&distance(b));
        line.iter().min_by(order).copied()
    }

    /// The points that differ from `through` in at most this knob, `through` included, in ascending order of the
    /// knob.
    pub(crate) fn line(&self, through: usize, knob: usize) -> Vec<usize> {
        let fixed = &self.points[through];
        let on_line = |point: &Vec<f64>| {
            let mut others = (0..fixed.len()).filter(|other| *other != knob);
            others.all(|other| point[other] == fixed[other])
        };
        let mut line: Vec<usize> = (0..self.points.len())
            .filter(|index| on_line(&self.points[*index]))
            .collect();
        line.sort_by(|a, b| self.points[*a][knob].total_cmp(&self.points[*b][knob]));
        line
    }
}

/// The order of two points by their coordinates, the first knob first.
fn compare_points(a: &[f64], b: &[f64]) -> std::cmp::Ordering {
    let mut pairs = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
    pairs
        .find(|order| order.is_ne())
        .unwrap_or(std::cmp::Ordering::Equal)
}
