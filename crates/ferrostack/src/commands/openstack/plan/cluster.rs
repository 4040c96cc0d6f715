//! Reads the namespace of a cloud, and sends a dry run of each object to the API server.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use deployer::{FIELD_MANAGER, Graph, ObjectKind, Plan, Reference, Verb};
use kube::Client;
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    ValidationDirective,
};
use operator::client::Api;
use serde_json::Value;

use super::Refusal;

/// Number of objects in one page of a list.
const PAGE: u32 = 500;

/// The objects of a kind.
pub(in crate::commands::openstack) fn api(
    client: &Client,
    namespace: &str,
    kind: ObjectKind,
) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(kind.group(), "v1", kind.name());
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

/// Every object in the namespace of an [`ObjectKind`].
pub(in crate::commands::openstack) async fn objects(
    client: &Client,
    namespace: &str,
) -> anyhow::Result<Vec<Value>> {
    let namespaces: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace")),
    );
    // Who may not read it may still read what it holds.
    if let Err(kube::Error::Api(status)) = namespaces.get(namespace).await
        && status.code == 404
    {
        bail!("there is no namespace {namespace}: kubectl create namespace {namespace}");
    }
    let mut all = Vec::new();
    for kind in ObjectKind::ALL {
        let listed = of_kind(client, namespace, kind).await;
        let context = || {
            format!(
                "cannot list objects of kind {} in namespace {namespace}",
                kind.name()
            )
        };
        all.append(&mut listed.with_context(context)?);
    }
    Ok(all)
}

/// Every Pod in the namespace.
pub(in crate::commands::openstack) async fn pods(
    client: &Client,
    namespace: &str,
) -> anyhow::Result<Vec<Value>> {
    let kind = GroupVersionKind::gvk("", "v1", "Pod");
    let api = Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind));
    let all = pages(&api).await;
    all.with_context(|| format!("cannot list Pods in namespace {namespace}"))
}

async fn of_kind(client: &Client, namespace: &str, kind: ObjectKind) -> anyhow::Result<Vec<Value>> {
    let mut all = pages(&api(client, namespace, kind)).await?;
    for object in &mut all {
        // The items of a list do not have them.
        object["kind"] = kind.name().into();
        object["apiVersion"] = kind.api_version().into();
    }
    Ok(all)
}

async fn pages(api: &Api<DynamicObject>) -> anyhow::Result<Vec<Value>> {
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = api.list(&params).await.map_err(in_words)?;
        for object in page.items {
            all.push(serde_json::to_value(object)?);
        }
        match page.metadata.continue_.filter(|it| !it.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}

/// [`Refusal`]s of objects of the plan, by a dry run of each.
pub(super) async fn refusals(
    client: &Client,
    namespace: &str,
    graph: &Graph,
    plan: &Plan,
) -> anyhow::Result<Vec<Refusal>> {
    let verbs = |verb| {
        let actions = plan.actions().filter(move |it| it.verb == verb);
        actions
            .map(|it| &it.object)
            .collect::<BTreeSet<&Reference>>()
    };
    let (created, replaced) = (verbs(Verb::Create), verbs(Verb::Replace));
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
        force: true,
        dry_run: true,
    };
    let mut refusals = Vec::new();
    for (_, object) in graph.objects() {
        let reference = object.reference();
        // A Job that is there stays as it is, and what is replaced cannot be changed.
        let stays = reference.kind == ObjectKind::Job && !created.contains(reference);
        if stays || replaced.contains(reference) {
            continue;
        }
        let patch = Patch::Apply(object.exposed());
        let api = api(client, namespace, reference.kind);
        match api.patch(&reference.name, &params, &patch).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) => refusals.push(Refusal {
                object: reference.clone(),
                message: status.message,
            }),
            Err(error) => return Err(error).with_context(|| format!("dry run of {reference}")),
        }
    }
    Ok(refusals)
}

/// Message of the API server.
fn in_words(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow::Error::msg(status.message),
        other => other.into(),
    }
}
