//! Tests of the routes that change settings.

use super::*;

/// The response to a change, and what it set.
fn change(request: &str) -> (u16, String, Vec<Write>) {
    let mut backend = FakeBackend::default();
    let response = respond(&mut backend, &format!("POST /gpu/{request}"));
    (response.status, response.body, backend.writes)
}

/// The paths that change settings, each with a valid query and what it sets.
fn valid_changes() -> Vec<(&'static str, &'static str, Vec<Write>)> {
    let lock =
        |gpu, clock, frequency: f64| Write::Clock(gpu, clock, Some(Megahertz::new(frequency)));
    let reset = |gpu, clock| Write::Clock(gpu, clock, None);
    vec![
        (
            "set_power_limit",
            "gpu_ids=1,0,1&power_limit_mw=250500&block=true",
            vec![
                Write::PowerLimit(0, Watts::new(250.5)),
                Write::PowerLimit(1, Watts::new(250.5)),
            ],
        ),
        (
            "set_persistence_mode",
            "gpu_ids=3&enabled=false&block=true",
            vec![Write::Persistence(3, false)],
        ),
        (
            "set_gpu_locked_clocks",
            "gpu_ids=0&min_clock_mhz=1200&max_clock_mhz=1200&block=true",
            vec![lock(0, Knob::CoreClock, 1200.0)],
        ),
        (
            "set_mem_locked_clocks",
            "gpu_ids=0&min_clock_mhz=2619&max_clock_mhz=2619&block=true",
            vec![lock(0, Knob::MemoryClock, 2619.0)],
        ),
        (
            "reset_gpu_locked_clocks",
            "gpu_ids=0&block=true",
            vec![reset(0, Knob::CoreClock)],
        ),
        (
            "reset_mem_locked_clocks",
            "gpu_ids=0&block=true",
            vec![reset(0, Knob::MemoryClock)],
        ),
        (
            "reset_locked_clocks",
            "gpu_ids=0,1&block=true",
            vec![
                reset(0, Knob::CoreClock),
                reset(0, Knob::MemoryClock),
                reset(1, Knob::CoreClock),
                reset(1, Knob::MemoryClock),
            ],
        ),
    ]
}

#[test]
fn every_change_is_applied() {
    for (path, query, writes) in valid_changes() {
        let blocking = change(&format!("{path}?{query}"));
        assert_eq!(blocking, (200, String::new(), writes), "{path}");
        let query = query.replace("block=true", "block=false");
        assert_eq!(change(&format!("{path}?{query}")), blocking, "{path}");
    }
}

#[test]
fn a_successful_change_has_no_body() {
    let mut backend = FakeBackend::default();
    let request = "POST /gpu/reset_locked_clocks?gpu_ids=0&block=true";
    let response = respond(&mut backend, request);
    assert_eq!((response.status, response.content_type), (200, None));
}

#[test]
fn every_parameter_is_required() {
    for (path, query, _) in valid_changes() {
        let pairs: Vec<&str> = query.split('&').collect();
        for missing in &pairs {
            let others: Vec<&str> = pairs
                .iter()
                .copied()
                .filter(|pair| pair != missing)
                .collect();
            let (name, _) = missing.split_once('=').unwrap();
            let message = format!("Query deserialize error: missing field `{name}`");
            let outcome = change(&format!("{path}?{}", others.join("&")));
            assert_eq!(outcome, (400, message, Vec::new()), "{path} without {name}");
        }
        let outcome = change(path);
        let message = "Query deserialize error: missing field `gpu_ids`".to_owned();
        assert_eq!(outcome, (400, message, Vec::new()), "{path}");
    }
}

#[test]
fn every_parameter_is_given_once_and_known() {
    for (path, query, _) in valid_changes() {
        let (status, body, writes) = change(&format!("{path}?{query}&block=true"));
        assert_eq!((status, writes), (400, Vec::new()), "{path}");
        assert_eq!(body, "Query deserialize error: duplicate field `block`");
        let (status, body, writes) = change(&format!("{path}?{query}&force=true"));
        assert_eq!((status, writes), (400, Vec::new()), "{path}");
        let start = "Query deserialize error: unknown field `force`, expected ";
        assert!(body.starts_with(start), "{body}");
    }
    assert!(
        change("reset_locked_clocks?gpu=0")
            .1
            .ends_with("unknown field `gpu`, expected `gpu_ids` or `block`")
    );
    assert!(
        change("set_persistence_mode?disabled=0")
            .1
            .ends_with("unknown field `disabled`, expected one of `gpu_ids`, `enabled`, `block`")
    );
}

#[test]
fn malformed_values_are_rejected() {
    let number = "invalid digit found in string";
    let boolean = "provided string was not `true` or `false`";
    let cases = [
        (
            "set_power_limit?gpu_ids=0&power_limit_mw=250W&block=true",
            number,
        ),
        (
            "set_power_limit?gpu_ids=0&power_limit_mw=-1&block=true",
            number,
        ),
        (
            "set_power_limit?gpu_ids=0&power_limit_mw=1e5&block=true",
            number,
        ),
        (
            "set_power_limit?gpu_ids=0&power_limit_mw=&block=true",
            "cannot parse integer from empty string",
        ),
        (
            "set_power_limit?gpu_ids=0&power_limit_mw=4294967296&block=true",
            "number too large to fit in target type",
        ),
        (
            "set_power_limit?gpu_ids=0&power_limit_mw=1&block=1",
            boolean,
        ),
        (
            "set_persistence_mode?gpu_ids=0&enabled=1&block=true",
            boolean,
        ),
        (
            "set_persistence_mode?gpu_ids=0&enabled=True&block=true",
            boolean,
        ),
        (
            "set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=1000&max_clock_mhz=abc&block=true",
            number,
        ),
        ("reset_mem_locked_clocks?gpu_ids=0&block=", boolean),
    ];
    for (request, reason) in cases {
        let message = format!("Query deserialize error: {reason}");
        assert_eq!(change(request), (400, message, Vec::new()), "{request}");
    }
}

#[test]
fn unknown_gpus_are_rejected_before_anything_is_set() {
    for (path, query, _) in valid_changes() {
        let rest = query.split_once('&').unwrap().1;
        let outcome = change(&format!("{path}?gpu_ids=0,2,5&{rest}"));
        let message = "GPU index 2 does not exist.".to_owned();
        assert_eq!(outcome, (400, message, Vec::new()), "{path}");
        let outcome = change(&format!("{path}?gpu_ids=&{rest}"));
        let message = r#"{"error":"gpu_ids must contain at least one GPU index"}"#.to_owned();
        assert_eq!(outcome, (400, message, Vec::new()), "{path}");
    }
}

#[test]
fn a_range_of_clocks_is_rejected() {
    for path in ["set_gpu_locked_clocks", "set_mem_locked_clocks"] {
        let request = format!("{path}?gpu_ids=0&min_clock_mhz=210&max_clock_mhz=1980&block=true");
        let (status, body, writes) = change(&request);
        assert_eq!((status, writes), (400, Vec::new()));
        assert_eq!(
            body,
            r#"{"error":"a clock is locked to one frequency, so min_clock_mhz (210) and max_clock_mhz (1980) must be equal"}"#
        );
    }
}

#[test]
fn a_failure_of_one_gpu_does_not_stop_the_others() {
    let denied = Failure::Denied("GPU 0 is leased by process 7".to_owned());
    let mut backend = FakeBackend::default().fail(0, "set_power_limit", denied);
    let response = respond(
        &mut backend,
        "POST /gpu/set_power_limit?gpu_ids=0,1&power_limit_mw=300000&block=false",
    );
    assert_eq!(response.status, 403);
    assert_eq!(
        response.body,
        r#"{"errors":{"0":"GPU 0 is leased by process 7"}}"#
    );
    let limit = Watts::new(300.0);
    let expected = [Write::PowerLimit(0, limit), Write::PowerLimit(1, limit)];
    assert_eq!(backend.writes, expected);
}

#[test]
fn both_clocks_are_reset_even_if_one_fails() {
    let unsupported = || Failure::Unsupported("no core clock".to_owned());
    let failed = || Failure::Failed("memory clock failed".to_owned());
    let request = "POST /gpu/reset_locked_clocks?gpu_ids=3&block=true";

    let mut backend = FakeBackend::default().fail(3, "set_core_clock", unsupported());
    let response = respond(&mut backend, request);
    assert_eq!(response.body, r#"{"errors":{"3":"no core clock"}}"#);
    assert_eq!(backend.writes.len(), 2);

    let mut backend = FakeBackend::default().fail(3, "set_memory_clock", failed());
    let response = respond(&mut backend, request);
    assert_eq!(response.status, 500);
    assert_eq!(response.body, r#"{"errors":{"3":"memory clock failed"}}"#);
    assert_eq!(backend.writes.len(), 2);

    let mut backend = FakeBackend::default()
        .fail(3, "set_core_clock", unsupported())
        .fail(3, "set_memory_clock", failed());
    let response = respond(&mut backend, request);
    assert_eq!(response.status, 400);
    assert_eq!(response.body, r#"{"errors":{"3":"no core clock"}}"#);
}

#[test]
fn a_wrong_method_changes_nothing() {
    for (path, query, _) in valid_changes() {
        for method in [
            "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "post", "POSTS",
        ] {
            let mut backend = FakeBackend::default();
            let response = respond(&mut backend, &format!("{method} /gpu/{path}?{query}"));
            assert_eq!(
                (response.status, response.allow),
                (405, Some("POST")),
                "{method} {path}"
            );
            assert_eq!(backend.writes, [], "{method} {path}");
            assert_eq!(response.body.is_empty(), method == "HEAD");
        }
    }
    let reads = ["/discover", "/time", "/gpu/get_power", "/gpu/stream_power"];
    for path in reads {
        let mut backend = FakeBackend::default();
        let response = respond(&mut backend, &format!("POST {path}"));
        assert_eq!(
            (response.status, response.allow),
            (405, Some("GET")),
            "{path}"
        );
    }
}
