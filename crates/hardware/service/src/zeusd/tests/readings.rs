//! Tests of the routes that read.

use super::super::EventStream;
use super::*;

#[test]
fn discover_lists_the_gpus() {
    let mut backend = FakeBackend::default();
    let response = respond(&mut backend, "GET /discover");
    assert_eq!(response.status, 200);
    assert_eq!(response.content_type, Some("application/json"));
    assert!(!response.close);
    assert_eq!(
        response.body,
        concat!(
            r#"{"gpus":[{"id":0,"name":"NVIDIA H200","pci_address":"0000:00:00.0","cumulative_energy_available":true},"#,
            r#"{"id":1,"name":"NVIDIA H200","pci_address":"0000:01:00.0","cumulative_energy_available":false},"#,
            r#"{"id":3,"name":"NVIDIA H200","pci_address":null,"cumulative_energy_available":true}],"#,
            r#""cpus":[],"enabled_api_groups":["gpu-control","gpu-read"],"auth_required":false}"#,
        )
    );
}

#[test]
fn discover_and_time_ignore_parameters() {
    let time = (200, r#"{"timestamp_ms":1700000000123}"#.to_owned());
    assert_eq!(reply("GET /time"), time);
    assert_eq!(reply("GET /time?x=1"), time);
    assert_eq!(reply("GET /discover?x=1").0, 200);
}

#[test]
fn every_reading_has_its_shape() {
    let cases = [
        (
            "get_power?gpu_ids=3,0",
            r#"{"timestamp_ms":1700000000123,"power_mw":{"0":75000,"3":78000}}"#,
        ),
        (
            "get_cumulative_energy?gpu_ids=0",
            r#"{"0":{"energy_mj":123456}}"#,
        ),
        (
            "get_power_limit?gpu_ids=1",
            r#"{"1":{"power_limit_mw":700000}}"#,
        ),
        (
            "get_power_limit_constraints?gpu_ids=1",
            r#"{"1":{"min_power_limit_mw":200000,"max_power_limit_mw":700000}}"#,
        ),
        (
            "get_persistence_mode?gpu_ids=0,1",
            r#"{"0":{"enabled":true},"1":{"enabled":false}}"#,
        ),
    ];
    for (request, body) in cases {
        let request = format!("GET /gpu/{request}");
        assert_eq!(reply(&request), (200, body.to_owned()), "{request}");
    }
}

#[test]
fn all_gpus_are_read_by_default() {
    assert_eq!(
        reply("GET /gpu/get_power").1,
        r#"{"timestamp_ms":1700000000123,"power_mw":{"0":75000,"1":76000,"3":78000}}"#
    );
    assert_eq!(
        reply("GET /gpu/get_cumulative_energy").1,
        r#"{"0":{"energy_mj":123456},"1":{"energy_mj":124456},"3":{"energy_mj":126456}}"#
    );
}

#[test]
fn a_list_of_gpus_may_be_escaped_spaced_and_repeated() {
    let expected = reply("GET /gpu/get_power_limit?gpu_ids=0,1");
    assert_eq!(expected.0, 200);
    for ids in ["0%2C1", "1,0", "0,1,0", "+0,+1", "%201,0"] {
        let request = format!("GET /gpu/get_power_limit?gpu_ids={ids}");
        assert_eq!(reply(&request), expected, "{ids}");
    }
}

#[test]
fn invalid_lists_of_gpus_are_rejected() {
    let cases = [
        (
            "",
            r#"{"error":"gpu_ids must contain at least one GPU index"}"#,
        ),
        (
            "=",
            r#"{"error":"gpu_ids must contain at least one GPU index"}"#,
        ),
        (
            "=+",
            r#"{"error":"gpu_ids must contain at least one GPU index"}"#,
        ),
        (
            "=0,,1",
            r#"{"error":"gpu_ids contains an empty GPU index"}"#,
        ),
        ("=0,", r#"{"error":"gpu_ids contains an empty GPU index"}"#),
        ("=all", r#"{"error":"Invalid GPU index: all"}"#),
        ("=-1", r#"{"error":"Invalid GPU index: -1"}"#),
        ("=0,2", r#"{"error":"GPU 2 not found"}"#),
        ("=4294967296", r#"{"error":"GPU 4294967296 not found"}"#),
    ];
    for reading in [
        "get_power",
        "get_cumulative_energy",
        "get_power_limit",
        "get_power_limit_constraints",
        "get_persistence_mode",
    ] {
        for (ids, body) in cases {
            let request = format!("GET /gpu/{reading}?gpu_ids{ids}");
            assert_eq!(reply(&request), (400, body.to_owned()), "{request}");
        }
    }
}

#[test]
fn other_parameters_are_rejected() {
    assert_eq!(
        reply("GET /gpu/get_power?gpus=0"),
        (
            400,
            "Query deserialize error: unknown field `gpus`, expected `gpu_ids`".to_owned()
        )
    );
    assert_eq!(
        reply("GET /gpu/stream_power?gpu_ids=0&gpu_ids=1"),
        (
            400,
            "Query deserialize error: duplicate field `gpu_ids`".to_owned()
        )
    );
}

#[test]
fn a_failure_of_one_gpu_is_reported_alone() {
    let methods = [
        ("get_power", "power"),
        ("get_cumulative_energy", "energy"),
        ("get_power_limit", "power_limit"),
        ("get_power_limit_constraints", "power_limit_range"),
        ("get_persistence_mode", "persistence"),
    ];
    for (path, method) in methods {
        let failure = Failure::Unsupported("not supported by this GPU".to_owned());
        let mut backend = FakeBackend::default().fail(1, method, failure);
        let response = respond(&mut backend, &format!("GET /gpu/{path}"));
        assert_eq!(response.status, 400, "{path}");
        assert_eq!(
            response.body,
            r#"{"errors":{"1":"not supported by this GPU"}}"#
        );
    }
}

#[test]
fn failures_have_the_highest_status_of_all_gpus() {
    let mut backend = FakeBackend::default()
        .fail(0, "power", Failure::Denied("not yours".to_owned()))
        .fail(1, "power", Failure::Invalid("no".to_owned()))
        .fail(3, "power", Failure::Failed("the GPU is lost".to_owned()));
    let response = respond(&mut backend, "GET /gpu/get_power?gpu_ids=0,1");
    assert_eq!(response.status, 403);
    let response = respond(&mut backend, "GET /gpu/get_power");
    assert_eq!(response.status, 500);
    assert_eq!(
        response.body,
        r#"{"errors":{"0":"not yours","1":"no","3":"the GPU is lost"}}"#
    );
}

#[test]
fn power_is_streamed_from_the_requested_gpus() {
    let stream = |request: &str| match ask(&mut FakeBackend::default(), request) {
        Answer::Stream { gpus, stream } => {
            assert_eq!(stream, EventStream::Chunked);
            gpus
        }
        Answer::Once(response) => panic!("{response:?}"),
    };
    assert_eq!(stream("GET /gpu/stream_power"), [0, 1, 3]);
    assert_eq!(stream("GET /gpu/stream_power?gpu_ids=3,0"), [0, 3]);
    assert_eq!(
        reply("GET /gpu/stream_power?gpu_ids=2,0,7"),
        (
            400,
            r#"{"error":"Unknown GPU indices: [2, 7]. Available: [0, 1, 3]"}"#.to_owned()
        )
    );
    let old = parse("GET /gpu/stream_power HTTP/1.0\r\n\r\n");
    let plain = Answer::Stream {
        gpus: vec![0, 1, 3],
        stream: EventStream::UntilClose,
    };
    assert_eq!(answer(&old, &mut FakeBackend::default()), plain);
}

#[test]
fn processor_readings_are_a_disabled_group() {
    let disabled = r#"{"error":"API group 'cpu-read' is not enabled on this server."}"#;
    for path in [
        "get_power",
        "get_cumulative_energy?cpu=true&dram=true",
        "stream_power",
        "anything",
    ] {
        for method in ["GET", "POST"] {
            let request = format!("{method} /cpu/{path}");
            assert_eq!(reply(&request), (404, disabled.to_owned()), "{request}");
        }
    }
}

#[test]
fn unknown_paths_are_not_found() {
    for path in [
        "/",
        "/gpu",
        "/gpu/",
        "/gpu/get_power/",
        "/gpu/get%5Fpower",
        "//discover",
        "/Time",
        "/cpu",
    ] {
        assert_eq!(
            reply(&format!("GET {path}")),
            (404, String::new()),
            "{path}"
        );
    }
    assert_eq!(
        reply("GET /auth/whoami"),
        (
            404,
            r#"{"error":"Authentication is not enabled on this server."}"#.to_owned()
        )
    );
}

#[test]
fn a_connection_closes_when_the_client_says_so() {
    let close = |request: &str| {
        let request = parse(&format!("{request}\r\n\r\n"));
        match answer(&request, &mut FakeBackend::default()) {
            Answer::Once(response) => response.close,
            Answer::Stream { .. } => panic!("a stream"),
        }
    };
    assert!(!close("GET /time HTTP/1.1\r\nHost: x"));
    assert!(close("GET /time HTTP/1.1\r\nHost: x\r\nConnection: close"));
    assert!(close("GET /x HTTP/1.1\r\nHost: x\r\nconnection: TE, Close"));
    assert!(close("GET /time HTTP/1.0"));
    assert!(!close("GET /time HTTP/1.0\r\nConnection: Keep-Alive"));
    assert!(close(
        "GET /time HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close"
    ));
}
