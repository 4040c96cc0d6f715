//! Admission of a write, from the object sent by a client to the stored object: field validation, defaults, strategy,
//! hooks, schema, managed fields and generation, in the order of kube-apiserver.

use apimachinery::kinds::{Origin, Resource, Version};
use apimachinery::patch::managed::{self, Writer};
use apimachinery::schema::{FieldError, Reason, Schema};
use apimachinery::time::seconds;
use jiff::Timestamp;
use serde_json::Value;

use super::{hooked, kept, meta, scale, strategy};
use crate::admission::{self, Admission, Attributes, Operation};
use crate::auth::restriction;
use crate::call::{Call, Warnings};
use crate::conversion;
use crate::error::ApiError;
use crate::view::Kind;

/// `fieldValidation`: treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    pub(crate) fn from_call(call: &Call) -> Result<Self, ApiError> {
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

/// Decoded create or update before admission.
pub(crate) struct Incoming<'a> {
    /// New object, in the version of the request.
    pub(crate) object: Value,
    /// Current object in the version of the request, `None` for a create.
    pub(crate) live: Option<&'a Value>,
    /// Current object in the stored version, `None` for a create.
    pub(crate) stored: Option<&'a Value>,
    /// Duplicate fields, found by decoding.
    pub(crate) duplicates: Vec<String>,
    pub(crate) dry_run: bool,
    /// True if server-side apply has already updated the managed fields.
    pub(crate) applied: bool,
    /// True if `object` is the result of a patch: strict field validation then prints the whole object.
    pub(crate) patch: bool,
    pub(crate) now: Timestamp,
}

/// Admits an [`Incoming`] write, and returns the object to store, in the stored version.
pub(crate) async fn admit(
    call: &Call,
    incoming: Incoming<'_>,
    warnings: &mut Warnings,
) -> Result<Value, ApiError> {
    let mut new = incoming.object;
    let write = Write {
        call,
        resource: &call.resource,
        version: call.version(),
        kind: Kind {
            core: &call.core,
            resource: &call.resource,
        },
        subresource: call
            .subresource
            .as_deref()
            .filter(|_| call.name.is_some())
            .unwrap_or(""),
        live: incoming.live,
        stored: incoming.stored,
        dry_run: incoming.dry_run,
        applied: incoming.applied,
        patch: incoming.patch,
        now: incoming.now,
    };
    let (resource, live) = (write.resource, write.live);

    if resource.is_custom() && new["kind"] != resource.kind.as_str() {
        return Err(other_kind(resource, write.version, &new, live));
    }
    let as_sent = new.clone();
    write.prune(&mut new, &as_sent, &incoming.duplicates, warnings)?;

    let operation = match live {
        Some(_) => Operation::Update,
        None => Operation::Create,
    };
    restriction::admit(call, operation, Some(&new), live)?;
    kept::admit(call, Some(&new), live)?;
    let mut attributes = Attributes::new(call, operation, write.dry_run);
    if live.is_none() {
        attributes = attributes.named(as_sent["metadata"]["name"].as_str().unwrap_or_default());
    }
    let admission = Admission::new(&call.core, attributes);
    let owned = write
        .mutate(admission.as_ref(), &as_sent, &mut new, warnings)
        .await?;
    let sent_status = write.dropped_status(&new)?;
    settle(
        call,
        &mut new,
        live,
        write.subresource,
        write.applied,
        write.now,
    )?;
    let (new, has_lost) = write.without_nulls(new)?;

    let Defaulted {
        mut requested,
        mut ready,
        beside,
    } = write.defaulted(new).await?;
    if resource.is_custom() {
        warnings.0.extend(meta::plain_finalizers(&requested, live));
    }
    let mut errors = write.violations(&requested);
    if write.is_judged() && !write.is_late() && errors.is_empty() {
        errors = write.judge(&ready, beside.as_ref(), warnings);
    }
    refuse(resource, &requested, &errors)?;

    match owned {
        // Fields that hooks change have no manager.
        Some(owned) => {
            meta::of(&mut requested).insert("managedFields".to_owned(), owned);
        }
        None if write.applied => {}
        None => {
            requested = write.managed(requested, &as_sent, sent_status).await?;
        }
    }
    // kube-apiserver records no managers of these, for applied configurations either.
    if resource.group == "certificates.k8s.io" {
        meta::of(&mut requested).remove("managedFields");
    }
    // A write of the status does not count, whatever a conversion makes of the rest.
    let counts = write.subresource != "status";
    if write.is_late() {
        let live = live.filter(|_| counts);
        count_generation(resource, &mut requested, live, has_lost);
        // kube-apiserver decodes an object, and so sets defaults, at each read from storage.
        ready = as_decoded(
            write.kind.converted(requested, &resource.stored).await?,
            resource.stored_version(),
        )?;
    } else {
        copy_managed(&requested, &mut ready);
        let stored = write.stored.filter(|_| counts);
        count_generation(resource, &mut ready, stored, has_lost);
    }
    if let Some(admission) = &admission {
        let requested = write.in_requested_version(&ready).await?;
        hooked::validate(
            call,
            admission,
            write.subresource,
            &requested,
            live,
            warnings,
        )
        .await?;
    }
    if let Some(shape) = resource.shape(&resource.stored_version().name) {
        shape.store(&mut ready);
    }
    Ok(ready)
}

/// Write under admission, without its object.
struct Write<'a> {
    call: &'a Call,
    resource: &'a Resource,
    version: &'a Version,
    kind: Kind<'a>,
    subresource: &'a str,
    live: Option<&'a Value>,
    stored: Option<&'a Value>,
    dry_run: bool,
    applied: bool,
    patch: bool,
    now: Timestamp,
}

/// Object with the defaults of schema and hooks.
struct Defaulted {
    /// Object in the version of the request.
    requested: Value,
    /// Object in the stored version; null if [`Write::is_late`].
    ready: Value,
    /// Object of the hooks beside the new one: `None` without such a rule, `Some(None)` if missing.
    beside: Option<Option<Value>>,
}

impl Write<'_> {
    /// True if the hooks of the process set defaults.
    fn is_hooked(&self) -> bool {
        self.resource.is_custom() && self.subresource.is_empty()
    }

    /// True if the hooks of the process validate. For `scale`, they validate the whole object with its new number of
    /// replicas.
    fn is_judged(&self) -> bool {
        self.is_hooked() || self.resource.is_custom() && self.subresource == "scale"
    }

    /// True if the version of the request is the stored one.
    fn is_in_stored_version(&self) -> bool {
        self.version.api_version == self.resource.stored
    }

    /// True if the object is validated in the version of the request and converted afterwards. The hooks of the process
    /// handle the stored version only.
    fn is_late(&self) -> bool {
        self.resource.is_custom()
            && !self.is_in_stored_version()
            && !self.call.core.options.hooks.converts()
    }

    /// Object `ready` in the version of the request.
    async fn in_requested_version(&self, ready: &Value) -> Result<Value, ApiError> {
        if self.is_in_stored_version() {
            return Ok(ready.clone());
        }
        let version = &self.version.api_version;
        self.kind.converted(ready.clone(), version).await
    }

    /// Prunes unknown fields, and reports them with the duplicate ones.
    fn prune(
        &self,
        new: &mut Value,
        as_sent: &Value,
        duplicates: &[String],
        warnings: &mut Warnings,
    ) -> Result<(), ApiError> {
        let mut unknown = meta::prune(new);
        if let Some(schema) = &self.version.schema {
            unknown.extend(schema.prune(new));
        }
        if let Some(shape) = self.resource.shape(&self.call.version) {
            match shape.read(new) {
                Ok(more) => unknown.extend(more),
                Err(why) => return Err(undecodable(self.call, as_sent, &why, self.patch)),
            }
        }
        check_fields(
            self.call, as_sent, &unknown, duplicates, self.patch, warnings,
        )
    }

    /// Calls the mutating hooks; after a change, returns the managed fields from before the call.
    async fn mutate(
        &self,
        admission: Option<&Admission<'_>>,
        as_sent: &Value,
        new: &mut Value,
        warnings: &mut Warnings,
    ) -> Result<Option<Value>, ApiError> {
        let Some(admission) = admission.filter(|admission| admission.mutates()) else {
            return Ok(None);
        };
        let write = hooked::Write {
            call: self.call,
            sent: as_sent,
            live: self.live,
            subresource: self.subresource,
            applied: self.applied,
            put: !self.patch,
            now: self.now,
        };
        write.mutate(admission, new, warnings).await
    }

    /// Status of a new object: not stored, but recorded as the sender's in the managed fields.
    fn dropped_status(&self, new: &Value) -> Result<Option<Value>, ApiError> {
        let is_new = self.live.is_none() && self.resource.is_custom();
        if !is_new || !self.version.status || new.get("status").is_none() {
            return Ok(None);
        }
        let decoded = as_decoded(new.clone(), self.version)?;
        Ok(decoded.get("status").cloned())
    }

    /// Object without the nulls of an applied configuration that are valid, though its storage drops them. True if the
    /// generation counts them.
    fn without_nulls(&self, applied: Value) -> Result<(Value, bool), ApiError> {
        let (resource, version) = (self.resource, self.version);
        let Some(schema) = version.schema.as_ref().filter(|_| self.applied) else {
            return Ok((applied, false));
        };
        let new = as_decoded(applied.clone(), version)?;
        if new == applied {
            return Ok((new, false));
        }
        // Nulls are validated in the version of the request, before conversion and storage.
        let found = |object: &Value| {
            violations(
                resource,
                version,
                schema,
                object,
                self.live,
                self.subresource,
            )
        };
        let errors = found(&applied);
        if errors != found(&new) {
            refuse(resource, &applied, &errors)?;
        }
        let has_lost = counted(resource, &new) != counted(resource, &applied);
        Ok((new, has_lost))
    }

    async fn defaulted(&self, new: Value) -> Result<Defaulted, ApiError> {
        if self.is_late() {
            return Ok(Defaulted {
                requested: new,
                ready: Value::Null,
                beside: None,
            });
        }
        let hooks = &self.call.core.options.hooks;
        let mut ready = self.kind.converted(new, &self.resource.stored).await?;
        if !self.is_in_stored_version() {
            ready = as_decoded(ready, self.resource.stored_version())?;
        }
        let mut beside = None;
        if self.is_hooked() {
            hooks.default(&mut ready, self.stored);
            beside = hooks.beside(&ready).map(|place| {
                let collection = format!("{}/{}", place.group, place.plural);
                let key = format!("{}/{}", place.namespace, place.name);
                let found = self.call.core.store.get(&collection, &key);
                found.map(|found| found.value())
            });
            if let Some(Some(beside)) = &beside {
                hooks.default_beside(&mut ready, beside);
            }
            if let Some(schema) = &self.resource.stored_version().schema {
                schema.prune(&mut ready);
            }
        }
        Ok(Defaulted {
            requested: self.in_requested_version(&ready).await?,
            ready,
            beside,
        })
    }

    /// Violations of the schema, or of the rules of a built-in kind.
    fn violations(&self, requested: &Value) -> Vec<FieldError> {
        let (resource, live) = (self.resource, self.live);
        if let Some(schema) = &self.version.schema {
            return violations(
                resource,
                self.version,
                schema,
                requested,
                live,
                self.subresource,
            );
        }
        let mut errors = meta::validate(resource, requested, live);
        errors.extend(strategy::validate(resource, requested, live));
        errors.extend(admission::validate_configuration(resource, requested, live));
        if resource.is_crd() {
            let converts = self.call.core.options.hooks.converts();
            errors.extend(conversion::check(requested, converts));
        }
        errors
    }

    /// Violations of the stored version's schema and of the hooks of the process.
    fn judge(
        &self,
        ready: &Value,
        beside: Option<&Option<Value>>,
        warnings: &mut Warnings,
    ) -> Vec<FieldError> {
        let (hooks, stored) = (&self.call.core.options.hooks, self.stored);
        let mut errors = Vec::new();
        if !self.is_in_stored_version()
            && let Some(schema) = &self.resource.stored_version().schema
        {
            errors.extend(schema.validate(ready, stored));
        }
        if let Err(found) = hooks.validate(ready, stored, self.dry_run) {
            errors.extend(found.into_iter().map(invalid));
        }
        warnings.0.extend(hooks.warnings(ready, stored));
        if let Some(beside) = beside
            && errors.is_empty()
        {
            match hooks.validate_beside(ready, stored, beside.as_ref()) {
                Ok(more) => warnings.0.extend(more),
                Err(found) => errors.extend(found.into_iter().map(invalid)),
            }
        }
        errors
    }

    /// Object with the managed fields of the sender.
    async fn managed(
        &self,
        mut requested: Value,
        as_sent: &Value,
        sent_status: Option<Value>,
    ) -> Result<Value, ApiError> {
        let (resource, live) = (self.resource, self.live);
        let manager = self.call.manager();
        let time = seconds(self.now);
        let writer = Writer {
            manager: &manager,
            subresource: self.subresource,
            api_version: &self.version.api_version,
            time: &time,
        };
        match live {
            None => strategy::remove_server_fields(resource, as_sent, &mut requested),
            Some(_) => strategy::restore_sent_fields(resource, as_sent, &mut requested),
        }
        if let Some(status) = sent_status {
            let mut whole = requested.clone();
            whole["status"] = status;
            whole = conversion::resolve(self.call.core.converter(), || {
                let mut whole = whole.clone();
                managed::update(live, &mut whole, writer, &self.kind)?;
                Ok(whole)
            })
            .await?;
            copy_managed(&whole, &mut requested);
        } else if resource.conversion.is_none() {
            managed::update(live, &mut requested, writer, &self.kind)?;
        } else {
            requested = conversion::resolve(self.call.core.converter(), || {
                let mut requested = requested.clone();
                managed::update(live, &mut requested, writer, &self.kind)?;
                Ok(requested)
            })
            .await?;
        }
        Ok(requested)
    }
}

/// Violations of a custom object in one version.
fn violations(
    resource: &Resource,
    version: &Version,
    schema: &Schema,
    object: &Value,
    live: Option<&Value>,
    subresource: &str,
) -> Vec<FieldError> {
    let mut errors = meta::validate(resource, object, live);
    let scale = version.scale.as_ref();
    let scaled = scale.map(|scale| scale::rules(scale, object, subresource));
    let found = schema.validate_beside(object, live, scaled.unwrap_or_default());
    let status = subresource == "status" && version.status;
    errors.extend(found.into_iter().map(|error| {
        if status {
            named_from_status(error)
        } else {
            error
        }
    }));
    errors
}

/// 422 for an object with violations.
fn refuse(resource: &Resource, object: &Value, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(ApiError::invalid(
        &resource.group,
        &resource.kind,
        name,
        errors,
    ))
}

/// Error reported by a hook.
fn invalid(error: crate::FieldError) -> FieldError {
    FieldError {
        path: error.path,
        message: error.message,
        reason: Reason::Invalid,
    }
}

/// Object after kube-apiserver's decoder of custom objects: with defaults, and without nulls of fields that are not
/// nullable.
fn as_decoded(mut object: Value, version: &Version) -> Result<Value, ApiError> {
    if let Some(schema) = &version.schema {
        schema.default(&mut object)?;
    }
    Ok(object)
}

/// Sets the server's fields, restores immutable fields, and fills in defaults. `applied`: nulls of fields that are not
/// nullable stay.
pub(super) fn settle(
    call: &Call,
    new: &mut Value,
    live: Option<&Value>,
    subresource: &str,
    applied: bool,
    now: Timestamp,
) -> Result<(), ApiError> {
    let (resource, version) = (&*call.resource, call.version());
    match live {
        None => meta::created(new, &call.namespace, has_generation(resource), now),
        Some(live) => {
            meta::carry_over(new, live);
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
    match &version.schema {
        Some(schema) if applied => schema.fill(new)?,
        Some(schema) => schema.default(new)?,
        None => {}
    }
    if !resource.is_custom() {
        strategy::prepare(call, new, live, subresource, now)?;
    }
    Ok(())
}

/// Errors of a status have paths relative to the status, as from kube-apiserver's validator of statuses.
fn named_from_status(mut error: FieldError) -> FieldError {
    if let Some(inner) = error.path.strip_prefix("status") {
        let named = format!("{} in body", error.path);
        let inner = format!("{} in body", inner.trim_start_matches('.'));
        error.message = error.message.replacen(&named, &inner, 1);
    }
    error
}

/// 422 for a custom object of another kind, with the violations of its schema: kube-apiserver validates such an
/// object, too, without defaults.
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

/// True if objects of this kind have a generation.
pub(crate) fn has_generation(resource: &Resource) -> bool {
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
    match FieldValidation::from_call(call)? {
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

/// 400 or 422 for an undecodable object, or an undecodable result of a patch.
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

/// Splits an update: an update of the object keeps the status, and an update of the status keeps everything else.
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
                // The service controller of Go adds and removes its finalizer by way of the status.
                match metadata.get("finalizers") {
                    Some(value) => meta_of(fields).insert("finalizers".to_owned(), value.clone()),
                    None => meta_of(fields).remove("finalizers"),
                };
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

/// Fields whose changes count in the generation: all but metadata and, if it is a subresource, status.
fn counted(resource: &Resource, object: &Value) -> serde_json::Map<String, Value> {
    let status_apart = resource.stored_version().status;
    let fields = object.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| {
            !(matches!(name.as_str(), "metadata" | "apiVersion")
                || status_apart && *name == "status")
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Increments the generation on any change outside of metadata and status. `has_lost`: the object had nulls that count as
/// a change, as in kube-apiserver.
fn count_generation(resource: &Resource, new: &mut Value, old: Option<&Value>, has_lost: bool) {
    let Some(old) = old.filter(|_| has_generation(resource)) else {
        return;
    };
    // Controllers that program the network select EndpointSlices by label, so a change of labels counts.
    if resource.kind == "EndpointSlice" && old["metadata"]["labels"] != new["metadata"]["labels"] {
        let next = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        meta::of(new).insert("generation".to_owned(), Value::from(next));
        return;
    }
    let before = old["metadata"]["generation"].as_i64().unwrap_or(0);
    // The Deployment controller reads annotations, so a change of annotations counts.
    let annotations = |object: &Value| match resource.kind.as_str() {
        "Deployment" if !resource.is_custom() => object["metadata"]["annotations"].clone(),
        _ => Value::Null,
    };
    let is_same = counted(resource, new) == counted(resource, old);
    let generation = if is_same && !has_lost && annotations(new) == annotations(old) {
        before
    } else {
        before + 1
    };
    if generation > 0 {
        meta::of(new).insert("generation".to_owned(), Value::from(generation));
    }
}
