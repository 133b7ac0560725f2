//! `sweetspot network`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use sweetspot_network::{Convention, Cost, NAMES, Precision, built_in};
use sweetspot_report::{
    NetworkRows, NetworkView, network_csv, network_json, network_markdown, network_text,
    networks_text,
};
use sweetspot_session::{in_study, load_network, on_gpu};
use sweetspot_study::Store;

use crate::NOT_MET;
use crate::args::{By, NetworkArgs};
use crate::export::{TextDocuments, print};

pub fn run(args: NetworkArgs) -> Result<ExitCode> {
    let Some(name) = &args.network else {
        let networks = NAMES.iter().map(|name| built_in(name));
        print(&networks_text(&networks.collect::<Result<Vec<_>, _>>()?))?;
        return Ok(ExitCode::SUCCESS);
    };
    if args.convention != Convention::Usual && args.precision != Precision::Fp32 {
        bail!("the paper counts elements of 4 bytes: leave --precision out, or --convention");
    }
    let documents = TextDocuments::open(&args.export)?;
    let network = load_network(name, args.input)?;
    let study = args.study.as_deref().map(|study| {
        let store = Store::open(&crate::study::folder(study))?;
        store.study(None)
    });
    let study = study.transpose()?;
    let mode = study
        .as_ref()
        .and_then(|study| study.subject.workload.mode.as_deref());
    let train = args.train || mode == Some("training");
    let batch = args.batch.unwrap_or(network.batch);
    let cost = Cost::of(&network, args.convention, args.precision, batch, train);
    let gpu = args.simulate.as_deref().map(|gpu| on_gpu(gpu, &cost));
    let gpu = gpu.transpose()?;
    let study = study.as_ref().map(|study| in_study(study, &network, &cost));
    let study = study.transpose()?;
    let view = NetworkView {
        network: &network,
        cost: &cost,
        gpu: gpu.as_ref(),
        study: study.as_ref(),
        rows: match args.by {
            By::Layer => NetworkRows::Layers,
            By::Kind => NetworkRows::Kinds,
        },
    };
    if !documents.on_stdout() {
        print(&network_text(&view))?;
    }
    documents.write(
        || network_json(&view),
        || Ok(network_csv(&view)?),
        || network_markdown(&view),
    )?;
    Ok(ExitCode::from(if network.is_whole() { 0 } else { NOT_MET }))
}
