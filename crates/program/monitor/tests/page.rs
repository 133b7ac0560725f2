//! The live page in Chromium, as wide as a phone and as a desktop screen, while the load changes.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use sweetspot_monitor::page::PAGE;

/// The widths of a phone and of a desktop screen. A window cannot be as narrow as a phone, so the page is in frames.
const WIDTHS: [u32; 2] = [360, 1280];

/// A script that notes what the page shows over time, and sends it to the outer page.
const PROBE: &str = r#"<script>
addEventListener('load', function () {
  var powers = [];
  setInterval(function () {
    var big = document.querySelector('.big');
    if (big && powers[powers.length - 1] !== big.textContent) powers.push(big.textContent);
  }, 100);
  setTimeout(function () {
    var over = Array.from(document.querySelectorAll('body *')).filter(function (one) {
      return one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.scroll') && !one.closest('svg');
    });
    parent.postMessage(JSON.stringify({
      width: innerWidth, scroll: document.documentElement.scrollWidth,
      over: over.map(function (one) { return one.tagName + '.' + one.className; }),
      powers: powers, text: document.body.innerText, owned: window.owned || 0,
      figures: document.querySelectorAll('svg').length,
      clocks: Array.from(document.querySelectorAll('path.clock')).map(function (one) { return one.getAttribute('d').split('M').length - 1; }), odd: /NaN|Infinity|undefined/.test(document.querySelector('main').innerHTML)
    }), '*');
  }, 5000);
});
</script>"#;

const OUTER: &str = "<!doctype html><meta charset=utf-8><body><pre id=out></pre><script>addEventListener('message', function (event) { var line = document.createElement('div'); line.textContent = 'SEEN ' + encodeURIComponent(event.data) + ' '; document.getElementById('out').appendChild(line); });</script>";

/// What happens on a machine with this power on its first GPU.
fn live(power: f64) -> Value {
    let recent: Vec<f64> = (0..120)
        .map(|second| power + f64::from(second % 7))
        .collect();
    // The page was not looked at for a while.
    let clocks: Vec<[f64; 2]> = (0..60)
        .map(|second| {
            [
                if second < 20 { 119.0 } else { 59.0 } - f64::from(second),
                1500.0,
            ]
        })
        .collect();
    let name = "NVIDIA H200 <img src=x onerror='window.owned=1'> with a long product name";
    json!({
        "schema": "sweetspot.live/1",
        "unix_s": 1.79e9,
        "host": "node7",
        "gpus": [
            {"index": 0, "uuid": "GPU-0", "name": name, "power_w": power, "cap_w": 450.0, "default_cap_w": 700.0,
             "core_clock_mhz": 1500.0, "temperature_c": 61.0, "utilisation": 0.98, "limited_by": "the power cap",
             "throttled_by_power_s": 75.0, "energy_j": 5.2e6, "recent_power_w": recent,
             "recent_core_clock_mhz": clocks},
            {"index": 1, "uuid": "GPU-1", "name": "NVIDIA H200", "lost": true},
            {"index": 2, "uuid": "GPU-2", "name": "NVIDIA H200"},
        ],
        "leases": [{"gpu": "GPU-0", "user": "a-user-with-a-long-name", "pid": 4711, "kind": "setting",
                    "settings": "power cap 450 W, core clock 1500 MHz", "age_s": 90.0, "left_s": 3600.0}],
        "jobs": [{"user": "alice", "pid": 4711, "verb": "tune", "gpus": ["GPU-0"], "elapsed_s": 90.0,
                  "phase": "trying 450 W", "items_per_s": 812.5, "energy_per_item_j": 0.53, "saved_energy_j": 9000.0,
                  "saved_money": 0.0008, "currency": "EUR",
                  "figure": {"x": "power cap [W]", "y": "J for an item", "points": [[700.0, 0.6], [450.0, 0.53], [500.0, 0.55]]}}],
    })
}

/// Serves the page and what happens, which changes with each request; returns the address.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, asked) = (stream.unwrap(), Arc::clone(&asked));
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let length = stream.read(&mut request).unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..length]);
                let body = match request.split(' ').nth(1).unwrap_or_default() {
                    "/" => {
                        let frame = |width| {
                            format!(
                                "<iframe src=/page width={width} height=900 style=border:0></iframe>"
                            )
                        };
                        format!("{OUTER}{}", WIDTHS.map(frame).concat())
                    }
                    "/page" => PAGE.replace("</body>", &format!("{PROBE}</body>")),
                    // Both frames ask once a second.
                    "/live" => {
                        let number = asked.fetch_add(1, Ordering::Relaxed) / 4;
                        live(100.0 + 150.0 * (number % 3) as f64).to_string()
                    }
                    _ => String::new(),
                };
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            });
        }
    });
    format!("http://{address}/")
}

/// What the page in each frame has sent.
fn seen(document: &str) -> Vec<Value> {
    let sent = document.split("SEEN ").skip(1);
    sent.filter_map(|rest| rest.split([' ', '<']).next())
        .filter_map(|text| {
            let mut bytes = Vec::new();
            let mut rest = text.bytes();
            while let Some(byte) = rest.next() {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                bytes.push(match byte {
                    b'%' => (digit(rest.next()?)? * 16 + digit(rest.next()?)?) as u8,
                    byte => byte,
                });
            }
            serde_json::from_slice(&bytes).ok()
        })
        .collect()
}

#[test]
#[ignore = "needs Chromium"]
fn the_page_follows_the_load_at_both_widths() {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args(["--disable-background-networking", "--enable-logging=stderr"])
        .args(["--window-size=1700,1000", "--virtual-time-budget=8000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &serve()])
        .output()
        .expect("Chromium starts");
    let log = String::from_utf8_lossy(&output.stderr);
    // The name of a GPU is text, so the image in it is not even asked for.
    assert!(!log.contains("CONSOLE"), "{log}");
    let seen = seen(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(seen.len(), WIDTHS.len(), "{seen:?}");
    for page in seen {
        assert!(page["scroll"].as_u64() <= page["width"].as_u64(), "{page}");
        assert_eq!(page["over"], json!([]), "{page}");
        assert_eq!(
            (&page["owned"], &page["odd"]),
            (&json!(0), &json!(false)),
            "{page}"
        );
        // The power of the first GPU changed while the page was open.
        assert!(page["powers"].as_array().unwrap().len() >= 2, "{page}");
        // The GPU without readings has no figure.
        assert_eq!(page["figures"], 2, "{page}");
        // The line of the clock has a break where nobody looked.
        assert_eq!(page["clocks"], json!([2]), "{page}");
        let text = page["text"].as_str().unwrap();
        for said in [
            "of 450 W",
            "the power cap",
            "no longer answers",
            "unknown",
            "trying 450 W",
            "0.0008 EUR",
            "9000 J",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}
