//! The stand-in plugs and board controllers on a simulated clock.

use serde_json::Value;
use sweetspot_device::Moment;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim_meters::{HttpMeter, MeterFault, MeterKind, MeterProblem, PowerSteps, Request};
use sweetspot_stats::Seed;

fn at(seconds: f64) -> Moment {
    Moment::default() + Seconds::new(seconds)
}

/// A node that draws 500 W, and 1500 W from 300 s on.
fn node() -> PowerSteps {
    PowerSteps::constant(Watts::new(500.0)).then(at(300.0), Watts::new(1500.0))
}

fn meter(kind: MeterKind, faults: Vec<MeterFault>) -> HttpMeter {
    HttpMeter::new(kind, at(100.0), Seconds::new(1.7e9), Seed::new(5), faults)
}

fn read(meter: &mut HttpMeter, target: &str, seconds: f64) -> (u16, Value) {
    let response = meter.handle(&Request::get(target), at(seconds), &node());
    let body = serde_json::from_str(&response.body.unwrap()).unwrap();
    (response.status, body)
}

/// Where each meter has its power in watts and its energy, and the number of joules in the energy's unit.
const READINGS: [(MeterKind, &str, &str, &str, f64); 5] = [
    (
        MeterKind::Shelly,
        "/rpc/Switch.GetStatus?id=0",
        "/apower",
        "/aenergy/total",
        3600.0,
    ),
    (MeterKind::ShellyGen1, "/meter/0", "/power", "/total", 60.0),
    (
        MeterKind::Tasmota,
        "/cm?cmnd=Status%2010",
        "/StatusSNS/ENERGY/Power",
        "/StatusSNS/ENERGY/Total",
        3.6e6,
    ),
    (
        MeterKind::TasmotaOld,
        "/cm?cmnd=status+8",
        "/StatusPWR/Power",
        "/StatusPWR/Total",
        3.6e6,
    ),
    (
        MeterKind::Redfish,
        "/redfish/v1/Chassis/1/EnvironmentMetrics",
        "/PowerWatts/Reading",
        "/EnergykWh/Reading",
        3.6e6,
    ),
];

#[test]
fn power_and_energy_follow_the_node() {
    for (kind, target, power, energy, unit) in READINGS {
        let mut meter = meter(kind, Vec::new());
        let mut get = |seconds: f64, pointer: &str| {
            let (status, body) = read(&mut meter, target, seconds);
            assert_eq!(status, 200);
            body.pointer(pointer).unwrap().as_f64().unwrap()
        };
        let (low, high) = (get(200.0, power), get(400.0, power));
        assert!((low / 500.0 - 1.0).abs() < 0.006, "{kind:?}: {low}");
        assert!((high / 1500.0 - 1.0).abs() < 0.006, "{kind:?}: {high}");
        assert!(
            (high / low - 3.0).abs() < 0.01,
            "the error of a meter is constant"
        );
        let counted = (get(1400.0, energy) - get(400.0, energy)) * unit;
        assert!((counted / 1.5e6 - 1.0).abs() < 0.006, "{kind:?}: {counted}");
    }
}

#[test]
fn plugs_are_a_second_late_and_change_once_a_second() {
    let mut meter = meter(MeterKind::Shelly, Vec::new());
    let mut power = |seconds: f64| {
        let (_, body) = read(&mut meter, "/rpc/Switch.GetStatus?id=0", seconds);
        body["apower"].as_f64().unwrap()
    };
    let low = power(301.9);
    assert!(low < 510.0, "{low}");
    assert!(power(302.0) > 1400.0);
    assert_eq!(power(305.0), power(305.99));
}

#[test]
fn the_old_schema_averages_a_minute() {
    let mut meter = meter(MeterKind::RedfishOld, Vec::new());
    let (status, body) = read(&mut meter, "/redfish/v1/Chassis/1/Power", 331.0);
    assert_eq!(status, 200);
    let watts = body["PowerControl"][0]["PowerConsumedWatts"]
        .as_u64()
        .unwrap();
    assert!((990..=1010).contains(&watts), "{watts}");
    let (status, body) = read(
        &mut meter,
        "/redfish/v1/Chassis/1/EnvironmentMetrics",
        331.0,
    );
    assert_eq!((status, body["error"].is_object()), (404, true));
    let fault = MeterFault {
        after: 0,
        what: MeterProblem::Average(Seconds::new(2.0)),
    };
    let mut fast = self::meter(MeterKind::RedfishOld, vec![fault]);
    let (_, body) = read(&mut fast, "/redfish/v1/Chassis/1/Power", 331.0);
    assert!(
        body["PowerControl"][0]["PowerConsumedWatts"]
            .as_u64()
            .unwrap()
            > 1400
    );
}

#[test]
fn a_reader_finds_the_chassis_from_the_root() {
    let mut meter = meter(MeterKind::Redfish, Vec::new());
    let mut path = "/redfish/v1/".to_owned();
    for pointer in ["/Chassis", "/Members/0", "/EnvironmentMetrics"] {
        let (_, body) = read(&mut meter, &path, 200.0);
        let next = body.pointer(&format!("{pointer}/@odata.id")).unwrap();
        path = next.as_str().unwrap().to_owned();
    }
    assert!(read(&mut meter, &path, 200.0).1["PowerWatts"]["Reading"].is_number());
}

#[test]
fn each_generation_refuses_the_requests_of_the_other() {
    let mut new = meter(MeterKind::Shelly, Vec::new());
    assert_eq!(read(&mut new, "/meter/0", 200.0).0, 404);
    assert_eq!(
        read(&mut new, "/rpc/Switch.GetStatus", 200.0).1["code"],
        -103
    );
    assert_eq!(
        read(&mut new, "/rpc/Switch.GetStatus?id=7", 200.0).1["code"],
        -105
    );
    assert_eq!(read(&mut new, "/shelly", 200.0).1["gen"], 2);
    let mut old = meter(MeterKind::ShellyGen1, Vec::new());
    assert_eq!(read(&mut old, "/rpc/Switch.GetStatus?id=0", 200.0).0, 404);
    assert!(read(&mut old, "/shelly", 200.0).1["gen"].is_null());
    let mut tasmota = meter(MeterKind::TasmotaOld, Vec::new());
    let (_, body) = read(&mut tasmota, "/cm?cmnd=Status%2010", 200.0);
    assert!(body["StatusSNS"]["ENERGY"].is_null());
    let (_, body) = read(&mut tasmota, "/cm?cmnd=Nonsense", 200.0);
    assert_eq!(body["Command"], "Unknown");
}

#[test]
fn a_password_is_asked_for() {
    let password = || {
        let (user, secret) = ("root".to_owned(), "calvin".to_owned());
        let what = MeterProblem::Password { user, secret };
        vec![MeterFault { after: 0, what }]
    };
    let target = "/redfish/v1/Chassis/1/EnvironmentMetrics";
    let mut redfish = meter(MeterKind::Redfish, password());
    let mut status = |authorization| {
        let request = Request {
            target,
            authorization,
        };
        let response = redfish.handle(&request, at(200.0), &node());
        (response.status, response.authenticate.is_some())
    };
    assert_eq!(status(None), (401, true));
    assert_eq!(status(Some("Basic cm9vdDp3cm9uZw==")), (401, true));
    assert_eq!(status(Some("Basic cm9vdDpjYWx2aW4=")), (200, false));
    assert_eq!(read(&mut redfish, "/redfish/v1/", 200.0).0, 200);
    let mut tasmota = meter(MeterKind::Tasmota, password());
    let with = "/cm?user=root&password=calvin&cmnd=Status%2010";
    assert_eq!(read(&mut tasmota, with, 200.0).0, 200);
    assert_eq!(read(&mut tasmota, "/cm?cmnd=Status%2010", 200.0).0, 401);
}

#[test]
fn a_clock_jump_moves_the_time_and_not_the_energy() {
    let jump = MeterFault {
        after: 1,
        what: MeterProblem::ClockJump(Seconds::new(7200.0)),
    };
    let mut plug = meter(MeterKind::ShellyGen1, vec![jump]);
    let (_, before) = read(&mut plug, "/meter/0", 200.0);
    let (_, after) = read(&mut plug, "/meter/0", 201.0);
    let time = |body: &Value| body["timestamp"].as_u64().unwrap();
    assert_eq!(time(&after) - time(&before), 7201);
    let total = |body: &Value| body["total"].as_u64().unwrap();
    assert!(total(&after) - total(&before) < 12);
}
