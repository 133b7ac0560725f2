//! Opens pages in headless Chromium, each in a frame as wide as a phone and in one as wide as a desktop screen.
//!
//! A browser window cannot be as narrow as a phone, so the pages are frames of an outer page, to which each of them sends
//! its properties.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub fn chromium() -> PathBuf {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths)
        .flat_map(|folder| ["chromium", "google-chrome"].map(|name| folder.join(name)))
        .find(|path| path.is_file());
    found.expect("Chromium is needed: run scripts/setup")
}

const WIDTHS: [u32; 2] = [360, 1280];

/// A script that sends the properties of a page to the outer page.
const PROBE: &str = r#"<script>
addEventListener('load', function () {
  var charts = Array.from(document.querySelectorAll('svg.chart')).filter(function (svg) {
    return getComputedStyle(svg).display !== 'none';
  });
  var wide = document.documentElement.scrollWidth;
  var over = Array.from(document.querySelectorAll('body *')).filter(function (one) {
    return one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.scroll') && !one.closest('svg');
  });
  var head = document.querySelector('.all th');
  var body = document.querySelector('.all tbody');
  var before = body ? body.textContent : '';
  if (head) { head.click(); head.click(); }
  var button = document.getElementById('theme');
  var colour = function () { return getComputedStyle(document.body).backgroundColor; };
  var ground = colour();
  button.click(); var light = colour(); button.click(); var dark = colour(); button.click();
  var chart = charts[0], tip = '';
  if (chart) {
    var mark = chart.querySelector('.p');
    if (mark) {
      var at = mark.getBoundingClientRect();
      chart.dispatchEvent(new PointerEvent('pointermove', { clientX: at.left + 1, clientY: at.top + 1 }));
      tip = (document.querySelector('.tip') || {}).textContent || '';
    }
  }
  parent.postMessage(JSON.stringify({
    page: location.pathname.split('/').pop(), width: innerWidth, scroll: wide,
    over: over.slice(0, 3).map(function (one) { return one.tagName + '.' + one.className; }),
    charts: charts.length, flat: charts.filter(function (svg) {
      var box = svg.getBoundingClientRect();
      return box.width < 200 || box.height < 80;
    }).length,
    odd: charts.filter(function (svg) { return /NaN|inf/i.test(svg.innerHTML.replace(/<title>.*?<\/title>/gs, '')); }).length,
    sorted: !body || body.rows.length < 2 || before !== body.textContent,
    ground: ground, light: light, dark: dark, tip: tip,
    owned: window.owned || 0, scripts: document.scripts.length, images: document.images.length,
    title: document.title, headline: (document.querySelector('.answer') || {}).textContent || ''
  }), '*');
});
</script>"#;

/// The settings of the reader's browser.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Whether the system prefers dark pages.
    pub dark: bool,
    /// Whether the fonts are much wider than those that pages request.
    pub wide_fonts: bool,
}

const WIDE_FONTS: &str =
    "<style>*{font-family:monospace!important;letter-spacing:.2em!important}</style>";

/// Returns the properties of every page at every width, with one start of the browser.
pub fn inspect_pages(
    browser: &Path,
    folder: &Path,
    pages: &[String],
    reader: Reader,
) -> Vec<Value> {
    let frames: String = pages
        .iter()
        .flat_map(|page| {
            WIDTHS.map(|width| {
                format!("<iframe src=\"probed/{page}.html\" width={width} height=900 style=\"border:0\"></iframe>")
            })
        })
        .collect();
    std::fs::create_dir_all(folder.join("probed")).unwrap();
    for page in pages {
        let text = std::fs::read_to_string(folder.join(format!("{page}.html"))).unwrap();
        let (head, tail) = text.rsplit_once("</body>").expect("a page has a body");
        let fonts = if reader.wide_fonts { WIDE_FONTS } else { "" };
        let probed = format!("{head}{fonts}{PROBE}</body>{tail}");
        std::fs::write(folder.join(format!("probed/{page}.html")), probed).unwrap();
    }
    let outer = format!(
        "<!doctype html><meta charset=utf-8><body><pre id=out></pre><script>addEventListener('message', function (event) {{ var line = document.createElement('div'); line.textContent = 'SEEN ' + btoa(unescape(encodeURIComponent(event.data))); document.getElementById('out').appendChild(line); }});</script>{frames}"
    );
    let path = folder.join("outer.html");
    std::fs::write(&path, outer).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--enable-logging=stderr",
            "--window-size=1400,1000",
            "--virtual-time-budget=8000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!(
            "--blink-settings=preferredColorScheme={}",
            if reader.dark { 0 } else { 1 }
        ))
        .arg("--dump-dom")
        .arg(format!("file://{}", path.display()));
    let output = command.output().expect("Chromium starts");
    let log = String::from_utf8_lossy(&output.stderr);
    let console: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert!(console.is_empty(), "the console is not empty: {console:#?}");
    let document = String::from_utf8_lossy(&output.stdout);
    let seen: Vec<Value> = document
        .split("SEEN ")
        .skip(1)
        .filter_map(|rest| rest.split('<').next())
        .filter_map(|text| serde_json::from_slice(&decode_base64(text.trim())?).ok())
        .collect();
    assert_eq!(seen.len(), pages.len() * WIDTHS.len(), "{document}");
    seen
}

/// Decodes Base64.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = LETTERS.iter().position(|known| *known == letter)?;
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}
