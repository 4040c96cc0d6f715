//! One cloud: fetch, plan, apply, status.

use std::sync::Arc;

use api::openstack::FINALIZER;
use api::openstack::v1alpha1::OpenStack;
use deployer::{Cloud, Held, Parameters, Severity};
use kube::api::Api;
use kube::runtime::controller::Action;
use kube::{Client, ResourceExt as _};
use operator::{finalizer, patch};
use serde_json::Value;

use crate::apply::{self, Applied};
use crate::problem::Problem;
use crate::remove;
use crate::status::{self, Outcome};
use crate::view::{Seen, View};

/// What every reconcile needs.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) view: View,
}

/// Brings a cloud one step further.
pub(crate) async fn reconcile(
    object: Arc<OpenStack>,
    context: Arc<Context>,
) -> Result<Action, Problem> {
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<OpenStack> = Api::namespaced(context.client.clone(), &namespace);
    context.view.ready().await;
    let seen = context.view.of(&namespace)?;
    if object.metadata.deletion_timestamp.is_some() {
        return remove::remove(&api, &object, &context.client, &seen).await;
    }
    if !finalizer::has(&*object, FINALIZER) {
        let added = finalizer::add(&api, &object, FINALIZER).await;
        added.map_err(Problem::api("adding the finalizer"))?;
        return Ok(Action::await_change());
    }
    let (outcome, failure) = match judged(&object)? {
        Err(problem) => (Outcome::Invalid(problem), None),
        Ok(_) if object.spec.paused => (Outcome::Paused, None),
        Ok(cloud) => rolled_out(&context.client, &object, &cloud, &seen).await,
    };
    let mut after = (*object).clone();
    after.status = Some(status::next(&object, &outcome));
    let written = patch::status(&api, &object, &after).await;
    written.map_err(Problem::api("writing the status"))?;
    match failure {
        Some(problem) => Err(problem),
        None => Ok(Action::await_change()),
    }
}

/// The cloud that an object describes, or why it is rejected.
pub(crate) fn judged(object: &OpenStack) -> Result<Result<Cloud, String>, Problem> {
    let document = serde_json::to_value(object);
    let document: Value = document.map_err(|error| Problem::Malformed(error.to_string()))?;
    let parameters = match Parameters::read(&document) {
        Ok((parameters, _)) => parameters,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let findings = deployer::check(&parameters).into_iter();
    let errors = findings.filter(|it| it.severity == Severity::Error);
    let errors: Vec<String> = errors.map(|it| format!("spec.{it}")).collect();
    if !errors.is_empty() {
        return Ok(Err(errors.join("; ")));
    }
    Ok(Cloud::of(&document, parameters).map_err(|error| error.to_string()))
}

/// Plans, and does what can be done now. Also returns the request that has failed.
async fn rolled_out(
    client: &Client,
    object: &OpenStack,
    cloud: &Cloud,
    seen: &Seen,
) -> (Outcome, Option<Problem>) {
    let missing = Held::missing(&cloud.name, &seen.objects);
    let has_secrets = object.status.as_ref().is_some_and(|it| it.uid.is_some());
    if has_secrets && !missing.is_empty() {
        return (Outcome::Conflict(lost(&missing)), None);
    }
    let held = Held::complete(&cloud.name, &seen.objects, rand::random);
    let graph = deployer::desired(cloud, &held);
    let plan = deployer::plan(&graph, &seen.objects);
    if !plan.conflicts.is_empty() {
        return (Outcome::Conflict(plan.conflicts.join("; ")), None);
    }
    let progress = deployer::progress(&graph, &plan, &seen.objects, &seen.pods);
    let applied = apply::apply(client, cloud, &graph, &progress, &seen.objects).await;
    let (rejection, failure) = match applied {
        Ok(Applied::All | Applied::Stopped) => (None, None),
        Err(problem) => (problem.rejection(), Some(problem)),
    };
    let uid = missing.is_empty().then(|| held.uid().to_owned());
    let outcome = Outcome::Progress {
        uid,
        progress: status::masked(progress, &held),
        rejection: rejection.map(|text| held.masked(&text)),
    };
    (outcome, failure)
}

fn lost(missing: &[&str]) -> String {
    format!(
        "the cloud was made with passwords and keys in Secrets that are gone: {}. Restore them from a backup, or delete the cloud with its data",
        missing.join(", ")
    )
}
