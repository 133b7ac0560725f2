//! Places labels so that none overlaps another, leaves the picture or covers the point that it names.
//!
//! Every text of a chart goes through a [`LabelSpace`]: fixed texts reserve their area, and labels of points and lines
//! get the best free place beside them.

use super::shape::{Anchor, TextRole};
use super::text_size::{fitted, text_width};

/// The vertical distance between the middles of two labels in a column, in pixels.
pub const LINE_HEIGHT: f64 = 14.0;

/// A rectangle; `top` is less than `bottom`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Area {
    /// The left edge.
    pub left: f64,
    /// The upper edge.
    pub top: f64,
    /// The right edge.
    pub right: f64,
    /// The lower edge.
    pub bottom: f64,
}

impl Area {
    /// The square around a point, with this half of a side.
    pub const fn around(x: f64, y: f64, half: f64) -> Self {
        Self {
            left: x - half,
            top: y - half,
            right: x + half,
            bottom: y + half,
        }
    }

    /// Whether two areas have more than an edge in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right - 1e-6
            && other.left < self.right - 1e-6
            && self.top < other.bottom - 1e-6
            && other.top < self.bottom - 1e-6
    }

    /// Whether another area is completely inside.
    pub fn contains(&self, other: &Self) -> bool {
        self.left <= other.left + 1e-6
            && other.right <= self.right + 1e-6
            && self.top <= other.top + 1e-6
            && other.bottom <= self.bottom + 1e-6
    }

    /// The distance of a point from the area; 0 if it is inside.
    pub fn distance(&self, x: f64, y: f64) -> f64 {
        let right = (self.left - x).max(x - self.right).max(0.0);
        let down = (self.top - y).max(y - self.bottom).max(0.0);
        right.hypot(down)
    }

    /// Whether a straight line between two points touches the area (by the separating axes of a segment and a box).
    fn is_crossed(&self, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> bool {
        if x0.max(x1) < self.left
            || x0.min(x1) > self.right
            || y0.max(y1) < self.top
            || y0.min(y1) > self.bottom
        {
            return false;
        }
        let side = |x: f64, y: f64| (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0);
        let corners = [
            side(self.left, self.top),
            side(self.right, self.top),
            side(self.left, self.bottom),
            side(self.right, self.bottom),
        ];
        corners.iter().any(|side| *side >= 0.0) && corners.iter().any(|side| *side <= 0.0)
    }
}

/// A point that a label can stand beside.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// The horizontal position.
    pub x: f64,
    /// The vertical position.
    pub y: f64,
    /// The radius of what is drawn there.
    pub radius: f64,
}

/// A label with its place.
#[derive(Clone, Debug)]
pub struct PlacedLabel {
    /// The text, shortened if there was no room for all of it.
    pub text: String,
    /// The area that the label may cover.
    pub area: Area,
    /// Which edge of the area the text is aligned with.
    pub anchor: Anchor,
    /// The point that the label stands beside.
    pub spot: Spot,
}

impl PlacedLabel {
    /// The position of the text's baseline, at the anchor.
    pub fn position(&self, role: TextRole) -> (f64, f64) {
        let x = match self.anchor {
            Anchor::Start => self.area.left,
            Anchor::Middle => 0.5 * (self.area.left + self.area.right),
            Anchor::End => self.area.right,
        };
        (x, self.area.bottom - 0.25 * role.size())
    }
}

/// The directions from a point to its label, the most readable first: horizontal, vertical, and the anchor of the text.
const DIRECTIONS: [(f64, f64, Anchor); 8] = [
    (1.0, -1.0, Anchor::Start),
    (-1.0, -1.0, Anchor::End),
    (1.0, 0.0, Anchor::Start),
    (0.0, -1.0, Anchor::Middle),
    (1.0, 1.0, Anchor::Start),
    (-1.0, 0.0, Anchor::End),
    (-1.0, 1.0, Anchor::End),
    (0.0, 1.0, Anchor::Middle),
];

/// The distances between a point and its label that are tried, in pixels.
const DISTANCES: [f64; 7] = [3.0, 8.0, 16.0, 26.0, 40.0, 58.0, 80.0];

/// How bad it is to cover a data point, in pixels of distance.
const COVERED_POINT: f64 = 30.0;
/// How bad it is to lie on a line, in pixels of distance.
const CROSSED_LINE: f64 = 22.0;

/// The free space of a picture.
pub struct LabelSpace {
    within: Area,
    taken: Vec<Area>,
    points: Vec<Spot>,
    segments: Vec<((f64, f64), (f64, f64))>,
}

impl LabelSpace {
    /// Makes an empty space, which labels may not leave.
    pub const fn new(within: Area) -> Self {
        Self {
            within,
            taken: Vec::new(),
            points: Vec::new(),
            segments: Vec::new(),
        }
    }

    /// Moves the lower edge of the space up to the axis, once the texts below it are written.
    pub const fn end_at(&mut self, bottom: f64) {
        self.within.bottom = bottom;
    }

    /// Reserves an area for a text that cannot be moved.
    pub fn reserve(&mut self, area: Area) {
        self.taken.push(area);
    }

    /// Reserves an area if it is inside and free, with some room at its left and right; returns whether it was.
    pub fn reserve_if_free(&mut self, area: Area, room: f64) -> bool {
        let wider = Area {
            left: area.left - room,
            right: area.right + room,
            ..area
        };
        let is_free =
            self.within.contains(&area) && !self.taken.iter().any(|taken| taken.overlaps(&wider));
        if is_free {
            self.taken.push(area);
        }
        is_free
    }

    /// Adds a data point, which labels avoid if they can.
    pub fn avoid_point(&mut self, spot: Spot) {
        self.points.push(spot);
    }

    /// Adds a part of a line, which labels avoid if they can.
    pub fn avoid_line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.segments.push((from, to));
    }

    /// Whether no label is in the area and it does not leave the space.
    fn is_free(&self, area: &Area) -> bool {
        self.within.contains(area) && !self.taken.iter().any(|taken| taken.overlaps(area))
    }

    /// Finds the best place for a label beside one of several points and reserves it. The label is shortened if its
    /// text has no room; `None` if not even a few letters have.
    pub fn place(&mut self, text: &str, role: TextRole, spots: &[Spot]) -> Option<PlacedLabel> {
        let whole = text_width(text, role);
        let few = text_width("mmm", role);
        for share in [1.0, 0.7, 0.45, 0.25] {
            let shown = fitted(text, role, share * whole);
            let width = text_width(&shown, role);
            if shown.is_empty() || (share < 1.0 && width < few) {
                return None;
            }
            if let Some((area, anchor, spot)) = self.best_area(width, role, spots) {
                self.taken.push(area);
                return Some(PlacedLabel {
                    text: shown,
                    area,
                    anchor,
                    spot,
                });
            }
        }
        None
    }

    /// The free area with the lowest cost.
    fn best_area(
        &self,
        width: f64,
        role: TextRole,
        spots: &[Spot],
    ) -> Option<(Area, Anchor, Spot)> {
        let height = 1.05 * role.size();
        let mut best: Option<(f64, Area, Anchor, Spot)> = None;
        for (later, spot) in spots.iter().enumerate() {
            for (worse, (right, down, anchor)) in DIRECTIONS.iter().enumerate() {
                for distance in DISTANCES {
                    let away = spot.radius + distance;
                    // A label that is not straight above or beside its point is as near as one that is.
                    let away = if right * down == 0.0 {
                        away
                    } else {
                        0.7 * away
                    };
                    let left = match anchor {
                        Anchor::Start => spot.x + away,
                        Anchor::Middle => spot.x - 0.5 * width,
                        Anchor::End => spot.x - away - width,
                    };
                    let top = match *down {
                        down if down < 0.0 => spot.y - away - height,
                        down if down > 0.0 => spot.y + away,
                        _ => spot.y - 0.5 * height,
                    };
                    let area = Area {
                        left,
                        top,
                        right: left + width,
                        bottom: top + height,
                    };
                    let cost = distance + 2.0 * worse as f64 + 6.0 * later as f64;
                    if best.as_ref().is_some_and(|best| best.0 <= cost)
                        || !self.is_free(&area)
                        || area.distance(spot.x, spot.y) < spot.radius
                    {
                        continue;
                    }
                    let cost = cost + self.covering_cost(&area);
                    if best.as_ref().is_none_or(|best| cost < best.0) {
                        best = Some((cost, area, *anchor, *spot));
                    }
                }
            }
        }
        best.map(|(_, area, anchor, spot)| (area, anchor, spot))
    }

    /// How bad it is to cover the points and lines in an area.
    fn covering_cost(&self, area: &Area) -> f64 {
        let points = self.points.iter();
        let points = points.filter(|spot| area.distance(spot.x, spot.y) < spot.radius + 1.0);
        let lines = self.segments.iter();
        let lines = lines.filter(|(from, to)| area.is_crossed(*from, *to));
        COVERED_POINT * points.count() as f64 + CROSSED_LINE * lines.count() as f64
    }
}

/// Shifts the positions of labels in a column apart, between two ends and in their order. Labels that do not fit stay
/// outside of the ends; [`fits_column`] says whether they do.
pub fn spread(wanted: &[f64], (first, last): (f64, f64)) -> Vec<f64> {
    let mut places = wanted.to_vec();
    let mut limit = first;
    for place in &mut places {
        *place = place.max(limit);
        limit = *place + LINE_HEIGHT;
    }
    let mut limit = last;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - LINE_HEIGHT;
    }
    places
}

/// Whether a number of labels fits into a column between two ends.
pub fn fits_column(count: usize, (first, last): (f64, f64)) -> bool {
    (count.saturating_sub(1)) as f64 * LINE_HEIGHT <= last - first
}
