//! Accounts of the services in RabbitMQ and Keystone: read, planned (deployer: pure), written, read again.
//!
//! Answers stay in memory, so a cloud at rest sends no requests. The stores are read again when the desired
//! [`Accounts`] change, when another container answers, and every [`INTERVAL`], since somebody else may have changed
//! a store.

mod broker;
mod identity;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use deployer::{
    AccountPlan, AccountWrite, Accounts, Cloud, Credentials, Graph, Identity, Password, Progress,
    Written,
};
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

/// Time until accounts in the desired state are read again.
pub(crate) const INTERVAL: Duration = Duration::from_secs(300);
/// Time until a conflict is read again: a person has to resolve the conflict.
const CONFLICT: Duration = Duration::from_secs(15);
/// Pause after the first failure; doubled with each repetition of the same error, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);

/// Rounds of writes in one [`Look`]: projects and services, then objects that need their ids, and so on.
const ROUNDS: usize = 4;

/// Answers of the last look, by namespace and step.
#[derive(Default)]
pub(crate) struct AccountCache {
    known: Mutex<HashMap<(String, String), Entry>>,
}

struct Entry {
    /// Desired accounts, and the container that answered.
    of: (Accounts, Option<String>),
    written: Written,
    again: Instant,
    failures: u32,
}

/// Inputs of a look at the accounts of a [`Cloud`].
pub(crate) struct Look<'a> {
    pub(crate) client: &'a Client,
    pub(crate) cloud: &'a Cloud,
    pub(crate) graph: &'a Graph,
    pub(crate) held: &'a Credentials,
    pub(crate) pods: &'a [Value],
}

impl AccountCache {
    /// Known accounts of each step, without stores that have to be read again.
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

    /// Reads the stores that can answer and have no entry in `known`, and writes missing accounts. Returns true if at
    /// least one store was read.
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

    /// Time of the next attempt of a failed write, or of the next look at the stores of a cloud.
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

    /// Forgets a deleted cloud.
    pub(crate) fn forget(&self, namespace: &str) {
        self.known.lock().retain(|(it, _), _| it != namespace);
    }
}

impl Look<'_> {
    /// Steps with accounts in a store.
    fn wanted(&self) -> impl Iterator<Item = (&str, &Accounts)> {
        let steps = self.graph.steps.iter();
        steps.filter_map(|step| Some((step.name.as_str(), step.accounts.as_ref()?)))
    }

    fn key(&self, step: &str) -> (String, String) {
        (self.cloud.namespace.clone(), step.to_owned())
    }

    /// Ready Pod of a program.
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

    /// Container that answers: a new one may have lost earlier writes.
    fn container(&self, accounts: &Accounts) -> Option<String> {
        let pod = self.pod(accounts.program())?;
        let status = &pod["status"]["containerStatuses"][0];
        let parts = [&pod["metadata"]["uid"], &status["containerID"]];
        Some(parts.map(|it| it.as_str().unwrap_or_default()).join("/"))
    }

    /// Store of accounts, in a ready Pod.
    fn store<'b>(&'b self, accounts: &'b Accounts) -> Result<Store<'b>, String> {
        let port = self.port(accounts.program(), accounts.port())?;
        Ok(match accounts {
            Accounts::Broker(broker) => Store::Broker(Management { port, broker }),
            Accounts::Identity(identity) => Store::Identity(Keystone::new(port, identity)),
        })
    }

    /// Token of the administrator in the project of the administrator.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) async fn token(&self) -> Result<Password, String> {
        let mut wanted = self.wanted().map(|(_, accounts)| accounts);
        let identity = wanted.find_map(|it| match it {
            Accounts::Identity(identity) => Some(identity),
            Accounts::Broker(_) => None,
        });
        let identity = identity.ok_or("the cloud has no Keystone")?;
        let port = self.port(Identity::PROGRAM, Identity::PORT)?;
        Keystone::new(port, identity).token().await
    }

    /// Port of a ready Pod of a program.
    ///
    /// # Errors
    /// No Pod of the program is ready.
    pub(crate) fn port(&self, program: &str, port: u16) -> Result<Port<'_>, String> {
        let pod = self.pod(program);
        let name = pod.and_then(|pod| pod["metadata"]["name"].as_str());
        let pod = name.ok_or_else(|| format!("no Pod of {program} is ready"))?;
        Ok(Port::new(self.client, &self.cloud.namespace, pod, port))
    }

    /// Reads and writes until no write is left. Each round of writes creates ids that the next one needs.
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

/// Planned [`AccountWrite`]s to the stores of a cloud, by the names of steps, or the reason why a store cannot be
/// read. Writes nothing.
pub async fn compared(
    client: &Client,
    cloud: &Cloud,
    graph: &Graph,
    held: &Credentials,
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

/// Store of accounts behind its API.
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
