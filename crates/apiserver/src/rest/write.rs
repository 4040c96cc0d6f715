//! create and update.

use std::sync::Arc;

use apimachinery::crd;
use apimachinery::kinds::{CRD_COLLECTION, Resource};
use jiff::Timestamp;
use serde_json::Value;

use super::admit::{Incoming, admit};
use super::meta;
use super::read::{object_answer, value_answer};
use crate::call::{Answer, Call, Warnings};
use crate::conversion;
use crate::core::Core;
use crate::error::ApiError;
use crate::store::{NAMESPACES, Object, ObjectKey, Serve, Unstorable, Write, WriteError, gate};
use crate::view::Kind;

/// Answers a create.
pub(crate) async fn create(call: &Call, warnings: &mut Warnings) -> Result<Answer, ApiError> {
    if call.resource.namespaced && call.namespace.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let dry_run = call.dry_run("CreateOptions")?;
    let decoded = call.decode_object()?;
    let mut object = decoded.value;
    check_type(call, &mut object)?;
    check_metadata(call, &object)?;
    check_namespace(call, &object)?;
    if object["metadata"]["resourceVersion"]
        .as_str()
        .is_some_and(|rv| !rv.is_empty() && rv != "0")
    {
        return Err(ApiError::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let base = object["metadata"]["generateName"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let named = object["metadata"]["name"]
        .as_str()
        .is_some_and(|name| !name.is_empty());
    // When a generated name exists, another is tried.
    let tries = if named || base.is_empty() { 1 } else { 8 };
    if tries > 1 {
        // Before a name is generated, as in kube-apiserver.
        check_definition(call, "")?;
        check_namespace_open(call, &base)?;
    }
    for last in (0..tries).rev() {
        let mut object = object.clone();
        if tries > 1 {
            meta::of(&mut object).insert("name".to_owned(), Value::from(meta::generated(&base)));
        }
        let duplicates = decoded.duplicates.clone();
        let created = create_object(call, object, duplicates, dry_run, false, warnings).await;
        match created {
            Err(error) if error.reason == "AlreadyExists" && last > 0 => {}
            other => return other,
        }
    }
    Err(ApiError::internal("no name could be generated"))
}

/// Creates an object that lacks only the server's fields. `applied`: by server-side apply.
pub(crate) async fn create_object(
    call: &Call,
    object: Value,
    duplicates: Vec<String>,
    dry_run: bool,
    applied: bool,
    warnings: &mut Warnings,
) -> Result<Answer, ApiError> {
    let now = Timestamp::now();
    let resource = &call.resource;
    if !resource.is_custom()
        && let Some(answer) = super::special::virtual_create(call, &object, warnings).await?
    {
        return Ok(answer);
    }
    let name = object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    check_definition(call, &name)?;
    check_namespace_open(call, &name)?;
    let incoming = Incoming {
        object,
        live: None,
        stored: None,
        duplicates,
        dry_run,
        applied,
        patch: applied,
        now,
    };
    let ready = admit(call, incoming, warnings).await?;
    let key = resource.key(&call.namespace, &name);
    let taken = || ApiError::already_exists(&resource.group, &resource.plural, &name);
    if dry_run {
        if call.core.store.get(&resource.collection, &key).is_some() {
            return Err(taken());
        }
        return dry_answer(call, 201, ready).await;
    }
    match commit(&call.core, resource, key, 0, &ready, false).await {
        Ok(object) => {
            if resource.is_crd() {
                super::definitions::accept(&call.core, &name).await;
            }
            if &*resource.collection == "/namespaces" {
                let created = crate::namespaces::create_defaults(&call.core, &name).await;
                created.map_err(|problem| failed_write(WriteError::Failed(problem)))?;
            }
            conversion::resolve(call.core.converter(), || object_answer(call, 201, &object)).await
        }
        Err(WriteError::Conflict) => Err(taken()),
        Err(WriteError::Closed(_)) => {
            // The store rejected the create because the definition or the namespace terminates; the check returns the
            // error for either case.
            check_definition(call, &name)?;
            check_namespace_open(call, &name)?;
            Err(call.not_found())
        }
        Err(error) => Err(failed_write(error)),
    }
}

/// Answers an update of an object, or of its status.
pub(crate) async fn update(call: &Call, warnings: &mut Warnings) -> Result<Answer, ApiError> {
    let dry_run = call.dry_run("UpdateOptions")?;
    let decoded = call.decode_object()?;
    let mut object = decoded.value;
    check_type(call, &mut object)?;
    check_metadata(call, &object)?;
    check_namespace(call, &object)?;
    let named = object["metadata"]["name"].as_str().unwrap_or_default();
    if named.is_empty() {
        meta::of(&mut object).insert("name".to_owned(), Value::from(call.name()));
    } else if named != call.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({named}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    let change = Change {
        duplicates: decoded.duplicates,
        dry_run,
        put: true,
        ..Change::default()
    };
    change_object(call, change, warnings, |_| Ok(object.clone())).await
}

/// Options of a change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    pub(crate) duplicates: Vec<String>,
    pub(crate) dry_run: bool,
    /// True if the whole object is replaced: custom resources must then name their revision.
    pub(crate) put: bool,
    pub(crate) applied: bool,
}

/// Changes a stored object by `how`, a function on the object in the version of the request. Retries after a
/// concurrent change, unless the new object names its revision.
pub(crate) async fn change_object(
    call: &Call,
    change: Change,
    warnings: &mut Warnings,
    how: impl Fn(&Value) -> Result<Value, ApiError>,
) -> Result<Answer, ApiError> {
    let resource = &call.resource;
    let kind = Kind {
        core: &call.core,
        resource,
    };
    let key = resource.key(&call.namespace, call.name());
    loop {
        let current = call
            .core
            .store
            .get(&resource.collection, &key)
            .ok_or_else(|| call.not_found())?;
        let (stored, live, new) = conversion::resolve(call.core.converter(), || {
            let stored = kind.value(&current, &resource.stored)?;
            let live = kind.value(&current, &call.version().api_version)?;
            let new = how(&live)?;
            Ok((stored, live, new))
        })
        .await?;
        check_preconditions(call, &new, &live, change.put)?;
        let incoming = Incoming {
            object: new,
            live: Some(&live),
            stored: Some(&stored),
            duplicates: change.duplicates.clone(),
            dry_run: change.dry_run,
            applied: change.applied,
            patch: !change.put,
            now: Timestamp::now(),
        };
        let mut found = Warnings::default();
        let ready = admit(call, incoming, &mut found).await?;
        // An object whose stored form differs under a changed schema is written again, as by kube-apiserver.
        let unchanged = ready == stored && current.is_as_written();
        if change.dry_run || unchanged {
            warnings.0.append(&mut found.0);
        }
        if unchanged && *current.facts.api_version == *resource.stored {
            return conversion::resolve(call.core.converter(), || {
                object_answer(call, 200, &current)
            })
            .await;
        }
        if change.dry_run {
            return dry_answer(call, 200, ready).await;
        }
        let gone = is_finished(resource, &ready);
        match commit(
            &call.core,
            resource,
            Arc::clone(&key),
            current.revision,
            &ready,
            gone,
        )
        .await
        {
            Ok(object) => {
                warnings.0.append(&mut found.0);
                return conversion::resolve(call.core.converter(), || {
                    object_answer(call, 200, &object)
                })
                .await;
            }
            Err(WriteError::Conflict) => {}
            Err(error) => return Err(failed_write(error)),
        }
    }
}

/// Changes a stored [`Object`] on behalf of the server itself: without admission, managed fields and answer. `how`
/// returns false for no change. `None` if the object does not exist.
pub(crate) async fn edit(
    core: &Core,
    resource: &Resource,
    key: &Arc<str>,
    how: impl Fn(&mut Value) -> bool,
) -> Result<Option<Arc<Object>>, WriteError> {
    loop {
        let Some(current) = core.store.get(&resource.collection, key) else {
            return Ok(None);
        };
        let mut value = current.value();
        if !how(&mut value) {
            return Ok(Some(current));
        }
        let gone = is_finished(resource, &value);
        match commit(
            core,
            resource,
            Arc::clone(key),
            current.revision,
            &value,
            gone,
        )
        .await
        {
            Err(WriteError::Conflict) => {}
            other => return other.map(Some),
        }
    }
}

/// True if an object is being deleted and neither finalizers nor a grace period delay the end.
pub(crate) fn is_finished(resource: &Resource, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let none = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let is_namespace = &*resource.collection == "/namespaces";
    !metadata["deletionTimestamp"].is_null()
        && none(&metadata["finalizers"])
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && (!is_namespace || none(&object["spec"]["finalizers"]))
}

/// Writes an [`Object`]. A write of a CustomResourceDefinition also replaces the served [`Resource`].
pub(crate) async fn commit(
    core: &Core,
    resource: &Resource,
    key: Arc<str>,
    expect: u64,
    object: &Value,
    delete: bool,
) -> Result<Arc<Object>, WriteError> {
    let serve = if resource.is_crd() && !is_same(core, &key, object, delete) {
        Some(serving(core, object, delete)?)
    } else {
        None
    };
    let previous = (expect > 0).then(|| core.store.get(&resource.collection, &key));
    let draft = gate::pass(object, previous.flatten().as_deref())?;
    let place = ObjectKey {
        collection: Arc::clone(&resource.collection),
        key,
    };
    let served = match &serve {
        Some(Serve::Set(resource)) => Some(Arc::clone(resource)),
        _ => None,
    };
    let write = Write {
        place,
        expect,
        draft,
        delete,
        serve,
    };
    let written = core.store.write(write).await?;
    if let Some(resource) = served {
        core.store
            .apply_schema(&resource.group, &resource.plural)
            .await;
    } else if resource.is_custom() && !is_current(core, resource) {
        // The schema changed between admission and the write.
        core.store
            .apply_schema(&resource.group, &resource.plural)
            .await;
    }
    Ok(written)
}

/// True if the served [`Resource`] is unchanged since the start of the request.
fn is_current(core: &Core, resource: &Resource) -> bool {
    let served = core
        .store
        .registry()
        .find(&resource.group, &resource.plural);
    served.is_some_and(|served| std::ptr::eq(Arc::as_ptr(&served), resource))
}

/// Other stored definitions in the group of a definition.
pub(crate) fn definitions_beside(core: &Core, crd: &Value) -> Vec<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, group) = (text(&crd["metadata"]["name"]), text(&crd["spec"]["group"]));
    let state = core.store.read();
    // The name of a definition ends with its group: the definitions of other groups are not parsed.
    let is_beside = |key: &str| {
        let plural = key.strip_suffix(group.as_str());
        key != name && plural.is_some_and(|it| it.ends_with('.'))
    };
    let all = state.range(CRD_COLLECTION, "", None);
    let beside = all.filter(|object| is_beside(&object.key));
    beside
        .map(|object| crd::names::outline(&object.json()))
        .filter(|other| other["spec"]["group"] == crd["spec"]["group"])
        .collect()
}

/// True if the resource of a definition does not change.
fn is_same(core: &Core, name: &str, crd: &Value, delete: bool) -> bool {
    let (spec, registry) = (&crd["spec"], core.store.registry());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let stored = core.store.get(CRD_COLLECTION, name);
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    !delete
        && stored.is_some_and(|stored| stored.value()["spec"] == *spec)
        && registry.find(&group, &plural).is_some()
        && crd::names::is_served(crd, &definitions_beside(core, crd))
}

fn serving(core: &Core, crd: &Value, delete: bool) -> Result<Serve, WriteError> {
    if delete || !crd::names::is_served(crd, &definitions_beside(core, crd)) {
        let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
        return Ok(Serve::Remove {
            group: text(&crd["spec"]["group"]),
            plural: text(&crd["spec"]["names"]["plural"]),
        });
    }
    let refused = |errors: Vec<apimachinery::schema::FieldError>| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        WriteError::Failed(format!(
            "the definition cannot be served: {}",
            texts.join(", ")
        ))
    };
    crd::compile(crd)
        .map(|resource| Serve::Set(Arc::new(resource)))
        .map_err(refused)
}

/// Answer to a failed write, for errors without special handling in the caller.
pub(crate) fn failed_write(error: WriteError) -> ApiError {
    match error {
        WriteError::Unstorable(Unstorable::TooDeep) => ApiError::bad_request(error.to_string()),
        WriteError::Unstorable(Unstorable::TooLarge) => ApiError::new(500, "", error.to_string()),
        WriteError::Refused(why) => ApiError::new(500, "", why),
        error => ApiError::internal(format!("the object was not stored: {error}")),
    }
}

async fn dry_answer(call: &Call, code: u16, ready: Value) -> Result<Answer, ApiError> {
    let kind = Kind {
        core: &call.core,
        resource: &call.resource,
    };
    value_answer(
        call,
        code,
        kind.converted(ready, &call.version().api_version).await?,
    )
}

/// Checks that the object has the kind and version of the URL, and fills in omitted ones.
pub(crate) fn check_type(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    let version = &call.version().api_version;
    let kind = &call.resource.kind;
    let Some(fields) = object.as_object_mut() else {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): expected an object"
        )));
    };
    // Go's decoder of built-in kinds fills in kind and version from the URL.
    if !call.resource.is_custom() {
        fields
            .entry("apiVersion")
            .or_insert_with(|| Value::from(version.as_str()));
        fields
            .entry("kind")
            .or_insert_with(|| Value::from(kind.as_str()));
    }
    let text = |field: &str| {
        fields
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (has_version, has_kind) = (text("apiVersion"), text("kind"));
    if has_kind.is_empty() {
        return Err(ApiError::bad_request(
            "Object 'Kind' is missing in the request body",
        ));
    }
    let (other_version, other_kind) = (has_version != version, has_kind != kind);
    if !call.resource.is_custom() && (other_version || other_kind) {
        unconvertible(call, has_version, has_kind)?;
    }
    if other_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({has_version}) does not match the expected API version ({version})"
        )));
    }
    let metadata = fields.get("metadata").filter(|metadata| {
        !call.resource.is_custom() && !metadata.is_object() && !metadata.is_null()
    });
    if let Some(metadata) = metadata {
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {kind}: json: cannot unmarshal {} into Go struct field {kind}.metadata of type v1.ObjectMeta",
            call.version,
            apimachinery::schema::json_type(metadata)
        )));
    }
    Ok(())
}

/// Checks that the metadata of a custom object can be decoded before the name is read: a name of another type is an
/// error, not an absent name. The decoder of built-in kinds has a check of its own.
fn check_metadata(call: &Call, object: &Value) -> Result<(), ApiError> {
    if !call.resource.is_custom() {
        return Ok(());
    }
    let kind = &call.resource.kind;
    meta::readable(object).map_err(|why| {
        ApiError::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {kind}: {why}",
            call.version
        ))
    })
}

/// Rejects an object of another kind, as Go's scheme does for built-in kinds.
fn unconvertible(call: &Call, api_version: &str, kind: &str) -> Result<(), ApiError> {
    let expected = &call.resource;
    let (_, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let registry = call.core.store.registry();
    let known = registry.all().any(|resource| {
        let mut versions = resource.versions.iter();
        !resource.is_custom()
            && resource.kind == kind
            && versions.any(|version| version.api_version == api_version)
    });
    let why = if !known {
        format!(
            "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:110\""
        )
    } else if kind != expected.kind {
        let package = expected
            .group
            .split('.')
            .next()
            .filter(|name| !name.is_empty());
        format!(
            "converting ({version}.{kind}) to ({}.{}): unknown conversion",
            package.unwrap_or("core"),
            expected.kind
        )
    } else {
        return Ok(());
    };
    Err(ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {}: {why}",
        expected.kind
    )))
}

fn check_namespace(call: &Call, object: &Value) -> Result<(), ApiError> {
    let given = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if given.is_empty() || given == call.namespace {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}

/// Rejects new objects of a definition being deleted. The store checks again with the write.
fn check_definition(call: &Call, name: &str) -> Result<(), ApiError> {
    let resource = &call.resource;
    if !resource.is_custom() {
        return Ok(());
    }
    let definition = format!("{}.{}", resource.plural, resource.group);
    let definition = call.core.store.get(CRD_COLLECTION, &definition);
    if !definition.is_some_and(|definition| definition.facts.deleting) {
        return Ok(());
    }
    let why = "create not allowed while custom resource definition is terminating";
    Err(ApiError::forbidden(
        &resource.group,
        &resource.plural,
        name,
        why,
    ))
}

/// Rejects new objects in a missing or terminating namespace. The store checks again with the write.
fn check_namespace_open(call: &Call, name: &str) -> Result<(), ApiError> {
    if !call.resource.namespaced {
        return Ok(());
    }
    let Some(namespace) = call.core.store.get(NAMESPACES, &call.namespace) else {
        return Err(ApiError::not_found("", "namespaces", &call.namespace));
    };
    if !namespace.facts.deleting {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {} because it is being terminated",
        call.namespace
    );
    let mut error = ApiError::forbidden(&call.resource.group, &call.resource.plural, name, &why);
    if let Some(details) = &mut error.details {
        details["causes"] = serde_json::json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {} is being terminated", call.namespace),
            "field": "metadata.namespace",
        }]);
    }
    Err(error)
}

fn check_preconditions(call: &Call, new: &Value, live: &Value, put: bool) -> Result<(), ApiError> {
    let resource = &call.resource;
    let given = new["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    if given.is_empty() || given == "0" {
        if put && resource.is_custom() {
            let zero = Value::from(0);
            let error = apimachinery::schema::FieldError::invalid(
                "metadata.resourceVersion",
                &zero,
                "must be specified for an update",
            );
            // kube-apiserver's store names the plural here.
            return Err(ApiError::invalid(
                &resource.group,
                &resource.plural,
                call.name(),
                &[error],
            ));
        }
    } else if live["metadata"]["resourceVersion"] != given {
        return Err(ApiError::modified(
            &resource.group,
            &resource.plural,
            call.name(),
        ));
    }
    let uid = new["metadata"]["uid"].as_str().unwrap_or_default();
    let has = live["metadata"]["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != has {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {has}",
            etcd_key(resource, &call.namespace, call.name())
        );
        return Err(ApiError::conflict(
            &resource.group,
            &resource.plural,
            call.name(),
            &why,
        ));
    }
    Ok(())
}

/// Key of an object in etcd, printed by kube-apiserver in conflicts.
fn etcd_key(resource: &Resource, namespace: &str, name: &str) -> String {
    let place = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "nodes") => "minions".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (group, plural) if resource.is_custom() || resource.is_crd() => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    };
    let key = if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    };
    format!("/registry/{place}/{key}")
}
