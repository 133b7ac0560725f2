//! Small dense linear algebra.

/// Solves `A x = b` for a symmetric, positive definite `A` (rows one after another) by Cholesky's
/// factorisation; nothing where `A` is not positive definite.
pub fn solve_symmetric(matrix: &[f64], right: &[f64]) -> Option<Vec<f64>> {
    let n = right.len();
    let factor = cholesky(matrix, n)?;
    let mut x = right.to_vec();
    for row in 0..n {
        let known: f64 = (0..row).map(|k| factor[row * n + k] * x[k]).sum();
        x[row] = (x[row] - known) / factor[row * n + row];
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|k| factor[k * n + row] * x[k]).sum();
        x[row] = (x[row] - known) / factor[row * n + row];
    }
    Some(x)
}

/// The lower triangle `L` with `A = L L'`.
fn cholesky(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut factor = vec![0.0; n * n];
    for row in 0..n {
        for column in 0..=row {
            let known: f64 = (0..column)
                .map(|k| factor[row * n + k] * factor[column * n + k])
                .sum();
            let rest = matrix[row * n + column] - known;
            factor[row * n + column] = if row == column {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                libm::sqrt(rest)
            } else {
                rest / factor[column * n + column]
            };
        }
    }
    Some(factor)
}
