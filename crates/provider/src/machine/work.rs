//! Applies the steps of the plan of a server, with or without a machine.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{FlavorParam, OpenStackMachine, OpenStackMachineSpec};
use api::k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use openstack::{Cloud, Kind, View};
use operator::retry::When;

use super::failed::Placement;
use super::observed::{Observed, References};
use super::plan::{self, Request, Step};
use super::pooled::Given;
use crate::context::{self, Context, Error};
use crate::credentials;
use crate::identity::Mark;
use crate::problem::Problem;
use crate::words::past;

/// Maximum age of the view for a machine with a silent Node.
const SUSPICIOUS: Duration = Duration::from_secs(5);

/// The parameters of the reconcile of a machine.
pub(super) struct Work<'a> {
    pub(super) object: &'a OpenStackMachine,
    /// True for a silent Node of the machine, whose server may be gone.
    pub(super) is_silent: bool,
    server: ServerWork<'a>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        ctx: &'a Context,
        object: &'a OpenStackMachine,
        (spec, place): (&'a OpenStackMachineSpec, &Placement),
        cloud: &'a Cloud,
        mark: Mark,
        is_silent: bool,
    ) -> Self {
        let status = object.status.as_ref();
        let age = context::age(object, status.map(|status| status.conditions.as_slice()));
        Self {
            object,
            is_silent,
            server: ServerWork {
                ctx,
                about: object.object_ref(&()),
                spec,
                cloud,
                mark,
                before: References::from_object(object),
                failure_domain: place.zone.clone(),
                zone_field: place.zone_field,
                flavor_field: place.flavor_field(),
                address: None,
                age: if is_silent { age.min(SUSPICIOUS) } else { age },
            },
        }
    }
}

impl<'a> Deref for Work<'a> {
    type Target = ServerWork<'a>;

    fn deref(&self) -> &ServerWork<'a> {
        &self.server
    }
}

impl DerefMut for Work<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.server
    }
}

/// Parameters of the reconcile of a server, with or without a machine.
pub(crate) struct ServerWork<'a> {
    pub(crate) ctx: &'a Context,
    /// [`ObjectReference`] of events.
    pub(crate) about: ObjectReference,
    pub(crate) spec: &'a OpenStackMachineSpec,
    pub(crate) cloud: &'a Cloud,
    pub(crate) mark: Mark,
    /// [`References`] server and ports before this reconcile.
    pub(crate) before: References,
    /// Requested zone.
    pub(crate) failure_domain: Option<String>,
    /// Field with the zone.
    pub(crate) zone_field: &'static str,
    /// Field with the flavor.
    pub(crate) flavor_field: &'static str,
    /// Floating IP [`Given`] by a pool.
    pub(crate) address: Option<Given>,
    /// The maximum age of the view.
    pub(crate) age: Duration,
}

impl ServerWork<'_> {
    pub(crate) async fn observe(&self, kinds: &[Kind], age: Duration) -> Result<Observed, Problem> {
        let view = self.cloud.inventory.view(kinds, age).await;
        Ok(self.of_view(view.map_err(|error| credentials::listing(&error))?))
    }

    /// [`Observed`] state of the machine in a [`View`].
    pub(crate) fn of_view(&self, view: Arc<View>) -> Observed {
        Observed::new(view, self.mark, self.before.clone())
    }

    pub(crate) fn known(&self) -> Observed {
        self.of_view(self.cloud.inventory.known())
    }

    /// Plans once, applies all possible steps, and returns the reason to wait.
    pub(crate) async fn apply(
        &self,
        kinds: &[Kind],
        plan: impl Fn(&Observed) -> plan::Plan,
        request: impl Fn(&Step, &Observed) -> Option<Request>,
    ) -> Result<Vec<String>, Error> {
        let given = self.address.as_ref();
        let plan = |observed: &Observed| plan::with_address(plan(observed), given, observed);
        let now = plan(&self.observe(kinds, self.age).await?);
        self.check_address().await?;
        for step in &now.steps {
            let Some(request) = request(step, &self.known()) else {
                continue;
            };
            self.step(step, &request).await?;
        }
        // A deletion is complete when the resource is gone, not when the cloud accepts the request.
        Ok(plan(&self.known()).waits)
    }

    /// Checks that the floating IP may be associated, in a current list: Neutron would take the address from any port.
    async fn check_address(&self) -> Result<(), Problem> {
        let Some(given) = &self.address else {
            return Ok(());
        };
        let known = self.known();
        if given.is_at(&known.ports, &known.view) {
            return Ok(());
        }
        self.observe(&[Kind::Routers], self.age).await?;
        let now = self.observe(&[Kind::FloatingIps], Duration::ZERO).await?;
        given.check(&now.ports, &now.view)
    }

    async fn step(&self, step: &Step, request: &Request) -> Result<(), Problem> {
        let result = plan::send(&self.cloud.inventory, request).await;
        let event = step.event();
        match (result, event) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(event)) => {
                let reason = format!("Successful{event}");
                let text = past(&step.to_string());
                let recorder = &self.ctx.recorder;
                recorder
                    .normal_about(&self.about, &reason, event, text)
                    .await;
                Ok(())
            }
            (Err(error), event) => {
                let mut problem = self.problem(step, &error);
                if let (Some(event), true) = (event, error.kind() != openstack::ErrorKind::Busy) {
                    let reason = format!("Failed{event}");
                    let recorder = &self.ctx.recorder;
                    recorder
                        .warning_about(&self.about, &reason, event, &problem.message)
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
        let reason = match step {
            Step::CreateServer => Reason::InstanceCreateFailed,
            Step::RebuildServer(_) => Reason::InPlaceUpdateFailed,
            Step::CreatePorts | Step::TagPort(_) | Step::CreateTrunk(_) | Step::TagTrunk(_) => {
                Reason::PortCreateFailed
            }
            Step::SetPairs(_) | Step::Repair(_) => Reason::PortUpdateFailed,
            Step::CreateVolume(_) => Reason::VolumeCreateFailed,
            Step::AssociateFloatingIp(_) => Reason::FloatingIPError,
            _ => Reason::InstanceDeleteFailed,
        };
        let about = match step {
            Step::AssociateFloatingIp(_) => Type::FloatingAddressFromPoolReady,
            _ => Type::InstanceReady,
        };
        let mut problem = Problem::cloud(about, reason, &step.to_string(), error);
        if let (Step::CreateServer, Some(key)) = (step, &self.spec.ssh_key_name)
            && error.message().to_ascii_lowercase().contains("key")
        {
            problem
                .message
                .push_str(&format!(" (sshKeyName is `{key}`)"));
        }
        if matches!(step, Step::CreateServer) && error.kind() == openstack::ErrorKind::Invalid {
            problem.message.push_str(&self.given(error.message()));
        }
        let is_quota = error.kind() == openstack::ErrorKind::Quota;
        let is_final = matches!(
            error.kind(),
            openstack::ErrorKind::Invalid | openstack::ErrorKind::Quota
        );
        problem.is_refused = is_final && matches!(step, Step::RebuildServer(_));
        problem.lacks_quota = is_quota && matches!(step, Step::CreateServer);
        if error.kind() == openstack::ErrorKind::Busy {
            problem.when = When::After(Duration::from_secs(1));
        }
        problem
    }

    /// Values of the fields in Nova's message, which leaves them out.
    fn given(&self, message: &str) -> String {
        let message = message.to_ascii_lowercase();
        let flavor = match &self.spec.flavor {
            FlavorParam::Id(id) => Some(id.clone()),
            FlavorParam::Filter(filter) => filter.name.clone(),
        };
        let zone = self.failure_domain.clone();
        let fields = [
            ("flavor", self.flavor_field, flavor),
            ("zone", self.zone_field, zone),
        ];
        let values = fields.into_iter().filter_map(|(word, field, value)| {
            let value = value.filter(|value| message.contains(word) && !message.contains(value))?;
            Some(format!(" ({field} is `{value}`)"))
        });
        values.collect()
    }
}
