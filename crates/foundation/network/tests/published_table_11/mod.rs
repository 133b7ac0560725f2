//! Table 11 of multi_gpu_2018, computed from its table 1 and its energies.

use std::collections::HashMap;

use sweetspot_quantity::Joules;

/// One cell of the table, in GFLOPS per watt.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The GPU that was measured.
    pub gpu: String,
    /// The paper's name of the network.
    pub network: String,
    /// The number of GPUs that worked.
    pub gpus: u64,
    /// The batch size.
    pub batch: u64,
    /// The printed value.
    pub published: String,
    /// The value computed from operations and energy.
    pub reproduced: f64,
}

impl Cell {
    /// Whether the computed value agrees with the printed one to its last digit.
    pub fn agrees(&self) -> bool {
        format!("{:.1}", self.reproduced) == self.published
    }
}

/// A printed average of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Average {
    /// The GPU that was measured.
    pub gpu: String,
    /// The network; `None` is all of them.
    pub network: Option<String>,
    /// The number of GPUs that worked.
    pub gpus: u64,
    /// The batch size; `None` is all of them.
    pub batch: Option<u64>,
    /// The printed value.
    pub published: f64,
    /// The mean of the printed cells.
    pub of_cells: f64,
}

impl Average {
    /// Whether the printed average is the mean of the printed cells, which are themselves rounded to a tenth.
    pub fn follows(&self) -> bool {
        // Half a tenth for its own rounding, and a little for 2.725 in binary.
        (self.published - self.of_cells).abs() < 0.05 + 1e-9
    }
}

/// The cells and averages of table 11.
#[derive(Clone, Debug, PartialEq)]
pub struct Table11 {
    /// All printed cells.
    pub cells: Vec<Cell>,
    /// All printed averages.
    pub averages: Vec<Average>,
}

/// Computes the table from the text of the published tables: 1 (networks), 4, 5, 7 and 8 (energies), 11 and its
/// averages.
pub fn table_11(
    networks: &str,
    joules: &str,
    table: &str,
    averages: &str,
) -> Result<Table11, String> {
    let mut operations = HashMap::new();
    for row in rows(networks) {
        let millions: f64 = number(&row, "arithmetic_operations_millions")?;
        operations.insert(row.get("network"), millions * 1e6);
    }
    let key = |row: &Row<'_>| {
        (
            row.get("measured_gpu").to_owned(),
            row.get("network").to_owned(),
            row.get("gpus").to_owned(),
            row.get("batch_size").to_owned(),
        )
    };
    // The sum of forward and backward pass of the one GPU that was measured.
    let mut energy: HashMap<_, Joules> = HashMap::new();
    for row in rows(joules).filter(|row| !row.get("joules_per_batch_one_gpu").is_empty()) {
        let joules = Joules::new(number(&row, "joules_per_batch_one_gpu")?);
        *energy.entry(key(&row)).or_default() += joules;
    }
    let mut cells = Vec::new();
    for row in rows(table).filter(|row| !row.get("gflops_per_watt").is_empty()) {
        let missing = || format!("no value is published for {row:?}");
        let (gpus, batch) = (number(&row, "gpus")?, number(&row, "batch_size")?);
        let operations = *operations.get(row.get("network")).ok_or_else(missing)?;
        let energy = *energy.get(&key(&row)).ok_or_else(missing)?;
        cells.push(Cell {
            gpu: row.get("measured_gpu").to_owned(),
            network: row.get("network").to_owned(),
            gpus,
            batch,
            published: row.get("gflops_per_watt").to_owned(),
            reproduced: gflops_per_watt(operations, batch, gpus, energy),
        });
    }
    let averages = rows(averages).map(|row| average(&row, &cells));
    Ok(Table11 {
        averages: averages.collect::<Result<_, _>>()?,
        cells,
    })
}

fn average(row: &Row<'_>, cells: &[Cell]) -> Result<Average, String> {
    let named = |name: &str| Some(row.get(name)).filter(|text| !text.is_empty());
    let batch = named("batch_size").map(|_| number(row, "batch_size"));
    let mut average = Average {
        gpu: row.get("measured_gpu").to_owned(),
        network: named("network").map(str::to_owned),
        gpus: number(row, "gpus")?,
        batch: batch.transpose()?,
        published: number(row, "gflops_per_watt")?,
        of_cells: 0.0,
    };
    let own = cells.iter().filter(|cell| {
        cell.gpu == average.gpu
            && cell.gpus == average.gpus
            && average
                .network
                .as_ref()
                .is_none_or(|network| *network == cell.network)
            && average.batch.is_none_or(|batch| batch == cell.batch)
    });
    let printed: Vec<f64> = own.filter_map(|cell| cell.published.parse().ok()).collect();
    average.of_cells = printed.iter().sum::<f64>() / printed.len() as f64;
    Ok(average)
}

/// A line by the names of its columns; the published tables have no quotes.
#[derive(Debug)]
struct Row<'a>(HashMap<&'a str, &'a str>);

impl<'a> Row<'a> {
    /// The value of a column, empty if there is none.
    fn get(&self, column: &str) -> &'a str {
        self.0.get(column).copied().unwrap_or_default()
    }
}

fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    lines.map(move |line| {
        let fields = line.split(',').chain(std::iter::repeat(""));
        Row(header.iter().copied().zip(fields).collect())
    })
}

fn number<T: std::str::FromStr>(row: &Row<'_>, column: &str) -> Result<T, String> {
    let text = row.get(column);
    text.parse()
        .map_err(|_| format!("`{text}` is not a number for {column}"))
}

/// GFLOPS per watt as in the paper's table 11: twice the operations of a batch over the energy of all GPUs, which
/// is that of the measured one times their number.
fn gflops_per_watt(operations: f64, batch: u64, gpus: u64, energy_of_one: Joules) -> f64 {
    2.0 * batch as f64 * operations / (gpus as f64 * energy_of_one.get()) / 1e9
}
