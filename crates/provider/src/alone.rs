//! Objects with an identity of their own and without a cluster: pools and servers.

use std::sync::Arc;

use api::conditions::{Reason, Status, Type};
use api::core::v1beta2::Cluster;
use api::infra::v1beta2::IdentityRef;
use kube::runtime::controller::Action;
use openstack::{Cloud, Kind, View};
use operator::finalizer;

use crate::claims::{Claims, Register};
use crate::context::kept::{self, Served};
use crate::context::{Context, Error, FRESH, is_deleting, is_paused, namespace};
use crate::credentials;
use crate::identity::Identity;
use crate::problem::Problem;

/// Kind of such objects.
pub(crate) trait Alone: Served {
    /// [`Kind`] of the list in the cloud with the evidence of a lost identity.
    const TELLS: Kind;

    /// [`Register`] of the identities of the kind.
    fn register(claims: &Claims) -> &Register<Self>;

    /// [`IdentityRef`] with the credentials of the cloud.
    fn identity_ref(&self) -> &IdentityRef;

    /// [`Problem`] that forbids the provider to act on the object, if any.
    fn refused(&self) -> Option<Problem> {
        None
    }

    /// True if the status names resources of the object.
    fn is_traced(&self) -> bool;

    /// [`Identity`] of an object without the annotation.
    ///
    /// # Errors
    /// A [`Problem`] without evidence in the cloud.
    fn restored(&self, view: &View) -> Result<Identity, Problem>;

    /// Reconciles an object in use.
    fn normal(
        ctx: &Context,
        object: &Self,
        next: &mut Self,
    ) -> impl Future<Output = Result<Action, Error>> + Send;

    /// Deletes the resources of the object; returns the reason to wait, `None` at the end.
    fn take_down(
        ctx: &Context,
        object: &Self,
        next: &mut Self,
    ) -> impl Future<Output = Result<Option<String>, Error>> + Send;
}

/// Reconciles one object; a paused `cluster` pauses the object, too.
pub(crate) async fn reconcile<K: Alone>(
    object: Arc<K>,
    ctx: &Context,
    cluster: Option<&Cluster>,
) -> Result<Action, Error> {
    let mut next = K::clone(&object);
    let paused = is_paused(object.as_ref(), cluster);
    kept::paused(&mut next, ctx.now(), paused);
    let result = if paused {
        Ok(Action::await_change())
    } else if let Some(problem) = object.refused() {
        Err(problem.into())
    } else if !is_deleting(object.as_ref()) {
        K::normal(ctx, &object, &mut next).await
    } else if !finalizer::has(object.as_ref(), K::FINALIZER) {
        Ok(Action::await_change())
    } else {
        let left = K::take_down(ctx, &object, &mut next).await;
        match kept::let_go(ctx, object.as_ref(), &mut next, left).await {
            Ok(None) => return Ok(Action::await_change()),
            Ok(Some(action)) => Ok(action),
            Err(error) => Err(error),
        }
    };
    let mut before = K::clone(&object);
    let store = |next: K| async move {
        // Identity and finalizer may have been stored since the object was read.
        before.meta_mut().clone_from(next.meta());
        kept::store_status(ctx, &before, next).await
    };
    kept::finish(ctx, object.as_ref(), next, result, store).await
}

/// Stores identity and finalizer, and returns the [`Identity`]. A lost identity is restored from certain evidence.
///
/// # Errors
/// A [`Problem`] with an uncertain identity, or one of another object.
pub(crate) async fn prepare<K: Alone>(
    ctx: &Context,
    object: &K,
    next: &mut K,
) -> Result<Identity, Error> {
    if let Some(id) = identity(ctx, object, next).await? {
        store(ctx, object, next, id).await?;
        return Ok(id);
    }
    let register = K::register(&ctx.claims);
    let id = register.mint();
    let stored = store(ctx, object, next, id).await;
    stored.inspect_err(|_| register.discard(id))?;
    Ok(id)
}

/// [`Identity`] of the object; `None` for a new object.
///
/// # Errors
/// As [`prepare`].
pub(crate) async fn identity<K: Alone>(
    ctx: &Context,
    object: &K,
    next: &mut K,
) -> Result<Option<Identity>, Error> {
    let register = K::register(&ctx.claims);
    if let Some(id) = Identity::for_object(object, K::ID) {
        register.sole(object, id)?;
        return Ok(Some(id));
    }
    if !finalizer::has(object, K::FINALIZER) && !object.is_traced() {
        return Ok(None);
    }
    let cloud = cloud(ctx, object).await?;
    let view = cloud.inventory.view(&[K::TELLS], FRESH).await;
    let id = object.restored(&*view.map_err(|error| credentials::listing(&error))?)?;
    register.free(object, id)?;
    store(ctx, object, next, id).await?;
    // It may act once the watch of identities has shown that no other object has it.
    Err(Error::Behind)
}

async fn store<K: Alone>(
    ctx: &Context,
    object: &K,
    next: &mut K,
    id: Identity,
) -> Result<(), Error> {
    let stored = kept::store(ctx, object, id, |_| {}).await?;
    next.meta_mut().clone_from(stored.meta());
    Ok(())
}

/// [`Cloud`] of the object.
pub(crate) async fn cloud<K: Alone>(ctx: &Context, object: &K) -> Result<Cloud, Problem> {
    let identity_ref = object.identity_ref();
    credentials::cloud(ctx.access(), &namespace(object), identity_ref).await
}

/// Reports the login.
pub(crate) fn authenticated<K: Alone>(ctx: &Context, next: &mut K) {
    let verdict = (Status::True, Reason::OpenStackAuthenticationSucceeded, "");
    kept::condition(
        next,
        ctx.now(),
        Type::OpenStackAuthenticationSucceeded,
        verdict,
    );
}
