//! The presets against scripted answers of a tiny server.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use super::*;
use sweetspot_device::VirtualClock;

/// Serves pages until the test ends; returns the server's address. A page is a path, a status and a body.
fn serve(pages: &'static [(&'static str, u16, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut first = String::new();
            let mut header = String::new();
            if reader.read_line(&mut first).is_err() {
                continue;
            }
            let mut login = String::new();
            while reader.read_line(&mut header).is_ok_and(|count| count > 2) {
                if header.to_lowercase().starts_with("authorization:") {
                    login = header.clone();
                }
                header.clear();
            }
            let path = first.split(' ').nth(1).unwrap_or_default();
            let found = pages.iter().find(|(known, ..)| *known == path);
            let (status, body) = found.map_or((404, "none"), |(_, status, body)| (*status, *body));
            let status = if status == 401 && login.contains("cm9vdDpnb29k") {
                200
            } else {
                status
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address
}

fn read(
    kind: HttpKind,
    pages: &'static [(&'static str, u16, &'static str)],
    settings: &MeterSettings,
) -> Result<(Values, String), Problem> {
    let url = serve(pages);
    let (mut meter, model) = HttpMeter::connect(kind, &url, settings, Seconds::new(1.0))?;
    let reading = meter.read(&VirtualClock::default())?;
    Ok((
        Values {
            power: reading.power,
            energy: reading.energy,
        },
        model,
    ))
}

fn values(power: f64, energy: Option<f64>) -> Values {
    Values {
        power: Some(Watts::new(power)),
        energy: energy.map(Joules::new),
    }
}

#[test]
fn shelly_of_each_generation() {
    let none = MeterSettings::default();
    let new = read(
        HttpKind::Shelly,
        &[(
            "/rpc/Switch.GetStatus?id=0",
            200,
            r#"{"apower":12.5,"aenergy":{"total":2.5}}"#,
        )],
        &none,
    );
    assert_eq!(
        new.unwrap(),
        (values(12.5, Some(9000.0)), "Shelly plug".to_owned())
    );
    let em = read(
        HttpKind::Shelly,
        &[(
            "/rpc/EM.GetStatus?id=0",
            200,
            r#"{"total_act_power":1234.5}"#,
        )],
        &none,
    );
    assert_eq!(em.unwrap().0, values(1234.5, None));
    let old = read(
        HttpKind::Shelly,
        &[(
            "/meter/0",
            200,
            r#"{"power":60.0,"is_valid":true,"total":10}"#,
        )],
        &none,
    );
    assert_eq!(old.unwrap().0, values(60.0, Some(600.0)));
}

#[test]
fn tasmota_new_and_old() {
    let none = MeterSettings::default();
    let new = read(
        HttpKind::Tasmota,
        &[(
            "/cm?cmnd=Status%2010",
            200,
            r#"{"StatusSNS":{"ENERGY":{"Power":81,"Total":1.5}}}"#,
        )],
        &none,
    );
    assert_eq!(new.unwrap().0, values(81.0, Some(5.4e6)));
    let old = read(
        HttpKind::Tasmota,
        &[
            ("/cm?cmnd=Status%2010", 200, r#"{"Command":"Unknown"}"#),
            (
                "/cm?cmnd=Status%208",
                200,
                r#"{"StatusPWR":{"Power":"82","Total":"0.5"}}"#,
            ),
        ],
        &none,
    );
    assert_eq!(old.unwrap().0, values(82.0, Some(1.8e6)));
    let locked = read(
        HttpKind::Tasmota,
        &[("/cm?cmnd=Status%2010", 200, r#"{"WARNING":"Need user"}"#)],
        &none,
    );
    assert!(locked.unwrap_err().text().contains("it wants a password"));
}

const BMC: &[(&str, u16, &str)] = &[
    (
        "/redfish/v1/Chassis",
        200,
        r#"{"Members":[{"@odata.id":"/redfish/v1/Chassis/A"},{"@odata.id":"//evil/x"}]}"#,
    ),
    (
        "/redfish/v1/Chassis/A/EnvironmentMetrics",
        200,
        r#"{"PowerWatts":{"Reading":410},"EnergykWh":{"Reading":2}}"#,
    ),
];
const OLD_BMC: &[(&str, u16, &str)] = &[
    (
        "/redfish/v1/Chassis",
        401,
        r#"{"Members":[{"@odata.id":"/redfish/v1/Chassis/1"}]}"#,
    ),
    (
        "/redfish/v1/Chassis/1/Power",
        401,
        r#"{"PowerControl":[{"PowerConsumedWatts":405}]}"#,
    ),
];

#[test]
fn redfish_new_and_old_with_a_password() {
    assert_eq!(
        read(HttpKind::Redfish, BMC, &MeterSettings::default())
            .unwrap()
            .0,
        values(410.0, Some(7.2e6))
    );
    let folder = tempfile::tempdir().unwrap();
    let with = |password: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(password);
        std::fs::write(&path, password).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        MeterSettings {
            user: Some("root".to_owned()),
            password_file: Some(path),
            ..MeterSettings::default()
        }
    };
    assert_eq!(
        read(HttpKind::Redfish, OLD_BMC, &with("good")).unwrap().0,
        values(405.0, None)
    );
    let wrong = read(HttpKind::Redfish, OLD_BMC, &with("bad")).unwrap_err();
    assert_eq!(wrong, Problem::Refused("it refuses the user name or password: check user, password-file and password-env in meters.toml".to_owned()));
    let none = read(HttpKind::Redfish, OLD_BMC, &MeterSettings::default()).unwrap_err();
    assert!(none.text().contains("it wants a password"));
}

#[test]
fn rubbish_is_said_and_absence_too() {
    let none = MeterSettings::default();
    let rubbish = read(
        HttpKind::Tasmota,
        &[("/cm?cmnd=Status%2010", 200, "<html>\u{7}")],
        &none,
    );
    assert_eq!(
        rubbish.unwrap_err().text(),
        "it answers `<html>\u{fffd}`, which is not JSON"
    );
    let other = read(HttpKind::Shelly, &[], &none);
    assert!(other.unwrap_err().text().contains("no page of a Shelly"));
    let closed = HttpMeter::connect(
        HttpKind::Redfish,
        "http://127.0.0.1:9",
        &none,
        Seconds::new(1.0),
    );
    assert!(
        closed
            .err()
            .unwrap()
            .text()
            .contains("refuses the connection")
    );
}

#[test]
fn logins_are_encoded() {
    for (text, expected) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("root:good", "cm9vdDpnb29k"),
    ] {
        assert_eq!(base64(text.as_bytes()), expected);
    }
}

/// The page of a measuring service that needs the token `root:good`, as the tiny server's login is called.
const ENERGY: &[(&str, u16, &str)] = &[(
    "/energy",
    401,
    r#"{"received_s":100.0,"at_s":100.0,"answered_s":100.0,"gpus":[{"index":0,"uuid":"GPU-1","name":"V","energy_j":50.0,"missing_s":0.0,"lost":false},{"index":1,"uuid":"GPU-2","name":"V","energy_j":7.0,"missing_s":0.0,"lost":false}]}"#,
)];

#[test]
fn a_measuring_service_wants_its_token() {
    let none = MeterSettings::default();
    let kind = HttpKind::Sweetspot;
    let Err(Problem::Refused(text)) = read(kind, ENERGY, &none) else {
        panic!("no token was needed");
    };
    assert!(text.starts_with("it wants a token"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let with_token = |token: &str| {
        use std::os::unix::fs::PermissionsExt;
        let file = folder.path().join("token");
        std::fs::write(&file, token).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        MeterSettings {
            password_file: Some(file),
            ..MeterSettings::default()
        }
    };
    let Err(Problem::Refused(text)) = read(kind, ENERGY, &with_token("wrong")) else {
        panic!("a wrong token was accepted");
    };
    assert!(text.starts_with("it refuses the token"), "{text}");
    // The tiny server accepts this one.
    let (values, model) = read(kind, ENERGY, &with_token("cm9vdDpnb29k")).unwrap();
    assert_eq!(values.energy, Some(Joules::new(57.0)));
    assert_eq!(model, "Sweetspot service with 2 GPUs (V)");
}

#[test]
fn a_certificate_of_an_authority_is_explained() {
    let text = "io: invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))";
    let error = ureq::Error::Io(std::io::Error::other(text));
    let Problem::Refused(message) = explain(&error) else {
        panic!("{error}");
    };
    assert!(message.contains("CA:FALSE"), "{message}");
}

const CHASSIS: &str = r#"{"Members":[{"@odata.id":"/redfish/v1/Chassis/Broken"},{"@odata.id":"/redfish/v1/Chassis/HGX_GPU_0"},{"@odata.id":"/redfish/v1/Chassis/Self"}]}"#;
const GPU_POWER: &str = r#"{"PowerControl":[{"PowerConsumedWatts":75}]}"#;
const OWN_POWER: &str = r#"{"PowerControl":[{"PowerConsumedWatts":2100}]}"#;

#[test]
fn redfish_measures_the_chassis_of_the_machine_among_those_of_its_parts() {
    let none = MeterSettings::default();
    let (found, model) = read(
        HttpKind::Redfish,
        &[
            ("/redfish/v1/Chassis", 200, CHASSIS),
            ("/redfish/v1/Chassis/Broken/EnvironmentMetrics", 500, "{}"),
            ("/redfish/v1/Chassis/Broken/Power", 400, "{}"),
            (
                "/redfish/v1/Chassis/HGX_GPU_0",
                200,
                r#"{"ChassisType":"Module","Links":{}}"#,
            ),
            ("/redfish/v1/Chassis/HGX_GPU_0/Power", 200, GPU_POWER),
            (
                "/redfish/v1/Chassis/Self",
                200,
                r#"{"ChassisType":"RackMount","Links":{}}"#,
            ),
            ("/redfish/v1/Chassis/Self/Power", 200, OWN_POWER),
        ],
        &none,
    )
    .unwrap();
    assert_eq!(found, values(2100.0, None));
    assert_eq!(
        model,
        "Redfish chassis Self of those that show power: HGX_GPU_0 (75 W), Self (2100 W)"
    );
}

#[test]
fn redfish_with_several_chassis_that_may_be_the_machine_asks_for_one() {
    let pages = &[
        ("/redfish/v1/Chassis", 200, CHASSIS),
        ("/redfish/v1/Chassis/HGX_GPU_0/Power", 200, GPU_POWER),
        ("/redfish/v1/Chassis/Self/Power", 200, OWN_POWER),
    ];
    let none = MeterSettings::default();
    let Err(Problem::Refused(text)) = read(HttpKind::Redfish, pages, &none) else {
        panic!()
    };
    assert!(
        text.contains("HGX_GPU_0 (75 W), Self (2100 W); name that of the whole machine"),
        "{text}"
    );
    let named = format!("{}/redfish/v1/Chassis/Self", serve(pages));
    let (mut meter, model) =
        HttpMeter::connect(HttpKind::Redfish, &named, &none, Seconds::new(1.0)).unwrap();
    let reading = meter.read(&VirtualClock::default()).unwrap();
    assert_eq!(reading.power, Some(Watts::new(2100.0)));
    assert_eq!(model, "Redfish chassis Self");
}
