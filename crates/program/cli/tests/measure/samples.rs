//! All readings as Parquet.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

use super::common::{measure, words, workload};
use crate::host::TestHost;

#[test]
fn every_reading_is_in_the_samples() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples.parquet");
    let run = workload("resnet50", "1.5");
    let args = [
        &["--export-samples", path.to_str().unwrap()],
        words(&run).as_slice(),
    ]
    .concat();
    let output = measure(&host, &args);
    assert!(output.status.success(), "{output:?}");
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let names: Vec<&str> = schema
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    let expected = "time_ns device source power_w energy_j utilisation core_clock_mhz memory_clock_mhz \
                    temperature_c throttle";
    assert_eq!(names.join(" "), expected);
    let (mut last, mut busy, mut sources) = (i64::MIN, 0, Vec::<String>::new());
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let time = row.get_long(0).unwrap();
        let source = row.get_string(2).unwrap().clone();
        // Rows come source by source, each in order of time.
        assert!(time >= last || sources.last() != Some(&source), "{row}");
        last = time;
        sources.push(source);
        if sources.last().unwrap() == "buffer" && row.get_float(3).unwrap() > 300.0 {
            busy += 1;
        }
    }
    for source in ["buffer", "counter", "beside"] {
        assert!(
            sources.iter().any(|one| one == source),
            "{source}: {sources:?}"
        );
    }
    // About one sample every 20 ms.
    assert!((50..120).contains(&busy), "{busy} samples under load");
}
