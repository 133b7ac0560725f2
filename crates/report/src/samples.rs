//! Every reading of a measurement as Parquet.

use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use sweetspot_device::{Moment, Throttle};
use sweetspot_session::measure::Recording;

/// A row for each reading; what a reading does not say is null. Times count from the first run's begin.
const SCHEMA: &str = "
    message samples {
        REQUIRED DOUBLE time_s;
        REQUIRED BINARY device (STRING);
        REQUIRED BINARY source (STRING);
        OPTIONAL DOUBLE power_w;
        OPTIONAL DOUBLE energy_j;
        OPTIONAL DOUBLE utilisation;
        OPTIONAL DOUBLE core_clock_mhz;
        OPTIONAL DOUBLE memory_clock_mhz;
        OPTIONAL DOUBLE temperature_c;
        OPTIONAL BINARY throttle (STRING);
    }";

#[derive(Default)]
struct Row {
    at: Moment,
    device: usize,
    source: &'static str,
    numbers: [Option<f64>; 6],
    throttle: Option<String>,
}

/// The file's bytes.
pub fn samples_parquet(recording: &Recording) -> Result<Vec<u8>, ParquetError> {
    let rows = rows(recording);
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED);
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    let begin = recording.begins.first().copied().unwrap_or_default();
    let time = |row: &Row| Some((row.at - begin).get());
    column::<DoubleType>(&mut group, rows.iter().map(time), true)?;
    let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
    let device = |row: &Row| Some(text(recording.devices[row.device].id.as_str()));
    column::<ByteArrayType>(&mut group, rows.iter().map(device), true)?;
    let source = |row: &Row| Some(text(row.source));
    column::<ByteArrayType>(&mut group, rows.iter().map(source), true)?;
    for number in 0..6 {
        let numbers = rows.iter().map(|row| row.numbers[number]);
        column::<DoubleType>(&mut group, numbers, false)?;
    }
    let throttle = |row: &Row| row.throttle.as_deref().map(text);
    column::<ByteArrayType>(&mut group, rows.iter().map(throttle), false)?;
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    values: impl Iterator<Item = Option<T::T>>,
    required: bool,
) -> Result<(), ParquetError> {
    let (mut known, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        known.extend(value);
    }
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column is missing".to_owned()));
    };
    let levels = (!required).then_some(levels.as_slice());
    column.typed::<T>().write_batch(&known, levels, None)?;
    column.close()
}

fn rows(recording: &Recording) -> Vec<Row> {
    let mut rows = Vec::new();
    for (device, recorded) in recording.recorded.iter().enumerate() {
        let row = |at, source| Row {
            at,
            device,
            source,
            ..Row::default()
        };
        let trace = &recorded.trace;
        for sample in &trace.buffer {
            let mut row = row(sample.at, "buffer");
            row.numbers[0] = Some(sample.power.get());
            rows.push(row);
        }
        for (source, values) in [("instant", &trace.instant), ("average", &trace.average)] {
            for value in values {
                let mut row = row(value.appeared.end, source);
                row.numbers[0] = Some(value.power.get());
                rows.push(row);
            }
        }
        for reading in &trace.counter {
            let mut row = row(reading.call.middle(), "counter");
            row.numbers[1] = Some(reading.value.get());
            rows.push(row);
        }
        for beside in &recorded.beside {
            let mut row = row(beside.at, "beside");
            row.numbers[2] = beside.utilisation.map(|share| share.get());
            row.numbers[3] = beside.core_clock.map(|clock| clock.get());
            row.numbers[4] = beside.memory_clock.map(|clock| clock.get());
            row.numbers[5] = beside.temperature.map(|degrees| degrees.get());
            row.throttle = beside.throttle.map(reasons);
            rows.push(row);
        }
    }
    rows.sort_by_key(|row| (row.at, row.device));
    rows
}

fn reasons(throttle: Throttle) -> String {
    let all = [
        (throttle.idle, "idle"),
        (throttle.power_cap, "power-cap"),
        (throttle.clock_setting, "clock-setting"),
        (throttle.thermal, "thermal"),
        (throttle.hardware, "hardware"),
    ];
    let named = all.into_iter().filter_map(|(is, name)| is.then_some(name));
    named.collect::<Vec<_>>().join(",")
}
