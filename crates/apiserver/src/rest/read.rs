//! get and list.

use std::sync::Arc;

use apimachinery::kinds::{Resource, selectable};
use apimachinery::schema::FieldError;
use apimachinery::selector::{FieldSelector, LabelSelector};
use apimachinery::table;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::conversion;
use crate::error::ApiError;
use crate::request::accept::Form;
use crate::request::go_json;
use crate::store::{At, Object, Unread};
use crate::view::Kind;

/// Answers a get.
pub(crate) fn get(call: &Call) -> Result<Answer, ApiError> {
    let key = call.resource.key(&call.namespace, call.name());
    let object = call
        .core
        .store
        .get(&call.resource.collection, &key)
        .ok_or_else(|| call.not_found())?;
    object_answer(call, 200, &object)
}

/// [`Answer`] to a get or a write with a stored [`Object`].
pub(crate) fn object_answer(call: &Call, code: u16, object: &Object) -> Result<Answer, ApiError> {
    let kind = Kind {
        core: &call.core,
        resource: &call.resource,
    };
    let api_version = &call.version().api_version;
    if call.accept.form == Form::Whole {
        return Ok(Answer::Bytes(code, kind.bytes(object, api_version)?));
    }
    value_answer(call, code, kind.value(object, api_version)?)
}

/// [`Answer`] to a get or a write with an object in the version of the request.
pub(crate) fn value_answer(call: &Call, code: u16, value: Value) -> Result<Answer, ApiError> {
    Ok(Answer::Value(
        code,
        match call.accept.form {
            Form::Whole => value,
            Form::Metadata => table::metadata_only(&value),
            Form::Table => {
                let include = include_object(call)?;
                let revision = value["metadata"]["resourceVersion"].clone();
                let rows = vec![table::row(call.version(), value, include, Timestamp::now())];
                table::table(
                    call.version(),
                    rows,
                    &json!({"resourceVersion": revision}),
                    true,
                )
            }
        },
    ))
}

/// `includeObject`: part of an object in a table row.
pub(super) fn include_object(call: &Call) -> Result<Option<&str>, ApiError> {
    match call.query.get("includeObject") {
        given @ (None | Some("Metadata" | "Object" | "None")) => Ok(given),
        Some(other) => Err(ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

/// Objects of a collection selected by a request.
pub(crate) struct Selection {
    /// Common prefix of the keys.
    pub(crate) prefix: String,
    labels: LabelSelector,
    fields: FieldSelector,
    /// True if a field selector refers to fields beyond the metadata: objects must be parsed.
    deep: bool,
    name: Option<String>,
    resource: Arc<Resource>,
}

impl Selection {
    pub(crate) fn from_call(call: &Call) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(call.query.get("labelSelector").unwrap_or_default())
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(call.query.get("fieldSelector").unwrap_or_default())
            .map_err(|error| ApiError::bad_request(error.message))?;
        for label in fields.fields() {
            selectable::check(&call.resource, call.version(), label)
                .map_err(ApiError::bad_request)?;
        }
        let deep = fields.fields().any(selectable::is_beyond_metadata);
        let prefix = if call.namespace.is_empty() {
            String::new()
        } else {
            format!("{}/", call.namespace)
        };
        Ok(Self {
            prefix,
            labels,
            fields,
            deep,
            name: call.name.clone(),
            resource: Arc::clone(&call.resource),
        })
    }

    /// True if everything under the prefix is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.name.is_none()
    }

    fn has_labels(&self, object: &Object) -> bool {
        self.labels.is_empty() || self.labels.matches(&object.facts.labels)
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        if self
            .name
            .as_deref()
            .is_some_and(|name| name != object.name())
        {
            return false;
        }
        if !self.has_labels(object) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let value = if self.deep {
            object.value()
        } else {
            Value::Null
        };
        self.fields.matches(|field| match field {
            "metadata.name" => Some(object.name().to_owned()),
            "metadata.namespace" => Some(object.namespace().to_owned()),
            field => selectable::text(&self.resource, &value, field),
        })
    }
}

/// One page of a list.
struct Page {
    objects: Vec<Arc<Object>>,
    revision: u64,
    /// Key to continue after, and the number of remaining items if known.
    more: Option<(Arc<str>, Option<usize>)>,
}

/// Answers a list.
pub(crate) async fn list(call: &Call) -> Result<Answer, ApiError> {
    let selection = Selection::from_call(call)?;
    let page = page(call, &selection).await?;
    conversion::resolve(call.core.converter(), || list_of(call, &page)).await
}

/// [`Page`] in the form and version of a request.
fn list_of(call: &Call, page: &Page) -> Result<Answer, ApiError> {
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    // A Table omits an empty `continue`.
    if call.resource.is_custom() && call.accept.form != Form::Table {
        metadata["continue"] = Value::from("");
    }
    if let Some((key, left)) = &page.more {
        metadata["continue"] = Value::from(token(page.revision, key));
        if let Some(left) = left {
            metadata["remainingItemCount"] = Value::from(*left);
        }
    }
    let kind = Kind {
        core: &call.core,
        resource: &call.resource,
    };
    let version = call.version();
    let api_version = &version.api_version;
    kind.ask_for(&page.objects, api_version)?;
    match call.accept.form {
        Form::Whole => {
            let items: Result<Vec<Bytes>, ApiError> = page
                .objects
                .iter()
                .map(|object| kind.bytes(object, api_version))
                .collect();
            let names = (!call.resource.is_custom())
                .then_some((api_version.as_str(), call.resource.kind.as_str()));
            let bytes = assemble(
                &call.resource.list_kind,
                api_version,
                &metadata,
                &items?,
                names,
            );
            Ok(Answer::Bytes(200, bytes))
        }
        Form::Metadata => {
            // A PartialObjectMetadataList omits an empty `continue`.
            if let Some(fields) = metadata.as_object_mut() {
                fields.retain(|_, value| value != "");
            }
            let items: Result<Vec<Value>, ApiError> = page
                .objects
                .iter()
                .map(|object| Ok(table::metadata_only(&kind.value(object, api_version)?)))
                .collect();
            Ok(Answer::Value(
                200,
                json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata, "items": items?,
                }),
            ))
        }
        Form::Table => {
            let include = include_object(call)?;
            let now = Timestamp::now();
            let rows: Result<Vec<Value>, ApiError> = page
                .objects
                .iter()
                .map(|object| {
                    Ok(table::row(
                        version,
                        kind.value(object, api_version)?,
                        include,
                        now,
                    ))
                })
                .collect();
            Ok(Answer::Value(
                200,
                table::table(version, rows?, &metadata, true),
            ))
        }
    }
}

async fn page(call: &Call, selection: &Selection) -> Result<Page, ApiError> {
    // A negative limit is no limit in kube-apiserver.
    let negative = call
        .query
        .get("limit")
        .is_some_and(|text| text.parse::<i64>().is_ok_and(|n| n < 0));
    let limit = match negative {
        true => None,
        false => call.query.number("limit")?.filter(|limit| *limit > 0),
    };
    let limit = limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let from = call.query.get("continue").map(untoken).transpose()?;
    if from.is_some()
        && call
            .query
            .get("resourceVersion")
            .is_some_and(|rv| rv != "0")
    {
        return Err(ApiError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let exact = exact_revision(call)?;
    let after = from.as_ref().map(|(_, key)| key.as_str());
    let at = from.as_ref().map(|(revision, _)| *revision).or(exact);
    let asked = at.or(call.query.revision()?);
    let collection = &call.resource.collection;
    let store = &call.core.store;
    let (current, objects) = {
        let state = store.read();
        if let Some(asked) = asked
            && asked > state.revision
        {
            return Err(too_large(asked, state.revision));
        }
        let now = at.is_none_or(|at| at == state.revision);
        let objects = now.then(|| state.range(collection, &selection.prefix, after));
        // A list by label often selects one of a thousand objects: the others are not cloned.
        let labelled = |object: &&Arc<Object>| selection.has_labels(object);
        (
            state.revision,
            objects.map(|objects| objects.filter(labelled).cloned().collect()),
        )
    };
    let revision = at.unwrap_or(current);
    let mut objects: Vec<Arc<Object>> = match objects {
        Some(objects) => objects,
        None => {
            let at = At {
                collection: Arc::clone(collection),
                prefix: selection.prefix.clone(),
                after: after.map(str::to_owned),
                revision,
            };
            let objects = store.range_at(at).await;
            objects.map_err(|unread| match unread {
                Unread::Gone(_) => history_gone(from.as_ref(), current),
                Unread::Failed(problem) => ApiError::internal(problem),
            })?
        }
    };
    if !selection.is_everything() {
        objects.retain(|object| selection.matches(object));
    }
    let mut more = None;
    if objects.len() > limit {
        let left = selection.is_everything().then_some(objects.len() - limit);
        objects.truncate(limit);
        more = objects.last().map(|object| (Arc::clone(&object.key), left));
    }
    Ok(Page {
        objects,
        revision,
        more,
    })
}

/// `resourceVersionMatch=Exact`, validated as in kube-apiserver.
fn exact_revision(call: &Call) -> Result<Option<u64>, ApiError> {
    let revision = call.query.revision()?;
    match (call.query.get("resourceVersionMatch"), revision) {
        (None, _) | (Some("NotOlderThan"), Some(_)) => Ok(None),
        (Some("Exact"), Some(revision)) if revision > 0 => Ok(Some(revision)),
        (Some("Exact"), Some(_)) => Err(list_options(FieldError::forbidden(
            MATCH,
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ))),
        (Some(_), None) => Err(list_options(FieldError::forbidden(
            MATCH,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ))),
        (Some(other), _) => {
            let known = ["Exact", "NotOlderThan", ""].map(str::to_owned);
            let error = FieldError::not_supported(MATCH, &Value::from(other), &known);
            Err(list_options(error))
        }
    }
}

const MATCH: &str = "resourceVersionMatch";

fn list_options(error: FieldError) -> ApiError {
    ApiError::invalid("meta.k8s.io", "ListOptions", "", &[error])
}

/// 504 for a revision newer than the current one.
pub(crate) fn too_large(asked: u64, current: u64) -> ApiError {
    let message = format!("Too large resource version: {asked}, current: {current}");
    let mut error = ApiError::new(504, "Timeout", format!("Timeout: {message}"));
    error.details = Some(Box::new(json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    })));
    error
}

/// 410 for a compacted revision. With a continue token, the answer has a token for the rest of the list at the
/// current revision.
fn history_gone(from: Option<&(u64, String)>, current: u64) -> ApiError {
    let Some((_, key)) = from else {
        return ApiError::expired("The resourceVersion for the provided list is too old.");
    };
    let mut error = ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    error.continue_with = Some(token(current, key));
    error
}

fn token(revision: u64, key: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": key});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn untoken(token: &str) -> Result<(u64, String), ApiError> {
    let invalid = |why: &str| {
        ApiError::bad_request(format!(
            "invalid continue token: continue key is not valid: {why}"
        ))
    };
    let bytes = URL_SAFE_NO_PAD
        .decode(token)
        .map_err(|error| invalid(&error.to_string()))?;
    if let Some(problem) = go_json::problem(&bytes) {
        return Err(invalid(&problem));
    }
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| invalid(&error.to_string()))?;
    match (value["rv"].as_u64(), value["start"].as_str()) {
        (Some(revision), Some(start)) => Ok((revision, start.to_owned())),
        _ => Err(invalid("it has no revision and start")),
    }
}

/// Assembles a list from the JSON of the items, without serialising again. `names`: version and kind of built-in
/// items, omitted by kube-apiserver within a list.
fn assemble(
    kind: &str,
    api_version: &str,
    metadata: &Value,
    items: &[Bytes],
    names: Option<(&str, &str)>,
) -> Bytes {
    // Objects in the store begin with these two fields.
    let names = names.map(|(version, kind)| {
        format!(
            "{{\"apiVersion\":{},\"kind\":{},",
            Value::from(version),
            Value::from(kind)
        )
    });
    let names = names.unwrap_or_default();
    let size = items.iter().map(|item| item.len() + 1).sum::<usize>();
    let mut out = Vec::with_capacity(size + 200);
    let head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
        Value::from(kind),
        Value::from(api_version)
    );
    out.extend_from_slice(head.as_bytes());
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match item.strip_prefix(names.as_bytes()) {
            Some(rest) if !names.is_empty() => {
                out.push(b'{');
                out.extend_from_slice(rest);
            }
            _ => out.extend_from_slice(item),
        }
    }
    out.extend_from_slice(b"]}");
    out.into()
}
