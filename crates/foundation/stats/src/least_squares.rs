//! Nonlinear least squares within bounds (Levenberg-Marquardt, numerical derivatives).

use crate::linear::solve_symmetric;

/// The range within which a fitted parameter must lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The smallest allowed value of the parameter.
    pub low: f64,
    /// The largest allowed value of the parameter.
    pub high: f64,
}

/// The result of a least-squares fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The parameters with the smallest sum of squared residuals.
    pub parameters: Vec<f64>,
    /// The residuals at the best parameters.
    pub residuals: Vec<f64>,
    /// The number of optimisation steps that were made.
    pub steps: usize,
}

/// The step of the numerical derivatives, relative to the parameter.
const RELATIVE_STEP: f64 = 1e-4;
/// The optimisation ends when a step reduces the sum of squares by less than this fraction.
const MIN_RELATIVE_GAIN: f64 = 1e-6;
/// The optimisation ends when no step with at most this damping reduces the sum of squares.
const MAX_DAMPING: f64 = 1e12;

/// Minimises the sum of squared residuals from `start`, within `bounds`, in at most `steps` steps.
pub fn fit(
    residuals: impl Fn(&[f64]) -> Vec<f64>,
    start: &[f64],
    bounds: &[Bounds],
    steps: usize,
) -> Fit {
    let mut parameters = start.to_vec();
    clamp(&mut parameters, bounds);
    let mut current = residuals(&parameters);
    let mut damping = 1e-3;
    for step in 0..steps {
        let jacobian = derivatives(&residuals, &parameters, &current, bounds);
        let before = sum_of_squares(&current);
        loop {
            if damping > MAX_DAMPING {
                return Fit {
                    parameters,
                    residuals: current,
                    steps: step,
                };
            }
            let free = free_parameters(&jacobian, &current, &parameters, bounds);
            let trial = damped_step(&jacobian, &current, &free, damping).map(|move_by| {
                let mut trial = parameters.clone();
                for (value, by) in trial.iter_mut().zip(move_by) {
                    *value += by;
                }
                clamp(&mut trial, bounds);
                let at_trial = residuals(&trial);
                (trial, at_trial)
            });
            match trial {
                Some((trial, at_trial)) if sum_of_squares(&at_trial) < before => {
                    parameters = trial;
                    current = at_trial;
                    damping *= 0.2;
                    break;
                }
                _ => damping *= 5.0,
            }
        }
        if before - sum_of_squares(&current) < MIN_RELATIVE_GAIN * before {
            return Fit {
                parameters,
                residuals: current,
                steps: step + 1,
            };
        }
    }
    Fit {
        parameters,
        residuals: current,
        steps,
    }
}

/// The sum of the squared residuals.
fn sum_of_squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|r| r * r).sum()
}

/// Moves each parameter into its bounds.
fn clamp(parameters: &mut [f64], bounds: &[Bounds]) {
    for (value, bound) in parameters.iter_mut().zip(bounds) {
        *value = value.clamp(bound.low, bound.high);
    }
}

/// Computes the derivatives of the residuals by finite differences, one column per parameter. At an upper bound
/// the step goes inwards.
fn derivatives(
    residuals: &impl Fn(&[f64]) -> Vec<f64>,
    parameters: &[f64],
    current: &[f64],
    bounds: &[Bounds],
) -> Vec<Vec<f64>> {
    (0..parameters.len())
        .map(|index| {
            let mut shifted = parameters.to_vec();
            let size = RELATIVE_STEP * parameters[index].abs().max(1e-6);
            let by = if parameters[index] + size > bounds[index].high {
                -size
            } else {
                size
            };
            shifted[index] += by;
            residuals(&shifted)
                .iter()
                .zip(current)
                .map(|(moved, here)| (moved - here) / by)
                .collect()
        })
        .collect()
}

/// For each parameter, whether it may change in this step. A parameter at a bound may not if the step would take it
/// beyond the bound.
fn free_parameters(
    jacobian: &[Vec<f64>],
    current: &[f64],
    parameters: &[f64],
    bounds: &[Bounds],
) -> Vec<bool> {
    jacobian
        .iter()
        .zip(parameters)
        .zip(bounds)
        .map(|((column, value), bound)| {
            let gradient: f64 = column.iter().zip(current).map(|(j, r)| j * r).sum();
            !((*value <= bound.low && gradient > 0.0) || (*value >= bound.high && gradient < 0.0))
        })
        .collect()
}

/// The Levenberg-Marquardt step of the free parameters; `None` if the equations have no solution.
fn damped_step(
    jacobian: &[Vec<f64>],
    current: &[f64],
    free: &[bool],
    damping: f64,
) -> Option<Vec<f64>> {
    let n = jacobian.len();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut normal = vec![0.0; n * n];
    let mut right = vec![0.0; n];
    for row in 0..n {
        if !free[row] {
            normal[row * n + row] = 1.0;
            continue;
        }
        right[row] = -dot(&jacobian[row], current);
        for column in (0..n).filter(|column| free[*column]) {
            normal[row * n + column] = dot(&jacobian[row], &jacobian[column]);
        }
        let diagonal = &mut normal[row * n + row];
        *diagonal += damping * diagonal.max(1e-12);
    }
    solve_symmetric(&normal, &right)
}
