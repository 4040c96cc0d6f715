//! Starts the controllers and their watches.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1alpha1::{OpenStackFloatingIPPool, OpenStackServer};
use api::infra::v1beta2::{
    IdentityRef, IdentityType, OpenStackCluster, OpenStackMachine, OpenStackMachineTemplate,
};
use api::ipam::v1beta2::{IPAddress, IPAddressClaim, PoolReference};
use api::k8s_openapi::api::core::v1::Secret;
use api::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use futures::FutureExt as _;
use futures::Stream;
use futures::future::BoxFuture;
use kube::core::PartialObjectMeta;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use openstack::CloudPool;
use operator::client::Api;
use operator::controller::{self, Settings};
use operator::events::Recorder;
use operator::watch::{self, Reports};
use tokio_util::sync::CancellationToken;

use crate::claims::Claims;
use crate::console::Consoles;
use crate::context::{Context, Error, namespace, owner};
use crate::failures::{Failures, Unmonitored};
use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, Mark, POOL_ID};
use crate::images::OrcImage;
use crate::index::{Index, Key};
use crate::looks::Looks;
use crate::options::Options;
use crate::problem::Awaited;
use crate::{cluster, images, machine, names, pool, server, template, wake};

/// The names of the controllers, in logs and metrics.
const CLUSTERS: &str = "openstackcluster";
const MACHINES: &str = "openstackmachine";
const SERVERS: &str = "openstackserver";
const POOLS: &str = "openstackfloatingippool";
const TEMPLATES: &str = "openstackmachinetemplate";

/// Runs the controllers of OpenStackCluster, OpenStackMachine, OpenStackServer and OpenStackFloatingIPPool until
/// `shutdown`, and returns after the running reconciles.
///
/// Boxed, so that the controllers are compiled in this crate alone.
pub fn run(
    client: Client,
    options: Options,
    shutdown: CancellationToken,
) -> BoxFuture<'static, ()> {
    controllers(client, options, shutdown).boxed()
}

async fn controllers(client: Client, options: Options, shutdown: CancellationToken) {
    let clouds = options.shared.clone().unwrap_or_else(|| {
        let requests = &options.clouds.session.metrics;
        options
            .metrics
            .register(|registry| requests.register(registry));
        CloudPool::new(options.clouds.clone())
    });
    let claims = Arc::new(Claims::default());
    let context = |controller: &str| {
        let client = operator::client::named(&client, &format!("ferrostack-{controller}"));
        Arc::new(Context {
            clouds: clouds.clone(),
            recorder: Recorder::new(client.clone(), "cluster-api-provider-openstack"),
            client,
            options: options.clone(),
            consoles: Consoles::default(),
            failures: Failures::default(),
            unmonitored: Unmonitored::default(),
            looks: Looks::default(),
            images: tokio::sync::watch::channel(false).0,
            claims: Arc::clone(&claims),
            shutdown: shutdown.clone(),
        })
    };
    let (of_clusters, of_machines) = (context(CLUSTERS), context(MACHINES));
    let (of_pools, of_servers) = (context(POOLS), context(SERVERS));
    let of_templates = context(TEMPLATES);
    let (follower, scope) = (of_machines.client.clone(), options.namespace.as_deref());
    tokio::join!(
        clusters(of_clusters, shutdown.clone()),
        machines(of_machines, shutdown.clone()),
        pools(of_pools, shutdown.clone()),
        servers(of_servers, shutdown.clone()),
        templates(of_templates, shutdown.clone()),
        claims.follow(&follower, scope, &shutdown)
    );
}

async fn machines(ctx: Arc<Context>, shutdown: CancellationToken) {
    let controller = watch::controller::<OpenStackMachine>(
        all(&ctx),
        config(&ctx.options),
        reports(&ctx, MACHINES, true),
    );
    let index = Index::new(controller.store(), machine_keys);
    let (of_cluster, of_infra) = (Arc::clone(&index), Arc::clone(&index));
    let of_secret = Arc::clone(&index);
    let of_image = Arc::clone(&index);
    let changes = wake::machines(ctx.clouds.changes(), Arc::clone(&index));
    let contested = wake::contested(&ctx.claims, Arc::clone(&index));
    let controller = controller
        .watches_stream(
            watch::touched::<Machine>(all(&ctx), reports(&ctx, MACHINES, false)),
            |machine| {
                let reference = &machine.spec.infrastructure_ref;
                let namespace = machine.namespace().unwrap_or_default();
                (reference.kind == "OpenStackMachine")
                    .then(|| ObjectRef::new(&reference.name).within(&namespace))
            },
        )
        .watches_stream(
            watch::touched::<Cluster>(all(&ctx), reports(&ctx, MACHINES, false)),
            move |cluster| of_cluster.find(&Key::Cluster(namespace(&cluster), cluster.name_any())),
        )
        .watches_stream(
            watch::touched::<OpenStackCluster>(all(&ctx), reports(&ctx, MACHINES, false)),
            move |infra| {
                let label = infra.labels().get(CLUSTER_NAME_LABEL).map(String::as_str);
                let cluster = owner(&infra, "Cluster").or(label).unwrap_or_default();
                of_infra.find(&Key::Cluster(namespace(&infra), cluster.to_owned()))
            },
        )
        .watches_stream(secrets(&ctx), move |secret: PartialObjectMeta<Secret>| {
            of_secret.find(&Key::Secret(namespace(&secret), secret.name_any()))
        })
        .watches_stream(orc_images(&ctx), move |image| {
            of_image.find(&Key::Image(namespace(&image), image.name_any()))
        })
        .watches_stream(ip_claims(&ctx), owner_of::<OpenStackMachine>)
        .reconcile_on(changes)
        .reconcile_on(contested);
    let settings = Settings {
        name: MACHINES,
        concurrency: ctx.options.machine_concurrency,
        objects: ctx.options.objects.clone(),
        metrics: ctx.options.metrics.clone(),
        shutdown,
    };
    let reconcile = move |object: Arc<OpenStackMachine>, ctx| {
        index.enter(&object);
        let index = Arc::clone(&index);
        async move {
            let result = machine::reconcile(Arc::clone(&object), ctx).await;
            if let Some(key) = awaited(&result) {
                index.awaits(&object, key);
            }
            result
        }
    };
    controller::run(controller, reconcile, ctx, settings).await;
}

/// Index [`Key`]s of an [`OpenStackMachine`].
fn machine_keys(object: &OpenStackMachine) -> BTreeSet<Key> {
    let cluster = object.labels().get(CLUSTER_NAME_LABEL).cloned();
    let mut keys = BTreeSet::new();
    keys.extend(cluster.map(|name| Key::Cluster(namespace(object), name)));
    let identity_ref = object.spec.identity_ref.as_ref();
    keys.extend(identity_ref.and_then(|it| secret_key(&namespace(object), it)));
    let (machine, cluster) = (
        Identity::for_object(object, MACHINE_ID),
        Identity::for_object(object, CLUSTER_ID),
    );
    if object.spec.floating_ip_pool_ref.is_some() {
        let addresses = object.status.iter().flat_map(|status| &status.addresses);
        keys.extend(addresses.map(|address| Key::Address(address.address.clone())));
    }
    if let (Some(machine), Some(cluster)) = (machine, cluster) {
        keys.insert(Key::Mark(Mark::machine(cluster, machine)));
        if object.labels().contains_key(CONTROL_PLANE_LABEL) {
            keys.insert(Key::Members(cluster));
        }
    }
    keys
}

async fn clusters(ctx: Arc<Context>, shutdown: CancellationToken) {
    let controller = watch::controller::<OpenStackCluster>(
        all(&ctx),
        config(&ctx.options),
        reports(&ctx, CLUSTERS, true),
    );
    let index = Index::new(controller.store(), cluster_keys);
    let (of_cluster, of_machine) = (Arc::clone(&index), Arc::clone(&index));
    let of_secret = Arc::clone(&index);
    let of_image = Arc::clone(&index);
    let changes = wake::clusters(ctx.clouds.changes(), Arc::clone(&index));
    let controller = controller
        .watches_stream(
            watch::touched::<Cluster>(all(&ctx), reports(&ctx, CLUSTERS, false)),
            move |cluster| of_cluster.find(&Key::Cluster(namespace(&cluster), cluster.name_any())),
        )
        .watches_stream(
            watch::touched::<OpenStackMachine>(all(&ctx), reports(&ctx, CLUSTERS, false)),
            move |machine| {
                // Of worker machines, only the deletion concerns the cluster.
                let concerns = machine.labels().contains_key(CONTROL_PLANE_LABEL)
                    || machine.metadata.deletion_timestamp.is_some();
                match machine.labels().get(CLUSTER_NAME_LABEL) {
                    Some(name) if concerns => {
                        of_machine.find(&Key::Cluster(namespace(&machine), name.clone()))
                    }
                    _ => Vec::new(),
                }
            },
        )
        .watches_stream(secrets(&ctx), move |secret: PartialObjectMeta<Secret>| {
            of_secret.find(&Key::Secret(namespace(&secret), secret.name_any()))
        })
        .watches_stream(orc_images(&ctx), move |image| {
            of_image.find(&Key::Image(namespace(&image), image.name_any()))
        })
        .watches_stream(ip_claims(&ctx), owner_of::<OpenStackCluster>)
        .reconcile_on(changes)
        .reconcile_on(ctx.claims.clusters.contested());
    let settings = Settings {
        name: CLUSTERS,
        concurrency: ctx.options.cluster_concurrency,
        objects: ctx.options.objects.clone(),
        metrics: ctx.options.metrics.clone(),
        shutdown,
    };
    let reconcile = move |object: Arc<OpenStackCluster>, ctx| {
        index.enter(&object);
        let index = Arc::clone(&index);
        async move {
            let result = cluster::reconcile(Arc::clone(&object), ctx).await;
            if let Some(key) = awaited(&result) {
                index.awaits(&object, key);
            }
            result
        }
    };
    controller::run(controller, reconcile, ctx, settings).await;
}

/// Index [`Key`]s of an [`OpenStackCluster`].
fn cluster_keys(object: &OpenStackCluster) -> BTreeSet<Key> {
    let label = object.labels().get(CLUSTER_NAME_LABEL).map(String::as_str);
    let names = [owner(object, "Cluster"), label].into_iter().flatten();
    let mut keys: BTreeSet<_> = names
        .map(|name| Key::Cluster(namespace(object), name.to_owned()))
        .collect();
    let id = Identity::for_object(object, CLUSTER_ID);
    keys.extend(id.map(|id| Key::Mark(Mark::cluster(id))));
    keys.extend(secret_key(&namespace(object), &object.spec.identity_ref));
    keys
}

async fn pools(ctx: Arc<Context>, shutdown: CancellationToken) {
    let controller = watch::controller::<OpenStackFloatingIPPool>(
        all(&ctx),
        config(&ctx.options),
        reports(&ctx, POOLS, true),
    );
    let index = Index::new(controller.store(), pool_keys);
    let of_secret = Arc::clone(&index);
    let changes = wake::pools(ctx.clouds.changes(), Arc::clone(&index));
    let controller = controller
        .watches_stream(
            watch::touched::<IPAddressClaim>(all(&ctx), reports(&ctx, POOLS, false)),
            |claim| pool_of(&claim.spec.pool_ref, &namespace(&claim)),
        )
        .watches_stream(
            watch::touched::<IPAddress>(all(&ctx), reports(&ctx, POOLS, false)),
            |address| pool_of(&address.spec.pool_ref, &namespace(&address)),
        )
        .watches_stream(secrets(&ctx), move |secret: PartialObjectMeta<Secret>| {
            of_secret.find(&Key::Secret(namespace(&secret), secret.name_any()))
        })
        .reconcile_on(changes)
        .reconcile_on(ctx.claims.pools.contested());
    let settings = Settings {
        name: POOLS,
        concurrency: ctx.options.cluster_concurrency,
        objects: ctx.options.objects.clone(),
        metrics: ctx.options.metrics.clone(),
        shutdown,
    };
    let reconcile = move |object: Arc<OpenStackFloatingIPPool>, ctx| {
        index.enter(&object);
        let index = Arc::clone(&index);
        async move {
            let result = pool::reconcile(Arc::clone(&object), ctx).await;
            if let Some(key) = awaited(&result) {
                index.awaits(&object, key);
            }
            result
        }
    };
    controller::run(controller, reconcile, ctx, settings).await;
}

/// Index [`Key`]s of an [`OpenStackFloatingIPPool`].
fn pool_keys(object: &OpenStackFloatingIPPool) -> BTreeSet<Key> {
    let given = object.spec.pre_allocated_floating_ips.iter().cloned();
    let mut keys: BTreeSet<_> = given.map(Key::Address).collect();
    keys.extend(Identity::for_object(object, POOL_ID).map(Key::Pool));
    keys.extend(secret_key(&namespace(object), &object.spec.identity_ref));
    keys
}

async fn servers(ctx: Arc<Context>, shutdown: CancellationToken) {
    let controller = watch::controller::<OpenStackServer>(
        all(&ctx),
        config(&ctx.options),
        reports(&ctx, SERVERS, true),
    );
    let index = Index::new(controller.store(), server_keys);
    let of_secret = Arc::clone(&index);
    let of_image = Arc::clone(&index);
    let changes = wake::servers(ctx.clouds.changes(), Arc::clone(&index));
    let controller = controller
        .watches_stream(secrets(&ctx), move |secret: PartialObjectMeta<Secret>| {
            of_secret.find(&Key::Secret(namespace(&secret), secret.name_any()))
        })
        .watches_stream(orc_images(&ctx), move |image| {
            of_image.find(&Key::Image(namespace(&image), image.name_any()))
        })
        .watches_stream(ip_claims(&ctx), owner_of::<OpenStackServer>)
        .reconcile_on(changes)
        .reconcile_on(ctx.claims.servers.contested());
    let settings = Settings {
        name: SERVERS,
        concurrency: ctx.options.machine_concurrency,
        objects: ctx.options.objects.clone(),
        metrics: ctx.options.metrics.clone(),
        shutdown,
    };
    let reconcile = move |object: Arc<OpenStackServer>, ctx| {
        index.enter(&object);
        let index = Arc::clone(&index);
        async move {
            let result = server::reconcile(Arc::clone(&object), ctx).await;
            if let Some(key) = awaited(&result) {
                index.awaits(&object, key);
            }
            result
        }
    };
    controller::run(controller, reconcile, ctx, settings).await;
}

/// Index [`Key`]s of an [`OpenStackServer`].
fn server_keys(object: &OpenStackServer) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    keys.extend(secret_key(&namespace(object), &object.spec.identity_ref));
    let id = Identity::for_object(object, MACHINE_ID);
    keys.extend(id.map(|id| Key::Mark(server::mark(id))));
    if object.spec.floating_ip_pool_ref.is_some() {
        let addresses = object.status.iter().flat_map(|status| &status.addresses);
        keys.extend(addresses.map(|address| Key::Address(address.address.clone())));
    }
    keys
}

async fn templates(ctx: Arc<Context>, shutdown: CancellationToken) {
    let controller = watch::controller::<OpenStackMachineTemplate>(
        all(&ctx),
        config(&ctx.options),
        reports(&ctx, TEMPLATES, true),
    );
    let settings = Settings {
        name: TEMPLATES,
        // They change rarely, and all look at the same lists.
        concurrency: 1,
        objects: ctx.options.objects.clone(),
        metrics: ctx.options.metrics.clone(),
        shutdown,
    };
    controller::run(controller, template::reconcile, ctx, settings).await;
}

/// Pool of a claim or an address.
fn pool_of(
    reference: &PoolReference,
    namespace: &str,
) -> Option<ObjectRef<OpenStackFloatingIPPool>> {
    let is_one = reference.api_group == api::infra::GROUP && reference.kind == names::POOL_KIND;
    is_one.then(|| ObjectRef::new(&reference.name).within(namespace))
}

/// Objects of kind `K` that own a claim.
fn owner_of<K>(claim: PartialObjectMeta<IPAddressClaim>) -> Option<ObjectRef<K>>
where
    K: kube::Resource<DynamicType = ()>,
{
    let mut owners = claim.owner_references().iter();
    let owner = owners.find(|owner| owner.kind == K::kind(&()))?;
    Some(ObjectRef::new(&owner.name).within(&namespace(&claim)))
}

/// Created, changed or deleted claims of addresses of pools.
fn ip_claims(
    ctx: &Context,
) -> impl Stream<Item = watcher::Result<PartialObjectMeta<IPAddressClaim>>> + Send + 'static {
    touched_metadata(ctx, "ipaddressclaim")
}

/// [`Key`] of the object whose change may solve a failure, not named in the object itself: the Secret of bootstrap data or of
/// an OpenStackClusterIdentity, or an Image of ORC.
fn awaited(result: &Result<Action, Error>) -> Option<Key> {
    let Err(Error::Problem(problem)) = result else {
        return None;
    };
    Some(match problem.awaited.clone()? {
        Awaited::Secret(namespace, name) => Key::Secret(namespace, name),
        Awaited::Image(namespace, name) => Key::Image(namespace, name),
    })
}

/// [`Key`] of the Secret in an [`IdentityRef`] itself.
fn secret_key(namespace: &str, identity_ref: &IdentityRef) -> Option<Key> {
    let is_secret = identity_ref.type_ == IdentityType::Secret;
    is_secret.then(|| Key::Secret(namespace.to_owned(), identity_ref.name.clone()))
}

/// Created, changed or deleted [`Secret`]s, without their content.
fn secrets(
    ctx: &Context,
) -> impl Stream<Item = watcher::Result<PartialObjectMeta<Secret>>> + Send + 'static {
    touched_metadata(ctx, "secret")
}

/// Created, changed or deleted Images of ORC, once an object names one.
fn orc_images(
    ctx: &Context,
) -> impl Stream<Item = watcher::Result<PartialObjectMeta<OrcImage>>> + Send + 'static {
    images::touched(ctx, touched_metadata(ctx, "image"))
}

/// Created, changed or deleted objects of a kind, without their content. `name` is the name of the watch in logs.
fn touched_metadata<K>(
    ctx: &Context,
    name: &'static str,
) -> impl Stream<Item = watcher::Result<PartialObjectMeta<K>>> + Send + 'static
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + Send
        + 'static,
{
    let api = match &ctx.options.namespace {
        Some(namespace) => Api::<PartialObjectMeta<K>>::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    };
    let events = watch::metadata(&api, watcher::Config::default());
    watch::restarted(events, name).touched_objects()
}

/// Configuration of the watch of a kind of this provider.
fn config(options: &Options) -> watcher::Config {
    let config = watcher::Config::default();
    match &options.objects.filter {
        Some(value) => config.labels(&format!("{}={value}", api::names::WATCH_FILTER_LABEL)),
        None => config,
    }
}

/// [`Reports`] of the watches of a controller about undecodable objects; only the controller of the kind emits events.
fn reports(ctx: &Context, watch: &'static str, events: bool) -> Reports {
    Reports {
        watch,
        metrics: ctx.options.metrics.clone(),
        recorder: events.then(|| ctx.recorder.clone()),
    }
}

fn all<K>(ctx: &Context) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match &ctx.options.namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    }
}
