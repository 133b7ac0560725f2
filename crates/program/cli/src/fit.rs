//! `sweetspot fit`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use sweetspot_fit::{fit_study, measured_study, profile_text};
use sweetspot_report::{Line, Text, fit_json, fit_text};
use sweetspot_sim::{parse_gpu, parse_workload};
use sweetspot_study::Store;

use crate::args::FitArgs;
use crate::documents::{Content, Documents, Format, Written, print};
use crate::exit::Outcome;
use crate::messages::print_text;

/// Runs `sweetspot fit`.
pub fn run(args: &FitArgs) -> Result<Outcome> {
    let (output, json) = (args.output.as_deref(), args.export_json.as_deref());
    if let Some(output) = output {
        check_extension(output)?;
    }
    if output == Some(Path::new("-")) && output == json {
        bail!("the profile and the JSON cannot both go to standard output");
    }
    let documents = Documents::open([(Format::Toml, output), (Format::Json, json)])?;
    let folder = crate::study::find_folder(&args.study);
    let study = Store::open(&folder)?.study(args.energy_of)?;
    let name = folder.display().to_string();
    let fitted = measured_study(&study).and_then(|measured| fit_study(&measured));
    let fitted = fitted.with_context(|| name.clone())?;
    let text = profile_text(&name, &fitted);
    // A profile that could not be read back is not written.
    parse_gpu("the fitted profile", &text)?;
    parse_workload("the fitted profile", &text)?;
    let table = || fit_text(&study.varied_axes(), &fitted);
    let show = |text: Text| match documents.on_stdout() {
        true => {
            print_text(&text);
            Ok(())
        }
        false => print(text),
    };
    if documents.on_stdout() {
        show(table())?;
    }
    let written = documents.write(
        Content::default()
            .text(table)
            .toml(|| Ok(text))
            .json(|| fit_json(&name, &fitted)),
    );
    if let Some(output) = output.filter(|output| *output != Path::new("-"))
        && written == Written::Everything
    {
        let output = output.display();
        let profile = format!("\nProfile: {output} (the GPU and the workload)");
        let try_it = format!("sweetspot sweep --simulate {output} --network {output}");
        show(Text::from(profile) + Line::with_command("Try:", &try_it))?;
    }
    Ok(Outcome {
        is_met: fitted.errors.is_accurate(),
        written,
        ..Outcome::DONE
    })
}

/// Rejects a file without the extension .toml, by which flags distinguish a profile file from a built-in name.
fn check_extension(path: &Path) -> Result<()> {
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
