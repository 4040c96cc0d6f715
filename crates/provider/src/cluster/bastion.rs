//! The bastion of a cluster: a server to log in through, with a floating IP.
//!
//! The bastion is made by the plan of machines. Its mark is made from the relevant fields of its spec, so that a spec
//! with other values of these is another bastion, in place of the former one. A server deleted by hand is created
//! again, since no Node depends on it.

mod apply;
pub mod plan;
pub(super) mod pool;

use std::borrow::Cow;
use std::time::Duration;

use api::conditions::{self, Reason, Status, Type};
use api::infra::v1beta2::{BastionStatus, ManagedGroup, OpenStackCluster, OpenStackMachineSpec};
use openstack::compute::Server;
use openstack::{Kind, Service};

use self::apply::Outcome;
use self::plan::{Address, Observed, Wanted};
use super::address;
use super::apply::Work;
use super::desired::bastion_spec;
use super::facts::{Facts, place};
use super::observed::Observed as OfCluster;
use crate::context::kept;
use crate::context::{Context, Error, namespace};
use crate::identity::{Identity, Mark};
use crate::images;
use crate::machine::desired::desired;
use crate::machine::facts::{Scope, facts};
use crate::machine::inputs;
use crate::machine::pooled::Given;
use crate::machine::status::fault_message;
use crate::problem::Problem;
use crate::recheck::in_lists_of_now;
use crate::words::doing;

/// Brings the bastion into the state of the spec, and writes its status and condition into `next`, which has the status
/// of the rest of the cluster. Returns true while a wait is left.
///
/// # Errors
/// Errors reported in the condition, and errors that keep this from being found out.
pub(super) async fn reconcile(
    ctx: &Context,
    work: &Work<'_>,
    found: &Facts,
    observed: OfCluster,
    next: &mut OpenStackCluster,
) -> Result<bool, Error> {
    let known = next.status.as_ref();
    let known = known.and_then(|it| conditions::find(&it.conditions, Type::BastionReady));
    let (is_known, is_settled) = (known.is_some(), known.is_some_and(|it| it.status == "True"));
    let is_wanted = bastion_spec(&next.spec).is_some();
    let is_there = !observed.bastions().is_empty() || !observed.bastion_ips.is_empty();
    if !is_wanted && !is_known && !is_there {
        return Ok(false);
    }
    let is_under_way = is_known && !is_settled;
    let (reason, message, error) = match given(ctx, work, found, observed, next, is_under_way).await
    {
        Ok(Ok((wanted, outcome))) => {
            show(ctx, next, wanted.as_ref(), &outcome);
            if outcome.plan.is_empty() {
                pool::tidy(ctx, next).await?;
            }
            return Ok(!outcome.plan.is_empty());
        }
        Ok(Err(wait)) => (Reason::WaitingForIPAMProvider, wait, None),
        Err(Error::Problem(problem)) => (problem.reason, problem.message.clone(), Some(problem)),
        Err(error) => return Err(error),
    };
    condition(ctx, next, (Status::False, reason, &message));
    error.map_or(Ok(true), |problem| Err(problem.into()))
}

/// Applies the plan, once the pool in the spec has given its address; an inner error is the reason to wait.
async fn given(
    ctx: &Context,
    work: &Work<'_>,
    found: &Facts,
    observed: OfCluster,
    next: &OpenStackCluster,
    is_under_way: bool,
) -> Result<Result<(Option<Wanted>, Outcome), String>, Error> {
    let address = match pool::claimed(ctx, next).await? {
        Ok(address) => address,
        Err(wait) => return Ok(Err(wait)),
    };
    let address = address.as_ref();
    let done = applied(ctx, work, found, observed, (next, address), is_under_way).await;
    Ok(Ok(done?))
}

/// Deletes the bastion of a cluster that is being deleted; returns the reason to wait. The bastion goes before the
/// rest, since its trunks and its floating IP hold resources of the cluster.
///
/// # Errors
/// The step that failed.
pub(super) async fn remove(work: &Work<'_>) -> Result<Option<String>, Problem> {
    let observed = work.observe(work.kinds, work.age).await?;
    if observed.bastions().is_empty() {
        return Ok(None);
    }
    let mut kinds = work.kinds.to_vec();
    kinds.push(Kind::Trunks);
    let outcome = apply::apply(work, &kinds, work.age, None).await?;
    let step = outcome
        .plan
        .steps
        .first()
        .map(|step| doing(&step.to_string()));
    Ok(outcome.plan.waits.into_iter().next().or(step))
}

/// Applies the plan; `is_under_way`: the last reconcile left something to do.
async fn applied(
    ctx: &Context,
    work: &Work<'_>,
    found: &Facts,
    observed: OfCluster,
    (next, pooled): (&OpenStackCluster, Option<&Given>),
    is_under_way: bool,
) -> Result<(Option<Wanted>, Outcome), Error> {
    let mut kinds = work.kinds.to_vec();
    let has_volumes = work.cloud.session.has(Service::Volume).await;
    if is_under_way && has_volumes.unwrap_or(false) {
        // Those of a former spec, of which the server was never created.
        kinds.push(Kind::Volumes);
    }
    let mark = bastion_spec(&next.spec).map(|_| mark(next, work.cluster));
    if observed
        .bastions()
        .into_iter()
        .any(|known| Some(known) != mark)
    {
        kinds.push(Kind::Trunks);
    }
    let mut wanted = None;
    if let (Some((_, spec)), Some(mark)) = (bastion_spec(&next.spec), mark) {
        let is_new = Observed::new(&observed, Some(mark)).is_without_server();
        kinds.extend(inputs::kinds(spec, is_new, false));
        let observed = work.observe(&kinds, work.age).await?;
        let of_view = |view| work.of_view(view);
        let boots = booted(ctx, next, spec, is_new).await?;
        let next = (next, &*boots, pooled);
        let resolve = |observed: &OfCluster| resolved(work, found, observed, next, mark);
        let (mut all, observed) = in_lists_of_now(work.cloud, observed, of_view, resolve).await?;
        let is_given = all.address.as_ref().is_some_and(|it| it.given.is_some());
        if is_given && !is_associated(&all, &Observed::new(&observed, Some(mark))) {
            // Neutron would take it from any port, so that it is looked at in a list of now.
            let now = work.observe(&[Kind::FloatingIps], Duration::ZERO).await?;
            all = resolved(work, found, &now, next, mark)?;
        }
        wanted = Some(all);
    }
    kinds.sort_unstable();
    kinds.dedup();
    let outcome = apply::apply(work, &kinds, work.age, wanted.as_ref()).await?;
    Ok((wanted, outcome))
}

fn is_associated(wanted: &Wanted, observed: &Observed) -> bool {
    let port = observed.place(wanted).map(|(port, _)| port);
    let known = observed.floating_ip(wanted);
    known.is_some_and(|ip| ip.port_id.is_some() && ip.port_id == port)
}

/// [`Mark`] of the bastion in the spec of `object`: the cluster's identity with the relevant fields of the spec.
pub(crate) fn mark(object: &OpenStackCluster, cluster: Identity) -> Mark {
    let text = bastion_spec(&object.spec).map(|(bastion, spec)| {
        let is_managed = object.spec.managed_security_groups.is_some();
        let zone = bastion.availability_zone.as_ref();
        serde_json::json!([essence(spec), zone, is_managed]).to_string()
    });
    let identity = Identity::of_bastion(cluster, &text.unwrap_or_default());
    Mark::machine(cluster, identity)
}

/// Fields of a spec that decide about the server: equal for two specs with the same server.
fn essence(spec: &OpenStackMachineSpec) -> OpenStackMachineSpec {
    let mut spec = spec.clone();
    (spec.provider_id, spec.identity_ref) = (None, None);
    // The address moves.
    spec.floating_ip_pool_ref = None;
    spec.config_drive = spec.config_drive.filter(|wanted| *wanted);
    spec.ssh_key_name = spec.ssh_key_name.filter(|name| !name.is_empty());
    spec.tags.sort();
    spec.server_metadata.sort_by(|a, b| a.key.cmp(&b.key));
    spec.scheduler_hint_additional_properties
        .sort_by(|a, b| a.name.cmp(&b.name));
    for port in &mut spec.ports {
        port.trunk = port.trunk.or(spec.trunk).filter(|wanted| *wanted);
        port.tags.sort();
    }
    if !spec.ports.is_empty() || spec.trunk == Some(false) {
        spec.trunk = None;
    }
    spec
}

/// The spec of a new server with the id of the Image of ORC that it names. The mark of the bastion is made of the name.
async fn booted<'s>(
    ctx: &Context,
    cluster: &OpenStackCluster,
    spec: &'s OpenStackMachineSpec,
    is_new: bool,
) -> Result<Cow<'s, OpenStackMachineSpec>, Error> {
    if !is_new {
        return Ok(Cow::Borrowed(spec));
    }
    let named = images::named(ctx, &namespace(cluster), spec).await;
    named.map_err(|error| match error {
        Error::Problem(problem) => Error::Problem(of_bastion(problem)),
        other => other,
    })
}

/// [`Wanted`] bastion. References in the spec of an existing server are not looked up.
fn resolved(
    work: &Work<'_>,
    found: &Facts,
    observed: &OfCluster,
    (cluster, spec, pooled): (&OpenStackCluster, &OpenStackMachineSpec, Option<&Given>),
    mark: Mark,
) -> Result<Wanted, Problem> {
    let Some((bastion, _)) = bastion_spec(&cluster.spec) else {
        let text = "the bastion is not enabled";
        return Err(Problem::new(
            Type::BastionReady,
            Reason::InvalidClusterSpec,
            text,
        ));
    };
    let seen = Observed::new(observed, Some(mark));
    let mut server = None;
    if seen.is_without_server() {
        let scope = Scope {
            cluster_name: found.names.cluster().to_owned(),
            group: ManagedGroup::Bastion,
            server_group: None,
            failure_domain: bastion.availability_zone.clone(),
            zone_field: "bastion.availabilityZone",
            flavor_field: "flavor",
            project: format!("cloud {}", work.cloud.session.config().name),
        };
        let all = facts(spec, Some(cluster), mark, &scope, &observed.view).map_err(of_bastion)?;
        let tags = &cluster.spec.tags;
        server = Some(desired(&found.names.bastion(), spec, tags, &all, None));
    }
    let network = found.external_network.clone();
    let address = match pooled {
        Some(pooled) => Some(Address {
            network: network.unwrap_or_default(),
            given: Some(pooled.address.clone()),
            pool: pooled.pool,
        }),
        None => network.map(|network| Address {
            network,
            given: bastion.floating_ip.clone(),
            pool: None,
        }),
    };
    let tags = match found.tagging && !found.is_adopted {
        true => cluster
            .spec
            .tags
            .iter()
            .cloned()
            .chain(mark.tags())
            .collect(),
        false => Vec::new(),
    };
    let wanted = Wanted {
        mark,
        server,
        address,
        place: place(&cluster.spec, observed)?,
        description: mark.description(&found.names.description()),
        tags,
    };
    match seen.floating_ip(&wanted) {
        Some(ip) => {
            let pool = wanted.address.as_ref().and_then(|address| address.pool);
            address::for_bastion(ip, observed, pool).map(|()| wanted)
        }
        None => Ok(wanted),
    }
}

/// [`Problem`] with the spec of a machine as a problem with the bastion.
fn of_bastion(mut problem: Problem) -> Problem {
    let first = problem.message.split(' ').next().unwrap_or_default();
    if first.ends_with(':') {
        problem.message = format!("bastion.spec.{}", problem.message);
    }
    problem.about = Type::BastionReady;
    problem
}

impl Observed {
    fn is_without_server(&self) -> bool {
        self.current.as_ref().is_none_or(|it| it.server().is_none())
    }
}

fn condition(ctx: &Context, next: &mut OpenStackCluster, verdict: (Status, Reason, &str)) {
    kept::condition(next, ctx.now(), Type::BastionReady, verdict);
}

/// Writes status and condition.
fn show(ctx: &Context, next: &mut OpenStackCluster, wanted: Option<&Wanted>, outcome: &Outcome) {
    let (plan, observed) = (&outcome.plan, &outcome.observed);
    let step = plan.steps.first().map(|step| doing(&step.to_string()));
    let first = plan.waits.first().cloned().or(step);
    let Some(wanted) = wanted else {
        let status = next.status.get_or_insert_default();
        match first {
            None => {
                status.bastion = None;
                conditions::remove(&mut status.conditions, Type::BastionReady);
            }
            Some(text) => condition(ctx, next, (Status::False, Reason::Deleting, &text)),
        }
        return;
    };
    let server = observed.current.as_ref().and_then(|it| it.server());
    let key = bastion_spec(&next.spec).and_then(|(_, spec)| spec.ssh_key_name.clone());
    let status = next.status.get_or_insert_default();
    status.bastion = server.map(|server| bastion(wanted, observed, server, key));
    let (holds, reason, text) = match (first, server) {
        (Some(text), _) if plan.steps.is_empty() => (false, Reason::WaitingForCloud, text),
        (Some(text), _) => (false, Reason::Creating, text),
        (None, Some(server)) => state(server),
        (None, None) => (false, Reason::InstanceNotReady, String::new()),
    };
    condition(ctx, next, (holds.into(), reason, &text));
}

fn bastion(
    wanted: &Wanted,
    observed: &Observed,
    server: &Server,
    key: Option<String>,
) -> BastionStatus {
    let (port, address) = observed.place(wanted).unzip();
    let ip = observed.floating_ip(wanted);
    let ip = ip.filter(|ip| ip.port_id.is_some() && ip.port_id == port);
    BastionStatus {
        id: Some(server.id.clone()),
        name: Some(server.name.clone()),
        ssh_key_name: key.filter(|key| !key.is_empty()),
        state: Some(server.status.clone()),
        ip: address,
        floating_ip: ip.map(|ip| ip.floating_ip_address.clone()),
        ..BastionStatus::default()
    }
}

/// State of the bastion, by the state of its [`Server`].
fn state(server: &Server) -> (bool, Reason, String) {
    let id = &server.id;
    match server.status.as_str() {
        _ if server.is_deleting() => {
            let text = format!("server {id} is being deleted; another one follows");
            (false, Reason::InstanceDeleted, text)
        }
        "ACTIVE" => (true, Reason::Ready, String::new()),
        "ERROR" => {
            let why = fault_message(server);
            let text = format!(
                "server {id} is in ERROR: {why}. Delete it (openstack server delete {id}) and another one is created"
            );
            (false, Reason::InstanceStateError, text)
        }
        "" | "BUILD" => (
            false,
            Reason::InstanceNotReady,
            format!("creating server {id}"),
        ),
        other => (
            false,
            Reason::InstanceNotReady,
            format!("server {id} is {other}"),
        ),
    }
}

#[cfg(test)]
mod tests;
