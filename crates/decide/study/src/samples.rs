//! Readings over time as Parquet files: a row for each reading, a column for each quantity.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::record::Field;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

/// A physical quantity that a reading of a device can contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// The power of the device in watts.
    Power,
    /// The value of the device's energy counter in joules.
    Energy,
    /// The share of the time in which the device was busy.
    Utilisation,
    /// The core clock in megahertz.
    CoreClock,
    /// The memory clock in megahertz.
    MemoryClock,
    /// The temperature in degrees Celsius.
    Temperature,
}

impl Quantity {
    /// All quantities, in the order of their columns.
    pub const ALL: [Self; 6] = [
        Self::Power,
        Self::Energy,
        Self::Utilisation,
        Self::CoreClock,
        Self::MemoryClock,
        Self::Temperature,
    ];

    /// The name of the quantity's column in the Parquet file.
    pub const fn column(self) -> &'static str {
        match self {
            Self::Power => "power_w",
            Self::Energy => "energy_j",
            Self::Utilisation => "utilisation",
            Self::CoreClock => "core_clock_mhz",
            Self::MemoryClock => "memory_clock_mhz",
            Self::Temperature => "temperature_c",
        }
    }
}

/// The readings of one device from one source over time; every column has one entry for each time in `nanos`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The device's UUID.
    pub device: String,
    /// The source of the readings: `buffer`, `counter`, `instant`, `average`, `beside`, `simulator`.
    pub source: String,
    /// The times of the readings in nanoseconds since the start of the run.
    pub nanos: Vec<i64>,
    /// The quantities that were read, and their values.
    pub columns: Vec<(Quantity, Column)>,
    /// For each reading, the reasons for throttling, separated by commas; absent if they were not read.
    pub throttle: Option<Vec<Option<String>>>,
}

/// The values of one quantity, one for each reading.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Every reading has a value; stored in single precision.
    All(Vec<f32>),
    /// Only some readings have a value; stored in double precision.
    Some(Vec<Option<f64>>),
}

impl Column {
    /// The value in this row; `None` if it is absent.
    fn get(&self, row: usize) -> Option<f64> {
        match self {
            Self::All(values) => values.get(row).map(|value| f64::from(*value)),
            Self::Some(values) => values.get(row).copied().flatten(),
        }
    }
}

/// Creates the bytes of a Parquet file with these series, one after the other.
pub fn write_samples(series: &[Series]) -> Result<Vec<u8>, ParquetError> {
    let has = |quantity: Quantity| {
        let mut columns = series.iter().flat_map(|one| &one.columns);
        columns.any(|(of, _)| *of == quantity)
    };
    let present: Vec<Quantity> = Quantity::ALL.into_iter().filter(|q| has(*q)).collect();
    let throttles = series.iter().any(|one| one.throttle.is_some());
    let kind = |quantity: &Quantity| match quantity {
        Quantity::Energy => "DOUBLE",
        _ => "FLOAT",
    };
    let mut schema = "message samples { REQUIRED INT64 time_ns; REQUIRED BINARY device (STRING); \
                      REQUIRED BINARY source (STRING); "
        .to_owned();
    for quantity in &present {
        schema += &format!("OPTIONAL {} {}; ", kind(quantity), quantity.column());
    }
    if throttles {
        schema += "OPTIONAL BINARY throttle (STRING); ";
    }
    schema += "}";
    let schema = Arc::new(parse_message_type(&schema)?);
    let time = ColumnPath::from("time_ns");
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_column_dictionary_enabled(time.clone(), false)
        .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
        .set_statistics_enabled(EnabledStatistics::None);
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    let rows: usize = series.iter().map(|one| one.nanos.len()).sum();
    let nanos: Vec<i64> = series.iter().flat_map(|one| &one.nanos).copied().collect();
    write_column::<Int64Type>(&mut group, &nanos, None)?;
    write_text_column(&mut group, series, |one| &one.device)?;
    write_text_column(&mut group, series, |one| &one.source)?;
    for quantity in present {
        match quantity {
            Quantity::Energy => {
                write_number_column::<DoubleType>(&mut group, series, quantity, |v| v)?
            }
            _ => write_number_column::<FloatType>(&mut group, series, quantity, |v| v as f32)?,
        }
    }
    if throttles {
        let (mut known, mut levels) = (Vec::new(), Vec::with_capacity(rows));
        for one in series {
            for row in 0..one.nanos.len() {
                let text = one.throttle.as_ref().and_then(|all| all.get(row)?.as_ref());
                levels.push(i16::from(text.is_some()));
                known.extend(text.map(|text| ByteArray::from(text.as_bytes().to_vec())));
            }
        }
        write_column::<ByteArrayType>(&mut group, &known, Some(&levels))?;
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

/// Writes a column of texts that are the same in all rows of a series, in chunks to save memory.
fn write_text_column(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    series: &[Series],
    text: impl Fn(&Series) -> &String,
) -> Result<(), ParquetError> {
    /// The number of rows that are written at once.
    const CHUNK_ROWS: usize = 1024;
    let mut column = next_column(group)?;
    for one in series {
        let value = ByteArray::from(text(one).as_bytes().to_vec());
        let chunk = vec![value; CHUNK_ROWS.min(one.nanos.len())];
        let mut left = one.nanos.len();
        while left > 0 {
            let rows = left.min(CHUNK_ROWS);
            let typed = column.typed::<ByteArrayType>();
            typed.write_batch(&chunk[..rows], None, None)?;
            left -= rows;
        }
    }
    column.close()
}

/// Writes a column of numbers that may be absent.
fn write_number_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    series: &[Series],
    quantity: Quantity,
    make: impl Fn(f64) -> T::T,
) -> Result<(), ParquetError> {
    let (mut known, mut levels) = (Vec::new(), Vec::new());
    for one in series {
        let column = one.columns.iter().find(|(of, _)| *of == quantity);
        match column {
            Some((_, Column::All(values))) => {
                known.extend(values.iter().map(|value| make(f64::from(*value))));
                levels.resize(levels.len() + values.len(), 1);
            }
            Some((_, Column::Some(values))) => {
                for value in values {
                    levels.push(i16::from(value.is_some()));
                    known.extend(value.map(&make));
                }
            }
            None => levels.resize(levels.len() + one.nanos.len(), 0),
        }
    }
    write_column::<T>(group, &known, Some(&levels))
}

/// Opens the next column of a row group.
fn next_column<'a>(
    group: &'a mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
) -> Result<SerializedColumnWriter<'a>, ParquetError> {
    let column = group.next_column()?;
    column.ok_or_else(|| ParquetError::General("a column is missing".to_owned()))
}

/// Writes values into a column; definition levels mark which rows have a value.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    known: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = next_column(group)?;
    column.typed::<T>().write_batch(known, levels, None)?;
    column.close()
}

/// Reads a file that [`write_samples`] wrote.
pub fn read_samples(file: std::fs::File) -> Result<Vec<Series>, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let mut all: Vec<(Series, Vec<Vec<Option<f64>>>)> = Vec::new();
    for row in reader.get_row_iter(None)? {
        let row = row?;
        let mut nanos = 0;
        let (mut device, mut source, mut throttle) = (String::new(), String::new(), None);
        let mut numbers = [None; Quantity::ALL.len()];
        for (name, field) in row.get_column_iter() {
            let position = Quantity::ALL.iter().position(|q| q.column() == name);
            match (name.as_str(), field) {
                ("time_ns", Field::Long(value)) => nanos = *value,
                ("device", Field::Str(text)) => device.clone_from(text),
                ("source", Field::Str(text)) => source.clone_from(text),
                ("throttle", Field::Str(text)) => throttle = Some(text.clone()),
                (_, Field::Float(value)) => {
                    if let Some(position) = position {
                        numbers[position] = Some(f64::from(*value));
                    }
                }
                (_, Field::Double(value)) => {
                    if let Some(position) = position {
                        numbers[position] = Some(*value);
                    }
                }
                _ => {}
            }
        }
        let same = |one: &(Series, _)| one.0.device == device && one.0.source == source;
        let index = all.iter().position(same).unwrap_or_else(|| {
            let series = Series {
                device: device.clone(),
                source: source.clone(),
                ..Series::default()
            };
            all.push((series, vec![Vec::new(); Quantity::ALL.len()]));
            all.len() - 1
        });
        let (series, columns) = &mut all[index];
        series.nanos.push(nanos);
        for (column, number) in columns.iter_mut().zip(numbers) {
            column.push(number);
        }
        if let Some(throttle) = throttle {
            let all = series.throttle.get_or_insert_default();
            all.resize(series.nanos.len() - 1, None);
            all.push(Some(throttle));
        }
    }
    Ok(all
        .into_iter()
        .map(|(mut series, columns)| {
            for (quantity, column) in Quantity::ALL.into_iter().zip(columns) {
                if column.iter().any(Option::is_some) {
                    series.columns.push((quantity, Column::Some(column)));
                }
            }
            if let Some(throttle) = &mut series.throttle {
                throttle.resize(series.nanos.len(), None);
            }
            series
        })
        .collect())
}

impl Series {
    /// The values of a quantity with their times in seconds; readings without a value are left out.
    pub fn over_time(&self, quantity: Quantity) -> Vec<(f64, f64)> {
        let column = self.columns.iter().find(|(of, _)| *of == quantity);
        let Some((_, column)) = column else {
            return Vec::new();
        };
        let rows = self.nanos.iter().enumerate();
        rows.filter_map(|(row, nanos)| Some((*nanos as f64 * 1e-9, column.get(row)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn samples_are_read_as_they_were_written() {
        let series = vec![
            Series {
                device: "GPU-1".into(),
                source: "simulator".into(),
                nanos: vec![0, 20_000_000, 40_000_000],
                columns: vec![(Quantity::Power, Column::All(vec![70.0, 250.5, 250.5]))],
                throttle: None,
            },
            Series {
                device: "GPU-2".into(),
                source: "counter".into(),
                nanos: vec![-5, 100_000_000],
                columns: vec![
                    (Quantity::Energy, Column::Some(vec![Some(0.1), None])),
                    (Quantity::Temperature, Column::Some(vec![None, Some(45.0)])),
                ],
                throttle: Some(vec![Some("power-cap,thermal".into()), None]),
            },
        ];
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&write_samples(&series).unwrap()).unwrap();
        let read = read_samples(file).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(
            read[0].over_time(Quantity::Power),
            [(0.0, 70.0), (0.02, 250.5), (0.04, 250.5)]
        );
        assert_eq!(read[1].columns, series[1].columns);
        assert_eq!(read[1].throttle, series[1].throttle);
        assert_eq!(read[1].nanos, series[1].nanos);
    }
}
