//! Accounts of the services in RabbitMQ and Keystone: read, planned (deployer: pure), written, and read again.
//!
//! Answers are kept in memory, so that a cloud at rest asks nothing. The stores are asked again when something else is
//! desired, when another container answers, and after [`INTERVAL`], since somebody may have changed it there.

mod broker;
mod identity;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use deployer::{AccountPlan, AccountWrite, Accounts, Cloud, Graph, Held, Progress, Written};
use http::Method;
use kube::Client;
use kube::runtime::controller::Action;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use self::broker::Management;
use self::identity::Keystone;
use crate::problem::Problem;
use crate::reach::Port;

/// How long accounts that are as desired are not looked at.
pub(crate) const INTERVAL: Duration = Duration::from_secs(300);
/// How long a conflict is not looked at: somebody has to remove it.
const CONFLICT: Duration = Duration::from_secs(15);
/// The pause after the first failure; it doubles with each one of the same words, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);

/// How often is written in one look: projects and services, what needs their ids, and what those reveal.
const ROUNDS: usize = 4;

/// Answers of the last look, by namespace and step.
#[derive(Default)]
pub(crate) struct Known {
    known: Mutex<HashMap<(String, String), Entry>>,
}

struct Entry {
    /// Desired accounts, and the container that was asked.
    of: (Accounts, Option<String>),
    written: Written,
    again: Instant,
    failures: u32,
}

/// Inputs of a look.
pub(crate) struct Look<'a> {
    pub(crate) client: &'a Client,
    pub(crate) cloud: &'a Cloud,
    pub(crate) graph: &'a Graph,
    pub(crate) held: &'a Held,
    pub(crate) pods: &'a [Value],
}

impl Known {
    /// Known accounts of each step, unless the store has to be asked again.
    pub(crate) fn known(&self, look: &Look<'_>) -> BTreeMap<String, Written> {
        let known = self.known.lock();
        let steps = look.wanted().filter_map(|(step, accounts)| {
            let known = known.get(&look.key(step))?;
            let is_current = known.of.0 == *accounts && known.of.1 == look.container(accounts);
            (is_current && Instant::now() < known.again)
                .then(|| (step.to_owned(), known.written.clone()))
        });
        steps.collect()
    }

    /// Reads the stores that can be asked and of which nothing is known, and writes what is missing there. Returns
    /// whether there were any.
    pub(crate) async fn read_and_write(
        &self,
        look: &Look<'_>,
        progress: &Progress,
        known: &mut BTreeMap<String, Written>,
    ) -> bool {
        let mut looked = false;
        // A store that does not answer now is asked again later.
        self.known.lock().retain(|(namespace, step), _| {
            *namespace != look.cloud.namespace || progress.answering.contains(step)
        });
        for (step, accounts) in look.wanted() {
            if known.contains_key(step) || !progress.answering.iter().any(|it| it == step) {
                continue;
            }
            let written = match look.written(accounts).await {
                Ok(written) => written,
                Err(why) => Written::Not(look.held.masked(&why)),
            };
            self.remember(look, step, accounts, written.clone());
            known.insert(step.to_owned(), written);
            looked = true;
        }
        looked
    }

    fn remember(&self, look: &Look<'_>, step: &str, accounts: &Accounts, written: Written) {
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
        let entry = Entry {
            of: (accounts.clone(), look.container(accounts)),
            written,
            again: Instant::now() + pause,
            failures,
        };
        known.insert(look.key(step), entry);
    }

    /// Time of the next try of a failed write, or of the next look at the stores of a cloud.
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
    fn wanted(&self) -> impl Iterator<Item = (&str, &Accounts)> {
        let steps = self.graph.steps.iter();
        steps.filter_map(|step| Some((step.name.as_str(), step.accounts.as_ref()?)))
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
    fn container(&self, accounts: &Accounts) -> Option<String> {
        let pod = self.pod(accounts.program())?;
        let status = &pod["status"]["containerStatuses"][0];
        let parts = [&pod["metadata"]["uid"], &status["containerID"]];
        Some(parts.map(|it| it.as_str().unwrap_or_default()).join("/"))
    }

    /// The store of accounts, in a Pod that is ready.
    fn store<'b>(&'b self, accounts: &'b Accounts) -> Result<Store<'b>, String> {
        let program = accounts.program();
        let pod = self.pod(program);
        let name = pod.and_then(|pod| pod["metadata"]["name"].as_str());
        let pod = name.ok_or_else(|| format!("no Pod of {program} is ready"))?;
        let port = Port::of(self.client, &self.cloud.namespace, pod, accounts.port());
        Ok(match accounts {
            Accounts::Broker(broker) => Store::Broker(Management { port, broker }),
            Accounts::Identity(identity) => Store::Identity(Keystone::of(port, identity)),
        })
    }

    /// Reads and writes until everything is there. What is created gets ids, by which other things are created.
    async fn written(&self, accounts: &Accounts) -> Result<Written, String> {
        let program = accounts.program();
        let mut store = self.store(accounts)?;
        let mut plan = store.plan().await?;
        for _ in 0..ROUNDS {
            if !plan.conflicts.is_empty() {
                return Ok(Written::Conflict(plan.conflicts.join("; ")));
            }
            if plan.writes.is_empty() {
                return Ok(Written::All);
            }
            for write in &plan.writes {
                tracing::debug!("{}: {}", self.cloud.name, write.doing);
            }
            store.write(&plan.writes).await?;
            plan = store.plan().await?;
        }
        match plan.writes.first() {
            None => Ok(Written::All),
            Some(write) => Err(format!(
                "{program} accepts every write, and does not have what was written: {} would be next",
                write.doing
            )),
        }
    }
}

/// Planned writes to the stores of accounts of a cloud, by the names of their steps; of one that cannot be asked,
/// why. Nothing is written.
pub async fn compared(
    client: &Client,
    cloud: &Cloud,
    graph: &Graph,
    held: &Held,
    pods: &[Value],
) -> BTreeMap<String, Result<AccountPlan, String>> {
    let look = Look {
        client,
        cloud,
        graph,
        held,
        pods,
    };
    let mut found = BTreeMap::new();
    for (step, accounts) in look.wanted() {
        let plan = match look.store(accounts) {
            Ok(mut store) => store.plan().await,
            Err(why) => Err(why),
        };
        let plan = plan.map_err(|why| held.masked(&why));
        found.insert(step.to_owned(), plan);
    }
    found
}

/// A store of accounts, as it answers.
enum Store<'a> {
    Broker(Management<'a>),
    Identity(Keystone<'a>),
}

impl Store<'_> {
    async fn plan(&mut self) -> Result<AccountPlan, String> {
        match self {
            Self::Broker(broker) => broker.plan().await,
            Self::Identity(identity) => identity.plan().await,
        }
    }

    async fn write(&mut self, writes: &[AccountWrite]) -> Result<(), String> {
        match self {
            Self::Broker(broker) => broker.write(writes).await,
            Self::Identity(identity) => identity.write(writes).await,
        }
    }
}

fn method(write: &AccountWrite) -> Result<Method, String> {
    Method::from_bytes(write.method.as_bytes()).map_err(|error| error.to_string())
}
