//! Least squares for powers that have a lower bound and add up to a known energy.

use sweetspot_stats::solve_symmetric;

use super::design::Row;

/// The normal equations of weighted least squares. Those of two sets of readings can be added.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NormalEquations {
    pub columns: usize,
    pub normal: Vec<f64>,
    pub right: Vec<f64>,
    pub square: f64,
    pub rows: f64,
}

impl NormalEquations {
    /// Creates equations without readings, for this many unknown powers.
    pub fn new(columns: usize) -> Self {
        Self {
            columns,
            normal: vec![0.0; columns * columns],
            right: vec![0.0; columns],
            square: 0.0,
            rows: 0.0,
        }
    }

    /// Adds a reading: its value in watts, and the contribution of each phase to it.
    pub fn add_row(&mut self, shares: &[f64], watts: f64, weight: f64) {
        for (row, a) in shares.iter().enumerate() {
            self.right[row] += weight * a * watts;
            for (column, b) in shares.iter().enumerate() {
                self.normal[row * self.columns + column] += weight * a * b;
            }
        }
        self.square += weight * watts * watts;
        self.rows += 1.0;
    }

    /// Adds the equations of other readings.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.normal.iter_mut().zip(&other.normal) {
            *mine += theirs;
        }
        for (mine, theirs) in self.right.iter_mut().zip(&other.right) {
            *mine += theirs;
        }
        self.square += other.square;
        self.rows += other.rows;
    }

    /// The equations of only these unknowns; the other powers are assumed to be zero.
    pub fn select(&self, columns: &[usize]) -> Self {
        let mut part = Self::new(columns.len());
        for (row, from) in columns.iter().enumerate() {
            part.right[row] = self.right[*from];
            for (column, to) in columns.iter().enumerate() {
                part.normal[row * columns.len() + column] = self.normal[from * self.columns + to];
            }
        }
        (part.square, part.rows) = (self.square, self.rows);
        part
    }

    /// The powers with the least squared error, none below `floor`, whose energies over `times` add up to
    /// `energy`; the power of a phase without time is zero.
    pub fn solve(&self, times: &[f64], energy: f64, floor: f64) -> Option<Vec<f64>> {
        // If the whole energy is at the floor, the floor is not a useful bound.
        let at_floor = floor * times.iter().sum::<f64>();
        let floor = if at_floor < energy { floor } else { 0.0 };
        let above = self.above_floor(floor, times);
        let mut free: Vec<bool> = times.iter().map(|time| *time > 0.0).collect();
        loop {
            let energy = energy - floor * times.iter().sum::<f64>();
            let powers = above.solve_free(times, energy, &free)?;
            let worst = (0..self.columns)
                .filter(|column| free[*column])
                .min_by(|a, b| powers[*a].total_cmp(&powers[*b]))?;
            if powers[worst] >= 0.0 {
                let with_floor = powers.iter().zip(times);
                return Some(
                    with_floor
                        .map(|(power, time)| if *time > 0.0 { power + floor } else { 0.0 })
                        .collect(),
                );
            }
            free[worst] = false;
        }
    }

    /// The equations rewritten for the part of each power above `floor`.
    fn above_floor(&self, floor: f64, times: &[f64]) -> Self {
        let mut above = self.clone();
        for (row, right) in above.right.iter_mut().enumerate() {
            let at_floor: f64 = (0..self.columns)
                .filter(|column| times[*column] > 0.0)
                .map(|column| self.normal[row * self.columns + column])
                .sum();
            *right -= floor * at_floor;
        }
        above
    }

    /// The powers with the least squared error, without a lower bound. Powers that the readings determine
    /// poorly may be far off.
    pub fn solve_unbounded(&self, times: &[f64], energy: f64) -> Option<Vec<f64>> {
        let free: Vec<bool> = times.iter().map(|time| *time > 0.0).collect();
        self.solve_free(times, energy, &free)
    }

    /// Solves for the `free` columns; the others are zero. A Lagrange multiplier fixes the total energy.
    fn solve_free(&self, times: &[f64], energy: f64, free: &[bool]) -> Option<Vec<f64>> {
        let chosen: Vec<usize> = (0..self.columns).filter(|column| free[*column]).collect();
        let n = chosen.len();
        let trace: f64 = chosen
            .iter()
            .map(|c| self.normal[c * self.columns + c])
            .sum();
        let mut matrix = vec![0.0; n * n];
        for (row, from) in chosen.iter().enumerate() {
            for (column, to) in chosen.iter().enumerate() {
                matrix[row * n + column] = self.normal[from * self.columns + to];
            }
            // A regularisation that is large enough to invert a matrix made singular by rounding, and too small
            // to affect the result.
            matrix[row * n + row] += 1e-12 * trace + 1e-300;
        }
        let right: Vec<f64> = chosen.iter().map(|column| self.right[*column]).collect();
        let span: Vec<f64> = chosen.iter().map(|column| times[*column]).collect();
        let plain = solve_symmetric(&matrix, &right)?;
        let direction = solve_symmetric(&matrix, &span)?;
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let reach = dot(&span, &direction);
        if reach <= 0.0 {
            return None;
        }
        let by = (energy - dot(&span, &plain)) / reach;
        let mut powers = vec![0.0; self.columns];
        for (place, column) in chosen.iter().enumerate() {
            powers[*column] = plain[place] + by * direction[place];
        }
        Some(powers)
    }

    /// The smallest eigenvalue of the scaled matrix, and the two phases with the largest components of its
    /// eigenvector. If it is near zero, the readings cannot separate these phases.
    pub fn smallest_eigenvalue(&self) -> Option<(f64, usize, usize)> {
        let n = self.columns;
        if n < 2 {
            return None;
        }
        let scale: Vec<f64> = (0..n).map(|c| self.normal[c * n + c].sqrt()).collect();
        if scale.contains(&0.0) {
            return None;
        }
        let mut matrix: Vec<f64> = (0..n * n)
            .map(|at| self.normal[at] / (scale[at / n] * scale[at % n]))
            .collect();
        for column in 0..n {
            matrix[column * n + column] += 1e-10;
        }
        // Inverse iteration converges to the eigenvector of the smallest eigenvalue.
        let mut vector: Vec<f64> = (0..n).map(|at| 1.0 + 0.1 * at as f64).collect();
        for (at, value) in vector.iter_mut().enumerate() {
            if at % 2 == 1 {
                *value = -*value;
            }
        }
        let mut value = 0.0;
        for _ in 0..60 {
            let next = solve_symmetric(&matrix, &vector)?;
            let length = next.iter().map(|x| x * x).sum::<f64>().sqrt();
            value = 1.0 / length;
            vector = next.iter().map(|x| x / length).collect();
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| vector[*b].abs().total_cmp(&vector[*a].abs()));
        Some((value, order[0], order[1]))
    }
}

/// Computes the normal equations of blocks of readings, each `length` seconds long.
pub(crate) fn blocks(
    rows: &[Row],
    columns: usize,
    length: f64,
    weight: f64,
    count: usize,
) -> Vec<NormalEquations> {
    let mut blocks = vec![NormalEquations::new(columns); count];
    for row in rows {
        let block = ((row.at / length) as usize).min(count - 1);
        blocks[block].add_row(&row.shares, row.watts, weight);
    }
    blocks
}
