//! Requests for completions and their answers, in the form of OpenAI's API as vLLM serves it.

use serde_json::{Value, json};

/// The name of the model.
pub const MODEL: &str = "simulated";
/// The most tokens of a prompt and its answer together.
pub const MAX_CONTEXT: u64 = 32_768;
/// The tokens of an answer if the request does not say how many.
const DEFAULT_TOKENS: u64 = 16;
/// A token is about as many characters of English text.
const CHARACTERS_PER_TOKEN: usize = 4;
/// The text of every token.
const TOKEN: &str = " token";

/// A request for a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The number of tokens of the prompt.
    pub prompt: u64,
    /// The number of tokens of the answer.
    pub output: u64,
    /// Whether each token is sent at once.
    pub is_streamed: bool,
    /// Whether the stream ends with the numbers of tokens.
    has_usage: bool,
}

/// A request that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the response.
    pub status: u16,
    /// What is wrong, and what to send.
    pub message: String,
}

impl Refusal {
    /// Creates the refusal.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// The body of the response.
    pub fn body(&self) -> String {
        let kind = match self.status {
            404 => "NotFoundError",
            503 => "ServiceUnavailable",
            _ => "BadRequestError",
        };
        let error =
            json!({"message": self.message, "type": kind, "param": null, "code": self.status});
        json!({"error": error}).to_string()
    }
}

impl CompletionRequest {
    /// Reads the body of a request.
    pub fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let wrong = |message: String| Refusal::new(400, message);
        let value: Value = serde_json::from_slice(body).map_err(|error| {
            wrong(format!(
                "the body is not JSON ({error}): send an object such as {{\"prompt\": \"Hello\", \"max_tokens\": 16, \"stream\": true}}"
            ))
        })?;
        let Some(fields) = value.as_object() else {
            return Err(wrong(
                "the body is not a JSON object: send one with `prompt`".to_owned(),
            ));
        };
        let field = |name: &str| fields.get(name).filter(|value| !value.is_null());
        match field("model") {
            Some(model) if model != MODEL => {
                let message = format!("no model {model}: this server has \"{MODEL}\" alone");
                return Err(Refusal::new(404, message));
            }
            _ => {}
        }
        let prompt = field("prompt").and_then(prompt_tokens).ok_or_else(|| {
            wrong(
                "`prompt` is missing or not a text: send one text, or one list of token numbers"
                    .to_owned(),
            )
        })?;
        let output = match field("max_tokens") {
            None => DEFAULT_TOKENS,
            Some(tokens) => tokens
                .as_u64()
                .filter(|tokens| *tokens > 0)
                .ok_or_else(|| {
                    wrong(format!(
                        "`max_tokens` is {tokens}: send a whole number above 0"
                    ))
                })?,
        };
        if output.saturating_add(prompt) > MAX_CONTEXT {
            return Err(wrong(format!(
                "the prompt has {prompt} tokens and `max_tokens` is {output}: together at most {MAX_CONTEXT} are possible"
            )));
        }
        let boolean = |value: Option<&Value>, name: &str| match value {
            None => Ok(false),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| wrong(format!("`{name}` is {value}: send true or false"))),
        };
        let usage = field("stream_options").and_then(|options| options.get("include_usage"));
        Ok(Self {
            prompt,
            output,
            is_streamed: boolean(field("stream"), "stream")?,
            has_usage: boolean(usage, "include_usage")?,
        })
    }

    /// A part of a stream with one token.
    pub fn token(&self, id: u64, created: u64, is_last: bool) -> String {
        event(&completion(id, created, &json!([choice(TOKEN, is_last)])))
    }

    /// The parts that end a stream.
    pub fn stream_end(&self, id: u64, created: u64) -> String {
        let mut parts = String::new();
        if self.has_usage {
            let mut last = completion(id, created, &json!([]));
            last["usage"] = self.usage();
            parts = event(&last);
        }
        parts + "data: [DONE]\n\n"
    }

    /// The whole answer of a request that is not streamed.
    pub fn answer(&self, id: u64, created: u64) -> String {
        let text = TOKEN.repeat(usize::try_from(self.output).unwrap_or(0));
        let mut answer = completion(id, created, &json!([choice(&text, true)]));
        answer["usage"] = self.usage();
        answer.to_string()
    }

    fn usage(&self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.output,
            "total_tokens": self.prompt + self.output,
        })
    }
}

/// The number of tokens of a prompt: a text, a list with one text, or a list of token numbers.
fn prompt_tokens(prompt: &Value) -> Option<u64> {
    let of_text = |text: &str| text.chars().count().div_ceil(CHARACTERS_PER_TOKEN).max(1) as u64;
    match prompt {
        Value::String(text) => Some(of_text(text)),
        Value::Array(parts) => match parts.as_slice() {
            [Value::String(text)] => Some(of_text(text)),
            tokens if !tokens.is_empty() && tokens.iter().all(Value::is_u64) => {
                Some(tokens.len() as u64)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The list of models.
pub fn models(created: u64) -> String {
    let model = json!({
        "id": MODEL,
        "object": "model",
        "created": created,
        "owned_by": "sweetspot",
        "max_model_len": MAX_CONTEXT,
    });
    json!({"object": "list", "data": [model]}).to_string()
}

fn completion(id: u64, created: u64, choices: &Value) -> Value {
    json!({
        "id": format!("cmpl-{id}"),
        "object": "text_completion",
        "created": created,
        "model": MODEL,
        "choices": choices,
    })
}

fn choice(text: &str, is_last: bool) -> Value {
    let finish = is_last.then_some("length");
    json!({"index": 0, "text": text, "logprobs": null, "finish_reason": finish})
}

/// A server-sent event.
fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_or_refused_with_a_reason() {
        let parse = |body: &str| CompletionRequest::parse(body.as_bytes());
        let request = parse(r#"{"prompt": "12345678x", "max_tokens": 3, "stream": true}"#).unwrap();
        assert_eq!((request.prompt, request.output), (3, 3));
        assert!(request.is_streamed);
        let short =
            parse(r#"{"model": "simulated", "prompt": [5, 6], "max_tokens": null}"#).unwrap();
        assert_eq!(
            (short.prompt, short.output, short.is_streamed),
            (2, 16, false)
        );
        for (body, status, why) in [
            ("{\"prompt\": \"a\"", 400, "the body is not JSON"),
            ("[1]", 400, "not a JSON object"),
            ("{}", 400, "`prompt` is missing"),
            (
                r#"{"prompt": ["a", "b"]}"#,
                400,
                "`prompt` is missing or not a text",
            ),
            (
                r#"{"prompt": "a", "max_tokens": 0}"#,
                400,
                "`max_tokens` is 0",
            ),
            (
                r#"{"prompt": "a", "max_tokens": 40000}"#,
                400,
                "at most 32768",
            ),
            (r#"{"prompt": "a", "stream": 1}"#, 400, "`stream` is 1"),
            (
                r#"{"prompt": "a", "model": "gpt"}"#,
                404,
                "no model \"gpt\"",
            ),
        ] {
            let refusal = parse(body).unwrap_err();
            assert_eq!(refusal.status, status, "{body}");
            assert!(refusal.message.contains(why), "{}", refusal.message);
            assert!(
                refusal.body().starts_with("{\"error\":{"),
                "{}",
                refusal.body()
            );
        }
    }

    #[test]
    fn a_stream_ends_with_usage_if_asked() {
        let body = br#"{"prompt": "a", "max_tokens": 2, "stream": true, "stream_options": {"include_usage": true}}"#;
        let request = CompletionRequest::parse(body).unwrap();
        assert!(
            request
                .token(7, 1, true)
                .contains("\"finish_reason\":\"length\"")
        );
        assert!(
            request
                .token(7, 1, false)
                .contains("\"finish_reason\":null")
        );
        let end = request.stream_end(7, 1);
        assert!(
            end.contains("\"total_tokens\":3") && end.ends_with("data: [DONE]\n\n"),
            "{end}"
        );
        assert!(request.answer(7, 1).contains("\" token token\""));
    }
}
