//! Controller of [`KubeadmConfig`]: creates the Secret with the bootstrap data of a Machine.
//!
//! ```text
//!   facts ─► plan (pure) ─► wait | init: lock, certificates | join: token, CA hash ─► data Secret ─► status
//! ```
//!
//! Only one control plane machine of a cluster may run `kubeadm init`: the holder of the lock, the ConfigMap
//! `<cluster>-lock`. The others wait until the Cluster reports that its control plane is initialized, and that change
//! triggers them. Bootstrap tokens are valid for 15 minutes in the workload cluster, and are extended while the
//! machine has no Node.

mod data;
mod error;
mod lock;
mod plan;
mod status;
mod token;

use std::sync::Arc;
use std::time::Duration;

use api::bootstrap::v1beta2::KubeadmConfig;
use api::core::v1beta2::{Cluster, ContractReference, Machine};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::runtime::controller::{Action, Controller};
use api::kube::runtime::reflector::ObjectRef;
use api::kube::{Resource, ResourceExt};
use futures::{Stream, StreamExt};
use operator::client::Api;
use operator::retry::is_conflict;
use secrecy::SecretString;
use serde_json::Value;

use crate::feed::{Feed, Memory};
use crate::pki::Purpose;
use crate::pki::store::{self, Certificates};
use crate::pki::versions::SecretName;
use crate::remote::{Change, ClusterKey};
use crate::{Context, news, pause};

pub use error::BootstrapError;
use plan::{Facts, Plan};

/// Interval at which the token of a machine without a Node is extended: a third of its lifetime.
const TOKEN_CHECK: Duration = Duration::from_secs(token::TTL.as_secs() / 3);

/// Context of the reconciler.
struct Scope {
    context: Arc<Context>,
    /// [`Cluster`]s with a deleted lock: no read of the lock in each reconcile.
    released: Memory<Cluster, ()>,
}

/// KubeadmConfig with its Machine and Cluster.
struct Subject {
    config: Arc<KubeadmConfig>,
    machine: Arc<Machine>,
    cluster: Arc<Cluster>,
    key: ClusterKey,
}

/// Runs the controller until shutdown.
pub async fn run(context: Arc<Context>, configs: Feed<KubeadmConfig>) {
    let triggers = triggers(&context, &configs);
    let controller = Controller::for_shared_stream(configs.touched(), configs.store().clone());
    let context = context.of("kubeadmconfig");
    let settings = context.settings();
    let scope = Scope {
        released: context.clusters.memory(),
        context,
    };
    operator::controller::run(
        controller.reconcile_on(triggers),
        reconcile,
        Arc::new(scope),
        settings,
    )
    .await;
}

async fn reconcile(
    config: Arc<KubeadmConfig>,
    scope: Arc<Scope>,
) -> Result<Action, BootstrapError> {
    let Some(machine) = machine_of(&scope, &config) else {
        return Ok(Action::await_change());
    };
    let namespace = config.namespace().unwrap_or_default();
    let clusters = &scope.context.clusters;
    let cluster = clusters.get(&namespace, &machine.spec.cluster_name);
    let Some(cluster) = cluster.filter(|_| config.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::await_change());
    };
    let key = ClusterKey::new(namespace, cluster.name_any());
    let mut subject = Subject {
        config,
        machine,
        cluster,
        key,
    };
    let plan = plan::decide(&Facts::from_subject(&subject));
    let outcome = act(&scope, &mut subject, plan).await;
    match &outcome {
        // After a restart: the reported status stays until the end of the first attempt to connect, which triggers a
        // reconcile.
        Err(error) if error.is_connecting() && status::is_reported(&subject.config) => {
            Ok(Action::requeue(TOKEN_CHECK))
        }
        // The request is repeated at once, and not reported.
        Err(error) if is_conflict(error) => outcome,
        _ => {
            report(&scope, &subject, plan, outcome.as_ref()).await?;
            outcome
        }
    }
}

/// Writes the status, with an event when a pause begins or ends.
async fn report(
    scope: &Scope,
    subject: &Subject,
    plan: Plan,
    outcome: Result<&Action, &BootstrapError>,
) -> Result<(), BootstrapError> {
    let (config, now) = (subject.config.as_ref(), scope.context.now());
    let paused = pause::reason(Some(&subject.cluster), config);
    let after = status::after(config, plan, paused.as_deref(), outcome, now);
    let configs: Api<KubeadmConfig> = scope.context.api(&subject.key.namespace);
    let stored = operator::patch::status(&configs, config, &after).await;
    stored.map_err(BootstrapError::status)?;
    let list = |it: &KubeadmConfig| it.status.clone().unwrap_or_default().conditions;
    let news = news::pause(&list(config), &list(&after));
    news::publish(&scope.context, config, news).await;
    Ok(())
}

/// Performs the [`Plan`].
async fn act(scope: &Scope, subject: &mut Subject, plan: Plan) -> Result<Action, BootstrapError> {
    match plan {
        Plan::Paused | Plan::Wait(_) | Plan::Done => {
            release_lock(scope, subject).await?;
            Ok(Action::await_change())
        }
        Plan::Restore => Ok(Action::await_change()),
        Plan::Refresh => {
            // A lock that stays must not let the token expire.
            let released = release_lock(scope, subject).await;
            let refreshed = refresh(scope, subject).await;
            released.and(refreshed)
        }
        Plan::Init => init(scope, subject).await,
        Plan::Join { control_plane } => join(scope, subject, control_plane).await,
    }
}

/// Bootstraps the first machine: acquires the lock, and writes the data for `kubeadm init`.
async fn init(scope: &Scope, subject: &Subject) -> Result<Action, BootstrapError> {
    if !lock::acquire(&scope.context.client, &subject.cluster, &subject.machine).await? {
        return Err(BootstrapError::LockHeld {
            cluster: subject.key.name.clone(),
        });
    }
    let certificates = certificates(scope, subject).await?;
    let kubeadm = data::init_documents(subject)?;
    write(
        scope,
        subject,
        data::Parts::init(subject, &certificates, kubeadm),
    )
    .await
}

/// Bootstraps any other machine: ensures a token, and writes the data for `kubeadm join`.
async fn join(
    scope: &Scope,
    subject: &mut Subject,
    control_plane: bool,
) -> Result<Action, BootstrapError> {
    let certificates = certificates(scope, subject).await?;
    let discovery = token::discovery(scope, subject, &certificates).await?;
    let kubeadm = data::join_document(subject, &discovery, control_plane)?;
    let mut parts = data::Parts::join(subject, &certificates, kubeadm, control_plane);
    parts.certificates.extend(data::discovery_file(&discovery)?);
    write(scope, subject, parts).await?;
    Ok(Action::requeue(TOKEN_CHECK))
}

async fn write(
    scope: &Scope,
    subject: &Subject,
    parts: data::Parts,
) -> Result<Action, BootstrapError> {
    let secrets = scope.context.api(&subject.key.namespace);
    let values = values(scope, subject).await?;
    let document: SecretString = data::document(&secrets, subject, parts, &values).await?;
    data::store(&secrets, subject, &document).await?;
    Ok(Action::await_change())
}

/// Values for the files that are templates.
async fn values(scope: &Scope, subject: &Subject) -> Result<Value, BootstrapError> {
    let reference = subject.cluster.spec.control_plane_ref.as_ref();
    let Some(reference) = reference.filter(|_| data::has_templates(&subject.config)) else {
        return Ok(data::values(None));
    };
    let external = &scope.context.external;
    let plane = external.get_live(reference, &subject.key.namespace).await?;
    Ok(data::values(plane.as_ref()))
}

/// Extends the token of a machine without a Node.
async fn refresh(scope: &Scope, subject: &Subject) -> Result<Action, BootstrapError> {
    let Some(token) = token::of_config(&subject.config) else {
        return Ok(Action::await_change());
    };
    let workload = scope.context.remote.client(&subject.key)?;
    token::extend(&workload, &token, scope.context.now()).await?;
    Ok(Action::requeue(TOKEN_CHECK))
}

/// Key material of the cluster. The control plane's controller creates the keys; without one, this controller does.
async fn certificates(scope: &Scope, subject: &Subject) -> Result<Certificates, BootstrapError> {
    let secrets = scope.context.api(&subject.key.namespace);
    let cluster = &subject.cluster;
    // A running cluster depends on its keys: new ones would not match.
    let only_read = cluster.spec.control_plane_ref.is_some() || cluster.control_plane_initialized();
    let known = if only_read {
        store::read(&secrets, &subject.key.name, scope.context.now()).await?
    } else {
        let recipe = data::certificate_recipe(subject)?;
        store::ensure(&secrets, &subject.key.name, &recipe, scope.context.now()).await?
    };
    let known = match data::external_etcd(&subject.config) {
        Some(_) if subject.machine.is_control_plane() => {
            let supplied =
                store::read_external_etcd(&secrets, &subject.key.name, scope.context.now());
            known.with(supplied.await?)
        }
        _ => known,
    };
    let missing = data::needed(subject)
        .into_iter()
        .filter(|p| known.get(*p).is_none());
    let missing: Vec<_> = missing
        .map(|purpose| purpose.secret_name(&subject.key.name))
        .collect();
    if missing.is_empty() {
        Ok(known)
    } else {
        Err(BootstrapError::NoCertificates { missing })
    }
}

/// Deletes the lock once the control plane is initialized.
async fn release_lock(scope: &Scope, subject: &Subject) -> Result<(), BootstrapError> {
    let initialized = subject.cluster.control_plane_initialized();
    if !initialized || !subject.machine.is_control_plane() {
        return Ok(());
    }
    let locks = scope.context.api(&subject.key.namespace);
    lock::release(&locks, &subject.cluster, &scope.released).await
}

/// [`Machine`] with a reference to `config`.
fn machine_of(scope: &Scope, config: &KubeadmConfig) -> Option<Arc<Machine>> {
    let (namespace, name) = (config.namespace()?, config.name_any());
    let refers = |machine: &Machine| config_name(machine) == Some(name.as_str());
    let owners = config.owner_references();
    let owner = owners.iter().find(|owner| owner.kind == Machine::kind(&()));
    let machines = &scope.context.machines;
    match owner.and_then(|owner| machines.get(&namespace, &owner.name)) {
        Some(machine) if refers(&machine) => Some(machine),
        _ => {
            let reference = ContractReference::new(api::bootstrap::GROUP, "KubeadmConfig", &name);
            let mut referring = machines.referring_to(&namespace, &reference).into_iter();
            referring.next()
        }
    }
}

fn config_name(machine: &Machine) -> Option<&str> {
    let reference = machine.spec.bootstrap.config_ref.as_ref()?;
    let ours = reference.kind == "KubeadmConfig" && reference.api_group == api::bootstrap::GROUP;
    ours.then_some(reference.name.as_str())
}

/// Triggers besides the [`KubeadmConfig`]: its Machine, its Cluster, the connection to the workload cluster, and awaited
/// Secrets.
fn triggers(
    context: &Context,
    configs: &Feed<KubeadmConfig>,
) -> impl Stream<Item = ObjectRef<KubeadmConfig>> + Send + use<> {
    let (of_machines, of_clusters, of_remote) = (configs.clone(), configs.clone(), configs.clone());
    let machines = context.machines.touched().flat_map(move |machine| {
        let namespace = machine.namespace().unwrap_or_default();
        let of_machine = config_name(&machine).map(|name| ObjectRef::new(name).within(&namespace));
        // A machine being deleted may have the lock that others wait for.
        let others = (machine.is_deleting() && machine.is_control_plane())
            .then(|| pending(&of_machines, &namespace, &machine.spec.cluster_name));
        futures::stream::iter(of_machine.into_iter().chain(others.into_iter().flatten()))
    });
    let clusters = context.clusters.touched().flat_map(move |cluster| {
        let namespace = cluster.namespace().unwrap_or_default();
        // Configs that report another state than the Cluster's: the end of a pause, or its begin.
        let paused = cluster.is_paused();
        let concerned = |config: &KubeadmConfig| {
            !status::has_data(config) || status::was_paused(config) != paused
        };
        futures::stream::iter(matching(
            &of_clusters,
            &namespace,
            &cluster.name_any(),
            concerned,
        ))
    });
    let remote = context.remote.changes().flat_map(move |change| {
        let refs = match change {
            // Including those with data: their tokens may have to be extended.
            Change::Connected(key) | Change::Disconnected(key) => {
                matching(&of_remote, &key.namespace, &key.name, |_| true)
            }
            Change::Node { .. } => Vec::new(),
        };
        futures::stream::iter(refs)
    });
    let of_secrets = configs.clone();
    let secrets = context
        .secrets
        .touched()
        .flat_map(move |secret| futures::stream::iter(awaiting(&of_secrets, &secret)));
    let others = futures::stream::select(remote, secrets);
    futures::stream::select(machines, futures::stream::select(clusters, others))
}

/// [`KubeadmConfig`]s without bootstrap data that wait for a Secret with their files and passwords, or with certificates
/// of their cluster.
fn awaiting(configs: &Feed<KubeadmConfig>, secret: &SecretName) -> Vec<ObjectRef<KubeadmConfig>> {
    let users = configs.using_secret(&secret.namespace, &secret.name);
    let users = users.iter().filter(|config| !status::has_data(config));
    let mut found: Vec<_> = users
        .map(|config| ObjectRef::from_obj(config.as_ref()))
        .collect();
    let purposes = Purpose::ALL.into_iter().chain([Purpose::EtcdClient]);
    for key in purposes.filter_map(|purpose| secret.cluster_of(purpose)) {
        let waits = |config: &KubeadmConfig| !status::has_data(config);
        found.extend(matching(configs, &key.namespace, &key.name, waits));
    }
    found
}

/// [`KubeadmConfig`]s of a cluster that have no bootstrap data, or report a pause.
fn pending(
    configs: &Feed<KubeadmConfig>,
    namespace: &str,
    cluster: &str,
) -> Vec<ObjectRef<KubeadmConfig>> {
    matching(configs, namespace, cluster, |config| {
        !status::has_data(config) || status::was_paused(config)
    })
}

/// [`KubeadmConfig`]s of a cluster that match `predicate`.
fn matching(
    configs: &Feed<KubeadmConfig>,
    namespace: &str,
    cluster: &str,
    predicate: impl Fn(&KubeadmConfig) -> bool,
) -> Vec<ObjectRef<KubeadmConfig>> {
    configs
        .in_cluster(namespace, cluster, predicate)
        .iter()
        .map(|config| ObjectRef::from_obj(config.as_ref()))
        .collect()
}

/// Time in the format of Kubernetes.
fn rfc3339(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
