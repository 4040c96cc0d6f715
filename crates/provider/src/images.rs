//! Images of the OpenStack Resource Controller (ORC), by name in `image.imageRef`.
//!
//! ORC is a separate program with a separate definition. The first object with an Image begins the watch of Images; until then
//! the provider sends no request for the kind.

use std::borrow::Cow;
use std::collections::BTreeMap;

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{ImageParam, OpenStackMachineSpec};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use futures::stream::{self, Stream, StreamExt};
use kube::api::{ListParams, ObjectMeta};
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::watcher;
use kube::{Client, Resource};
use operator::client::Api;
use serde::Deserialize;
use tokio::sync::watch::Receiver;

use crate::context::{Context, Error};
use crate::problem::Problem;

/// API group of ORC.
const GROUP: &str = "openstack.k-orc.cloud";

/// Ids of available Images of a namespace, by the name of the Image.
pub type Available = BTreeMap<String, String>;

/// Image of ORC, with the fields for the provider.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OrcImage {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    status: OrcStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct OrcStatus {
    id: Option<String>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

impl Resource for OrcImage {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Image".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "images".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl OrcImage {
    /// Id of the image in Glance.
    ///
    /// # Errors
    /// [`Reason`] and message for an Image without a bootable image.
    fn id(&self) -> Result<&str, (Reason, String)> {
        let conditions = &self.status.conditions;
        let id = self.status.id.as_deref().filter(|id| !id.is_empty());
        if let (true, Some(id)) = (api::conditions::is_true(conditions, "Available"), id) {
            return Ok(id);
        }
        let progress = api::conditions::find(conditions, "Progressing");
        let words = progress.map(|it| it.message.as_str()).unwrap_or_default();
        let words = match words.is_empty() {
            true => "ORC says nothing of it yet",
            false => words,
        };
        // ORC does not try again by itself what is neither available nor on its way.
        let (reason, state) = match progress.filter(|it| it.status == "False") {
            Some(_) => (Reason::DependencyFailed, "failed"),
            None => (Reason::InstanceNotReady, "is not available yet"),
        };
        Err((reason, format!("{state}: {words}")))
    }
}

/// Created, changed or deleted [`OrcImage`]s of `watch`, which begins with the wish.
pub(crate) fn touched<S>(
    ctx: &Context,
    watch: S,
) -> impl Stream<Item = watcher::Result<PartialObjectMeta<OrcImage>>> + Send + 'static
where
    S: Stream<Item = watcher::Result<PartialObjectMeta<OrcImage>>> + Send + 'static,
{
    let wanted: Receiver<bool> = ctx.images.subscribe();
    stream::once(async move {
        let mut wanted = wanted;
        // An error means that the process ends.
        let asked = wanted.wait_for(|it| *it).await.is_ok();
        stream::iter(asked.then_some(watch)).flatten()
    })
    .flatten()
}

/// [`OpenStackMachineSpec`] with the id of the Image in place of the name.
///
/// # Errors
/// [`Problem`] while the Image is not available, solved perhaps by the next change of the Image.
pub(crate) async fn named<'s>(
    ctx: &Context,
    namespace: &str,
    spec: &'s OpenStackMachineSpec,
) -> Result<Cow<'s, OpenStackMachineSpec>, Error> {
    let ImageParam::ImageRef(image) = &spec.image else {
        return Ok(Cow::Borrowed(spec));
    };
    ctx.images.send_replace(true);
    let images = Api::<OrcImage>::namespaced(ctx.client.clone(), namespace);
    let found = match images.get(&image.name).await {
        // Without the kind the answer is no Status.
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        found => Some(found.map_err(Error::kubernetes("reading the Image of ORC"))?),
    };
    let (reason, why) = match &found {
        None => (Reason::DependencyFailed, absent(namespace)),
        Some(found) => match found.id() {
            Ok(id) => return Ok(with_id(spec, id)),
            Err(why) => why,
        },
    };
    let text = format!("image.imageRef: Image {} of ORC {why}", image.name);
    let problem = Problem::new(Type::InstanceReady, reason, text);
    Err(problem.of_image(namespace, &image.name).into())
}

/// The API server answers the same where the Image is missing and where ORC is.
fn absent(namespace: &str) -> String {
    format!(
        "does not exist in namespace {namespace}: create it, install the OpenStack Resource Controller if it is not there, \
         or give image.id or image.filter"
    )
}

fn with_id<'s>(spec: &OpenStackMachineSpec, id: &str) -> Cow<'s, OpenStackMachineSpec> {
    Cow::Owned(OpenStackMachineSpec {
        image: ImageParam::Id(id.to_owned()),
        ..spec.clone()
    })
}

/// [`OpenStackMachineSpec`] with the id of an available Image.
pub(crate) fn of<'s>(
    available: &Available,
    spec: &'s OpenStackMachineSpec,
) -> Cow<'s, OpenStackMachineSpec> {
    let id = match &spec.image {
        ImageParam::ImageRef(image) => available.get(&image.name),
        _ => None,
    };
    id.map_or(Cow::Borrowed(spec), |id| with_id(spec, id))
}

/// [`Available`] Images of a namespace; none if the API server lacks the kind.
///
/// # Errors
/// No answer of the API server, or a forbidden list.
pub async fn available(client: &Client, namespace: &str) -> kube::Result<Available> {
    let images = Api::<OrcImage>::namespaced(client.clone(), namespace);
    let found = match images.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Available::new()),
        found => found?.items,
    };
    let ids = found.into_iter().filter_map(|image| {
        let id = image.id().ok()?.to_owned();
        Some((image.metadata.name?, id))
    });
    Ok(ids.collect())
}

#[cfg(test)]
mod tests;
