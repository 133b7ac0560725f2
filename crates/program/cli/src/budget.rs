//! `sweetspot budget` and `sweetspot budget set`.

use anyhow::{Result, bail};
use sweetspot_report::{Line, Text, budget_json, budget_text};
use sweetspot_session::budget::{BudgetRequest, BudgetResult, budget};
use sweetspot_session::hold::{ControlledVerb, set_cap};

use crate::args::{BudgetArgs, BudgetCommand, BudgetOf};
use crate::documents::{Content, Documents, Format, print};
use crate::exit::Outcome;
use crate::guard_launcher::GuardLauncher;
use crate::observer::TerminalObserver;
use crate::run::is_read_only;

/// Runs `sweetspot budget` and `sweetspot budget set`.
pub fn run(args: BudgetArgs) -> Result<Outcome> {
    if let Some(BudgetCommand::Set { budget, pid }) = args.command {
        let answer = set_cap(ControlledVerb::Budget, budget, pid)?;
        let next = Line::with_command("The GPUs at the moment:", "sweetspot devices");
        print(Text::from(answer) + Text::empty_line() + next)?;
        return Ok(Outcome::DONE);
    }
    match (args.of, args.meter.is_empty()) {
        (BudgetOf::Node, true) => bail!(
            "--of node needs a power meter of the whole machine: name it with --meter, such as --meter wt310:/dev/usbtmc0 or --meter shelly:http://ADDRESS; or use --of gpus, with the power of the rest of the machine taken off the budget"
        ),
        (BudgetOf::Gpus, false) => {
            bail!("--meter measures the whole machine: add --of node, or remove --meter")
        }
        _ => {}
    }
    let documents = Documents::open([(Format::Json, args.export_json.as_deref())])?;
    let request = BudgetRequest {
        device: args.device.clone(),
        budget: args.below,
        cap_file: args.cap_file.clone(),
        floors: args.floor.clone(),
        priorities: args.priority.clone(),
        time: args.time,
        meters: args.meter.clone(),
        read_only: args.read_only || is_read_only(),
    };
    let guard = GuardLauncher::new(&args.sudo)?;
    let result = budget(&request, guard.program(), &mut TerminalObserver::new())?;
    let written = documents.write(content(&result));
    Ok(Outcome {
        interrupted_by: result.signal,
        is_met: result.is_met().unwrap_or(!result.lacks_readings()),
        is_restored: result.restored,
        written,
        ..Outcome::DONE
    })
}

/// The text and the document of a budget.
fn content(result: &BudgetResult) -> Content<'_> {
    Content::default()
        .text(|| Text::empty_line() + budget_text(result))
        .json(|| budget_json(result))
}
