//! Runs the scenario on one cloud.

use std::collections::BTreeMap;
use std::time::Instant;

use reqwest::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::scenario::Step;
use crate::shape::{Shape, look};
use crate::side::Side;

/// The part of the response to a step that is compared.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) status: u16,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    /// The states in a poll, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) states: Vec<String>,
    pub(crate) body: Shape,
    /// The deviation from the step's expectation. Not recorded.
    #[serde(skip)]
    pub(crate) problem: Option<String>,
}

/// Headers whose presence is compared, and whether their value is compared, too.
const HEADERS: [(&str, bool); 10] = [
    ("content-type", true),
    ("openstack-api-version", true),
    ("x-openstack-nova-api-version", true),
    ("vary", true),
    ("x-openstack-request-id", false),
    ("x-compute-request-id", false),
    ("x-subject-token", false),
    ("openstack-auth-receipt", false),
    ("location", false),
    ("www-authenticate", false),
];

/// Runs all steps, then deletes the remaining resources.
pub(crate) async fn play(side: &Side, steps: &[Step]) -> Vec<Outcome> {
    let mut player = Player {
        side,
        variables: side.variables.clone(),
        left: Vec::new(),
        verbose: std::env::var_os("FERROSTACK_VERBOSE").is_some(),
    };
    let mut outcomes = Vec::new();
    for step in steps {
        outcomes.push(player.step(step).await);
    }
    player.clean().await;
    outcomes
}

struct Player<'a> {
    side: &'a Side,
    variables: BTreeMap<String, Value>,
    /// The resources that were created and not yet deleted: account, service, path.
    left: Vec<(String, String, String)>,
    /// Whether to print each response, with its time.
    verbose: bool,
}

struct Answer {
    outcome: Outcome,
    json: Option<Value>,
    text: String,
    token: Option<String>,
}

impl Player<'_> {
    async fn step(&mut self, step: &Step) -> Outcome {
        let mut states: Vec<String> = Vec::new();
        let started = Instant::now();
        let mut answer = loop {
            let answer = match self.ask(step).await {
                Ok(answer) => answer,
                Err(problem) => {
                    let name = step.name.clone();
                    return Outcome {
                        name,
                        problem: Some(problem),
                        ..Outcome::default()
                    };
                }
            };
            let again = match &step.until {
                Some(until) => {
                    let state = answer
                        .json
                        .as_ref()
                        .and_then(|json| json.pointer(&until.at))
                        .cloned();
                    let reached = state.as_ref().map_or_else(
                        || "-".to_owned(),
                        |state| state.as_str().map_or_else(|| state.to_string(), seen),
                    );
                    if states.last() != Some(&reached) {
                        states.push(reached.clone());
                    }
                    let failed = reached.eq_ignore_ascii_case("error")
                        || until.is.is_some() && reached == "-";
                    !failed
                        && match &until.is {
                            Some(wanted) => state.as_ref() != Some(wanted),
                            None => answer.outcome.status != step.status,
                        }
                }
                None => step.busy == Some(answer.outcome.status),
            };
            if !again || started.elapsed() > self.side.patience {
                break answer;
            }
            self.side.pause().await;
        };
        answer.outcome.states = states;
        if self.verbose {
            let (seconds, status) = (started.elapsed().as_secs_f64(), answer.outcome.status);
            eprintln!(
                "{seconds:5.2} s {status} {}: {} {}",
                step.name, step.request, answer.text
            );
        }
        self.learn(step, &mut answer);
        answer.outcome
    }

    async fn ask(&self, step: &Step) -> Result<Answer, String> {
        let (method, service, path) = step.parts();
        let path = self.fill(path)?;
        let mut headers = Vec::new();
        for (name, value) in &step.headers {
            headers.push((name.clone(), self.fill(value)?));
        }
        if let Some(token) = self.token(&step.account)? {
            headers.push(("x-auth-token".to_owned(), token));
        }
        let body = match (&step.body, &step.raw) {
            (Some(body), _) => Some(serde_json::to_vec(&self.fill_value(body)?).unwrap()),
            (None, Some(raw)) => Some(raw.clone().into_bytes()),
            (None, None) => None,
        };
        if body.is_some() && !step.headers.contains_key("content-type") {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        let reply = self
            .side
            .send((method, service, &path), &headers, body)
            .await;
        let reply = reply.map_err(|error| format!("{error:?}"))?;
        self.read(step, reply).await
    }

    async fn read(&self, step: &Step, reply: Response) -> Result<Answer, String> {
        let status = reply.status().as_u16();
        let mut headers = BTreeMap::new();
        for (name, by_value) in HEADERS {
            let mut values: Vec<String> = reply
                .headers()
                .get_all(name)
                .iter()
                .filter_map(|value| value.to_str().ok()?.split(';').next())
                .flat_map(|value| value.split(','))
                .map(|value| value.trim().to_ascii_lowercase())
                .collect();
            values.sort();
            values.dedup();
            if !values.is_empty() {
                let value = if by_value {
                    values.join(", ")
                } else {
                    "there".to_owned()
                };
                headers.insert(name.to_owned(), value);
            }
        }
        let token = reply.headers().get("x-subject-token");
        let token = token
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let text = reply.text().await.map_err(|error| format!("{error:?}"))?;
        let json: Option<Value> = serde_json::from_str(&text).ok();
        let run = self.variables["run"].as_str().unwrap_or_default();
        let body = match &json {
            Some(json) => Shape::of(json, run),
            None if text.is_empty() => Shape::Nothing,
            None => Shape::Leaf("text".to_owned()),
        };
        let name = step.name.clone();
        let outcome = Outcome {
            name,
            status,
            headers,
            body,
            ..Outcome::default()
        };
        Ok(Answer {
            outcome,
            json,
            text,
            token,
        })
    }

    /// Checks the response, saves variables from it, and records resources for deletion.
    fn learn(&mut self, step: &Step, answer: &mut Answer) {
        let mut problem = None;
        if answer.outcome.status != step.status {
            let text: String = answer.text.chars().take(300).collect();
            problem = Some(format!(
                "status {} instead of {}: {text}",
                answer.outcome.status, step.status
            ));
        } else if let Some(until) = &step.until
            && let Some(wanted) = &until.is
            && answer
                .json
                .as_ref()
                .and_then(|json| json.pointer(&until.at))
                != Some(wanted)
        {
            problem = Some(format!(
                "{} went {} and never {wanted}",
                until.at,
                answer.outcome.states.join(", ")
            ));
        }
        for (name, pointer) in &step.save {
            match answer.json.as_ref().and_then(|json| json.pointer(pointer)) {
                Some(value) => {
                    self.variables.insert(name.clone(), value.clone());
                }
                None => problem = problem.or_else(|| Some(format!("no {pointer} in the answer"))),
            }
        }
        if let (Some(account), Some(token)) = (&step.login, &answer.token) {
            self.variables
                .insert(format!("{account}_token"), Value::String(token.clone()));
        }
        answer.outcome.problem = problem;
        self.note(step, answer);
    }

    fn note(&mut self, step: &Step, answer: &Answer) {
        let (method, service, path) = step.parts();
        let Ok(path) = self.fill(path) else { return };
        let entry = |path: String| (step.account.clone(), service.to_owned(), path);
        let good = answer.outcome.status < 300;
        if method == "POST" && good {
            let ids = answer.json.iter().flat_map(created);
            self.left
                .extend(ids.map(|id| entry(format!("{path}/{id}"))));
        } else if method == "DELETE" && good {
            let path = path.split('?').next().unwrap_or_default();
            self.left.retain(|(_, _, left)| left != path);
        }
    }

    /// Deletes the remaining resources, last first, retrying while a deletion is rejected.
    async fn clean(&self) {
        for (account, service, path) in self.left.iter().rev() {
            let Ok(Some(token)) = self.token(account) else {
                continue;
            };
            let cascade = if path.contains("/loadbalancers/") {
                "?cascade=true"
            } else {
                ""
            };
            let started = Instant::now();
            loop {
                let headers = [("x-auth-token".to_owned(), token.clone())];
                let asked = ("DELETE", service.as_str(), format!("{path}{cascade}"));
                let reply = self
                    .side
                    .send((asked.0, asked.1, &asked.2), &headers, None)
                    .await;
                let status = reply.map_or(0, |reply| reply.status().as_u16());
                if !matches!(status, 400 | 409) {
                    break;
                }
                if started.elapsed().as_secs() > 20 || self.side.is_simulated() {
                    eprintln!("left behind: {service} {path} ({status})");
                    break;
                }
                self.side.pause().await;
            }
        }
    }

    fn token(&self, account: &str) -> Result<Option<String>, String> {
        match account {
            "nobody" => Ok(None),
            "stranger" => Ok(Some("gAAAAABno-such-token".to_owned())),
            name => self.fill(&format!("${name}_token")).map(Some),
        }
    }

    fn fill_value(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => match text
                .strip_prefix('$')
                .and_then(|name| self.variables.get(name))
            {
                Some(value) => value.clone(),
                None => Value::String(self.fill(text)?),
            },
            Value::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|item| self.fill_value(item))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Object(fields) => {
                let filled = fields
                    .iter()
                    .map(|(name, field)| Ok((self.fill(name)?, self.fill_value(field)?)));
                Value::Object(filled.collect::<Result<_, String>>()?)
            }
            other => other.clone(),
        })
    }

    /// The text with every `$name` replaced.
    fn fill(&self, text: &str) -> Result<String, String> {
        let mut parts = text.split('$');
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            match self.variables.get(name) {
                Some(Value::String(value)) => out.push_str(value),
                Some(value) => out.push_str(&value.to_string()),
                None => return Err(format!("not played: no ${name}, as an earlier step failed")),
            }
            out.push_str(rest);
        }
        Ok(out)
    }
}

/// The ids in `{"thing": {"id": ...}}`, `{"things": [{"id": ...}]}` and `{"id": ...}`; keypairs and Octavia's zones are
/// identified by name.
fn created(json: &Value) -> Vec<String> {
    let id = |one: &Value| one["id"].as_str().map(str::to_owned);
    if let Some(id) = id(json) {
        return vec![id];
    }
    let Some(fields) = json.as_object() else {
        return Vec::new();
    };
    let named = ["/keypair/name", "/availability_zone/name"];
    let mut names = named.iter().filter_map(|at| json.pointer(at)?.as_str());
    if let Some(name) = names.next() {
        return vec![name.to_owned()];
    }
    match fields.values().next() {
        Some(Value::Array(items)) => items.iter().filter_map(id).collect(),
        Some(one) => id(one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// A state as it is recorded: of an id, such as a port's device, only the type.
fn seen(state: &str) -> String {
    match look(state) {
        "uuid" => "uuid".to_owned(),
        _ => state.to_owned(),
    }
}
