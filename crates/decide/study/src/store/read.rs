//! Reads a study from its database.

use std::collections::BTreeMap;

use rusqlite::types::FromSql;
use rusqlite::{Connection, Result, Row};
use serde::de::DeserializeOwned;
use sweetspot_device::{DeviceId, Shortfall};
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::validate::{check_outline, check_run};
use super::{Store, StoreError};
use crate::{
    DeviceEnergy, DevicePhase, Energies, Energy, EnergyOf, Failure, Outline, PhaseResult, Point,
    ReducedCap, RunEnding, RunPlace, RunRecord, RunResult, Status, Study, Task,
};

/// How many runs of a study are stored, and when the last one started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredRuns {
    /// The number of stored runs.
    pub runs: usize,
    /// The number of stored runs that failed.
    pub failed: usize,
    /// The time at which the last run started, in seconds since 1970; absent without runs.
    pub last_unix_s: Option<f64>,
}

impl Store {
    /// Reads the study's definition, devices, workload and plan.
    pub fn outline(&self) -> std::result::Result<Outline, StoreError> {
        let fingerprint = self.meta("fingerprint")?;
        let outline = Outline {
            definition: self.parsed("definition")?,
            subject: self.parsed("subject")?,
            plan: self.parsed("plan")?,
            fingerprint: fingerprint.and_then(|print| u64::from_str_radix(&print, 16).ok()),
            program: self.meta("program")?.unwrap_or_default(),
            machine: self.meta("machine")?.unwrap_or_default(),
            merged: self.meta("merged")?.is_some(),
            created_unix_s: self.meta("created_unix_s")?.and_then(|s| s.parse().ok()),
        };
        let checked = check_outline(&outline);
        checked.map_err(|problem| StoreError::damaged(&self.folder, problem))?;
        Ok(outline)
    }

    /// Reads a text of the table `meta`; `None` if it has no such key.
    fn meta(&self, key: &str) -> std::result::Result<Option<String>, StoreError> {
        let mut select = self
            .connection
            .prepare_cached("SELECT value FROM meta WHERE key = ?1")
            .map_err(|problem| self.problem(problem))?;
        let mut rows = select
            .query([key])
            .map_err(|problem| self.problem(problem))?;
        let row = rows.next().map_err(|problem| self.problem(problem))?;
        row.map(|row| row.get(0))
            .transpose()
            .map_err(|problem| self.problem(problem))
    }

    /// Reads a JSON value of the table `meta`.
    fn parsed<T: DeserializeOwned>(&self, key: &str) -> std::result::Result<T, StoreError> {
        let text = self
            .meta(key)?
            .ok_or_else(|| StoreError::damaged(&self.folder, format!("no {key}")))?;
        serde_json::from_str(&text)
            .map_err(|problem| StoreError::damaged(&self.folder, format!("{key}: {problem}")))
    }

    /// Converts a database error to an error of this study.
    fn problem(&self, problem: rusqlite::Error) -> StoreError {
        StoreError::database(&self.folder, problem)
    }

    /// Counts the stored runs.
    pub fn stored_runs(&self) -> std::result::Result<StoredRuns, StoreError> {
        let counted = self.connection.query_row(
            "SELECT count(*), ifnull(sum(status <> 'ok'), 0), max(started_unix_s) FROM run",
            [],
            |row| {
                Ok(StoredRuns {
                    runs: row.get::<_, i64>(0)? as usize,
                    failed: row.get::<_, i64>(1)? as usize,
                    last_unix_s: row.get(2)?,
                })
            },
        );
        counted.map_err(|problem| self.problem(problem))
    }

    /// Reads every run with its identifier, in the order of the identifiers.
    pub fn runs(&self) -> std::result::Result<Vec<(u64, RunRecord)>, StoreError> {
        let runs = runs(&self.connection).map_err(|problem| self.problem(problem))?;
        for (id, run) in &runs {
            check_run(run).map_err(|problem| {
                StoreError::damaged(&self.folder, format!("run {id}: {problem}"))
            })?;
        }
        Ok(runs)
    }

    /// Reads the study with all its runs. If `of` is given, the energy of that part of the machine is compared instead
    /// of the study's own choice.
    pub fn study(&self, of: Option<EnergyOf>) -> std::result::Result<Study, StoreError> {
        let outline = self.outline()?;
        let points = self.points(&outline, of.unwrap_or(outline.subject.energy_of))?;
        Ok(Study::new(outline.subject, outline.plan, points))
    }

    /// Reads the runs as one point for each configuration of the plan.
    pub fn points(
        &self,
        outline: &Outline,
        of: EnergyOf,
    ) -> std::result::Result<Vec<Point>, StoreError> {
        let mut points: Vec<Point> = outline
            .plan
            .configurations
            .iter()
            .map(|configuration| Point::new(configuration.clone(), of))
            .collect();
        for (id, run) in self.runs()? {
            let point = points.get_mut(run.task.configuration).ok_or_else(|| {
                StoreError::damaged(
                    &self.folder,
                    format!("run {id} belongs to no configuration of the plan"),
                )
            })?;
            point.add(run);
        }
        Ok(points)
    }
}

/// Reads every run with its identifier from all tables.
fn runs(connection: &Connection) -> Result<Vec<(u64, RunRecord)>> {
    let mut devices = by_run(
        connection,
        "SELECT * FROM run_device ORDER BY run, position",
        device,
    )?;
    let mut phases = by_run(
        connection,
        "SELECT * FROM run_phase ORDER BY run, position",
        phase,
    )?;
    if connection.table_exists(None, "run_device_phase")? {
        add_device_phases(connection, &mut phases)?;
    }
    let mut values = by_run(connection, "SELECT * FROM run_value", |row| {
        Ok((row.get("name")?, row.get("value")?))
    })?;
    let mut enforced = by_run(connection, "SELECT * FROM run_enforced", reduced_cap)?;
    let mut warnings = by_run(
        connection,
        "SELECT * FROM run_warning ORDER BY run, position",
        |row| row.get("text"),
    )?;
    let mut places = match connection.table_exists(None, "run_place")? {
        true => by_run(connection, "SELECT * FROM run_place", place)?,
        false => BTreeMap::new(),
    };
    let mut select = connection.prepare("SELECT * FROM run ORDER BY id")?;
    let rows = select.query_map([], |row| {
        let id: i64 = row.get("id")?;
        let status = parsed::<Status>(row, "status")?;
        let end = match status {
            Status::Ok => RunEnding::Done(RunResult {
                time: Seconds::new(row.get("time_s")?),
                energies: Energies {
                    job_gpus: energy(row, "job_gpus_j", "job_gpus_low_j", "job_gpus_high_j")?,
                    all_gpus: energy(row, "all_gpus_j", "all_gpus_low_j", "all_gpus_high_j")?,
                    node: energy(row, "node_j", "node_low_j", "node_high_j")?,
                },
                devices: devices.remove(&id).unwrap_or_default(),
                items: row.get("items")?,
                phases: phases.remove(&id).unwrap_or_default(),
                values: values.remove(&id).unwrap_or_default().into_iter().collect(),
            }),
            status => RunEnding::Failed(Failure {
                status,
                reason: row.get::<_, Option<String>>("reason")?.unwrap_or_default(),
                output: row.get::<_, Option<String>>("output")?.unwrap_or_default(),
            }),
        };
        let run = RunRecord {
            task: Task {
                configuration: row.get::<_, i64>("configuration")? as usize,
                repeat: row.get("repeat")?,
            },
            end,
            started_unix_s: row.get("started_unix_s")?,
            reduced_caps: enforced.remove(&id).unwrap_or_default(),
            warnings: warnings.remove(&id).unwrap_or_default(),
            place: places.remove(&id).and_then(|mut places| places.pop()),
        };
        Ok((id as u64, run))
    })?;
    rows.collect()
}

/// Reads the rows of a table and groups them by the identifier of their run.
fn by_run<T>(
    connection: &Connection,
    sql: &str,
    make: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<BTreeMap<i64, Vec<T>>> {
    let mut select = connection.prepare(sql)?;
    let mut rows = select.query([])?;
    let mut found: BTreeMap<i64, Vec<T>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        found.entry(row.get("run")?).or_default().push(make(row)?);
    }
    Ok(found)
}

/// Reads a column of a row by its name.
fn get<T: FromSql>(row: &Row<'_>, name: &str) -> Result<T> {
    row.get(name)
}

/// Reads an energy and the ends of its interval from three columns.
fn energy(row: &Row<'_>, value: &str, low: &str, high: &str) -> Result<Option<Energy>> {
    let value: Option<f64> = get(row, value)?;
    let (low, high): (Option<f64>, Option<f64>) = (get(row, low)?, get(row, high)?);
    let interval = low.zip(high);
    Ok(value.map(|value| Energy {
        value: Joules::new(value),
        interval95: interval.map(|(low, high)| (Joules::new(low), Joules::new(high))),
    }))
}

/// Reads the energy of a device from a row.
fn device(row: &Row<'_>) -> Result<DeviceEnergy> {
    Ok(DeviceEnergy {
        device: DeviceId::new(get::<String>(row, "device")?),
        in_job: get(row, "in_job")?,
        energy: energy(row, "energy_j", "low_j", "high_j")?,
        method: get(row, "method")?,
    })
}

/// Reads where a run was made from a row.
fn place(row: &Row<'_>) -> Result<RunPlace> {
    let gpus: String = get(row, "gpus")?;
    let gpus = gpus.split(',').filter(|gpu| !gpu.is_empty());
    Ok(RunPlace {
        node: get(row, "node")?,
        job: get(row, "job")?,
        gpus: gpus.map(DeviceId::new).collect(),
    })
}

/// Reads the result of a phase from a row.
fn phase(row: &Row<'_>) -> Result<PhaseResult> {
    Ok(PhaseResult {
        name: get(row, "name")?,
        time: Seconds::new(get(row, "time_s")?),
        energy: get::<Option<f64>>(row, "energy_j")?.map(Joules::new),
        by_device: Vec::new(),
    })
}

/// Adds the phases on each GPU to the phases of the runs.
fn add_device_phases(
    connection: &Connection,
    phases: &mut BTreeMap<i64, Vec<PhaseResult>>,
) -> Result<()> {
    let by_device = by_run(
        connection,
        "SELECT * FROM run_device_phase ORDER BY run, position, device",
        |row| {
            let phase = DevicePhase {
                time: Seconds::new(get(row, "time_s")?),
                energy: get::<Option<f64>>(row, "energy_j")?.map(Joules::new),
            };
            Ok((get::<i64>(row, "position")? as usize, phase))
        },
    )?;
    for (run, of_run) in by_device {
        for (position, one) in of_run {
            let phase = phases.get_mut(&run).and_then(|all| all.get_mut(position));
            if let Some(phase) = phase {
                phase.by_device.push(one);
            }
        }
    }
    Ok(())
}

/// Reads a power cap that the device lowered from a row.
fn reduced_cap(row: &Row<'_>) -> Result<ReducedCap> {
    let reason: String = get(row, "reason")?;
    Ok(ReducedCap {
        device: DeviceId::new(get::<String>(row, "device")?),
        requested: Watts::new(get(row, "requested_w")?),
        enforced: Watts::new(get(row, "enforced_w")?),
        reason: serde_json::from_value(serde_json::Value::String(reason))
            .unwrap_or(Shortfall::Unknown),
    })
}

/// Reads a text column and parses it.
fn parsed<T: std::str::FromStr<Err = String>>(row: &Row<'_>, name: &str) -> Result<T> {
    let text: String = get(row, name)?;
    text.parse().map_err(|problem: String| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, problem.into())
    })
}
