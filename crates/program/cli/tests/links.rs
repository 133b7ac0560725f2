//! Links between Markdown files lead to files and headings that exist, and the site has every page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::documents::{collect_markdown, root};

/// All Markdown files that people read.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for file in [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "benchmarks/README.md",
        "python/README.md",
    ] {
        pages.push(root().join(file));
    }
    for folder in ["docs", "data"] {
        collect_markdown(&root().join(folder), &mut pages);
    }
    pages
}

/// The lines of a document that are not in a block of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        (!in_block && !is_fence).then_some((number, line))
    })
}

/// A line without its `code`.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// The targets of the links in a line.
fn targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    let links = line.split("](").skip(1);
    let targets = links.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    // A heading of the site's summary has a link without a target.
    targets.filter(|target| !target.is_empty()).collect()
}

/// The anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().to_lowercase();
        let kept = kept.chars().filter_map(|character| match character {
            ' ' => Some('-'),
            _ if character.is_alphanumeric() || "-_".contains(character) => Some(character),
            _ => None,
        });
        let anchor: String = kept.collect();
        let count: &mut usize = seen.entry(anchor.clone()).or_default();
        anchors.insert(match *count {
            0 => anchor,
            earlier => format!("{anchor}-{earlier}"),
        });
        *count += 1;
    }
    anchors
}

/// What is wrong with a link, if anything.
fn mistake(page: &Path, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => page.to_owned(),
        _ => page.parent()?.join(path),
    };
    if !file.exists() {
        return Some(format!("{path} does not exist"));
    }
    if anchor.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = match path {
        "" => text.to_owned(),
        _ => std::fs::read_to_string(&file).ok()?,
    };
    let exists = anchors(&text).contains(anchor);
    (!exists).then(|| format!("{} has no heading #{anchor}", file.display()))
}

#[test]
fn links_between_documents_resolve() {
    let mut mistakes = Vec::new();
    let mut links = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for (number, line) in prose(&text) {
            for target in targets(line) {
                links += 1;
                let mistake = mistake(&page, &text, &target);
                mistakes.extend(mistake.map(|what| format!("{}:{number}: {what}", page.display())));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(links > 300, "only {links} links in all documents");
}

#[test]
fn the_summary_of_the_site_lists_every_page_once() {
    let folder = root().join("docs");
    let summary = std::fs::read_to_string(folder.join("SUMMARY.md")).unwrap();
    let mut listed: Vec<PathBuf> = summary
        .lines()
        .flat_map(targets)
        .map(|path| folder.join(path))
        .collect();
    listed.push(folder.join("SUMMARY.md"));
    listed.sort();
    let mut pages = Vec::new();
    collect_markdown(&folder, &mut pages);
    pages.sort();
    let without = |some: &[PathBuf], others: &[PathBuf]| -> Vec<PathBuf> {
        let absent = |page: &&PathBuf| !others.contains(page);
        some.iter().filter(absent).cloned().collect()
    };
    assert_eq!(
        without(&pages, &listed),
        Vec::<PathBuf>::new(),
        "not listed"
    );
    assert_eq!(
        without(&listed, &pages),
        Vec::<PathBuf>::new(),
        "listed only"
    );
    assert_eq!(listed.len(), pages.len(), "a page is listed twice");
}

#[test]
fn wrong_links_are_found() {
    let page = root().join("README.md");
    let text = "# A `b`: c\n\n## A b c\n\n```sh\n# No heading\n```\n";
    let wrong = |target| mistake(&page, text, target);
    assert_eq!(wrong("#a-b-c-1"), None);
    assert_eq!(wrong("https://toml.io#nothing"), None);
    assert_eq!(wrong("LICENSE#nothing"), None);
    assert!(
        wrong("#no-heading")
            .unwrap()
            .ends_with("has no heading #no-heading")
    );
    assert_eq!(
        wrong("docs/none.md").unwrap(),
        "docs/none.md does not exist"
    );
    assert!(wrong("CONTRIBUTING.md#none").is_some());
    assert_eq!(
        targets("[a](b.md#c), `[d](e.md)` and [`f`](g.md)"),
        ["b.md#c", "g.md"]
    );
}
