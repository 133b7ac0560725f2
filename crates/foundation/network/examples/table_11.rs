//! Prints table 11 of multi_gpu_2018, computed from its table 1 and its energies, as Markdown:
//! `cargo run --release -p sweetspot-network --example table_11`.

#[path = "../tests/published_table_11/mod.rs"]
mod published_table_11;

use std::path::Path;

use published_table_11::table_11;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/published");
    let read =
        |name: &str| std::fs::read_to_string(folder.join(format!("multi_gpu_2018_{name}.csv")));
    let table = table_11(
        &read("table_1_networks")?,
        &read("tables_4_5_7_8")?,
        &read("table_11_gflops_per_watt")?,
        &read("table_11_averages")?,
    )?;
    println!("| GPU | GPUs | network | batch | printed | computed |");
    println!("|---|---|---|---|---|---|");
    for cell in &table.cells {
        println!(
            "| {} | {} | {} | {} | {} | {:.3} |",
            cell.gpu, cell.gpus, cell.network, cell.batch, cell.published, cell.reproduced
        );
    }
    let agree = table.cells.iter().filter(|cell| cell.agrees()).count();
    println!(
        "\n{agree} of {} cells agree to the printed digit.",
        table.cells.len()
    );
    println!("\nPrinted averages that are not the means of their cells:\n");
    println!("| GPU | GPUs | network | batch | printed | mean of the cells |");
    println!("|---|---|---|---|---|---|");
    for average in table.averages.iter().filter(|average| !average.follows()) {
        let all = || "all".to_owned();
        println!(
            "| {} | {} | {} | {} | {:.1} | {:.3} |",
            average.gpu,
            average.gpus,
            average.network.clone().unwrap_or_else(all),
            average.batch.map_or_else(all, |batch| batch.to_string()),
            average.published,
            average.of_cells,
        );
    }
    Ok(())
}
