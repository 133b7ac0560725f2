//! A published study beside its reproduction: for people, as JSON and as CSV.

use serde_json::{Map, Value, json};
use sweetspot_papers::batch_sizer_2021::JobResult;
use sweetspot_papers::{CountedTolerance, Label, ReproducedRow, Reproduction};

use crate::table::Rows;
use crate::words::wrapped;

/// Every row, then the tolerances and the conclusions.
pub fn reproduction_text(study: &Reproduction) -> String {
    let mut parts = vec![heading(study)];
    parts.extend(tables(study, Rows::terminal));
    parts.push(summary(study));
    fitting(&parts.join("\n\n"))
}

/// The tolerances and the conclusions alone, and each row that is farther off than it may be.
pub fn reproduction_summary(study: &Reproduction) -> String {
    fitting(&[heading(study), summary(study)].join("\n\n"))
}

/// Tables fit a terminal already; sentences are wrapped.
fn fitting(text: &str) -> String {
    let lines = text.lines().map(|line| wrapped(line, 4));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// For a document.
pub fn reproduction_markdown(study: &Reproduction) -> String {
    let mut parts = vec![format!("# {}", study.paper), heading(study)];
    parts.extend(tables(study, Rows::markdown));
    parts.push(summary(study));
    parts.join("\n\n") + "\n"
}

fn heading(study: &Reproduction) -> String {
    let runs = &study.runs;
    format!(
        "{}\nrun again on simulated GPUs: {} sweeps, {} configurations, {} runs, seed {}",
        study.source, runs.studies, runs.configurations, runs.runs, runs.seed
    )
}

fn tables(study: &Reproduction, draw: fn(&Rows) -> String) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for row in &study.rows {
        if !names.contains(&row.table.as_str()) {
            names.push(&row.table);
        }
    }
    let of = |name: &&str| {
        let rows: Vec<&ReproducedRow> =
            study.rows.iter().filter(|row| row.table == *name).collect();
        table(name, &rows, draw)
    };
    names.iter().map(of).collect()
}

fn table(name: &str, rows: &[&ReproducedRow], draw: fn(&Rows) -> String) -> String {
    let mut drawn = Rows::new(&["Row", "Value", "Published", "Here", "Off", "Within", ""]);
    let mut notes: Vec<&str> = Vec::new();
    let mut before = String::new();
    let common = common(rows);
    for row in rows {
        let label = label(row, &common);
        let shown = if label == before { "" } else { &label };
        let note = match row.note.as_deref() {
            None => String::new(),
            Some(note) => {
                let known = notes.iter().position(|known| *known == note);
                let place = known.unwrap_or_else(|| {
                    notes.push(note);
                    notes.len() - 1
                });
                format!("({})", place + 1)
            }
        };
        drawn.push(vec![
            shown.to_owned(),
            row.kind.words.to_owned(),
            number(row, row.published),
            number(row, row.reproduced),
            off(row).unwrap_or_default(),
            within(row).to_owned(),
            note,
        ]);
        before = label;
    }
    let mut title = [
        vec![titled(name)],
        common.into_iter().map(|(_, text)| text).collect(),
    ]
    .concat()
    .join(", ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let mut parts = vec![title, draw(&drawn)];
    if !notes.is_empty() {
        let notes = notes.iter().enumerate();
        let notes = notes.map(|(place, note)| format!("({}) {note}", place + 1));
        parts.push(notes.collect::<Vec<_>>().join("\n"));
    }
    parts.join("\n\n")
}

/// A number is a table's; a section, a figure or the text says so itself.
fn titled(name: &str) -> String {
    match name.starts_with(|first: char| first.is_ascii_lowercase()) {
        true => name.to_owned(),
        false => format!("table {name}"),
    }
}

/// What a row is about, piece by piece.
fn pieces(row: &ReproducedRow) -> Vec<(&'static str, String)> {
    let text = |name: &str, label: &Label| match (name, label) {
        ("power_cap_w", Label::Number(watts)) => format!("{watts} W"),
        ("batch", Label::Number(batch)) => format!("batch {batch}"),
        ("job", Label::Number(job)) => format!("job {job}"),
        ("time_s", Label::Number(time)) => format!("{time} s"),
        ("gpus", Label::Number(count)) => match count {
            1.0 => "1 GPU".to_owned(),
            _ => format!("{count} GPUs"),
        },
        (_, label) => label.to_string(),
    };
    let row = row.row.iter();
    row.map(|(name, label)| (*name, text(name, label)))
        .collect()
}

/// What all rows of a table are about.
fn common(rows: &[&ReproducedRow]) -> Vec<(&'static str, String)> {
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    let mut common = pieces(first);
    for row in rows {
        let own = pieces(row);
        // A row of its own keeps its label.
        if own.len() > 1 {
            common.retain(|piece| own.contains(piece));
        } else {
            common.clear();
        }
    }
    common
}

/// Without what the title says already.
fn label(row: &ReproducedRow, common: &[(&'static str, String)]) -> String {
    let own = pieces(row);
    let own = own.into_iter().filter(|piece| !common.contains(piece));
    own.map(|(_, text)| text).collect::<Vec<_>>().join(" ")
}

fn number(row: &ReproducedRow, value: Option<f64>) -> String {
    let digits = row.kind.digits;
    let known = value.map(|value| format!("{:.digits$}", value * row.kind.scale));
    known.unwrap_or_else(|| "-".to_owned())
}

fn off(row: &ReproducedRow) -> Option<String> {
    let (deviation, digits) = (row.deviation()?, row.kind.digits);
    Some(match row.kind.relative {
        true => format!("{:+.1} %", 100.0 * deviation),
        false => format!("{:+.digits$}", deviation * row.kind.scale),
    })
}

const fn mark(within: bool) -> &'static str {
    if within { "yes" } else { "NO" }
}

fn within(row: &ReproducedRow) -> &'static str {
    row.is_within_tolerance().map_or("", mark)
}

fn summary(study: &Reproduction) -> String {
    let (met, judged) = study.count_met();
    let mut lines = vec![format!(
        "{met} of {judged} judged values are within their tolerance."
    )];
    for row in &study.rows {
        if row.must_hold() && row.is_within_tolerance() == Some(false) {
            lines.push(format!(
                "  not within: {}, {}, {}: published {}, here {}",
                titled(&row.table),
                label(row, &[]),
                row.kind.words,
                number(row, row.published),
                number(row, row.reproduced)
            ));
        }
    }
    lines.extend(study.counted_tolerances.iter().map(counted));
    let faults = study.rows.iter().filter(|row| is_fault(row)).count();
    if faults > 0 {
        lines.push(format!(
            "{faults} printed values do not follow from others; each is named at its row."
        ));
    }
    lines.push(String::new());
    for conclusion in &study.conclusions {
        let verdict = match conclusion.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not told yet",
        };
        lines.push(format!(
            "{verdict}: {}\n  here: {}",
            conclusion.what, conclusion.here
        ));
    }
    if !study.not_reproduced.is_empty() {
        lines.push(String::new());
        lines.extend(
            study
                .not_reproduced
                .iter()
                .map(|what| format!("Waits: {what}")),
        );
    }
    lines.join("\n")
}

fn counted(counted: &CountedTolerance) -> String {
    format!(
        "{} of {} ({} needed{}): {}",
        counted.met,
        counted.of,
        counted.needed,
        if counted.is_met() { "" } else { ", NOT met" },
        counted.what
    )
}

fn is_fault(row: &ReproducedRow) -> bool {
    let note = row.note.as_deref().unwrap_or_default();
    note.starts_with("fault of")
}

/// Schema `sweetspot.reproduce/1`: SI units, fractions, absent means unknown.
pub fn reproduction_json(study: &Reproduction) -> Value {
    let rows: Vec<Value> = study.rows.iter().map(row_json).collect();
    let conclusions: Vec<Value> = study
        .conclusions
        .iter()
        .map(|conclusion| {
            let mut object = Map::new();
            object.insert("conclusion".into(), json!(conclusion.what));
            put(&mut object, "holds", conclusion.holds);
            object.insert("here".into(), json!(conclusion.here));
            Value::Object(object)
        })
        .collect();
    let counted: Vec<Value> = study
        .counted_tolerances
        .iter()
        .map(|counted| {
            json!({
                "what": counted.what,
                "met": counted.met,
                "of": counted.of,
                "needed": counted.needed,
                "within": counted.is_met(),
            })
        })
        .collect();
    let (met, judged) = study.count_met();
    let mut object = Map::new();
    object.insert("schema".into(), json!("sweetspot.reproduce/1"));
    object.insert("paper".into(), json!(study.paper));
    object.insert("source".into(), json!(study.source));
    object.insert("seed".into(), json!(study.runs.seed));
    object.insert("runs".into(), json!(study.runs.runs));
    object.insert("rows".into(), json!(rows));
    object.insert("judged".into(), json!(judged));
    object.insert("met".into(), json!(met));
    object.insert("counted".into(), json!(counted));
    object.insert("within".into(), json!(study.is_within()));
    object.insert("conclusions".into(), json!(conclusions));
    if !study.not_reproduced.is_empty() {
        object.insert("waits".into(), json!(study.not_reproduced));
    }
    if !study.jobs.is_empty() {
        let jobs: Vec<Value> = study.jobs.iter().map(job_json).collect();
        object.insert("jobs".into(), json!(jobs));
    }
    Value::Object(object)
}

fn put<T: Into<Value>>(object: &mut Map<String, Value>, name: &str, value: Option<T>) {
    object.extend(value.map(|value| (name.to_owned(), value.into())));
}

fn row_json(row: &ReproducedRow) -> Value {
    let mut of: Map<String, Value> = Map::new();
    for (name, label) in &row.row {
        let value = match label {
            Label::Text(text) => json!(text),
            Label::Number(number) if number.fract() == 0.0 => json!(*number as i64),
            Label::Number(number) => json!(number),
        };
        of.insert((*name).to_owned(), value);
    }
    of.insert("value".into(), json!(row.kind.key));
    let mut object = Map::new();
    object.insert("table".into(), json!(row.table));
    object.insert("row".into(), Value::Object(of));
    put(&mut object, "published", row.published);
    put(&mut object, "reproduced", row.reproduced);
    put(&mut object, "deviation", row.deviation());
    put(&mut object, "tolerance", row.tolerance());
    put(&mut object, "within", row.is_within_tolerance());
    put(&mut object, "note", row.note.clone());
    Value::Object(object)
}

fn job_json(job: &JobResult) -> Value {
    let modes = job.modes.iter().map(|result| {
        let of = &result.summary;
        let mut object = Map::new();
        object.insert("items_per_s".into(), json!(of.items_per_s));
        let share = of.violation_share.map(|share| share.get());
        put(&mut object, "violation_share", share);
        put(&mut object, "average_batch", of.average_batch);
        // Absent where it goes on changing.
        put(&mut object, "settle_windows", of.settle_windows);
        let energy = of.energy_per_item.map(|energy| energy.get());
        put(&mut object, "energy_per_item_j", energy);
        let largest = of.largest_mean.map(|power| power.get());
        put(&mut object, "largest_mean_w", largest);
        object.insert("changes".into(), json!(of.changes));
        object.insert("last_batch".into(), json!(result.last.batch));
        let clock = result.last.core_clock.map(|clock| clock.get());
        put(&mut object, "last_core_clock_mhz", clock);
        (result.mode.name().to_owned(), Value::Object(object))
    });
    json!({
        "job": job.job,
        "network": job.network,
        "dataset": job.dataset,
        "cap_w": job.cap_w,
        "modes": Value::Object(modes.collect()),
    })
}

/// A line for each row; the labels of a row in one column.
pub fn reproduction_csv(study: &Reproduction) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "table",
        "row",
        "value",
        "published",
        "reproduced",
        "deviation",
        "tolerance",
        "within",
        "note",
    ])?;
    let text = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for row in &study.rows {
        let within = row.is_within_tolerance().map(|within| within.to_string());
        writer.write_record([
            row.table.clone(),
            label(row, &[]),
            row.kind.key.to_owned(),
            text(row.published),
            text(row.reproduced),
            text(row.deviation()),
            text(row.tolerance()),
            within.unwrap_or_default(),
            row.note.clone().unwrap_or_default(),
        ])?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
