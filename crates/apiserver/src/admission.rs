//! Admission by webhooks: what MutatingWebhookConfigurations change, and what ValidatingWebhookConfigurations refuse.
//!
//! ```text
//!   configuration   the stored configurations, compiled once for each change of theirs
//!   rules           which hooks a request concerns
//!   review          what a hook is asked, and what its answer must be like
//!   validation      what is wrong with a configuration
//! ```
//!
//! Source of the rules and words: `k8s.io/apiserver/pkg/admission/plugin/webhook`.

mod configuration;
mod review;
mod rules;
mod validation;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::patch;
use crate::rest::view::Kind;
use crate::rest::{Call, Warnings};
use crate::schema::go_quote;
use crate::server::Core;
use crate::webhook;

pub(crate) use configuration::Cache;
pub(crate) use review::Answered;
pub(crate) use rules::{Attributes, Gvk, Operation};
pub(crate) use validation::validate as validate_configuration;

use configuration::{Hook, Hooks};
use rules::Invocation;

/// The hooks that a request may concern.
pub(crate) struct Admission<'a> {
    attributes: Attributes<'a>,
    hooks: Arc<Hooks>,
}

impl<'a> Admission<'a> {
    /// None when no hook has a rule for the request, which is the case for nearly all.
    pub(crate) fn of(core: &Core, attributes: Attributes<'a>) -> Option<Self> {
        let hooks = core.admission.hooks(&core.store);
        let concerned = |hooks: &[Hook]| hooks.iter().any(|hook| rules::ruled(hook, &attributes));
        let any = concerned(&hooks.mutating) || concerned(&hooks.validating);
        (any && !attributes.is_exempt()).then_some(Self { attributes, hooks })
    }

    /// Whether a hook may change the object.
    pub(crate) fn mutates(&self) -> bool {
        let hooks = &self.hooks.mutating;
        hooks
            .iter()
            .any(|hook| rules::ruled(hook, &self.attributes))
    }

    /// The same before the object has got its generated name.
    pub(crate) fn nameless(&self) -> Self {
        Self {
            attributes: self.attributes.clone().named(""),
            hooks: Arc::clone(&self.hooks),
        }
    }

    /// Calls the mutating hooks, one after the other, and those again that want to see what came after them.
    /// Returns whether the object changed. On a deletion there is no object.
    pub(crate) async fn mutate(
        &self,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
        warnings: &mut Warnings,
    ) -> Result<bool, ApiError> {
        let mut changed = false;
        let mut earlier: BTreeSet<usize> = BTreeSet::new();
        let mut again: BTreeSet<usize> = BTreeSet::new();
        for round in 0..2 {
            let mut changed_now = false;
            for (index, hook) in self.hooks.mutating.iter().enumerate() {
                if round > 0 && !again.contains(&index) {
                    continue;
                }
                let current = object.as_deref();
                let Some(invocation) = self.invocation(hook, current, old).await? else {
                    continue;
                };
                let asked = self.call(hook, &invocation, current, old).await;
                let answered = match self.outcome(hook, asked, warnings)? {
                    Some(answered) => answered,
                    None => continue,
                };
                if answered
                    .patch
                    .as_array()
                    .is_some_and(|list| !list.is_empty())
                {
                    let Some(object) = object.as_deref_mut() else {
                        let why = format!(
                            "admission webhook {} attempted to modify the object, which is not supported for this operation",
                            go_quote(&hook.name)
                        );
                        return Err(ApiError::internal(why));
                    };
                    if self.patch(&invocation, object, &answered.patch).await? {
                        changed_now = true;
                        again.append(&mut earlier);
                    }
                }
                if hook.reinvoke {
                    earlier.insert(index);
                }
            }
            changed |= changed_now;
            if !changed_now {
                break;
            }
        }
        Ok(changed)
    }

    /// Calls the validating hooks, all at the same time.
    pub(crate) async fn validate(
        &self,
        object: Option<&Value>,
        old: Option<&Value>,
        warnings: &mut Warnings,
    ) -> Result<(), ApiError> {
        let mut concerned = Vec::new();
        for hook in &self.hooks.validating {
            if let Some(invocation) = self.invocation(hook, object, old).await? {
                concerned.push((hook, invocation));
            }
        }
        let calls = concerned
            .iter()
            .map(|(hook, invocation)| self.call(hook, invocation, object, old));
        let answers = join_all(calls).await;
        let mut first = Ok(());
        for ((hook, _), asked) in concerned.iter().zip(answers) {
            let outcome = self.outcome(hook, asked, warnings).map(drop);
            first = first.and(outcome);
        }
        first
    }

    /// How a hook is called; none when it does not concern the request.
    async fn invocation(
        &self,
        hook: &Hook,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Option<Invocation>, ApiError> {
        let Some(invocation) = rules::invocation(hook, &self.attributes, object, old)? else {
            return Ok(None);
        };
        if hook.conditions.is_empty() {
            return Ok(Some(invocation));
        }
        let object = self.sent(object, &invocation).await?;
        let old = self.sent(old, &invocation).await?;
        let request = review::condition_request(&self.attributes, &invocation);
        let mut problems = Vec::new();
        for condition in &hook.conditions {
            match condition.evaluate(&object, &old, &request) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            return Ok(Some(invocation));
        }
        if !hook.fails_closed {
            return Ok(None);
        }
        let why = match problems.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let resource = &self.attributes.call.resource;
        let name = &self.attributes.name;
        Err(ApiError::forbidden(
            &resource.group,
            &resource.plural,
            name,
            &why,
        ))
    }

    async fn call(
        &self,
        hook: &Hook,
        invocation: &Invocation,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Answered, Failure> {
        if self.attributes.dry_run && !hook.dry_runs {
            let name = go_quote(&hook.name);
            let why = format!("admission webhook {name} does not support dry run");
            return Err(Failure::Refused(ApiError::bad_request(why)));
        }
        let object = self.sent(object, invocation).await;
        let object = object.map_err(Failure::Refused)?;
        let old = self.sent(old, invocation).await.map_err(Failure::Refused)?;
        let Some(version) = hook.review_version() else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(Failure::Call(why.to_owned()));
        };
        let uid = uuid::Uuid::new_v4().to_string();
        let review = review::request(&self.attributes, invocation, version, &uid, object, old);
        let core = &self.attributes.call.core;
        let answer = webhook::post(core, &hook.target, &review, hook.timeout)
            .await
            .map_err(|error| Failure::Call(format!("failed to call webhook: {error}")))?;
        review::verify(&answer, version, &uid, hook.mutating)
            .map_err(|why| Failure::Call(format!("received invalid webhook response: {why}")))
    }

    /// What follows from an answer: none when the hook is passed over.
    fn outcome(
        &self,
        hook: &Hook,
        asked: Result<Answered, Failure>,
        warnings: &mut Warnings,
    ) -> Result<Option<Answered>, ApiError> {
        match asked {
            Ok(mut answered) => {
                warnings.0.append(&mut answered.warnings);
                if answered.allowed {
                    return Ok(Some(answered));
                }
                Err(review::denial(&hook.name, &answered.result))
            }
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Call(why)) if hook.fails_closed => Err(ApiError::internal(format!(
                "failed calling webhook {}: {why}",
                go_quote(&hook.name)
            ))),
            Err(Failure::Call(why)) => {
                tracing::warn!(
                    webhook = hook.name,
                    why,
                    "a webhook failed and is passed over"
                );
                Ok(None)
            }
        }
    }

    /// An object as the hook sees it; null when there is none.
    async fn sent(&self, value: Option<&Value>, to: &Invocation) -> Result<Value, ApiError> {
        match value {
            Some(value) => self.converted(value, to).await,
            None => Ok(Value::Null),
        }
    }

    /// Applies the patch of a hook in the version in which the hook saw the object.
    async fn patch(
        &self,
        invocation: &Invocation,
        object: &mut Value,
        operations: &Value,
    ) -> Result<bool, ApiError> {
        let own = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let seen = self.converted(object, invocation).await?;
        let patched = patch::json(&seen, operations).map_err(ApiError::internal)?;
        let changed = patched != seen;
        if changed {
            *object = if invocation.equivalent {
                self.kind().converted(patched, &own).await?
            } else {
                patched
            };
        }
        Ok(changed)
    }

    /// The object in the version that the hook wants.
    async fn converted(&self, value: &Value, invocation: &Invocation) -> Result<Value, ApiError> {
        if invocation.equivalent && self.attributes.is_of_resource() {
            let to = invocation.kind.api_version();
            return self.kind().converted(value.clone(), &to).await;
        }
        Ok(value.clone())
    }

    fn kind(&self) -> Kind<'_> {
        Kind {
            core: &self.attributes.call.core,
            resource: &self.attributes.call.resource,
        }
    }
}

/// Why a hook gave no answer.
enum Failure {
    /// It could not be called; its failure policy decides.
    Call(String),
    /// The request is refused.
    Refused(ApiError),
}

/// Admission of what is created under a subresource, or is never stored.
pub(crate) async fn of_created(
    call: &Call,
    kind: Gvk,
    name: &str,
    object: &mut Value,
    warnings: &mut Warnings,
) -> Result<(), ApiError> {
    let attributes = Attributes {
        kind,
        name: name.to_owned(),
        ..Attributes::of(call, Operation::Create, call.dry_run("CreateOptions")?)
    };
    let Some(admission) = Admission::of(&call.core, attributes) else {
        return Ok(());
    };
    if call.resource.namespaced && object.is_object() {
        if object["metadata"].is_null() {
            object["metadata"] = json!({});
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            let namespace = Value::from(call.namespace.as_str());
            metadata.insert("namespace".to_owned(), namespace);
        }
    }
    admission.mutate(Some(object), None, warnings).await?;
    admission.validate(Some(object), None, warnings).await
}

/// Admission of a deletion.
pub(crate) async fn of_deletion(
    call: &Call,
    options: &Value,
    dry_run: bool,
    old: &Value,
    warnings: &mut Warnings,
) -> Result<(), ApiError> {
    let attributes = Attributes {
        options: options.clone(),
        ..Attributes::of(call, Operation::Delete, dry_run)
    };
    let Some(admission) = Admission::of(&call.core, attributes) else {
        return Ok(());
    };
    admission.mutate(None, Some(old), warnings).await?;
    admission.validate(None, Some(old), warnings).await
}

/// The write options of a request, as `CreateOptions` or `UpdateOptions`.
fn options(call: &Call, operation: Operation) -> Value {
    let kind = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    for field in ["fieldManager", "fieldValidation"] {
        if let Some(value) = call.query.get(field) {
            options[field] = Value::from(value);
        }
    }
    let dry: Vec<&str> = call.query.all("dryRun").collect();
    if !dry.is_empty() {
        options["dryRun"] = json!(dry);
    }
    options
}
