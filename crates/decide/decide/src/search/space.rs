//! Where a search may look.

/// What a coordinate of a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// Watts.
    PowerCap,
    /// Megahertz.
    CoreClock,
    /// Anything else with an order, such as a batch size.
    Level,
}

/// The places that can be evaluated, and the reference among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    knobs: Vec<Knob>,
    places: Vec<Vec<f64>>,
    reference: usize,
}

/// Places that are no space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// Nothing to search.
    #[error("there is no place to evaluate")]
    Empty,
    /// A place of another shape, or not a number.
    #[error("place {0} does not have a finite value for each knob")]
    Shape(usize),
    /// The same place twice.
    #[error("place {0} occurs twice")]
    Twice(usize),
    /// No such reference.
    #[error("the reference is not among the places")]
    NoReference,
}

impl Space {
    /// Places with a coordinate for each knob; the reference is one of them.
    pub fn new(
        knobs: Vec<Knob>,
        places: Vec<Vec<f64>>,
        reference: usize,
    ) -> Result<Self, SpaceError> {
        if places.is_empty() {
            return Err(SpaceError::Empty);
        }
        for (index, place) in places.iter().enumerate() {
            if place.len() != knobs.len() || place.iter().any(|value| !value.is_finite()) {
                return Err(SpaceError::Shape(index));
            }
        }
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by(|a, b| compare(&places[*a], &places[*b]).then(a.cmp(b)));
        if let Some(pair) = order
            .windows(2)
            .find(|pair| places[pair[0]] == places[pair[1]])
        {
            return Err(SpaceError::Twice(pair[1]));
        }
        if reference >= places.len() {
            return Err(SpaceError::NoReference);
        }
        Ok(Self {
            knobs,
            places,
            reference,
        })
    }

    /// The values of one knob, the highest being the reference.
    pub fn along(knob: Knob, values: &[f64]) -> Result<Self, SpaceError> {
        let places = values.iter().map(|value| vec![*value]).collect();
        let highest = (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b]));
        Self::new(vec![knob], places, highest.unwrap_or(0))
    }

    /// What the coordinates are.
    pub fn knobs(&self) -> &[Knob] {
        &self.knobs
    }

    /// All coordinates.
    pub fn places(&self) -> &[Vec<f64>] {
        &self.places
    }

    /// What everything is compared with.
    pub fn reference(&self) -> usize {
        self.reference
    }

    /// Whether two places differ by no more than a share of its range in any knob.
    pub(crate) fn is_near(&self, a: usize, b: usize, share: f64) -> bool {
        let (a, b) = (&self.places[a], &self.places[b]);
        (0..self.knobs.len()).all(|knob| {
            let values = self.places.iter().map(|place| place[knob]);
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
            (a[knob] - b[knob]).abs() <= share * (high - low)
        })
    }

    /// Of the places of a line, the one nearest to a value of its knob.
    pub(crate) fn nearest(&self, line: &[usize], knob: usize, value: f64) -> Option<usize> {
        let distance = |place: &usize| (self.places[*place][knob] - value).abs();
        let order = |a: &&usize, b: &&usize| distance(a).total_cmp(&distance(b));
        line.iter().min_by(order).copied()
    }

    /// The places that differ from one in a single knob, ascending in it; the place itself is among them.
    pub(crate) fn line(&self, through: usize, knob: usize) -> Vec<usize> {
        let fixed = &self.places[through];
        let on_line = |place: &Vec<f64>| {
            let mut others = (0..fixed.len()).filter(|other| *other != knob);
            others.all(|other| place[other] == fixed[other])
        };
        let mut line: Vec<usize> = (0..self.places.len())
            .filter(|index| on_line(&self.places[*index]))
            .collect();
        line.sort_by(|a, b| self.places[*a][knob].total_cmp(&self.places[*b][knob]));
        line
    }
}

fn compare(a: &[f64], b: &[f64]) -> std::cmp::Ordering {
    let mut pairs = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
    pairs
        .find(|order| order.is_ne())
        .unwrap_or(std::cmp::Ordering::Equal)
}
