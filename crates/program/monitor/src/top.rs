//! `sweetspot top`: what happens on the machine, in a terminal.
//!
//! [`screen`] makes the lines of the screen from the same document as the live page. [`run_top`] shows them until the user
//! ends it.

use std::io;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::Paragraph;
use sweetspot_document::live::{Live, LiveGpu, LiveJob, LiveLease};

/// The time between two readings.
const PERIOD: Duration = Duration::from_secs(1);
/// The letters of a bar of power.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How the screen looks.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The number of columns.
    pub width: usize,
    /// Whether colours are used.
    pub colors: bool,
}

/// The lines of the screen.
pub fn screen(live: &Live, source: &str, look: Look) -> Vec<Line<'static>> {
    let total: f64 = live.gpus.iter().filter_map(|gpu| gpu.power_w).sum();
    let count = live.gpus.len();
    let noun = if count == 1 { "GPU" } else { "GPUs" };
    let host = live.host.as_deref().unwrap_or("this machine");
    let title = format!("{host}: {total:.0} W on {count} {noun}, {source}");
    let mut lines = vec![bold(title, look), Line::default()];
    for gpu in &live.gpus {
        let leases = live.leases.iter().filter(|lease| lease.gpu == gpu.uuid);
        lines.extend(gpu_lines(gpu, leases, look));
    }
    lines.push(Line::default());
    match live.jobs.is_empty() {
        true => lines.push(faint(
            "No job of Sweetspot reports to the service.".to_owned(),
            look,
        )),
        false => {
            lines.push(bold(
                format!(
                    "{:<9}{:<11}{:>9}{:>11}{:>12}{:>12}  {}",
                    "JOB", "USER", "TIME", "ITEMS/S", "J PER ITEM", "SAVED", "SETTING"
                ),
                look,
            ));
            lines.extend(
                live.jobs
                    .iter()
                    .map(|job| cut(job_text(job), look.width).into()),
            );
        }
    }
    lines.push(Line::default());
    lines.push(faint("q ends it, up and down scroll".to_owned(), look));
    lines
}

/// The lines of a GPU: its power and clock, what limits it, and its leases.
fn gpu_lines<'a>(
    gpu: &LiveGpu,
    leases: impl Iterator<Item = &'a LiveLease>,
    look: Look,
) -> Vec<Line<'static>> {
    let name = cut(gpu.name.clone(), 27);
    let head = format!("GPU {:<2} {name:<27}", gpu.index);
    if gpu.lost {
        return vec![Line::from(vec![
            Span::raw(head),
            Span::styled(" no longer answers", warning(look)),
        ])];
    }
    let number = |value: Option<f64>, unit: &str| {
        value.map_or_else(|| format!("- {unit}"), |value| format!("{value:.0} {unit}"))
    };
    let power = format!(
        "{:>7} of {:<6}",
        number(gpu.power_w, "W"),
        number(gpu.cap_w, "W")
    );
    let rest = format!(
        "{:>9} {:>6} {:>5}",
        number(gpu.core_clock_mhz, "MHz"),
        number(gpu.temperature_c, "°C"),
        number(gpu.utilisation.map(|share| share * 100.0), "%"),
    );
    let is_capped = gpu
        .limited_by
        .as_deref()
        .is_some_and(|text| text.contains("power cap") || text.contains("temperature"));
    let limited = format!(
        "       limited by {}",
        gpu.limited_by.as_deref().unwrap_or("unknown")
    );
    let mut lines = vec![
        Line::from(vec![
            Span::raw(head),
            Span::styled(
                power,
                if is_capped {
                    warning(look)
                } else {
                    Style::default()
                },
            ),
            Span::raw(rest),
        ]),
        Line::from(vec![
            Span::raw(format!("       {} ", power_bars(gpu, 24))),
            Span::raw(cut(
                limited.trim_start().to_owned(),
                look.width.saturating_sub(32),
            )),
        ]),
    ];
    for lease in leases {
        lines.push(cut(lease_text(lease), look.width).into());
    }
    lines
}

/// The power of the last seconds as bars, relative to the cap.
fn power_bars(gpu: &LiveGpu, count: usize) -> String {
    let powers = &gpu.recent_power_w;
    let highest = powers
        .iter()
        .copied()
        .fold(gpu.cap_w.unwrap_or(1.0), f64::max);
    let newest = powers.iter().skip(powers.len().saturating_sub(count));
    let bar = |power: &f64| {
        let level = (power / highest * 8.0) as usize;
        BARS[level.min(7)]
    };
    let bars: String = newest.map(bar).collect();
    format!("{bars:>count$}")
}

/// A lease in one line: until when, what it sets, and who has it, so that the end is seen at 80 columns.
fn lease_text(lease: &LiveLease) -> String {
    let owner = match (&lease.job, lease.pid) {
        (Some(job), _) => format!("{}, job {job}", lease.user),
        (None, Some(pid)) => format!("{}, process {pid}", lease.user),
        (None, None) => lease.user.clone(),
    };
    let left = lease.left_s.map_or_else(String::new, |left| {
        format!(", at most {} more", duration(left))
    });
    format!(
        "       leased for {}{left}: {} by {owner}",
        duration(lease.age_s),
        lease.settings
    )
}

/// A job in one line.
fn job_text(job: &LiveJob) -> String {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(
            || "-".to_owned(),
            |value| match value.abs() >= 1e7 {
                true => format!("{value:.1e}"),
                false => format!("{value:.digits$}"),
            },
        )
    };
    let saved = job.saved_energy_j.map_or_else(|| "-".to_owned(), energy);
    format!(
        "{:<9}{:<11}{:>9}{:>11}{:>12}{:>12}  {}",
        cut(job.verb.clone(), 8),
        cut(job.user.clone(), 10),
        cut(duration(job.elapsed_s), 9),
        number(job.items_per_s, 1),
        number(job.energy_per_item_j, 3),
        cut(saved, 11),
        job.phase.as_deref().unwrap_or_default(),
    )
}

/// A time in one or two units.
fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02} min"),
        (hours, minutes, _) => format!("{hours}:{minutes:02} h"),
    }
}

/// An energy in a unit that suits it.
fn energy(joules: f64) -> String {
    match joules.abs() {
        size if size >= 3.6e9 => format!("{:.2e} kWh", joules / 3.6e6),
        size if size >= 3.6e6 => format!("{:.2} kWh", joules / 3.6e6),
        size if size >= 1e4 => format!("{:.1} kJ", joules / 1e3),
        _ => format!("{joules:.0} J"),
    }
}

/// A text that is at most so many columns wide. Control characters, which a terminal would obey, are left out.
fn cut(text: String, width: usize) -> String {
    let shown: String = text.chars().filter(|letter| !letter.is_control()).collect();
    match shown.chars().count() > width {
        true => shown
            .chars()
            .take(width.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => shown,
    }
}

fn bold(text: String, look: Look) -> Line<'static> {
    Line::styled(
        cut(text, look.width),
        Style::default().add_modifier(Modifier::BOLD),
    )
}

fn faint(text: String, look: Look) -> Line<'static> {
    Line::styled(
        cut(text, look.width),
        Style::default().add_modifier(Modifier::DIM),
    )
}

fn warning(look: Look) -> Style {
    match look.colors {
        true => Style::default().fg(Color::Yellow),
        false => Style::default().add_modifier(Modifier::BOLD),
    }
}

/// The terminal while it shows the screen; it is as before when this value is dropped.
struct Screen(Terminal<CrosstermBackend<io::Stdout>>);

impl Screen {
    fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(Self(Terminal::new(CrosstermBackend::new(io::stdout()))?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Takes over new readings. Without any the old ones stay, as those of a service that is started again.
fn update(shown: &mut (Live, String), read: io::Result<(Live, String)>) {
    match read {
        Ok(new) => *shown = new,
        Err(error) => shown.1 = format!("these numbers are old: {error}"),
    }
}

/// Shows the screen until the user ends it. `read_live` says what happens now, and where that comes from.
pub fn run_top(
    mut read_live: impl FnMut() -> io::Result<(Live, String)>,
    colors: bool,
) -> io::Result<()> {
    let mut shown = read_live()?;
    let mut screen_terminal = Screen::open()?;
    let mut next = Instant::now() + PERIOD;
    let mut first_line: u16 = 0;
    loop {
        screen_terminal.0.draw(|frame| {
            let look = Look {
                width: frame.area().width.into(),
                colors,
            };
            let lines = screen(&shown.0, &shown.1, look);
            first_line =
                first_line.min(lines.len().saturating_sub(frame.area().height.into()) as u16);
            frame.render_widget(
                Paragraph::new(Text::from(lines)).scroll((first_line, 0)),
                frame.area(),
            );
        })?;
        while poll(next.saturating_duration_since(Instant::now()))? {
            match read()? {
                Event::Key(key) => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                        return Ok(());
                    }
                    KeyCode::Down | KeyCode::Char('j') => first_line = first_line.saturating_add(1),
                    KeyCode::Up | KeyCode::Char('k') => first_line = first_line.saturating_sub(1),
                    _ => continue,
                },
                Event::Resize(..) => {}
                _ => continue,
            }
            break;
        }
        if Instant::now() >= next {
            update(&mut shown, read_live());
            next = Instant::now() + PERIOD;
        }
    }
}

#[cfg(test)]
mod tests;
