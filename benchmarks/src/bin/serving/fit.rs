//! Fits the costs of a language model's steps to the measured table, and prints the errors of rows that were left out.

use sweetspot_stats::solve_symmetric;

/// The measured table.
const TABLE: &str = include_str!("../../../../data/measured_h200/llm_decode_prefill.csv");

/// A row of decode: batch, context, milliseconds, and the clock relative to the default one.
type Row = (f64, f64, f64, f64);

/// Fits and prints.
pub fn print() {
    let rows: Vec<Row> = TABLE.lines().skip(1).filter_map(row).collect();
    let all: Vec<usize> = (0..rows.len()).collect();
    let fitted = fit(&rows, &all);
    println!(
        "decode step in ms = {:.5} + {:.6} batch + {:.4e} batch*context + {:.4e} context",
        fitted[0], fitted[1], fitted[2], fitted[3]
    );
    println!("batch context measured [ms] error if left out");
    let mut worst = 0.0_f64;
    for (index, row) in rows.iter().enumerate() {
        let others: Vec<usize> = all
            .iter()
            .copied()
            .filter(|other| *other != index)
            .collect();
        let held_out = fit(&rows, &others);
        let predicted: f64 = features(row)
            .iter()
            .zip(&held_out)
            .map(|(x, y)| x * y)
            .sum();
        let error = predicted / row.2 - 1.0;
        worst = worst.max(error.abs());
        println!(
            "{:>5} {:>7} {:>13.3} {:>17.1} %",
            row.0,
            row.1,
            row.2,
            100.0 * error
        );
    }
    println!(
        "largest error of a row that was left out: {:.1} %",
        100.0 * worst
    );
}

/// Reads a row of decode; `None` for other rows.
fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.split(',').collect();
    let number = |at: usize| cells.get(at)?.parse::<f64>().ok();
    (cells.first() == Some(&"decode")).then_some(())?;
    Some((number(1)?, number(2)?, number(4)?, number(8)? / 1980.0))
}

/// What the time of a step is linear in.
fn features(&(batch, context, _, clock): &Row) -> [f64; 4] {
    [1.0, batch / clock, batch * context, context / clock]
}

/// Least squares of relative errors.
fn fit(rows: &[Row], chosen: &[usize]) -> Vec<f64> {
    let mut matrix = vec![0.0; 16];
    let mut right = vec![0.0; 4];
    for row in chosen.iter().map(|index| &rows[*index]) {
        let scaled = features(row).map(|feature| feature / row.2);
        for i in 0..4 {
            right[i] += scaled[i];
            for j in 0..4 {
                matrix[4 * i + j] += scaled[i] * scaled[j];
            }
        }
    }
    solve_symmetric(&matrix, &right).expect("the rows differ")
}
