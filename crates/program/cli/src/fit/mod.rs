//! `sweetspot fit`: a simulated copy of a GPU and a workload from a study, or of a workload from measured rows.

mod rows;

use std::path::Path;

use anyhow::{Context, Result, bail};
use sweetspot_fit::{fit_study, measured_study, profile_text};
use sweetspot_report::{Line, Text, fit_json, fit_text};
use sweetspot_sim::{parse_gpu, parse_workload};
use sweetspot_study::{Store, is_study};

use crate::args::FitArgs;
use crate::documents::{Content, Documents, Format, Written, print};
use crate::exit::Outcome;
use crate::messages::print_text;
use crate::typed::typed_with;

pub use rows::{RowsFit, fit_rows};

/// What `fit` accepts, for errors about a file that is neither.
pub const ACCEPTED_FORMS: &str = "use `sweetspot fit STUDY` (`sweetspot study list` shows the studies), or `sweetspot fit ROWS.csv --gpu GPU` for a CSV file with the columns batch, items_per_s and mean_w";

/// Runs `sweetspot fit`.
pub fn run(args: &FitArgs) -> Result<Outcome> {
    let source = &args.source;
    if is_file_of_rows(args) {
        if args.energy_of.is_some() || args.export_json.is_some() {
            bail!("--energy-of and --export-json are for studies: remove them to fit a CSV file");
        }
        let Some(gpu) = &args.gpu else {
            bail!(
                "{}: give the GPU on which the rows were measured with --gpu (`sweetspot simulate --list` shows the names)",
                source.display()
            );
        };
        return fit_rows(&RowsFit {
            path: source,
            gpu,
            network: args.network.as_deref(),
            mode: args.mode(),
            output: args.output.as_deref(),
        });
    }
    let folder = crate::study::find_folder(source);
    if !is_study(&folder) {
        bail!(
            "{} is neither a study nor a CSV file of measured rows: {ACCEPTED_FORMS}",
            source.display()
        );
    }
    if args.gpu.is_some() {
        bail!(
            "--gpu is for a CSV file: remove it, because the study in {} says itself on which GPU it was measured",
            folder.display()
        );
    }
    fit_study_in(&folder, args)
}

/// Whether the user means a file of rows. A CSV file in the folder of a study is such a file, too.
fn is_file_of_rows(args: &FitArgs) -> bool {
    let source = &args.source;
    let extension = source.extension().unwrap_or_default();
    let is_named = args.gpu.is_some() || extension.eq_ignore_ascii_case("csv");
    is_named && source.exists() && !source.is_dir()
}

/// Fits the GPU and the workload of a study.
fn fit_study_in(folder: &Path, args: &FitArgs) -> Result<Outcome> {
    let (output, json) = (args.output.as_deref(), args.export_json.as_deref());
    check_extension(output)?;
    if output == Some(Path::new("-")) && output == json {
        bail!("the profile and the JSON cannot both go to standard output");
    }
    let documents = Documents::open([(Format::Toml, output), (Format::Json, json)])?;
    let study = Store::open(folder)?.study(args.energy_of)?;
    let name = folder.display().to_string();
    let fitted = measured_study(&study).and_then(|measured| fit_study(&measured));
    let fitted = fitted.with_context(|| name.clone())?;
    let text = profile_text(&name, &fitted);
    // A profile that could not be read back is not written.
    parse_gpu("the fitted profile", &text)?;
    parse_workload("the fitted profile", &text)?;
    let content = Content::default()
        .toml(|| Ok(text))
        .json(|| fit_json(&name, &fitted));
    let table = fit_text(&study.varied_axes(), &fitted);
    let written = write_fit(&documents, content, &table, output, |profile| {
        let try_it = format!("sweetspot sweep --simulate {profile} --network {profile}");
        Text::from(format!("Profile: {profile} (the GPU and the workload)"))
            + Line::with_command("Try:", &try_it)
    })?;
    Ok(Outcome {
        is_met: fitted.errors.is_accurate(),
        written,
        ..Outcome::DONE
    })
}

/// Shows a fit and writes its documents. The texts go to standard error if a document goes to standard output.
fn write_fit(
    documents: &Documents,
    content: Content<'_>,
    table: &Text,
    output: Option<&Path>,
    next_step: impl Fn(&str) -> Text,
) -> Result<Written> {
    let show = |text: Text| match documents.on_stdout() {
        true => {
            print_text(&text);
            Ok(())
        }
        false => print(text),
    };
    if documents.on_stdout() {
        show(table.clone())?;
    }
    let written = documents.write(content.text(|| table.clone()));
    let next_step = match output {
        Some(output) if output == Path::new("-") => None,
        Some(output) => Some(next_step(&output.display().to_string())),
        None => Some(
            Line::with_command("Keep the profile:", &typed_with("--output profile.toml")).into(),
        ),
    };
    if let Some(next_step) = next_step.filter(|_| written == Written::Everything) {
        show(Text::empty_line() + next_step)?;
    }
    Ok(written)
}

/// Rejects a file without the extension .toml, by which flags distinguish a profile file from a built-in name.
fn check_extension(output: Option<&Path>) -> Result<()> {
    let Some(path) = output else {
        return Ok(());
    };
    let is_toml = path
        .extension()
        .is_some_and(|extension| extension == "toml");
    if path != Path::new("-") && !is_toml && !path.is_dir() {
        bail!(
            "--output: a profile file needs the extension .toml: use {}.toml",
            path.display()
        );
    }
    Ok(())
}
