//! Plays the scenario on a server.

use std::time::{Duration, Instant};

use reqwest::{Method, Response, header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::hooks::{self, Hooks};
use crate::normal::Normal;
use crate::root;
use crate::scenario::{Step, filled, filled_text};
use crate::side::Side;

/// How long a poll goes on.
const PATIENCE: Duration = Duration::from_secs(30);
/// The headers that are compared.
const HEADERS: [&str; 4] = ["content-type", "retry-after", "warning", "www-authenticate"];

/// What a server answered to a step: normalised, as it is compared and recorded.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    /// `code`, `headers`, `body`; a watch has a list of events for its body.
    pub(crate) answer: Value,
    /// The file of the scenario in which the step stands, without its ending.
    #[serde(skip)]
    pub(crate) file_stem: String,
    /// The record has the sums of long parts only.
    #[serde(skip)]
    pub(crate) summed: bool,
}

struct Answer {
    code: u16,
    headers: Map<String, Value>,
    body: Value,
}

/// Plays all steps, one after the other.
pub(crate) async fn play(side: &Side, steps: &[Step]) -> Vec<Outcome> {
    Player::new().await.play(side, steps).await
}

/// What is remembered from step to step.
pub(crate) struct Player {
    variables: Map<String, Value>,
    hooks: Hooks,
    normal: Normal,
}

impl Player {
    pub(crate) async fn new() -> Self {
        let mut variables = Map::new();
        let run = format!("r{}", &uuid::Uuid::new_v4().simple().to_string()[..7]);
        variables.insert("run".to_owned(), Value::from(run));
        let hooks = Hooks::start().await;
        hooks::variables(&hooks, &mut variables);
        let mut normal = Normal::default();
        for name in ["run", "webhook", "ca", "otherCa"] {
            normal.name(name, &variables[name]);
        }
        Self {
            variables,
            hooks,
            normal,
        }
    }

    pub(crate) async fn play(&mut self, side: &Side, steps: &[Step]) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for step in steps {
            outcomes.extend(self.step(side, step).await);
        }
        outcomes
    }

    async fn step(&mut self, side: &Side, step: &Step) -> Option<Outcome> {
        let Self {
            variables,
            hooks,
            normal,
        } = self;
        hooks.asked();
        let answer = ask(side, step, variables).await;
        for (name, pointer) in &step.save {
            let value = answer.body.pointer(pointer).cloned().unwrap_or_default();
            normal.name(name, &value);
            variables.insert(name.clone(), value);
        }
        if step.quiet {
            return None;
        }
        if step.asked && answer.body["metadata"]["generateName"].is_string() {
            normal.name("generated", &answer.body["metadata"]["name"]);
        }
        let mut answer = answer;
        // kube-apiserver goes through the managers that an apply conflicts with in no order.
        if step.unordered || answer.code == 409 {
            sort_causes(&mut answer.body);
        }
        let body = match &step.only {
            None => answer.body,
            Some(pointers) => pointers
                .iter()
                .map(|at| {
                    (
                        at.clone(),
                        answer.body.pointer(at).cloned().unwrap_or_default(),
                    )
                })
                .collect(),
        };
        let mut whole = json!({"code": answer.code, "headers": answer.headers, "body": body});
        if step.asked {
            whole["asked"] = Value::Array(hooks.asked());
        }
        Some(Outcome {
            name: step.name.clone(),
            answer: normal.of(&whole),
            file_stem: step.file_stem.clone(),
            summed: step.summed,
        })
    }
}

/// The causes of a refusal, and so the parts of its message, in an order of their own.
fn sort_causes(body: &mut Value) {
    let Some(causes) = body
        .pointer_mut("/details/causes")
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    causes.sort_by_cached_key(ToString::to_string);
    let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
    let parts: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message")))
        .collect();
    let message = body["message"].as_str().unwrap_or_default();
    if let Some((head, _)) = message.split_once(" is invalid: ") {
        body["message"] = Value::from(format!("{head} is invalid: [{}]", parts.join(", ")));
    }
}

async fn ask(side: &Side, step: &Step, variables: &Map<String, Value>) -> Answer {
    let begun = Instant::now();
    loop {
        let answer = read(send(side, step, variables).await).await;
        let Some(until) = &step.until else {
            return answer;
        };
        let found = until
            .at
            .as_deref()
            .map(|at| answer.body.pointer(at).cloned().unwrap_or_default());
        let headed = until.header.as_deref().is_none_or(|name| {
            let wanted = !name.starts_with('!');
            answer.headers.contains_key(name.trim_start_matches('!')) == wanted
        });
        let done = headed
            && until.status.is_none_or(|status| status == answer.code)
            && (found.is_none()
                || found == until.is
                || until.is.is_none() && found != Some(Value::Null));
        if done || begun.elapsed() > PATIENCE {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn send(side: &Side, step: &Step, variables: &Map<String, Value>) -> Response {
    let (method, path) = step.request.split_once(' ').unwrap();
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let url = format!("{}{}", side.url, filled_text(path, variables));
    let account = filled_text(&step.account, variables);
    let mut request = match account.as_str() {
        "admin" => side.admin.request(method, url),
        "nobody" => side.nobody.request(method, url),
        token => side.nobody.request(method, url).bearer_auth(token),
    };
    for (name, values) in &step.headers {
        for value in values.all() {
            let value = filled_text(value, variables);
            // Any UTF-8, which a text as it stands may not be.
            let value = header::HeaderValue::from_bytes(value.as_bytes()).unwrap();
            request = request.header(name, value);
        }
    }
    if let Some(accept) = &step.accept {
        request = request.header(header::ACCEPT, accepted(accept));
    }
    let body = match (&step.body, &step.raw, &step.file) {
        (Some(body), _, _) => Some(filled(body, variables).to_string()),
        (None, Some(raw), _) => Some(filled_text(raw, variables)),
        (None, None, Some(file)) => {
            let text = std::fs::read_to_string(root().join(file)).unwrap();
            let value: Value = serde_saphyr::from_str(&text).unwrap();
            Some(value.to_string())
        }
        _ => None,
    };
    if let Some(body) = body {
        let form = media(step.form.as_deref().unwrap_or("json"));
        if !form.is_empty() {
            request = request.header(header::CONTENT_TYPE, form);
        }
        request = request.body(body);
    }
    request
        .send()
        .await
        .unwrap_or_else(|error| panic!("{}: {error:?}", step.name))
}

fn media(form: &str) -> &str {
    match form {
        "json" => "application/json",
        "yaml" => "application/yaml",
        "merge" => "application/merge-patch+json",
        "json-patch" => "application/json-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        "none" => "",
        other => other,
    }
}

fn accepted(form: &str) -> &str {
    match form {
        "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
        "metadata" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "metadata-list" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "yaml" => "application/yaml",
        "aggregated" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        other => other,
    }
}

async fn read(response: Response) -> Answer {
    let code = response.status().as_u16();
    let mut headers = Map::new();
    for name in HEADERS {
        let values: Vec<Value> = response
            .headers()
            .get_all(name)
            .iter()
            .map(|value| Value::from(String::from_utf8_lossy(value.as_bytes())))
            .collect();
        if !values.is_empty() {
            headers.insert(name.to_owned(), Value::Array(values));
        }
    }
    let text = response.text().await.unwrap_or_default();
    let yaml = headers
        .get("content-type")
        .is_some_and(|value| value[0] == "application/yaml");
    let body = match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(_) if yaml => serde_saphyr::from_str(&text).unwrap_or(Value::from(text)),
        Err(_) => lines(&text).unwrap_or(Value::from(text)),
    };
    Answer {
        code,
        headers,
        body,
    }
}

/// The events of a watch: one JSON document on each line.
fn lines(text: &str) -> Option<Value> {
    let mut events = Vec::new();
    for line in text.lines() {
        events.push(serde_json::from_str::<Value>(line).ok()?);
    }
    (!events.is_empty()).then_some(Value::Array(events))
}
