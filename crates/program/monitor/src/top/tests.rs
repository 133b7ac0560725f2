use ratatui::backend::TestBackend;
use sweetspot_document::common::SchemaName;

use super::*;

fn live() -> Live {
    let gpu = |index: u32, power: f64, limited_by: &str| LiveGpu {
        index,
        uuid: format!("GPU-{index}"),
        name: "Tesla V100-SXM2-16GB".to_owned(),
        power_w: Some(power),
        cap_w: Some(180.0),
        default_cap_w: Some(300.0),
        core_clock_mhz: Some(1380.0),
        temperature_c: Some(61.0),
        utilisation: Some(0.98),
        limited_by: Some(limited_by.to_owned()),
        recent_power_w: vec![40.0, 90.0, 179.0, 180.0],
        ..LiveGpu::default()
    };
    let lost = LiveGpu {
        lost: true,
        ..gpu(2, 0.0, "")
    };
    Live {
        schema: SchemaName::LIVE,
        unix_s: 0.0,
        host: Some("node7".to_owned()),
        gpus: vec![
            gpu(0, 179.6, "the power cap"),
            gpu(1, 41.0, "nothing to do"),
            lost,
        ],
        leases: vec![LiveLease {
            gpu: "GPU-0".to_owned(),
            user: "alice".to_owned(),
            pid: Some(4711),
            job: None,
            kind: "setting".to_owned(),
            settings: "power cap 180 W".to_owned(),
            age_s: 754.0,
            left_s: Some(85_000.0),
            energy_j: None,
        }],
        jobs: vec![LiveJob {
            user: "alice".to_owned(),
            verb: "tune".to_owned(),
            elapsed_s: 754.0,
            phase: Some("180 W".to_owned()),
            items_per_s: Some(402.25),
            energy_per_item_j: Some(0.4464),
            saved_energy_j: Some(23_456.0),
            ..LiveJob::default()
        }],
    }
}

/// The screen of a terminal with so many columns.
fn shown(live: &Live, width: u16) -> String {
    let look = Look {
        width: width.into(),
        colors: true,
    };
    let mut terminal = Terminal::new(TestBackend::new(width, 14)).unwrap();
    terminal
        .draw(|frame| {
            frame.render_widget(
                Paragraph::new(Text::from(screen(live, "from the service", look))),
                frame.area(),
            )
        })
        .unwrap();
    let buffer = terminal.backend().buffer().clone();
    let row = |y: u16| -> String {
        (0..width)
            .map(|x| buffer[(x, y)].symbol().to_owned())
            .collect()
    };
    (0..14)
        .map(|y| row(y).trim_end().to_owned() + "\n")
        .collect()
}

#[test]
fn the_screen_of_80_columns_is_as_before() {
    assert_eq!(
        shown(&live(), 80),
        "\
node7: 221 W on 3 GPUs, from the service

GPU 0  Tesla V100-SXM2-16GB         180 W of 180 W  1380 MHz  61 °C  98 %
                           ▂▅██ limited by the power cap
       leased for 12:34 min, at most 23:36 h more: power cap 180 W by alice, pr…
GPU 1  Tesla V100-SXM2-16GB          41 W of 180 W  1380 MHz  61 °C  98 %
                           ▂▅██ limited by nothing to do
GPU 2  Tesla V100-SXM2-16GB        no longer answers

JOB      USER            TIME    ITEMS/S  J PER ITEM       SAVED  SETTING
tune     alice      12:34 min      402.2       0.446     23.5 kJ  180 W

q ends it, up and down scroll

"
    );
}

#[test]
fn every_width_holds_and_no_control_character_reaches_the_terminal() {
    let mut live = live();
    live.jobs[0].user = "a\u{1b}[31mb".to_owned();
    for width in 1..200 {
        let text = shown(&live, width);
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= width.into())
        );
        assert!(!text.contains('\u{1b}'));
    }
    // Numbers that a job only claims do not move the columns.
    live.jobs[0].elapsed_s = 1e300;
    live.jobs[0].items_per_s = Some(1e300);
    live.jobs[0].saved_energy_j = Some(-1e300);
    let text = shown(&live, 80);
    let row = text.lines().find(|row| row.starts_with("tune")).unwrap();
    assert_eq!(row.chars().skip(66).collect::<String>(), "180 W", "{text}");
    // Without anything known there is a screen as well.
    live.gpus = vec![LiveGpu::default()];
    assert!(shown(&live, 80).contains("- W of - W"));
}

#[test]
fn old_numbers_stay_while_nothing_can_be_read() {
    let mut shown = (live(), "from the service".to_owned());
    update(&mut shown, Err(io::Error::other("no driver")));
    assert_eq!(
        shown,
        (live(), "these numbers are old: no driver".to_owned())
    );
    update(&mut shown, Ok((live(), "from the service".to_owned())));
    assert_eq!(shown.1, "from the service");
}
