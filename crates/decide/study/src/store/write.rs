//! Writes a study into its database.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, Result, Transaction, params};
use serde::Serialize;

use sweetspot_device::DeviceId;

use super::{APPLICATION_ID, Outline, SCHEMA};
use crate::{Axis, Energy, PhaseResult, RunEnding, RunPlace, RunRecord, RunResult};

/// Creates the database of a study without runs.
pub fn create_database(path: &Path, outline: &Outline) -> Result<()> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "DELETE")?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", SCHEMA)?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(include_str!("schema.sql"))?;
    let meta = [
        ("definition", Some(json(&outline.definition)?)),
        ("subject", Some(json(&outline.subject)?)),
        ("plan", Some(json(&outline.plan)?)),
        (
            "fingerprint",
            outline.fingerprint.map(|print| format!("{print:016x}")),
        ),
        ("program", Some(outline.program.clone())),
        ("machine", Some(outline.machine.clone())),
        ("merged", outline.merged.then(|| "true".to_owned())),
        (
            "created_unix_s",
            outline.created_unix_s.map(|s| s.to_string()),
        ),
    ];
    for (key, value) in meta {
        if let Some(value) = value {
            transaction.execute("INSERT INTO meta VALUES (?1, ?2)", params![key, value])?;
        }
    }
    insert_configurations(&transaction, outline)?;
    transaction.commit()
}

/// Replaces the stored definition and plan, both or neither; the plan must have the same configurations as before.
pub fn update_plan(connection: &mut Connection, outline: &Outline) -> Result<()> {
    let transaction = connection.transaction()?;
    for (key, value) in [
        ("definition", json(&outline.definition)?),
        ("plan", json(&outline.plan)?),
    ] {
        transaction.execute(
            "UPDATE meta SET value = ?2 WHERE key = ?1",
            params![key, value],
        )?;
    }
    transaction.commit()
}

/// Inserts the configurations of the plan and their parameters.
fn insert_configurations(transaction: &Transaction<'_>, outline: &Outline) -> Result<()> {
    let plan = &outline.plan;
    let mut one = transaction
        .prepare("INSERT INTO configuration VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    let mut parameter = transaction.prepare("INSERT INTO parameter VALUES (?1, ?2, ?3)")?;
    for (id, configuration) in plan.configurations.iter().enumerate() {
        let each = Axis::PowerCap.text(configuration);
        let each = each.filter(|_| configuration.power_cap().is_none());
        one.execute(params![
            id as i64,
            id < plan.on_axes,
            id == plan.reference,
            configuration.gpus as i64,
            configuration.power_cap().map(|cap| cap.get()),
            each,
            configuration.core_clock.map(|clock| clock.get()),
            configuration.memory_clock.map(|clock| clock.get()),
            configuration.cpu_power_cap.map(|cap| cap.get()),
        ])?;
        for (name, value) in &configuration.parameters {
            parameter.execute(params![id as i64, name, value])?;
        }
    }
    Ok(())
}

/// Serialises a value as JSON text.
fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Whether a database error means that another program has locked the database.
pub fn is_busy(problem: &rusqlite::Error) -> bool {
    let code = problem.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Deletes the failed runs and returns their number.
pub fn delete_failed_runs(connection: &mut Connection) -> Result<usize> {
    let transaction = connection.transaction()?;
    for table in ["run_enforced", "run_warning", "run_place"] {
        if !transaction.table_exists(None, table)? {
            continue;
        }
        let sql =
            format!("DELETE FROM {table} WHERE run IN (SELECT id FROM run WHERE status <> 'ok')");
        transaction.execute(&sql, [])?;
    }
    let count = transaction.execute("DELETE FROM run WHERE status <> 'ok'", [])?;
    transaction.commit()?;
    Ok(count)
}

/// Inserts runs in one transaction: all or none.
pub fn record(connection: &mut Connection, runs: &[(u64, RunRecord)]) -> Result<()> {
    let transaction = connection.transaction()?;
    for (id, run) in runs {
        insert_run(&transaction, *id as i64, run)?;
    }
    transaction.commit()
}

/// Inserts a run with its result or failure, its warnings and its reduced caps.
fn insert_run(transaction: &Transaction<'_>, id: i64, run: &RunRecord) -> Result<()> {
    let (result, failure) = match &run.end {
        RunEnding::Done(result) => (Some(result), None),
        RunEnding::Failed(failure) => (None, Some(failure)),
    };
    let energies = result.map(|result| result.energies).unwrap_or_default();
    let (job, all, node) = (
        energy_columns(energies.job_gpus),
        energy_columns(energies.all_gpus),
        energy_columns(energies.node),
    );
    let status = failure.map_or_else(|| "ok".to_owned(), |failure| failure.status.to_string());
    let mut insert = transaction.prepare_cached(
        "INSERT OR IGNORE INTO run VALUES
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
    )?;
    let inserted = insert.execute(params![
        id,
        run.task.configuration as i64,
        run.task.repeat,
        status,
        failure.map(|failure| &failure.reason),
        failure
            .map(|failure| &failure.output)
            .filter(|output| !output.is_empty()),
        run.started_unix_s,
        result.map(|result| result.time.get()),
        result.and_then(|result| result.items),
        job.0,
        job.1,
        job.2,
        all.0,
        all.1,
        all.2,
        node.0,
        node.1,
        node.2,
    ])?;
    if inserted == 0 {
        return Ok(());
    }
    for (position, warning) in run.warnings.iter().enumerate() {
        let mut insert =
            transaction.prepare_cached("INSERT INTO run_warning VALUES (?1, ?2, ?3)")?;
        insert.execute(params![id, position as i64, warning])?;
    }
    for one in &run.reduced_caps {
        let mut insert = transaction
            .prepare_cached("INSERT OR IGNORE INTO run_enforced VALUES (?1, ?2, ?3, ?4, ?5)")?;
        let reason = json(&one.reason)?;
        insert.execute(params![
            id,
            one.device.as_str(),
            one.requested.get(),
            one.enforced.get(),
            reason.trim_matches('"'),
        ])?;
    }
    if let Some(place) = &run.place {
        insert_place(transaction, id, place)?;
    }
    match result {
        Some(result) => insert_result(transaction, id, result),
        None => Ok(()),
    }
}

/// Inserts where a run was made. A study of an earlier version gets the table for it.
fn insert_place(transaction: &Transaction<'_>, id: i64, place: &RunPlace) -> Result<()> {
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS run_place
         (run INTEGER PRIMARY KEY REFERENCES run (id), node TEXT NOT NULL, job TEXT, gpus TEXT NOT NULL)",
    )?;
    let gpus: Vec<&str> = place.gpus.iter().map(DeviceId::as_str).collect();
    let mut insert =
        transaction.prepare_cached("INSERT OR REPLACE INTO run_place VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute(params![id, place.node, place.job, gpus.join(",")])?;
    Ok(())
}

/// Inserts the energy of each device, the phases and the reported values of a run.
fn insert_result(transaction: &Transaction<'_>, id: i64, result: &RunResult) -> Result<()> {
    for (position, device) in result.devices.iter().enumerate() {
        let mut insert = transaction
            .prepare_cached("INSERT INTO run_device VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
        let (value, low, high) = energy_columns(device.energy);
        insert.execute(params![
            id,
            position as i64,
            device.device.as_str(),
            device.in_job,
            value,
            low,
            high,
            device.method,
        ])?;
    }
    let takes_unknown = takes_unknown_phase_energy(transaction)?;
    let phases = result.phases.iter();
    let phases = phases.filter(|phase| takes_unknown || has_all_energies(phase));
    for (position, phase) in phases.enumerate() {
        let mut insert =
            transaction.prepare_cached("INSERT INTO run_phase VALUES (?1, ?2, ?3, ?4, ?5)")?;
        insert.execute(params![
            id,
            position as i64,
            phase.name,
            phase.time.get(),
            phase.energy.map(|energy| energy.get()),
        ])?;
        insert_phase_by_device(transaction, id, position, phase)?;
    }
    for (name, value) in &result.values {
        let mut insert = transaction.prepare_cached("INSERT INTO run_value VALUES (?1, ?2, ?3)")?;
        insert.execute(params![id, name, value])?;
    }
    Ok(())
}

/// Whether the database stores phases whose energy is unknown. Studies of earlier versions do not; such phases are left
/// out there.
fn takes_unknown_phase_energy(transaction: &Transaction<'_>) -> Result<bool> {
    let mut required = transaction.prepare_cached(
        "SELECT \"notnull\" FROM pragma_table_info('run_phase') WHERE name = 'energy_j'",
    )?;
    required.query_row([], |row| Ok(!row.get::<_, bool>(0)?))
}

/// Whether the energy of a phase is known, together and on each GPU.
fn has_all_energies(phase: &PhaseResult) -> bool {
    phase.energy.is_some() && phase.by_device.iter().all(|one| one.energy.is_some())
}

/// Inserts a phase on each GPU of the job. In a study of an earlier version, which lacks the table, this is left out.
fn insert_phase_by_device(
    transaction: &Transaction<'_>,
    id: i64,
    position: usize,
    phase: &PhaseResult,
) -> Result<()> {
    if phase.by_device.is_empty() || !transaction.table_exists(None, "run_device_phase")? {
        return Ok(());
    }
    let mut insert =
        transaction.prepare_cached("INSERT INTO run_device_phase VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (device, one) in phase.by_device.iter().enumerate() {
        insert.execute(params![
            id,
            position as i64,
            device as i64,
            one.time.get(),
            one.energy.map(|energy| energy.get()),
        ])?;
    }
    Ok(())
}

/// The values of the three columns of an energy: the estimate and the ends of its interval, in joules.
fn energy_columns(energy: Option<Energy>) -> (Option<f64>, Option<f64>, Option<f64>) {
    let interval = energy.and_then(|energy| energy.interval95);
    (
        energy.map(|energy| energy.value.get()),
        interval.map(|interval| interval.0.get()),
        interval.map(|interval| interval.1.get()),
    )
}
