//! Admission webhooks: MutatingWebhookConfigurations and ValidatingWebhookConfigurations.
//!
//! ```text
//!   rules           hooks that match a request
//!   review          the AdmissionReview sent to a hook, and validation of the answer
//!   validation      validation of configurations
//! ```
//!
//! Source of the rules and messages: `k8s.io/apiserver/pkg/admission/plugin/webhook`.

mod review;
mod rules;
mod validation;

use std::collections::BTreeSet;
use std::sync::Arc;

use apimachinery::patch;
use apimachinery::schema::go_quote;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::call::{Call, Warnings};
use crate::core::Core;
use crate::error::ApiError;
use crate::view::Kind;
use crate::webhook;
use crate::webhook::configuration::{Hook, Hooks};

pub(crate) use review::Answered;
pub(crate) use rules::{Attributes, Gvk, Operation};
pub(crate) use validation::validate as validate_configuration;

use rules::Invocation;

/// Admission of a request for which at least one [`Hook`] has a rule.
pub(crate) struct Admission<'a> {
    attributes: Attributes<'a>,
    hooks: Arc<Hooks>,
}

impl<'a> Admission<'a> {
    /// `None` without a matching rule, the case of nearly all requests.
    pub(crate) fn new(core: &Core, attributes: Attributes<'a>) -> Option<Self> {
        let hooks = core.admission.hooks(&core.store);
        let concerned = |hooks: &[Hook]| hooks.iter().any(|hook| rules::ruled(hook, &attributes));
        let any = concerned(&hooks.mutating) || concerned(&hooks.validating);
        (any && !attributes.is_exempt()).then_some(Self { attributes, hooks })
    }

    /// True if a mutating hook has a rule for the request.
    pub(crate) fn mutates(&self) -> bool {
        let hooks = &self.hooks.mutating;
        hooks
            .iter()
            .any(|hook| rules::ruled(hook, &self.attributes))
    }

    /// Same admission before the server generates a name for the object.
    pub(crate) fn nameless(&self) -> Self {
        Self {
            attributes: self.attributes.clone().named(""),
            hooks: Arc::clone(&self.hooks),
        }
    }

    /// Calls the mutating hooks one after the other. Hooks with `reinvocationPolicy: IfNeeded` are called again after
    /// a later hook changed the object. Returns true if the object changed. `object` is `None` for a deletion.
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

    /// Calls the validating hooks concurrently.
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

    /// Resource and version for the call of a [`Hook`]; `None` if the hook does not match the request.
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
            return Err(Failure::Rejected(ApiError::bad_request(why)));
        }
        let object = self.sent(object, invocation).await;
        let object = object.map_err(Failure::Rejected)?;
        let old = self
            .sent(old, invocation)
            .await
            .map_err(Failure::Rejected)?;
        let Some(version) = hook.review_version() else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(Failure::Call(why.to_owned()));
        };
        let uid = uuid::Uuid::new_v4().to_string();
        let review = review::request(&self.attributes, invocation, version, &uid, object, old);
        let core = &self.attributes.call.core;
        let answer = webhook::post(core.caller(), &hook.target, &review, hook.timeout)
            .await
            .map_err(|error| Failure::Call(format!("failed to call webhook: {error}")))?;
        review::verify(&answer, version, &uid, hook.mutating)
            .map_err(|why| Failure::Call(format!("received invalid webhook response: {why}")))
    }

    /// Result of a call; `None` if the failure policy ignores the failure.
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
            Err(Failure::Rejected(error)) => Err(error),
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

    /// Object in the version of an [`Invocation`]; null without an object.
    async fn sent(&self, value: Option<&Value>, to: &Invocation) -> Result<Value, ApiError> {
        match value {
            Some(value) => self.converted(value, to).await,
            None => Ok(Value::Null),
        }
    }

    /// Applies the patch of a hook to the object in the version sent to the hook.
    async fn patch(
        &self,
        invocation: &Invocation,
        object: &mut Value,
        operations: &Value,
    ) -> Result<bool, ApiError> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let sent = self.converted(object, invocation).await?;
        let patched = patch::json(&sent, operations).map_err(ApiError::internal)?;
        let changed = patched != sent;
        if changed {
            *object = if invocation.equivalent {
                self.kind().converted(patched, &api_version).await?
            } else {
                patched
            };
        }
        Ok(changed)
    }

    /// Object in the version of an [`Invocation`].
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

/// Reason for the failure of a hook's call.
enum Failure {
    /// The hook could not be called, or the answer is invalid: the failure policy decides.
    Call(String),
    /// The request is rejected.
    Rejected(ApiError),
}

/// Admission of an object of a subresource, or of an object that is never stored.
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
        ..Attributes::new(call, Operation::Create, call.dry_run("CreateOptions")?)
    };
    let Some(admission) = Admission::new(&call.core, attributes) else {
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
        ..Attributes::new(call, Operation::Delete, dry_run)
    };
    let Some(admission) = Admission::new(&call.core, attributes) else {
        return Ok(());
    };
    admission.mutate(None, Some(old), warnings).await?;
    admission.validate(None, Some(old), warnings).await
}

/// Write options of a request, as `CreateOptions` or `UpdateOptions`.
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
