//! Pages of real servers' metrics are recognised. The pages are built from the definitions in each server's source, which
//! each file names.

use crate::{MetricsError, ServerMetrics};

fn read(page: &str) -> ServerMetrics {
    ServerMetrics::read(page, None).unwrap().unwrap()
}

/// The only model of a page.
fn model(page: &str, server: &str) -> crate::ModelMetrics {
    let metrics = read(page);
    assert_eq!(metrics.server, server);
    assert_eq!(metrics.models.len(), 1, "{:?}", metrics.models.keys());
    metrics.models.into_values().next().unwrap()
}

#[test]
fn vllm_is_recognised_by_old_and_new_names() {
    for page in [
        include_str!("../pages/vllm_v1.txt"),
        include_str!("../pages/vllm_v0.txt"),
    ] {
        let vllm = model(page, "vLLM");
        assert_eq!(vllm.prompt_tokens, Some(1_048_576.0));
        assert_eq!(vllm.generated_tokens, Some(262_144.0));
        assert_eq!(vllm.requests, Some(1024.0));
        assert_eq!((vllm.running, vllm.waiting), (Some(24.0), Some(3.0)));
        assert_eq!(vllm.cache_usage, Some(0.3125));
        let itl = vllm.inter_token.unwrap();
        assert!((itl.mean().unwrap() - 0.009).abs() < 1e-6);
        assert!(itl.quantile(0.95).unwrap().high <= 0.025);
        let ttft = vllm.first_token.unwrap().quantile(0.99).unwrap();
        assert!(ttft.low >= 0.1 && ttft.high <= 0.5, "{ttft:?}");
        assert_eq!(vllm.end_to_end.unwrap().count(), 1024.0);
    }
    let first = read(include_str!("../pages/vllm_v1.txt"));
    assert_eq!(first.started, Some(1.75e9));
    let oldest = model(include_str!("../pages/vllm_underscore.txt"), "vLLM");
    assert_eq!(
        (oldest.prompt_tokens, oldest.generated_tokens),
        (Some(5120.0), Some(2048.0))
    );
    assert_eq!(oldest.first_token, None);
}

#[test]
fn sglang_is_recognised_and_ranks_are_not_added_up() {
    let new = model(include_str!("../pages/sglang.txt"), "SGLang");
    // Tokens from the prefix cache are no work.
    assert_eq!(
        (new.prompt_tokens, new.generated_tokens),
        (Some(200_000.0), Some(150_000.0))
    );
    assert_eq!(
        (new.running, new.waiting, new.requests),
        (Some(48.0), Some(7.0), Some(512.0))
    );
    let p95 = new.inter_token.unwrap().quantile(0.95).unwrap();
    assert!(p95.low >= 0.02 && p95.high <= 0.03, "{p95:?}");
    let old = model(include_str!("../pages/sglang_underscore.txt"), "SGLang");
    assert_eq!(
        (old.prompt_tokens, old.generated_tokens),
        (Some(1e6), Some(149_000.0))
    );
    assert_eq!((old.running, old.requests), (Some(48.0), Some(512.0)));
    assert!(old.inter_token.unwrap().has_buckets());
}

#[test]
fn tgi_llama_cpp_and_triton_are_recognised() {
    let tgi = model(include_str!("../pages/tgi.txt"), "TGI");
    assert_eq!(
        (tgi.prompt_tokens, tgi.generated_tokens),
        (Some(65_000.0), Some(32_000.0))
    );
    assert_eq!(
        (tgi.running, tgi.waiting, tgi.requests),
        (Some(12.0), Some(1.0), Some(128.0))
    );
    assert!((tgi.inter_token.unwrap().mean().unwrap() - 0.02).abs() < 1e-9);
    assert_eq!(tgi.first_token, None);
    let llama = model(include_str!("../pages/llama_cpp.txt"), "llama.cpp");
    assert_eq!(
        (llama.prompt_tokens, llama.generated_tokens),
        (Some(4096.0), Some(1024.0))
    );
    assert_eq!((llama.running, llama.waiting), (Some(3.0), Some(1.0)));
    let old = model(include_str!("../pages/llama_cpp_old.txt"), "llama.cpp");
    assert_eq!(
        (old.generated_tokens, old.waiting, old.cache_usage),
        (Some(1024.0), None, Some(0.25))
    );
    let triton = model(include_str!("../pages/triton.txt"), "Triton");
    assert_eq!((triton.requests, triton.waiting), (Some(4000.0), Some(2.0)));
    assert!((triton.end_to_end.unwrap().mean().unwrap() - 0.005).abs() < 1e-9);
    assert!((triton.first_token.unwrap().mean().unwrap() - 0.042).abs() < 1e-9);
}

#[test]
fn pages_of_others_are_refused_in_one_sentence() {
    let html = ServerMetrics::read("<!DOCTYPE html>\n<html>\n</html>", None);
    assert!(matches!(html, Err(MetricsError::NotMetrics { line }) if line == "<!DOCTYPE html>"));
    let other = ServerMetrics::read("node_load1 0.5\n", None);
    assert!(
        matches!(other, Err(MetricsError::UnknownServer { example }) if example == "node_load1")
    );
    assert_eq!(ServerMetrics::read("# only comments\n", None), Ok(None));
    let mapping = crate::Mapping::parse("server='mine'\ngenerated_tokens='node_load1'\n").unwrap();
    let mapped = ServerMetrics::read("node_load1 0.5\n", Some(&mapping))
        .unwrap()
        .unwrap();
    assert_eq!(mapped.models[""].generated_tokens, Some(0.5));
    let unmapped = ServerMetrics::read("a 1\n", Some(&mapping));
    assert_eq!(
        unmapped,
        Err(MetricsError::Unmapped {
            server: "mine".into()
        })
    );
}

#[test]
fn a_page_cut_at_any_place_causes_no_panic() {
    let page = include_str!("../pages/vllm_v1.txt");
    for end in (0..page.len()).step_by(37) {
        let _ = ServerMetrics::read(&page[..end], None);
    }
}
