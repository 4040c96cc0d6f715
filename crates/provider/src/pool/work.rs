//! Applies the plan of a pool.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Reason, Status, Type, Verdict};
use api::infra::v1alpha1::{OpenStackFloatingIPPool, ReclaimPolicy};
use api::ipam::v1beta2::{IPAddress, IPAddressClaim, IPAddressSpec, LocalReference, PoolReference};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::names::CLUSTER_NAME_LABEL;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Resource, ResourceExt};
use openstack::network::{FloatingIp, FloatingIpCreate, Network};
use openstack::{Cloud, Kind, View};
use operator::client::Api;
use operator::decode::{self, NotDecoded};
use operator::{finalizer, patch};

use super::ADDRESS_FINALIZER;
use super::plan::{self, Answer, Claim, Observed, Plan, Step, Wanted};
use crate::context::{self, Context, Error, FRESH, is_deleting, is_paused, namespace};
use crate::credentials;
use crate::identity::Identity;
use crate::machine::pooled::owned_by;
use crate::names::POOL_KIND;
use crate::problem::Problem;
use crate::recheck::in_lists_of_now;
use crate::resolve;
use crate::words::past;

/// The maximum number of plans in one reconcile: take back, delete, allocate, give and tell.
const ROUNDS: usize = 6;
const KINDS: &[Kind] = &[Kind::FloatingIps, Kind::Networks, Kind::Extensions];

/// The parameters of a reconcile.
pub(super) struct Work<'a> {
    pub(super) ctx: &'a Context,
    pub(super) object: &'a OpenStackFloatingIPPool,
    pub(super) cloud: &'a Cloud,
    pub(super) id: Identity,
}

impl Work<'_> {
    /// [`Wanted`] pool of the spec, and the network of the addresses.
    pub(super) async fn wanted(&self) -> Result<(Wanted, Arc<Network>), Problem> {
        let spec = &self.object.spec;
        let view = self.view(KINDS, self.age()).await?;
        let resolve = |view: &Arc<View>| {
            let param = spec.floating_ip_network.as_ref();
            let found = resolve::external_network(view, param, "floatingIPNetwork", "");
            found.cloned().map_err(|why| {
                why.problem(
                    Type::OpenstackFloatingIPPoolReadyCondition,
                    Reason::UnableToFindNetwork,
                )
            })
        };
        let (network, view) = in_lists_of_now(self.cloud, view, |view| view, resolve).await?;
        let has_tags = view.has_extension("standard-attr-tag");
        let upstream = format!(
            "cluster-api-provider-openstack-fip-pool-{}",
            self.object.name_any()
        );
        let tags = vec![upstream, self.id.pool_tag()];
        let most = spec.max_ips.unwrap_or(i64::MAX);
        let wanted = Wanted {
            most: usize::try_from(most).unwrap_or(0),
            reclaim: spec.reclaim_policy,
            tags: if has_tags { tags } else { Vec::new() },
            is_deleting: false,
            ..self.nothing()
        };
        Ok((wanted, network))
    }

    /// Empty [`Wanted`] pool, for the deletion.
    pub(super) fn nothing(&self) -> Wanted {
        Wanted {
            id: self.id,
            given: self.object.spec.pre_allocated_floating_ips.clone(),
            most: 0,
            reclaim: ReclaimPolicy::Delete,
            tags: Vec::new(),
            is_deleting: true,
        }
    }

    fn age(&self) -> Duration {
        let status = self.object.status.as_ref();
        let conditions = status.map(|status| status.conditions.as_slice());
        context::age(self.object, conditions)
    }

    async fn view(&self, kinds: &[Kind], age: Duration) -> Result<Arc<View>, Problem> {
        let view = self.cloud.inventory.view(kinds, age).await;
        view.map_err(|error| credentials::listing(&error))
    }

    /// Plans and applies until nothing is left to do. Without a network, nothing is allocated.
    ///
    /// # Errors
    /// Errors of the API server and of lists; a failed write to the cloud is in the [`Outcome`].
    pub(super) async fn apply(
        &self,
        wanted: &Wanted,
        network: Option<&str>,
    ) -> Result<Outcome, Error> {
        let (mut age, mut fresh) = (self.age(), BTreeSet::new());
        let mut round = 0;
        loop {
            let objects = self.objects().await?;
            let view = self.view(&[Kind::FloatingIps], age).await?;
            let observed = objects.with(&view);
            let mut outcome = Outcome::new(wanted, observed, objects);
            let is_doubtful =
                round == 0 && outcome.plan.allocates_beside(wanted, &outcome.observed);
            if is_doubtful || outcome.plan.needs_now(&fresh) {
                // Somebody else may use one of them.
                let now = self.view(&[Kind::FloatingIps], Duration::ZERO).await?;
                let observed = outcome.objects.with(&now);
                outcome = Outcome::new(wanted, observed, outcome.objects);
            }
            if outcome.plan.steps.is_empty() || round == ROUNDS {
                return Ok(outcome);
            }
            for step in &outcome.plan.steps {
                match self.step(step, wanted, network, &outcome).await {
                    Ok(address) => fresh.extend(address),
                    Err(Error::Problem(problem)) => {
                        outcome.problem = Some(problem);
                        return Ok(outcome);
                    }
                    Err(error) => return Err(error),
                }
            }
            (round, age) = (round + 1, FRESH);
        }
    }

    /// Claims and addresses in the namespace of the pool, as [`Objects`].
    async fn objects(&self) -> Result<Objects, Error> {
        let (client, namespace) = (self.ctx.client.clone(), namespace(self.object));
        let all = ListParams::default();
        let claims = Api::<IPAddressClaim>::namespaced(client.clone(), &namespace);
        let claims = decode::list(&claims, &all).await;
        let claims = claims.map_err(Error::kubernetes("listing IPAddressClaims"))?;
        let addresses = Api::<IPAddress>::namespaced(client, &namespace);
        let addresses = decode::list(&addresses, &all).await;
        let addresses = addresses.map_err(Error::kubernetes("listing IPAddresses"))?;
        // What is not seen is not free.
        NotDecoded::check::<IPAddressClaim>(&claims.undecodable, |_| true)?;
        NotDecoded::check::<IPAddress>(&addresses.undecodable, |_| true)?;
        let is_ours = |pool: &PoolReference| is_of(pool, self.object);
        let (addresses, others): (Vec<_>, Vec<_>) = addresses
            .objects
            .into_iter()
            .partition(|address| is_ours(&address.spec.pool_ref));
        let mut claims = claims.objects;
        claims.retain(|claim| is_ours(&claim.spec.pool_ref));
        claims.sort_by_key(|claim| {
            let created = claim.creation_timestamp().map(|created| created.0);
            (created, claim.name_any())
        });
        let mut at_rest: BTreeSet<_> = others.iter().map(ResourceExt::name_any).collect();
        for claim in &claims {
            if addresses.iter().any(|it| it.name_any() == claim.name_any()) {
                continue;
            }
            // A move of a cluster creates the claim before its address.
            let cluster = context::owner_cluster(&self.ctx.client, &labelled(claim)).await?;
            if is_deleting(claim) || is_paused(claim, cluster.as_ref()) {
                at_rest.insert(claim.name_any());
            }
        }
        Ok(Objects {
            claims,
            addresses,
            at_rest,
        })
    }

    /// Applies a [`Step`]; returns the address of a newly allocated floating IP.
    async fn step(
        &self,
        step: &Step,
        wanted: &Wanted,
        network: Option<&str>,
        outcome: &Outcome,
    ) -> Result<Option<String>, Error> {
        let inventory = &self.cloud.inventory;
        let objects = &outcome.objects;
        let ip = |id: &String| outcome.observed.ips.iter().find(|ip| ip.id == *id);
        let mut allocated = None;
        let result = match step {
            Step::Release(name) => return objects.release(self, name).await.map(|()| None),
            Step::Give { claim, address } => {
                return objects.give(self, claim, address).await.map(|()| None);
            }
            Step::Tell(claim) => {
                let verdict = Verdict::new(Type::Ready, Status::True, Reason::Ready);
                return objects.tell(self, claim, verdict).await.map(|()| None);
            }
            Step::Tag(id) => {
                let known = ip(id).map(|ip| ip.tags.as_slice()).unwrap_or_default();
                let missing = wanted.tags.iter().filter(|tag| !known.contains(tag));
                let tags: Vec<_> = known.iter().chain(missing).cloned().collect();
                inventory.set_tags::<FloatingIp>(id, &tags).await
            }
            Step::Delete(id) => inventory.delete_floating_ip(id).await,
            Step::Allocate => {
                let create = FloatingIpCreate {
                    floating_network_id: network.unwrap_or_default().to_owned(),
                    description: Some(self.id.pool_description(&self.object.name_any())),
                    ..FloatingIpCreate::default()
                };
                let created = inventory.create_floating_ip(&create).await;
                created.map(|created| allocated = Some(created.floating_ip_address.clone()))
            }
        };
        if result.is_err() {
            inventory.stale(Kind::FloatingIps);
        }
        self.reported(step, result).await?;
        Ok(allocated)
    }

    /// Publishes the events of a write to the cloud.
    async fn reported(&self, step: &Step, result: openstack::Result<()>) -> Result<(), Problem> {
        let (recorder, object, event) = (&self.ctx.recorder, self.object, step.event());
        let error = match (result, event) {
            (Ok(()), None) => return Ok(()),
            (Ok(()), Some(event)) => {
                let (reason, text) = (format!("Successful{event}"), past(&step.to_string()));
                recorder.normal(object, &reason, event, text).await;
                return Ok(());
            }
            (Err(error), _) => error,
        };
        if credentials::is_authentication(&error) {
            return Err(credentials::listing(&error));
        }
        let reason = Reason::FloatingIPError;
        let mut problem = Problem::cloud(
            Type::OpenstackFloatingIPPoolReadyCondition,
            reason,
            &step.to_string(),
            &error,
        );
        if let Some(event) = event {
            let reason = format!("Failed{event}");
            let text = &problem.message;
            recorder.warning(object, &reason, event, text).await;
            problem.is_announced = true;
        }
        Err(problem)
    }

    /// Writes the reason into claims without an address.
    ///
    /// # Errors
    /// Errors of the API server.
    pub(super) async fn tell_waiting(&self, outcome: &Outcome) -> Result<(), Error> {
        let objects = &outcome.objects;
        for claim in &objects.claims {
            let name = claim.name_any();
            let has_address = objects.addresses.iter().any(|it| it.name_any() == name);
            if has_address || objects.at_rest.contains(&name) {
                continue;
            }
            let (reason, text) = match &outcome.problem {
                _ if outcome.plan.refused.contains(&name) => {
                    let text = "the pool has given out as many addresses as maxIPs says";
                    (Reason::MaxIPsReached, text)
                }
                Some(problem) => (problem.reason, problem.message.as_str()),
                None => continue,
            };
            let verdict = Verdict::new(Type::Ready, Status::False, reason).because(text);
            objects.tell(self, &name, verdict).await?;
        }
        Ok(())
    }
}

/// Pool after the steps.
pub(super) struct Outcome {
    pub(super) observed: Observed,
    /// Remaining [`Plan`].
    pub(super) plan: Plan,
    /// The claims and addresses.
    objects: Objects,
    /// [`Problem`] that stopped the plan.
    pub(super) problem: Option<Problem>,
}

impl Outcome {
    fn new(wanted: &Wanted, observed: Observed, objects: Objects) -> Self {
        let plan = plan::plan(wanted, &observed);
        Self {
            observed,
            plan,
            objects,
            problem: None,
        }
    }
}

/// The claims and addresses of a pool.
struct Objects {
    claims: Vec<IPAddressClaim>,
    addresses: Vec<IPAddress>,
    /// Names of claims without an address now.
    at_rest: BTreeSet<String>,
}

impl Objects {
    /// [`Observed`] pool, with the floating IPs of a [`View`].
    fn with(&self, view: &View) -> Observed {
        let claims = self.claims.iter().map(|claim| Claim {
            name: claim.name_any(),
            uid: claim.uid().unwrap_or_default(),
            answer: claim
                .status
                .as_ref()
                .and_then(|status| Some(status.address_ref.as_ref()?.name.clone())),
            is_at_rest: self.at_rest.contains(&claim.name_any()),
        });
        let answers = self.addresses.iter().map(|address| {
            let mut owners = address.owner_references().iter();
            let owner = owners.find(|owner| owner.kind == IPAddressClaim::kind(&()));
            Answer {
                name: address.name_any(),
                claim: address.spec.claim_ref.name.clone(),
                owner: owner.map(|owner| owner.uid.clone()),
                address: address.spec.address.clone(),
            }
        });
        Observed {
            claims: claims.collect(),
            answers: answers.collect(),
            ips: view.floating_ips.iter().cloned().collect(),
        }
    }

    async fn release(&self, work: &Work<'_>, name: &str) -> Result<(), Error> {
        let api = Api::<IPAddress>::namespaced(work.ctx.client.clone(), &namespace(work.object));
        let mut all = self.addresses.iter();
        if let Some(address) = all.find(|address| address.name_any() == name) {
            let freed = finalizer::remove(&api, address, ADDRESS_FINALIZER).await;
            freed.map_err(Error::kubernetes("releasing an IPAddress"))?;
        }
        match api.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map_err(Error::kubernetes("deleting an IPAddress")),
        }
    }

    async fn give(&self, work: &Work<'_>, name: &str, address: &str) -> Result<(), Error> {
        let mut all = self.claims.iter();
        let Some(claim) = all.find(|claim| claim.name_any() == name) else {
            return Ok(());
        };
        let mut object = IPAddress::new(
            name,
            IPAddressSpec {
                claim_ref: LocalReference {
                    name: name.to_owned(),
                },
                pool_ref: claim.spec.pool_ref.clone(),
                address: address.to_owned(),
                prefix: 32,
                gateway: None,
            },
        );
        object.metadata.finalizers = Some(vec![ADDRESS_FINALIZER.to_owned()]);
        object.metadata.owner_references = Some(vec![OwnerReference {
            block_owner_deletion: Some(true),
            ..owned_by(claim)
        }]);
        let cluster = claim.labels().get(CLUSTER_NAME_LABEL).cloned();
        object.metadata.labels = cluster.map(|name| [(CLUSTER_NAME_LABEL.to_owned(), name)].into());
        let api = Api::<IPAddress>::namespaced(work.ctx.client.clone(), &namespace(work.object));
        let created = api.create(&PostParams::default(), &object).await;
        created.map_err(Error::kubernetes("creating an IPAddress"))?;
        Ok(())
    }

    /// Writes the IPAddress, or its absence, into the status of a claim.
    async fn tell(&self, work: &Work<'_>, name: &str, verdict: Verdict) -> Result<(), Error> {
        let mut all = self.claims.iter();
        let Some(claim) = all.find(|claim| claim.name_any() == name) else {
            return Ok(());
        };
        let (mut next, now) = (claim.clone(), work.ctx.now());
        let status = next.status.get_or_insert_default();
        if matches!(verdict.status, Status::True) {
            status.address_ref = Some(LocalReference {
                name: name.to_owned(),
            });
        }
        api::conditions::set(
            &mut status.conditions,
            verdict,
            claim.metadata.generation,
            now,
        );
        let namespace = namespace(work.object);
        let claims = Api::<IPAddressClaim>::namespaced(work.ctx.client.clone(), &namespace);
        let stored = patch::status(&claims, claim, &next).await;
        stored.map_err(Error::kubernetes("answering an IPAddressClaim"))?;
        Ok(())
    }
}

/// True if the reference is to this pool.
fn is_of(reference: &PoolReference, pool: &OpenStackFloatingIPPool) -> bool {
    reference.api_group == api::infra::GROUP
        && reference.kind == POOL_KIND
        && reference.name == pool.name_any()
}

/// [`IPAddressClaim`] with the label of the Cluster in its spec.
fn labelled(claim: &IPAddressClaim) -> IPAddressClaim {
    let mut claim = claim.clone();
    if let Some(name) = claim.spec.cluster_name.clone() {
        claim
            .labels_mut()
            .insert(CLUSTER_NAME_LABEL.to_owned(), name);
    }
    claim
}
