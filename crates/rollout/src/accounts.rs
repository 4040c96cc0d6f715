//! What the services of a cloud have in RabbitMQ: read, planned (deployer: pure), written, and read again.
//!
//! What was found is kept in memory, so that a cloud at rest asks nothing. It is asked again when something else is
//! desired, when the program has started again, and after [`INTERVAL`], since somebody may have changed it there.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use deployer::{Broker, BrokerSeen, Cloud, Graph, Held, Progress, Written};
use http::Method;
use kube::Client;
use kube::runtime::controller::Action;
use parking_lot::Mutex;
use serde_json::Value;

use crate::problem::Problem;
use crate::reach::{Port, Sent};

/// How long accounts that are as desired are not looked at.
const INTERVAL: Duration = Duration::from_secs(300);
/// How long a conflict is not looked at: somebody has to remove it.
const CONFLICT: Duration = Duration::from_secs(15);
/// The pause after the first failure; it doubles with each one of the same words, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);

/// What was found at the last look, by namespace and step.
#[derive(Default)]
pub(crate) struct Accounts {
    known: Mutex<HashMap<(String, String), Known>>,
}

struct Known {
    /// What was desired, and the container that was asked.
    of: (Broker, Option<String>),
    written: Written,
    again: Instant,
    failures: u32,
}

/// What a look needs.
pub(crate) struct Look<'a> {
    pub(crate) client: &'a Client,
    pub(crate) cloud: &'a Cloud,
    pub(crate) graph: &'a Graph,
    pub(crate) held: &'a Held,
    pub(crate) pods: &'a [Value],
}

impl Accounts {
    /// What is known of each step, as far as it does not have to be asked again.
    pub(crate) fn known(&self, look: &Look<'_>) -> BTreeMap<String, Written> {
        let known = self.known.lock();
        let steps = look.wanted().filter_map(|(step, broker)| {
            let known = known.get(&look.key(step))?;
            let is_current = known.of.0 == *broker && known.of.1 == look.container(broker);
            (is_current && Instant::now() < known.again)
                .then(|| (step.to_owned(), known.written.clone()))
        });
        steps.collect()
    }

    /// Looks at the stores that can be asked and of which nothing is known, and writes what is missing there. Returns
    /// whether there were any.
    pub(crate) async fn look(
        &self,
        look: &Look<'_>,
        progress: &Progress,
        known: &mut BTreeMap<String, Written>,
    ) -> bool {
        let mut looked = false;
        // What cannot be asked now is asked when it can be.
        self.known.lock().retain(|(namespace, step), _| {
            *namespace != look.cloud.namespace || progress.answering.contains(step)
        });
        for (step, broker) in look.wanted() {
            if known.contains_key(step) || !progress.answering.iter().any(|it| it == step) {
                continue;
            }
            let written = match look.written(broker).await {
                Ok(written) => written,
                Err(why) => Written::Not(look.held.masked(&why)),
            };
            self.remember(look, step, broker, written.clone());
            known.insert(step.to_owned(), written);
            looked = true;
        }
        looked
    }

    fn remember(&self, look: &Look<'_>, step: &str, broker: &Broker, written: Written) {
        let mut known = self.known.lock();
        let before = known.get(&look.key(step));
        let failures = match (&written, before) {
            (Written::Not(_), Some(before)) if before.written == written => before.failures + 1,
            _ => 0,
        };
        let pause = match &written {
            Written::All => INTERVAL,
            Written::Conflict(_) => CONFLICT,
            Written::Not(_) => FIRST.saturating_mul(1 << failures.min(16)).min(LONGEST),
        };
        let entry = Known {
            of: (broker.clone(), look.container(broker)),
            written,
            again: Instant::now() + pause,
            failures,
        };
        known.insert(look.key(step), entry);
    }

    /// That what could not be written is tried again, or when the stores of a cloud are asked again.
    pub(crate) fn next(&self, cloud: &Cloud) -> Result<Action, Problem> {
        let known = self.known.lock();
        let ours = known.iter().filter(|((it, _), _)| *it == cloud.namespace);
        let Some(first) = ours.map(|(_, known)| known).min_by_key(|known| known.again) else {
            return Ok(Action::await_change());
        };
        let pause = first.again.saturating_duration_since(Instant::now());
        match &first.written {
            Written::Not(why) => Err(Problem::Accounts {
                why: why.clone(),
                pause,
            }),
            Written::All | Written::Conflict(_) => Ok(Action::requeue(pause)),
        }
    }

    /// Forgets a cloud that is gone.
    pub(crate) fn forget(&self, namespace: &str) {
        self.known.lock().retain(|(it, _), _| it != namespace);
    }
}

impl Look<'_> {
    /// The steps that have something in a store.
    fn wanted(&self) -> impl Iterator<Item = (&str, &Broker)> {
        let steps = self.graph.steps.iter();
        steps.filter_map(|step| Some((step.name.as_str(), step.broker.as_ref()?)))
    }

    fn key(&self, step: &str) -> (String, String) {
        (self.cloud.namespace.clone(), step.to_owned())
    }

    /// The Pod that answers.
    fn pod(&self, program: &str) -> Option<&Value> {
        let mut pods = self.pods.iter();
        pods.find(|pod| {
            let labels = &pod["metadata"]["labels"];
            let conditions = pod["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            labels["app.kubernetes.io/name"] == program
                && labels[deployer::UID] == self.graph.uid.as_str()
                && pod["metadata"]["deletionTimestamp"].is_null()
                && conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
        })
    }

    /// The container that answers: another one may have lost what was written.
    fn container(&self, _: &Broker) -> Option<String> {
        let pod = self.pod(Broker::PROGRAM)?;
        let status = &pod["status"]["containerStatuses"][0];
        let parts = [&pod["metadata"]["uid"], &status["containerID"]];
        Some(parts.map(|it| it.as_str().unwrap_or_default()).join("/"))
    }

    /// Reads, writes what is missing, and reads again.
    async fn written(&self, broker: &Broker) -> Result<Written, String> {
        let pod = self.pod(Broker::PROGRAM);
        let name = pod.and_then(|pod| pod["metadata"]["name"].as_str());
        let pod = name.ok_or("no Pod of RabbitMQ is ready")?;
        let port = Port::of(self.client, &self.cloud.namespace, pod, Broker::PORT);
        let mut store = Store { port, broker };
        let plan = broker.plan(&store.read().await?);
        if !plan.conflicts.is_empty() {
            return Ok(Written::Conflict(plan.conflicts.join("; ")));
        }
        if plan.writes.is_empty() {
            return Ok(Written::All);
        }
        for write in &plan.writes {
            tracing::debug!("{}: {}", self.cloud.name, write.doing);
            let method = Method::from_bytes(write.method.as_bytes());
            let method = method.map_err(|error| error.to_string())?;
            let body = write.body.as_ref().map(deployer::Password::expose);
            store.ask(&method, &write.path, body, &write.doing).await?;
        }
        let left = broker.plan(&store.read().await?);
        match left
            .conflicts
            .iter()
            .chain(left.writes.iter().map(|it| &it.doing))
            .next()
        {
            None => Ok(Written::All),
            Some(first) => Err(format!(
                "RabbitMQ accepted every write, and is not as written: {first}"
            )),
        }
    }
}

/// The management API of a broker.
struct Store<'a> {
    port: Port<'a>,
    broker: &'a Broker,
}

impl Store<'_> {
    async fn read(&mut self) -> Result<BrokerSeen, String> {
        let mut lists = [Value::Null, Value::Null, Value::Null];
        for (list, path) in lists.iter_mut().zip(Broker::LISTS) {
            let body = self
                .ask(&Method::GET, path, None, &format!("reading {path}"))
                .await?;
            let read = serde_json::from_slice(&body);
            *list = read.map_err(|_| format!("RabbitMQ: {path} has not answered with JSON"))?;
        }
        BrokerSeen::read(lists)
    }

    /// The answer to a request that succeeds, or was done before.
    async fn ask(
        &mut self,
        method: &Method,
        path: &str,
        body: Option<&str>,
        doing: &str,
    ) -> Result<Vec<u8>, String> {
        let login = self.broker.authorization();
        let sent = Sent {
            method,
            path,
            login: ("authorization", login.expose()),
            body,
        };
        let answer = self.port.send(&sent).await;
        let answer = answer.map_err(|why| format!("RabbitMQ: {doing}: {why}"))?;
        let gone = *method == Method::DELETE && answer.status == 404;
        if answer.status.is_success() || gone {
            return Ok(answer.body.to_vec());
        }
        let advice = match answer.status.as_u16() {
            401 => format!(". {}", Broker::advice()),
            _ => String::new(),
        };
        let (status, words) = (answer.status.as_u16(), words(&answer.body));
        Err(format!(
            "RabbitMQ: {doing}: answered with {status}{words}{advice}"
        ))
    }
}

/// The words of an answer that is an error.
fn words(body: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let parts = [&answer["error"], &answer["reason"]];
    let parts = parts.into_iter().filter_map(Value::as_str);
    parts.map(|part| format!(": {part}")).collect()
}
