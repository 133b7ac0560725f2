//! `sweetspot network`.

use anyhow::{Result, bail};
use sweetspot_network::{Convention, Cost, NAMES, Precision, built_in, load};
use sweetspot_report::{
    Line, NetworkRows, NetworkView, Text, network_csv, network_json, network_markdown,
    network_text, networks_text,
};
use sweetspot_session::{
    NetworkUseError, bounds_on_gpu, default_precision, efficiency_in_study, predict_on_gpu,
};
use sweetspot_sim::Mode;
use sweetspot_study::Store;

use crate::args::{NetworkArgs, RowGrouping};
use crate::documents::{Content, Documents, print};
use crate::exit::Outcome;
use crate::sweep::reject_missing_price;
use crate::typed::{shell_word, typed_with};

/// Runs `sweetspot network`.
pub fn run(args: NetworkArgs) -> Result<Outcome> {
    let Some(name) = &args.network else {
        let networks = NAMES.iter().map(|name| built_in(name));
        let list = networks_text(&networks.collect::<Result<Vec<_>, _>>()?);
        let next = Line::with_command(
            "Layers of one:",
            "sweetspot network resnet50 --simulate v100",
        );
        print(list + Text::empty_line() + next)?;
        return Ok(Outcome::DONE);
    };
    let precision = match args.precision {
        Some(precision) => precision,
        None if args.convention == Convention::Usual => {
            default_precision(args.simulate.as_deref())?
        }
        None => Precision::Fp32,
    };
    if args.convention != Convention::Usual && precision != Precision::Fp32 {
        bail!(
            "the paper's counting rules assume elements of 4 bytes: remove --precision or --convention"
        );
    }
    let documents = Documents::open(args.export.requested())?;
    let has_inputs = !args.input.is_empty();
    let network = load(name, args.input).map_err(NetworkUseError::from)?;
    let study = args.study.as_deref().map(|study| {
        let store = Store::open(&crate::study::find_folder(study))?;
        store.study(None)
    });
    let study = study.transpose()?;
    let mode = study
        .as_ref()
        .and_then(|study| study.subject.workload.mode.as_deref());
    let train = args.train || mode == Some("training");
    let batch = args.batch.unwrap_or(network.batch);
    let cost = Cost::of(&network, args.convention, precision, batch, train);
    let gpu = args
        .simulate
        .as_deref()
        .map(|gpu| bounds_on_gpu(gpu, &cost));
    let gpu = gpu.transpose()?;
    let mode = match train {
        true => Mode::Train,
        false => Mode::Infer,
    };
    let criteria = args.criteria.criteria()?;
    if args.criteria.objective.is_some() {
        reject_missing_price(&criteria)?;
    }
    let prediction = args
        .simulate
        .as_deref()
        .filter(|_| args.convention == Convention::Usual)
        .map(|gpu| predict_on_gpu(gpu, &network, precision, batch, mode, &criteria));
    let prediction = prediction.transpose()?;
    let study = study
        .as_ref()
        .map(|study| efficiency_in_study(study, &network, &cost));
    let study = study.transpose()?;
    let view = NetworkView {
        network: &network,
        cost: &cost,
        gpu: gpu.as_ref(),
        prediction: prediction.as_ref(),
        objective: criteria.objective,
        study: study.as_ref(),
        rows: match args.by {
            RowGrouping::Layer => NetworkRows::Layers,
            RowGrouping::Kind => NetworkRows::Kinds,
        },
    };
    let written = documents.write(
        Content::default()
            .text(|| network_text(&view))
            .next_step(Some(match (gpu.is_none(), args.by) {
                (true, _) => Line::with_command("Bounds on a GPU:", &typed_with("--simulate v100")),
                (false, RowGrouping::Layer) => {
                    Line::with_command("Sums by kind of layer:", &typed_with("--by kind"))
                }
                (false, RowGrouping::Kind) if !documents.is_empty() => {
                    Line::with_command("Other networks:", "sweetspot network --list")
                }
                (false, RowGrouping::Kind) => match (&prediction, args.simulate.as_deref()) {
                    (Some(Ok(_)), Some(gpu)) if !has_inputs => {
                        let mode = if train { "" } else { " --infer" };
                        let (gpu, name) = (shell_word(gpu), shell_word(name));
                        let command =
                            format!("sweetspot sweep --simulate {gpu} --network {name}{mode}");
                        Line::with_command("Its settings, simulated:", &command)
                    }
                    _ => {
                        Line::with_command("As a file:", &typed_with("--export-json network.json"))
                    }
                },
            }))
            .json(|| network_json(&view))
            .csv(|| network_csv(&view))
            .markdown(|| network_markdown(&view)),
    );
    Ok(Outcome {
        is_met: network.is_fully_counted(),
        written,
        ..Outcome::DONE
    })
}
