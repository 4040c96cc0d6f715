//! Applies the steps of a plan.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Reason, Type};
use api::infra::v1beta2::OpenStackCluster;
use openstack::{Cloud, Kind, View};
use operator::events::Recorder;

use load_balancing::Action;

use super::observed::{Observed, References};
use super::plan::{Plan, Step};
use super::request::{Request, send};
use super::subnet_pools;
pub(super) use crate::context::FRESH;
use crate::credentials;
use crate::failures::Unmonitored;
use crate::identity::Identity;
use crate::problem::Problem;
use crate::words::past;

/// Maximum number of plans in one reconcile. If more are needed, the cloud accepts requests without effect.
const ROUNDS: usize = 6;
/// Parameters of a reconcile.
pub(crate) struct Work<'a> {
    pub(crate) object: &'a OpenStackCluster,
    pub(crate) recorder: &'a Recorder,
    pub(crate) cloud: &'a Cloud,
    pub(crate) cluster: Identity,
    pub(crate) unmonitored: &'a Unmonitored,
    pub(crate) kinds: &'a [Kind],
    /// Maximum age of the view.
    pub(crate) age: Duration,
}

/// The result of applying a plan.
pub(crate) struct Outcome {
    /// [`Observed`] state after the last step.
    pub(crate) observed: Observed,
    /// Remaining [`Plan`].
    pub(crate) plan: Plan,
    /// [`Problem`] that stopped the plan.
    pub(crate) problem: Option<Problem>,
}

impl Work<'_> {
    /// [`Observed`] state, with `kinds` read at most `age` ago.
    pub(crate) async fn observe(&self, kinds: &[Kind], age: Duration) -> Result<Observed, Problem> {
        let view = self.cloud.inventory.view(kinds, age).await;
        Ok(self.of_view(view.map_err(|error| credentials::listing(&error))?))
    }

    /// [`Observed`] state of the cluster in a [`View`].
    pub(crate) fn of_view(&self, view: Arc<View>) -> Observed {
        Observed::new(view, self.cluster, &References::from_object(self.object))
    }

    /// Last [`Observed`] state, including the effects of writes in this reconcile.
    pub(crate) fn known(&self) -> Observed {
        self.of_view(self.cloud.inventory.known())
    }

    /// Plans and applies until only waits are left.
    pub(crate) async fn apply(
        &self,
        plan: impl Fn(&Observed) -> Plan,
        request: impl Fn(&Step, &Observed) -> Option<Request>,
    ) -> Result<Outcome, Problem> {
        for _ in 0..ROUNDS {
            let observed = self.observe(self.kinds, self.age).await?;
            let now = plan(&observed);
            let mut sent = false;
            for step in &now.steps {
                let Some(request) = request(step, &self.known()) else {
                    continue;
                };
                sent = true;
                if let Err(problem) = self.step(step, &request).await {
                    let observed = self.known();
                    let plan = plan(&observed);
                    return Ok(Outcome {
                        observed,
                        plan,
                        problem: Some(problem),
                    });
                }
            }
            if !sent {
                return Ok(Outcome {
                    observed,
                    plan: now,
                    problem: None,
                });
            }
        }
        let observed = self.known();
        let plan = plan(&observed);
        let left = plan
            .steps
            .iter()
            .map(Step::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let about = plan.steps.first().map_or(Type::Ready, Step::about);
        let message =
            format!("the cloud accepts requests that have no effect; remaining steps: {left}");
        let problem = Some(Problem::new(about, Reason::OpenStackError, message));
        Ok(Outcome {
            observed,
            plan,
            problem,
        })
    }

    async fn step(&self, step: &Step, request: &Request) -> Result<(), Problem> {
        let result = send(&self.cloud.inventory, request).await;
        let Some(event) = step.event() else {
            return result.map_err(|error| self.problem(step, &error));
        };
        match result {
            Ok(()) => {
                let reason = format!("Successful{event}");
                self.recorder
                    .normal(self.object, &reason, event, past(&step.to_string()))
                    .await;
                Ok(())
            }
            Err(error) if self.goes_without(step, request, &error).await => Ok(()),
            Err(error) => {
                let mut problem = self.problem(step, &error);
                // A temporary conflict, such as an address that is still in use, is not worth an event.
                if error.kind() != openstack::ErrorKind::Busy {
                    let reason = format!("Failed{event}");
                    self.recorder
                        .warning(self.object, &reason, event, &problem.message)
                        .await;
                    problem.is_announced = true;
                }
                Err(problem)
            }
        }
    }

    fn problem(&self, step: &Step, error: &openstack::Error) -> Problem {
        if credentials::is_authentication(error) {
            return credentials::listing(error);
        }
        let reason = match step.about() {
            Type::NetworkReady if matches!(step, Step::CreateSubnet(_)) => {
                Reason::SubnetCreateFailed
            }
            Type::NetworkReady => Reason::NetworkCreateFailed,
            Type::RouterReady => Reason::RouterCreateFailed,
            Type::SecurityGroupsReady => Reason::SecurityGroupCreateFailed,
            Type::APIEndpointReady => Reason::APIEndpointConfigFailed,
            _ => Reason::OpenStackError,
        };
        let mut problem = Problem::cloud(step.about(), reason, &step.to_string(), error);
        let explained = self.not_allocated(step, error);
        if let Some(text) = explained.or_else(|| self.no_range(step, error)) {
            problem.message = text;
        }
        if error.kind() == openstack::ErrorKind::Busy {
            problem.when = operator::retry::When::After(Duration::from_secs(1));
        }
        problem
    }
}

impl Work<'_> {
    /// True for a health monitor unsupported by the driver; the load balancer is remembered, and an event tells the
    /// user.
    async fn goes_without(&self, step: &Step, request: &Request, error: &openstack::Error) -> bool {
        let is_refused = error.status().is_some_and(|status| status.as_u16() == 501);
        let inner = match step {
            Step::InZone(_, inner) => inner.as_ref(),
            step => step,
        };
        let (true, Step::ChangeBalancer(Action::CreateMonitor, _)) = (is_refused, inner) else {
            return false;
        };
        let Request::ChangeBalancer { balancer, .. } = request else {
            return false;
        };
        self.unmonitored.note(balancer);
        let text = format!(
            "The load balancer goes on without health monitors, so that it sends clients to machines that do not answer, too: {}",
            error.cause(&step.to_string())
        );
        let recorder = self.recorder;
        recorder
            .warning(self.object, "SkippedCreateMonitor", "CreateMonitor", &text)
            .await;
        true
    }

    /// Message for a subnet pool without room.
    fn no_range(&self, step: &Step, error: &openstack::Error) -> Option<String> {
        let Step::CreateSubnet(family) = step else {
            return None;
        };
        subnet_pools::exhausted(&self.object.spec, *family, &step.to_string(), error)
    }

    /// Reason why the address of `apiServer.floatingIP` could not be allocated: the project has no such floating IP,
    /// and Neutron lets only administrators choose an address.
    fn not_allocated(&self, step: &Step, error: &openstack::Error) -> Option<String> {
        let given = self.object.spec.api_server.as_ref()?.floating_ip.as_ref();
        let denied = error.kind() == openstack::ErrorKind::Denied;
        let address = given.filter(|_| denied && matches!(step, Step::CreateFloatingIp))?;
        Some(format!(
            "apiServer.floatingIP: the project has no floating IP {address}, and only an administrator may allocate a \
             certain address: allocate one (openstack floating ip create NETWORK) and give its address, or give none \
             and one is allocated ({})",
            error.cause(&step.to_string())
        ))
    }
}

/// [`Kind`]s of resources used by a cluster, without kinds of services missing in the cloud.
pub(crate) async fn kinds(cloud: &Cloud, balancer: bool, deleting: bool) -> Arc<[Kind]> {
    use openstack::Service;
    let mut kinds = vec![
        Kind::Networks,
        Kind::Subnets,
        Kind::Routers,
        Kind::Ports,
        Kind::SecurityGroups,
        Kind::FloatingIps,
        Kind::Servers,
        Kind::Extensions,
    ];
    if !deleting {
        kinds.push(Kind::Zones);
    }
    let has = async |service| cloud.session.has(service).await.unwrap_or(false);
    if balancer || (deleting && has(Service::LoadBalancer).await) {
        kinds.extend([
            Kind::LoadBalancers,
            Kind::Listeners,
            Kind::Pools,
            Kind::Members,
            Kind::Monitors,
        ]);
    }
    if deleting && has(Service::Volume).await {
        kinds.push(Kind::Volumes);
    }
    kinds.into()
}
