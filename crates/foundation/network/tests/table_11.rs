//! Table 11 of multi_gpu_2018 follows from its operations and energies, to the printed digit.

mod published_table_11;

use published_table_11::{Table11, table_11};

fn table() -> Table11 {
    let read = |name: &str| {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/published");
        std::fs::read_to_string(folder.join(format!("multi_gpu_2018_{name}.csv"))).unwrap()
    };
    table_11(
        &read("table_1_networks"),
        &read("tables_4_5_7_8"),
        &read("table_11_gflops_per_watt"),
        &read("table_11_averages"),
    )
    .unwrap()
}

#[test]
fn every_cell_agrees_to_the_printed_digit() {
    let table = table();
    assert_eq!(table.cells.len(), 70);
    for cell in &table.cells {
        assert!(cell.agrees(), "{cell:?}");
    }
}

#[test]
fn seven_averages_are_not_the_means_of_their_cells() {
    let table = table();
    assert_eq!(table.averages.len(), 48);
    let wrong: Vec<_> = table
        .averages
        .iter()
        .filter(|average| !average.follows())
        .map(|average| {
            let network = average.network.as_deref().unwrap_or("all");
            let mean = format!("{:.2}", average.of_cells);
            (
                average.gpu.as_str(),
                average.gpus,
                network,
                average.batch,
                average.published,
                mean,
            )
        })
        .collect();
    let expected = [
        ("titan_x_pascal", 1, "ResNet", None, 4.3, "3.60"),
        ("titan_x_maxwell", 1, "all", Some(64), 5.8, "4.85"),
        ("titan_x_maxwell", 1, "all", None, 5.4, "5.05"),
        ("titan_x_pascal", 4, "2D-CNN", None, 4.2, "3.83"),
        ("titan_x_pascal", 4, "all", Some(64), 2.8, "2.73"),
        ("titan_x_pascal", 4, "all", None, 3.1, "3.02"),
        ("titan_x_maxwell", 4, "2D-CNN", None, 5.0, "5.07"),
    ];
    let expected = expected.map(|(a, b, c, d, e, f)| (a, b, c, d, e, f.to_owned()));
    assert_eq!(wrong, expected);
}

#[test]
fn an_incomplete_table_is_an_error() {
    let error = table_11(
        "network,x\n",
        "",
        "measured_gpu,gflops_per_watt\na,1.0\n",
        "",
    );
    assert!(error.is_err());
}
