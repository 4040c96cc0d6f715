//! OpenStackMachine: ports, volumes and a server for one Machine.

mod console;
pub mod desired;
pub mod facts;
pub mod observed;
pub mod plan;
mod status;

use std::sync::Arc;
use std::time::Duration;

use api::conditions::Status;
use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::api::core::v1::Secret;
use api::k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};
use openstack::compute::UserData;
use openstack::{Cloud, Kind};
use operator::retry::When;
use operator::{finalizer, patch};
use tracing::instrument;

use self::observed::Observed;
use self::plan::{Request, Step};
use crate::cluster::apply::{FRESH, past};
use crate::cluster::desired::balancer_spec;
use crate::context::{
    self, Context, Error, FALLBACK, is_deleting, is_managed_elsewhere, is_paused, namespace,
};
use crate::credentials;
use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, Mark};
use crate::problem::Problem;
use crate::reason::{Reason, Type};

/// The finalizer of OpenStackMachines, the Go provider's.
pub const FINALIZER: &str = "openstackmachine.infrastructure.cluster.x-k8s.io";

/// Nova's limit for user data, in bytes of base64.
const USER_DATA_LIMIT: usize = 65535;
/// How often the console of a server that does not become a Node is read.
const CONSOLE_EVERY: Duration = Duration::from_secs(60);
/// How many lines of it.
const CONSOLE_LINES: u32 = 200;

/// What belongs to a machine.
struct Surroundings {
    machine: Option<Machine>,
    cluster: Option<Cluster>,
    openstack_cluster: Option<OpenStackCluster>,
}

impl Surroundings {
    async fn of(ctx: &Context, object: &OpenStackMachine) -> Result<Self, Error> {
        let machine = context::owner_machine(&ctx.client, object).await?;
        let cluster = match &machine {
            Some(machine) => {
                let clusters = Api::<Cluster>::namespaced(ctx.client.clone(), &namespace(object));
                let found = clusters.get_opt(&machine.spec.cluster_name).await;
                found.map_err(Error::kubernetes("reading the Cluster"))?
            }
            None => context::owner_cluster(&ctx.client, object).await?,
        };
        let reference = cluster
            .as_ref()
            .and_then(|c| c.spec.infrastructure_ref.as_ref());
        let openstack_cluster = match reference {
            Some(reference) if reference.kind == "OpenStackCluster" => {
                let api =
                    Api::<OpenStackCluster>::namespaced(ctx.client.clone(), &namespace(object));
                let found = api.get_opt(&reference.name).await;
                found.map_err(Error::kubernetes("reading the OpenStackCluster"))?
            }
            _ => None,
        };
        Ok(Self {
            machine,
            cluster,
            openstack_cluster,
        })
    }

    fn is_control_plane(&self) -> bool {
        let label = api::names::CONTROL_PLANE_LABEL;
        self.machine
            .as_ref()
            .is_some_and(|machine| machine.labels().contains_key(label))
    }

    fn has_balancer(&self) -> bool {
        self.openstack_cluster
            .as_ref()
            .is_some_and(|c| balancer_spec(&c.spec).is_some())
    }
}

/// Brings one OpenStackMachine and its server closer to its spec.
#[instrument(skip_all, fields(object = %object.name_any()))]
pub(crate) async fn reconcile(
    object: Arc<OpenStackMachine>,
    ctx: Arc<Context>,
) -> Result<Action, Error> {
    if is_managed_elsewhere(object.as_ref()) {
        return Ok(Action::await_change());
    }
    let around = Surroundings::of(&ctx, &object).await?;
    let mut next = OpenStackMachine::clone(&object);
    let paused = is_paused(object.as_ref(), around.cluster.as_ref());
    let reason = if paused {
        Reason::Paused
    } else {
        Reason::NotPaused
    };
    status::condition(
        &mut next,
        ctx.now(),
        Type::Paused,
        (paused.into(), reason, ""),
    );
    let result = if paused {
        Ok(Action::await_change())
    } else if is_deleting(object.as_ref()) {
        match delete(&ctx, &object, &mut next, &around).await {
            Ok(None) => return Ok(Action::await_change()),
            Ok(Some(action)) => Ok(action),
            Err(error) => Err(error),
        }
    } else {
        normal(&ctx, &object, &mut next, &around).await
    };
    finish(&ctx, &object, next, result).await
}

/// Writes providerID and status, and says when to look again.
async fn finish(
    ctx: &Context,
    object: &OpenStackMachine,
    mut next: OpenStackMachine,
    result: Result<Action, Error>,
) -> Result<Action, Error> {
    if let Err(Error::Problem(problem)) = &result {
        let now = ctx.now();
        status::not_ready(
            &mut next,
            now,
            problem.about,
            problem.reason,
            &problem.message,
        );
        if said(object, problem.about) != said(&next, problem.about) {
            let reason = problem.reason.as_str();
            ctx.recorder
                .warning(object, reason, "Reconcile", &problem.message)
                .await;
        }
    }
    let api = api(ctx, object);
    // Identity and finalizer may have been stored since `object` was read.
    let mut before = OpenStackMachine {
        metadata: next.metadata.clone(),
        ..object.clone()
    };
    if next.spec != before.spec {
        let mut after = before.clone();
        after.spec = next.spec.clone();
        let stored = patch::object(&api, &before, &after).await;
        before = stored
            .map_err(Error::kubernetes("storing the providerID"))?
            .unwrap_or(after);
        next.metadata = before.metadata.clone();
    }
    patch::status(&api, &before, &next)
        .await
        .map_err(Error::kubernetes("storing the status"))?;
    result
}

/// What a condition says.
fn said(object: &OpenStackMachine, type_: Type) -> Option<(&str, &str)> {
    let status = object.status.as_ref()?;
    let known = api::conditions::find(&status.conditions, type_.as_str())?;
    Some((&known.reason, &known.message))
}

async fn normal(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    around: &Surroundings,
) -> Result<Action, Error> {
    let now = ctx.now();
    let mut wait = |reason, message: &str| {
        status::not_ready(next, now, Type::Instance, reason, message);
        Ok(Action::await_change())
    };
    let (Some(machine), Some(cluster)) = (&around.machine, &around.cluster) else {
        return wait(
            Reason::WaitingForOwner,
            "waiting for the Machine that owns this object",
        );
    };
    let Some(infra) = around
        .openstack_cluster
        .as_ref()
        .filter(|infra| is_provisioned(infra))
    else {
        let text = "waiting for the OpenStackCluster to be provisioned";
        return wait(Reason::WaitingForClusterInfrastructure, text);
    };
    let Some(cluster_id) = Identity::of(infra, CLUSTER_ID) else {
        let text = "waiting for the OpenStackCluster to get its identity";
        return wait(Reason::WaitingForClusterInfrastructure, text);
    };
    let Some(secret) = &machine.spec.bootstrap.data_secret_name else {
        let text = "waiting for the bootstrap data of the Machine";
        return wait(Reason::WaitingForBootstrapData, text);
    };
    let mark = prepare(ctx, object, next, cluster_id, around.is_control_plane()).await?;
    let cloud = cloud(ctx, object, Some(infra)).await?;
    let verdict = (Status::True, Reason::OpenStackAuthenticationSucceeded, "");
    status::condition(next, now, Type::Authentication, verdict);

    let known = known_server(object);
    let work = Work {
        ctx,
        object,
        cloud: &cloud,
        mark,
        known: known.as_deref(),
    };
    let balanced = around.is_control_plane() && around.has_balancer();
    let observed = work
        .observe(&kinds(object, known.is_none(), balanced), FRESH)
        .await?;
    if observed.server().is_none() {
        if let Some(id) = &known {
            return gone(&cloud, id, next, now).await;
        }
        let scope = facts::Scope {
            cluster_name: cluster.name_any(),
            control_plane: around.is_control_plane(),
            failure_domain: machine.spec.failure_domain.clone(),
            project: format!("cloud {}", cloud.session.config().name),
        };
        let facts = facts::facts(object, infra, mark, &scope, &observed.view)?;
        let user_data = user_data(ctx, object, secret).await?;
        let desired = desired::desired(object, &infra.spec.tags, &facts, user_data);
        let kinds = kinds(object, true, balanced);
        let result = work
            .apply(
                &kinds,
                |observed| plan::plan(&desired, observed),
                |step, observed| plan::request(step, &desired, observed),
            )
            .await;
        let observed = work.known();
        let status = next.status.get_or_insert_default();
        status::resources(status, &facts, &desired, &observed);
        let waits = result?;
        if let Some(wait) = waits.first() {
            status::not_ready(next, now, Type::Instance, Reason::WaitingForCloud, wait);
            return Ok(Action::requeue(FALLBACK));
        }
    }
    let observed = work.known();
    let Some(server) = observed.server() else {
        return Ok(Action::requeue(FALLBACK));
    };
    if !status::server(next, server, now) {
        if server.status == "ERROR" && said(object, Type::Instance) != said(next, Type::Instance) {
            let text = status::fault(server);
            ctx.recorder
                .warning(object, "FailedCreateServer", "CreateServer", text)
                .await;
        }
        return Ok(Action::requeue(FALLBACK));
    }
    next.spec.provider_id = Some(provider_id(object, &server.id));
    ready(&work, next, around, machine).await
}

/// A server runs: what else there is to say about its machine.
async fn ready(
    work: &Work<'_>,
    next: &mut OpenStackMachine,
    around: &Surroundings,
    machine: &Machine,
) -> Result<Action, Error> {
    let now = work.ctx.now();
    if around.is_control_plane() {
        ingress(next, around, &work.known(), now);
    }
    status::condition(next, now, Type::Ready, (Status::True, Reason::Ready, ""));
    let has_node = machine
        .status
        .as_ref()
        .is_some_and(|status| status.node_ref.is_some());
    if has_node {
        return Ok(context::settled());
    }
    let since = next.status.as_ref().and_then(|status| {
        let condition = api::conditions::find(&status.conditions, Type::Instance.as_str())?;
        Some(condition.last_transition_time.0)
    });
    let running = since.map_or(0, |since| now.as_second().saturating_sub(since.as_second()));
    let running = Duration::from_secs(running.unsigned_abs());
    let timeout = work.ctx.options.bootstrap_timeout;
    let Some(id) = next
        .status
        .as_ref()
        .and_then(|status| status.instance_id.clone())
    else {
        return Ok(Action::requeue(FALLBACK));
    };
    if running < timeout {
        return Ok(Action::requeue(
            timeout.saturating_sub(running).max(Duration::from_secs(1)),
        ));
    }
    let console = work
        .cloud
        .session
        .compute()
        .console_output(&id, Some(CONSOLE_LINES))
        .await;
    // A cloud without consoles says nothing about the machine.
    if let Some(line) = console.ok().and_then(|console| console::failure(&console)) {
        let message =
            format!("the server runs but did not become a Node; its console says: {line}");
        let before = said(work.object, Type::Ready).map(|(_, message)| message.to_owned());
        status::not_ready(next, now, Type::Ready, Reason::BootstrapFailed, &message);
        if before.as_deref() != Some(message.as_str()) {
            let reason = Reason::BootstrapFailed.as_str();
            work.ctx
                .recorder
                .warning(work.object, reason, "Bootstrap", message)
                .await;
        }
    }
    Ok(Action::requeue(CONSOLE_EVERY))
}

/// Whether the API endpoint leads to a control plane machine. The cluster's controller sees to it:
/// it alone sets the members of the load balancer, so that no two machines overwrite each other.
fn ingress(
    next: &mut OpenStackMachine,
    around: &Surroundings,
    observed: &Observed,
    now: Timestamp,
) {
    let verdict = if !around.has_balancer() || !observed.members().is_empty() {
        (Status::True, Reason::Ready, "")
    } else {
        let text = "waiting for the machine to become a member of the load balancer";
        (Status::False, Reason::WaitingForCloud, text)
    };
    status::condition(next, now, Type::ApiServerIngress, verdict);
}

/// The server that was this machine's is gone: only a new Machine gets a new one.
async fn gone(
    cloud: &Cloud,
    id: &str,
    next: &mut OpenStackMachine,
    now: Timestamp,
) -> Result<Action, Error> {
    match cloud.session.compute().server(id).await {
        Ok(server) if !server.is_deleting() => {
            // The list was wrong, or somebody took our tags away.
            let tags = Mark::in_tags(&server.tags);
            cloud.inventory.fold(server);
            if tags.is_some() {
                return Ok(Action::requeue(Duration::from_secs(5)));
            }
            let text = format!("server {id} has lost the tags that mark it as this machine's");
            status::not_ready(next, now, Type::Instance, Reason::InstanceNotFound, &text);
            Ok(Action::requeue(FALLBACK))
        }
        Err(error) if !error.is_absent() => Err(credentials::listing(&error).into()),
        _ => {
            let text = format!("server {id} was deleted by somebody else; delete the Machine");
            status::not_ready(next, now, Type::Instance, Reason::InstanceDeleted, &text);
            Ok(context::settled())
        }
    }
}

/// Takes everything down that carries the machine's mark. `None`: nothing is left and the finalizer
/// is off.
async fn delete(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    around: &Surroundings,
) -> Result<Option<Action>, Error> {
    let now = ctx.now();
    let waiting = match take_down(ctx, object, around).await {
        Ok(waiting) => waiting,
        Err(Error::Problem(mut problem)) => {
            if problem.about == Type::Authentication {
                problem.message.push_str(
                    ". Until that is put right the server cannot be deleted (if nothing of the \
                     machine is left in the cloud, remove the finalizer)",
                );
            }
            let verdict = (Status::True, problem.reason, problem.message.as_str());
            status::condition(next, now, Type::Deleting, verdict);
            return Err(problem.into());
        }
        Err(error) => return Err(error),
    };
    let Some(message) = waiting else {
        let removed = finalizer::remove(&api(ctx, object), object, FINALIZER).await;
        removed.map_err(Error::kubernetes("removing the finalizer"))?;
        return Ok(None);
    };
    let verdict = (Status::True, Reason::WaitingForDeletion, message.as_str());
    status::condition(next, now, Type::Deleting, verdict);
    status::not_ready(next, now, Type::Instance, Reason::Deleting, &message);
    Ok(Some(Action::requeue(FALLBACK)))
}

/// What is being waited for until nothing in the cloud carries the machine's mark.
async fn take_down(
    ctx: &Context,
    object: &OpenStackMachine,
    around: &Surroundings,
) -> Result<Option<String>, Error> {
    let mark = match (Identity::of(object, MACHINE_ID), cluster_id(object, around)) {
        // Without an identity nothing was ever made.
        (None, _) => return Ok(None),
        (Some(machine), Some(cluster)) => Mark::machine(cluster, machine),
        (Some(_), None) => {
            let text = "the OpenStackCluster is gone, and with it what tells this machine's \
                        resources: delete them by hand, then remove the finalizer";
            return Err(Problem::new(Type::Deleting, Reason::OpenStackError, text).into());
        }
    };
    let infra = around.openstack_cluster.as_ref();
    let cloud = cloud(ctx, object, infra).await?;
    let known = known_server(object);
    let work = Work {
        ctx,
        object,
        cloud: &cloud,
        mark,
        known: known.as_deref(),
    };
    let alive = infra.is_some_and(|infra| !is_deleting(infra));
    let balanced = alive && around.has_balancer() && around.is_control_plane();
    let mut kinds = kinds(object, false, balanced);
    let plan = |observed: &Observed| plan::plan_deletion(observed, balanced);
    let waits = work
        .apply(&kinds, plan, |step, _| plan::deletion(step))
        .await?;
    if let Some(wait) = waits.first() {
        return Ok(Some(wait.clone()));
    }
    // What is known may be old: the last look is at the cloud itself.
    kinds.retain(|kind| matches!(kind, Kind::Servers | Kind::Ports | Kind::Volumes));
    if work.observe(&kinds, Duration::ZERO).await?.is_empty() {
        return Ok(None);
    }
    Ok(Some(
        "something that carries the machine's mark appeared again".to_owned(),
    ))
}

/// What is worked on, and with what.
struct Work<'a> {
    ctx: &'a Context,
    object: &'a OpenStackMachine,
    cloud: &'a Cloud,
    mark: Mark,
    known: Option<&'a str>,
}

impl Work<'_> {
    async fn observe(&self, kinds: &[Kind], age: Duration) -> Result<Observed, Problem> {
        let view = self.cloud.inventory.view(kinds, age).await;
        let view = view.map_err(|error| credentials::listing(&error))?;
        Ok(Observed::of(view, self.mark, self.known))
    }

    fn known(&self) -> Observed {
        Observed::of(self.cloud.inventory.known(), self.mark, self.known)
    }

    /// Plans once, applies what can be done, and returns what has to be waited for.
    async fn apply(
        &self,
        kinds: &[Kind],
        plan: impl Fn(&Observed) -> plan::Plan,
        request: impl Fn(&Step, &Observed) -> Option<Request>,
    ) -> Result<Vec<String>, Problem> {
        let now = plan(&self.observe(kinds, FRESH).await?);
        for step in &now.steps {
            let Some(request) = request(step, &self.known()) else {
                continue;
            };
            self.step(step, &request).await?;
        }
        // Deleting is done when the cloud says so, not when it accepts the request.
        Ok(plan(&self.known()).waits)
    }

    async fn step(&self, step: &Step, request: &Request) -> Result<(), Problem> {
        let result = plan::send(&self.cloud.inventory, request).await;
        let event = step.event();
        match (result, event) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(event)) => {
                let reason = format!("Successful{event}");
                let text = past(&step.to_string());
                self.ctx
                    .recorder
                    .normal(self.object, &reason, event, text)
                    .await;
                Ok(())
            }
            (Err(error), event) => {
                let problem = self.problem(step, &error);
                if let (Some(event), true) = (event, error.kind() != openstack::ErrorKind::Busy) {
                    let reason = format!("Failed{event}");
                    let recorder = &self.ctx.recorder;
                    recorder
                        .warning(self.object, &reason, event, &problem.message)
                        .await;
                }
                Err(problem)
            }
        }
    }

    fn problem(&self, step: &Step, error: &openstack::Error) -> Problem {
        if credentials::is_authentication(error) {
            return credentials::listing(error);
        }
        let reason = match step {
            Step::CreateServer => Reason::InstanceCreateFailed,
            Step::CreatePorts | Step::TagPort(_) => Reason::PortCreateFailed,
            Step::CreateVolume(_) => Reason::VolumeCreateFailed,
            _ => Reason::InstanceDeleteFailed,
        };
        let mut problem = Problem::cloud(Type::Instance, reason, &step.to_string(), error);
        if let (Step::CreateServer, Some(key)) = (step, &self.object.spec.ssh_key_name)
            && error.message().to_ascii_lowercase().contains("key")
        {
            problem
                .message
                .push_str(&format!(" (sshKeyName is `{key}`)"));
        }
        if error.kind() == openstack::ErrorKind::Busy {
            problem.when = When::After(Duration::from_secs(1));
        }
        problem
    }
}

/// Stores identity and finalizer, both in one patch, before anything is made; gives the mark.
async fn prepare(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    cluster: Identity,
    control_plane: bool,
) -> Result<Mark, Error> {
    let known = Identity::of(object, MACHINE_ID);
    let id = known.unwrap_or_default();
    let mut wanted = object.clone();
    wanted
        .annotations_mut()
        .insert(MACHINE_ID.to_owned(), id.to_string());
    // A machine outlives its cluster's object in a forced deletion; its mark must not.
    wanted
        .annotations_mut()
        .insert(CLUSTER_ID.to_owned(), cluster.to_string());
    if control_plane {
        // KCP sets it; the cluster's controller looks at machines with it only.
        wanted
            .labels_mut()
            .entry(api::names::CONTROL_PLANE_LABEL.to_owned())
            .or_default();
    }
    if !finalizer::has(object, FINALIZER) {
        wanted.finalizers_mut().push(FINALIZER.to_owned());
    }
    if wanted.metadata != object.metadata {
        let stored = patch::object(&api(ctx, object), object, &wanted).await;
        let stored = stored.map_err(Error::kubernetes("storing identity and finalizer"))?;
        next.metadata = stored.unwrap_or(wanted).metadata;
    }
    Ok(Mark::machine(cluster, id))
}

fn cluster_id(object: &OpenStackMachine, around: &Surroundings) -> Option<Identity> {
    let infra = around.openstack_cluster.as_ref();
    Identity::of(object, CLUSTER_ID).or_else(|| Identity::of(infra?, CLUSTER_ID))
}

/// The cloud of a machine: by its own identityRef, or else by the cluster's.
async fn cloud(
    ctx: &Context,
    object: &OpenStackMachine,
    infra: Option<&OpenStackCluster>,
) -> Result<Cloud, Problem> {
    let own = object.spec.identity_ref.as_ref();
    let Some(identity_ref) = own.or_else(|| infra.map(|infra| &infra.spec.identity_ref)) else {
        let text = "the OpenStackCluster is gone, and with it the credentials: give the machine an \
                    identityRef of its own";
        let reason = Reason::OpenStackAuthenticationFailed;
        return Err(Problem::new(Type::Authentication, reason, text));
    };
    credentials::cloud(&ctx.client, &ctx.clouds, &namespace(object), identity_ref).await
}

/// The id of the server that this machine is known to have had. providerID survives a move to
/// another management cluster, status does not.
fn known_server(object: &OpenStackMachine) -> Option<String> {
    let status = object
        .status
        .as_ref()
        .and_then(|status| status.instance_id.clone());
    let provider_id = object.spec.provider_id.as_deref();
    let moved = || {
        Some(
            provider_id?
                .strip_prefix("openstack://")?
                .rsplit_once('/')?
                .1
                .to_owned(),
        )
    };
    status.or_else(moved).filter(|id| !id.is_empty())
}

/// What the Node of a server carries in its providerID; the region only where the machine says it.
fn provider_id(object: &OpenStackMachine, server: &str) -> String {
    let region = object
        .spec
        .identity_ref
        .as_ref()
        .and_then(|identity| identity.region.as_deref());
    format!("openstack://{}/{server}", region.unwrap_or_default())
}

fn is_provisioned(infra: &OpenStackCluster) -> bool {
    let status = infra.status.as_ref();
    let initialization = status.and_then(|status| status.initialization.as_ref());
    initialization.and_then(|initialization| initialization.provisioned) == Some(true)
}

/// What the server is to read at its first start.
async fn user_data(
    ctx: &Context,
    object: &OpenStackMachine,
    secret: &str,
) -> Result<UserData, Error> {
    let secrets = Api::<Secret>::namespaced(ctx.client.clone(), &namespace(object));
    let found = secrets.get_opt(secret).await;
    let found = found.map_err(Error::kubernetes("reading the bootstrap data"))?;
    let data = found
        .and_then(|found| found.data)
        .and_then(|mut data| data.remove("value"));
    let Some(data) = data else {
        let text = format!("Secret {secret} with the bootstrap data has no key value");
        return Err(Problem::new(Type::Instance, Reason::WaitingForBootstrapData, text).into());
    };
    let encoded = data.0.len().div_ceil(3) * 4;
    if encoded > USER_DATA_LIMIT {
        let text = format!(
            "the bootstrap data of Secret {secret} are {encoded} bytes in base64, and Nova takes \
             {USER_DATA_LIMIT}: move files of the KubeadmConfig into the image or fetch them at \
             boot"
        );
        return Err(Problem::new(Type::Instance, Reason::InvalidMachineSpec, text).into());
    }
    Ok(UserData::new(data.0))
}

/// The kinds that a machine has to do with.
fn kinds(object: &OpenStackMachine, creating: bool, balanced: bool) -> Vec<Kind> {
    let spec = &object.spec;
    let mut kinds = vec![Kind::Servers, Kind::Ports];
    if spec.root_volume.is_some() || !spec.additional_block_devices.is_empty() {
        kinds.push(Kind::Volumes);
    }
    if creating {
        kinds.extend([Kind::Images, Kind::Flavors, Kind::Extensions]);
        kinds.extend(spec.server_group.is_some().then_some(Kind::ServerGroups));
        let custom = !spec.ports.is_empty();
        kinds.extend([Kind::Networks, Kind::Subnets]);
        if custom || !spec.security_groups.is_empty() {
            kinds.push(Kind::SecurityGroups);
        }
    }
    if balanced {
        kinds.extend([Kind::LoadBalancers, Kind::Pools, Kind::Members]);
    }
    kinds
}

fn api(ctx: &Context, object: &OpenStackMachine) -> Api<OpenStackMachine> {
    Api::namespaced(ctx.client.clone(), &namespace(object))
}
