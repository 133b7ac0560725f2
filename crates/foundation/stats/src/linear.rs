//! Small dense linear algebra.

/// The Cholesky decomposition `A = L L'` of a symmetric, positive definite matrix `A`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cholesky {
    size: usize,
    /// The elements of `L`, row by row.
    lower: Vec<f64>,
}

impl Cholesky {
    /// Computes the decomposition of a matrix given row by row; `None` if it is not positive definite.
    pub fn of(matrix: &[f64], size: usize) -> Option<Self> {
        let mut lower = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                let known = dot(
                    &lower[row * size..row * size + column],
                    &lower[column * size..column * size + column],
                );
                let rest = matrix[row * size + column] - known;
                lower[row * size + column] = if row == column {
                    if rest.is_nan() || rest <= 0.0 {
                        return None;
                    }
                    libm::sqrt(rest)
                } else {
                    rest / lower[column * size + column]
                };
            }
        }
        Some(Self { size, lower })
    }

    /// Computes `L x`, which for independent standard normal `x` is a draw with the covariance `A`.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        (0..self.size)
            .map(|row| dot(&self.row(row)[..=row], &x[..=row]))
            .collect()
    }

    /// Solves `L x = b` in place. The squared norm of `x` is `b' A^-1 b`.
    pub fn whiten(&self, b: &mut [f64]) {
        for row in 0..self.size {
            let lower = self.row(row);
            let known = dot(&lower[..row], &b[..row]);
            b[row] = (b[row] - known) / lower[row];
        }
    }

    /// Solves `A x = b` in place.
    pub fn solve(&self, b: &mut [f64]) {
        self.whiten(b);
        for row in (0..self.size).rev() {
            let known: f64 = (row + 1..self.size)
                .map(|k| self.lower[k * self.size + row] * b[k])
                .sum();
            b[row] = (b[row] - known) / self.lower[row * self.size + row];
        }
    }

    /// The natural logarithm of the determinant of `A`.
    pub fn log_determinant(&self) -> f64 {
        let diagonal = (0..self.size).map(|row| libm::log(self.lower[row * self.size + row]));
        2.0 * diagonal.sum::<f64>()
    }

    /// The elements of a row of `L`.
    fn row(&self, row: usize) -> &[f64] {
        &self.lower[row * self.size..(row + 1) * self.size]
    }
}

/// Solves `A x = b` for a symmetric, positive definite `A` given row by row; `None` if it is not positive
/// definite.
pub fn solve_symmetric(matrix: &[f64], right: &[f64]) -> Option<Vec<f64>> {
    let mut x = right.to_vec();
    Cholesky::of(matrix, right.len())?.solve(&mut x);
    Some(x)
}

/// The dot product of two vectors.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
