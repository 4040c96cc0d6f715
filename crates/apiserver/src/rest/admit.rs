//! From what a client sent to what is stored: field validation, defaults, strategy, hooks, schema,
//! managed fields, generation; in the order in which kube-apiserver does it.

use jiff::Timestamp;
use serde_json::Value;

use super::view::Kind;
use super::{Call, Warnings, hooked, meta, scale, strategy};
use crate::admission::{self, Admission, Attributes, Operation};
use crate::auth::restriction;
use crate::conversion;
use crate::crd::seconds;
use crate::error::ApiError;
use crate::kinds::{Origin, Resource, Version};
use crate::patch::managed::{self, Writer};
use crate::schema::{FieldError, Reason};

/// What to do with unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    pub(crate) fn of(call: &Call) -> Result<Self, ApiError> {
        match call.query.get("fieldValidation") {
            Some("Ignore") => Ok(Self::Ignore),
            None | Some("Warn") => Ok(Self::Warn),
            Some("Strict") => Ok(Self::Strict),
            Some(other) => {
                let known = ["", "Ignore", "Strict", "Warn"].map(str::to_owned);
                let error =
                    FieldError::not_supported("fieldValidation", &Value::from(other), &known);
                Err(ApiError::invalid(
                    "meta.k8s.io",
                    options_kind(call),
                    "",
                    &[error],
                ))
            }
        }
    }
}

fn options_kind(call: &Call) -> &'static str {
    let media = call.content_type().unwrap_or_default();
    if media.contains("patch+") {
        "PatchOptions"
    } else if call.name.is_none() {
        "CreateOptions"
    } else {
        "UpdateOptions"
    }
}

/// A write on its way to the store.
pub(crate) struct Incoming<'a> {
    /// The object as it shall be, in the version of the request.
    pub(crate) object: Value,
    /// The object as it is, in the version of the request; none on a create.
    pub(crate) live: Option<&'a Value>,
    /// The object as it is, in the stored version.
    pub(crate) stored: Option<&'a Value>,
    /// Duplicate fields that decoding found.
    pub(crate) duplicates: Vec<String>,
    pub(crate) dry_run: bool,
    /// Server-side apply has brought the managed fields up to date.
    pub(crate) applied: bool,
    /// The text of a patch's result, when this is a patch: strict validation names it.
    pub(crate) patch: bool,
    pub(crate) now: Timestamp,
}

/// The object to store, in the stored version.
pub(crate) async fn admit(
    call: &Call,
    incoming: Incoming<'_>,
    warnings: &mut Warnings,
) -> Result<Value, ApiError> {
    let resource = &*call.resource;
    let kind = Kind {
        core: &call.core,
        resource,
    };
    let version = call.version();
    let subresource = call
        .subresource
        .as_deref()
        .filter(|_| call.name.is_some())
        .unwrap_or("");
    let Incoming {
        object: mut new,
        live,
        stored,
        now,
        ..
    } = incoming;

    if resource.is_custom() && new["kind"] != resource.kind.as_str() {
        return Err(other_kind(resource, version, &new, live));
    }
    let as_sent = new.clone();
    let mut unknown = meta::prune(&mut new);
    if let Some(schema) = &version.schema {
        unknown.extend(schema.prune(&mut new));
    }
    if let Some(shape) = resource.shape(&call.version) {
        match shape.read(&mut new) {
            Ok(more) => unknown.extend(more),
            Err(why) => return Err(undecodable(call, &as_sent, &why, incoming.patch)),
        }
    }
    check_fields(
        call,
        &as_sent,
        &unknown,
        &incoming.duplicates,
        incoming.patch,
        warnings,
    )?;

    let operation = if live.is_some() {
        Operation::Update
    } else {
        Operation::Create
    };
    restriction::admit(call, operation, Some(&new), live)?;
    let mut attributes = Attributes::of(call, operation, incoming.dry_run);
    if live.is_none() {
        attributes = attributes.named(as_sent["metadata"]["name"].as_str().unwrap_or_default());
    }
    let admission = Admission::of(&call.core, attributes);
    let mut owned = None;
    if let Some(admission) = admission.as_ref().filter(|admission| admission.mutates()) {
        let write = hooked::Write {
            call,
            sent: &as_sent,
            live,
            subresource,
            applied: incoming.applied,
            put: !incoming.patch,
            now,
        };
        owned = write.mutate(admission, &mut new, warnings).await?;
    }
    // A status that a new object may not have is not stored, but what wrote it is known by its fields.
    let dropped =
        live.is_none() && resource.is_custom() && version.status && new.get("status").is_some();
    let unsettled = dropped
        .then(|| as_decoded(new.clone(), version))
        .and_then(|decoded| decoded.get("status").cloned());
    settle(call, &mut new, live, subresource, now)?;

    let hooked = resource.is_custom() && subresource.is_empty();
    // Of a scale, the hooks see the object with its number of replicas.
    let judged = hooked || resource.is_custom() && subresource == "scale";
    let same = version.api_version == resource.stored;
    // Hooks of the process know the stored version alone. Without them an object is checked in the version in which it
    // came, and converted last.
    let late = resource.is_custom() && !same && !call.core.options.hooks.converts();
    let mut ready = Value::Null;
    let mut shown = if late {
        new
    } else {
        ready = kind.converted(new, &resource.stored).await?;
        if hooked {
            call.core.options.hooks.default(&mut ready, stored);
            if let Some(schema) = &resource.stored_version().schema {
                schema.prune(&mut ready);
            }
        }
        if same {
            ready.clone()
        } else {
            kind.converted(ready.clone(), &version.api_version).await?
        }
    };
    if resource.is_custom() {
        warnings.0.extend(meta::plain_finalizers(&shown, live));
    }

    let mut errors = meta::validate(resource, &shown, live);
    match &version.schema {
        Some(schema) => {
            let scale = version.scale.as_ref();
            let scaled = scale.map(|scale| scale::rules(scale, &shown, subresource));
            let found = schema.validate_beside(&shown, live, scaled.unwrap_or_default());
            let status = subresource == "status" && version.status;
            errors.extend(found.into_iter().map(|error| {
                if status {
                    named_from_status(error)
                } else {
                    error
                }
            }));
        }
        None => {
            errors.extend(strategy::validate(resource, &shown, live));
            errors.extend(admission::validate_configuration(resource, &shown, live));
            if resource.is_crd() {
                errors.extend(conversion::check(
                    &shown,
                    call.core.options.hooks.converts(),
                ));
            }
        }
    }
    if judged && !late && errors.is_empty() {
        if !same && let Some(schema) = &resource.stored_version().schema {
            errors.extend(schema.validate(&ready, stored));
        }
        if let Err(found) = call
            .core
            .options
            .hooks
            .validate(&ready, stored, incoming.dry_run)
        {
            errors.extend(found.into_iter().map(|error| FieldError {
                path: error.path,
                message: error.message,
                reason: Reason::Invalid,
            }));
        }
    }
    if !errors.is_empty() {
        let name = shown["metadata"]["name"].as_str().unwrap_or_default();
        return Err(ApiError::invalid(
            &resource.group,
            &resource.kind,
            name,
            &errors,
        ));
    }

    if let Some(owned) = owned {
        // What hooks change is nobody's.
        meta::of(&mut shown).insert("managedFields".to_owned(), owned);
    } else if !incoming.applied {
        let manager = call.manager();
        let time = seconds(now);
        let writer = Writer {
            manager: &manager,
            subresource,
            api_version: &version.api_version,
            time: &time,
        };
        if live.is_none() {
            strategy::without_own(resource, &as_sent, &mut shown);
        }
        if let Some(status) = unsettled {
            let mut whole = shown.clone();
            whole["status"] = status;
            whole = conversion::resolve(&call.core, || {
                let mut whole = whole.clone();
                managed::update(live, &mut whole, writer, &kind)?;
                Ok(whole)
            })
            .await?;
            copy_managed(&whole, &mut shown);
        } else if resource.conversion.is_none() {
            managed::update(live, &mut shown, writer, &kind)?;
        } else {
            shown = conversion::resolve(&call.core, || {
                let mut shown = shown.clone();
                managed::update(live, &mut shown, writer, &kind)?;
                Ok(shown)
            })
            .await?;
        }
    }
    // kube-apiserver keeps no record of these, applied or not.
    if resource.group == "certificates.k8s.io" {
        meta::of(&mut shown).remove("managedFields");
    }
    if late {
        count_generation(resource, &mut shown, live);
        // kube-apiserver does this whenever it reads what it has stored.
        ready = as_decoded(
            kind.converted(shown, &resource.stored).await?,
            resource.stored_version(),
        );
    } else {
        copy_managed(&shown, &mut ready);
        count_generation(resource, &mut ready, stored);
    }
    if let Some(admission) = &admission {
        let shown = if same {
            ready.clone()
        } else {
            kind.converted(ready.clone(), &version.api_version).await?
        };
        hooked::validate(call, admission, subresource, &shown, live, warnings).await?;
    }
    if let Some(shape) = resource.shape(&resource.stored_version().name) {
        shape.store(&mut ready);
    }
    Ok(ready)
}

/// An object as kube-apiserver's decoder of custom objects leaves it: with defaults, and without nulls that may not be.
fn as_decoded(mut object: Value, version: &Version) -> Value {
    if let Some(schema) = &version.schema {
        schema.default(&mut object);
    }
    object
}

/// Sets what the server sets, takes over what may not change, and fills in defaults.
pub(super) fn settle(
    call: &Call,
    new: &mut Value,
    live: Option<&Value>,
    subresource: &str,
    now: Timestamp,
) -> Result<(), ApiError> {
    let (resource, version) = (&*call.resource, call.version());
    match live {
        None => meta::created(new, &call.namespace, counts_generation(resource), now),
        Some(live) => {
            meta::carried(new, live);
            partition(resource, version.status, subresource, new, live);
        }
    }
    if live.is_none()
        && resource.is_custom()
        && version.status
        && let Some(new) = new.as_object_mut()
    {
        new.remove("status");
    }
    if let Some(schema) = &version.schema {
        schema.default(new);
    }
    if !resource.is_custom() {
        strategy::prepare(call, new, live, subresource, now)?;
    }
    Ok(())
}

/// The validator of a status names fields by their paths in it.
fn named_from_status(mut error: FieldError) -> FieldError {
    if let Some(inner) = error.path.strip_prefix("status") {
        let named = format!("{} in body", error.path);
        let inner = format!("{} in body", inner.trim_start_matches('.'));
        error.message = error.message.replacen(&named, &inner, 1);
    }
    error
}

/// A custom object of another kind is refused once its rules ran over it as it came: without defaults.
fn other_kind(
    resource: &Resource,
    version: &Version,
    new: &Value,
    live: Option<&Value>,
) -> ApiError {
    let detail = format!("must be {}", resource.kind);
    let mut errors = vec![FieldError::invalid("kind", &new["kind"], detail)];
    if let Some(schema) = &version.schema {
        errors.extend(schema.validate(new, live));
    }
    let kind = new["kind"].as_str().unwrap_or_default();
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    ApiError::invalid(&resource.group, kind, name, &errors)
}

/// Whether objects of this kind have a generation.
pub(crate) fn counts_generation(resource: &Resource) -> bool {
    match resource.origin {
        Origin::Custom { .. } => true,
        Origin::BuiltIn(traits) => traits.generation,
    }
}

fn check_fields(
    call: &Call,
    sent: &Value,
    unknown: &[String],
    duplicates: &[String],
    patch: bool,
    warnings: &mut Warnings,
) -> Result<(), ApiError> {
    let problems: Vec<String> = duplicates
        .iter()
        .map(|path| format!("duplicate field {path:?}"))
        .chain(unknown.iter().map(|path| format!("unknown field {path:?}")))
        .collect();
    match FieldValidation::of(call)? {
        _ if problems.is_empty() => Ok(()),
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            warnings.0.extend(problems);
            Ok(())
        }
        FieldValidation::Strict => {
            let strict = format!("strict decoding error: {}", problems.join(", "));
            Err(undecodable(call, sent, &strict, patch))
        }
    }
}

/// What a client sent, or what its patch made, cannot be decoded.
pub(super) fn undecodable(call: &Call, sent: &Value, why: &str, patch: bool) -> ApiError {
    if patch {
        let text = Value::from(sent.to_string());
        let error = FieldError::invalid("patch", &text, why);
        return ApiError::invalid("", "", "", &[error]);
    }
    let kind = &call.resource.kind;
    ApiError::bad_request(format!(
        "{kind} in version \"{}\" cannot be handled as a {kind}: {why}",
        call.version
    ))
}

/// A write to the object leaves its status alone, and a write to its status everything else.
fn partition(
    resource: &Resource,
    has_status: bool,
    subresource: &str,
    new: &mut Value,
    live: &Value,
) {
    let Some(fields) = new.as_object_mut() else {
        return;
    };
    match subresource {
        "" if has_status => match live.get("status") {
            Some(status) => {
                fields.insert("status".to_owned(), status.clone());
            }
            None => {
                fields.remove("status");
            }
        },
        "status" => {
            let status = fields.remove("status");
            let managed = fields
                .get("metadata")
                .and_then(|m| m.get("managedFields"))
                .cloned();
            let metadata = fields.remove("metadata");
            *fields = live.as_object().cloned().unwrap_or_default();
            match status {
                Some(status) => fields.insert("status".to_owned(), status),
                None => fields.remove("status"),
            };
            // The kubelet and cloud providers write labels and annotations of nodes and pods along with the status.
            if !resource.is_custom()
                && let Some(metadata) = metadata
            {
                for field in ["labels", "annotations"] {
                    if let Some(value) = metadata.get(field) {
                        meta_of(fields).insert(field.to_owned(), value.clone());
                    }
                }
            }
            match managed {
                Some(managed) => meta_of(fields).insert("managedFields".to_owned(), managed),
                None => meta_of(fields).remove("managedFields"),
            };
        }
        _ => {}
    }
}

fn meta_of(fields: &mut serde_json::Map<String, Value>) -> &mut serde_json::Map<String, Value> {
    let metadata = fields
        .entry("metadata")
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(serde_json::Map::new());
    }
    match metadata {
        Value::Object(map) => map,
        // Just made one.
        _ => unreachable!("metadata is an object"),
    }
}

fn copy_managed(from: &Value, to: &mut Value) {
    match from["metadata"].get("managedFields") {
        Some(managed) => {
            meta::of(to).insert("managedFields".to_owned(), managed.clone());
        }
        None => {
            meta::of(to).remove("managedFields");
        }
    }
}

/// Counts a change of anything but metadata and status.
fn count_generation(resource: &Resource, new: &mut Value, old: Option<&Value>) {
    let Some(old) = old.filter(|_| counts_generation(resource)) else {
        return;
    };
    let status_apart = resource.stored_version().status;
    // Whoever programs a network by these selects them by their labels.
    if resource.kind == "EndpointSlice" && old["metadata"]["labels"] != new["metadata"]["labels"] {
        let next = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        meta::of(new).insert("generation".to_owned(), Value::from(next));
        return;
    }
    let counted = |object: &Value| -> serde_json::Map<String, Value> {
        let fields = object.as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| {
                !(matches!(name.as_str(), "metadata" | "apiVersion")
                    || status_apart && *name == "status")
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let before = old["metadata"]["generation"].as_i64().unwrap_or(0);
    // The Deployment controller acts on annotations.
    let noted = |object: &Value| match resource.kind.as_str() {
        "Deployment" if !resource.is_custom() => object["metadata"]["annotations"].clone(),
        _ => Value::Null,
    };
    let generation = if counted(new) == counted(old) && noted(new) == noted(old) {
        before
    } else {
        before + 1
    };
    if generation > 0 {
        meta::of(new).insert("generation".to_owned(), Value::from(generation));
    }
}
