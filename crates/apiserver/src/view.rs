//! Objects in the form and version of a request: whole, as metadata, or as a table row.

use std::sync::Arc;

use apimachinery::kinds::{Origin, Resource, shape};
use apimachinery::patch::{Types, Versions};
use apimachinery::schema::Schema;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::conversion;
use crate::core::Core;
use crate::error::ApiError;
use crate::store::{Object, json_at};

/// [`Resource`] and the conversions between its versions.
pub(crate) struct Kind<'a> {
    pub(crate) core: &'a Core,
    pub(crate) resource: &'a Resource,
}

impl Kind<'_> {
    /// Object in `api_version`. kube-apiserver adds the defaults of the version in which it reads an object from etcd, and
    /// none after the conversion; fields that a webhook returns and the version does not declare are removed.
    pub(crate) fn convert(&self, value: Value, api_version: &str) -> Result<Value, ApiError> {
        let same = value["apiVersion"] == api_version;
        let mut converted = self.convert_alone(value, api_version)?;
        if !same
            && self.resource.conversion.is_some()
            && let Some(schema) = self.schema(api_version)
        {
            schema.prune(&mut converted);
        }
        Ok(converted)
    }

    /// Object in `api_version` as returned by the conversion.
    fn convert_alone(&self, mut value: Value, api_version: &str) -> Result<Value, ApiError> {
        if value["apiVersion"] == api_version {
            return Ok(value);
        }
        match self.resource.origin {
            Origin::BuiltIn(_) if self.resource.plural == "events" => {
                let mut event = event_in(value, api_version);
                let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
                if let Some(shape) = shape::of(group, version, "Event") {
                    shape.write(&mut event);
                }
                Ok(event)
            }
            Origin::Custom { converts: true } if self.resource.conversion.is_some() => {
                let Some(webhook) = &self.resource.conversion else {
                    return Ok(value);
                };
                conversion::convert(self.core.converter(), webhook, value, api_version)
            }
            Origin::Custom { converts: true } => {
                let metadata = value["metadata"].clone();
                let name = metadata["name"].clone();
                let mut converted = self
                    .core
                    .options
                    .hooks
                    .convert(value, api_version)
                    .map_err(|problem| {
                        ApiError::internal(format!(
                            "conversion of {} {name} to {api_version} failed: {problem}",
                            self.resource.kind
                        ))
                    })?;
                keep_identity(&mut converted, metadata);
                Ok(converted)
            }
            _ => {
                if let Some(fields) = value.as_object_mut() {
                    fields.insert("apiVersion".to_owned(), Value::from(api_version));
                }
                // Fields that the other version does not declare are removed.
                if self.resource.is_custom()
                    && let Some(schema) = self.schema(api_version)
                {
                    schema.prune(&mut value);
                }
                Ok(value)
            }
        }
    }

    fn schema(&self, api_version: &str) -> Option<&Schema> {
        let mut versions = self.resource.versions.iter();
        versions
            .find(|version| version.api_version == api_version)?
            .schema
            .as_ref()
    }

    /// Object in `api_version`, after a call of the conversion webhook if necessary.
    pub(crate) async fn converted(
        &self,
        value: Value,
        api_version: &str,
    ) -> Result<Value, ApiError> {
        if self.resource.conversion.is_none() || value["apiVersion"] == api_version {
            return self.convert(value, api_version);
        }
        conversion::resolve(self.core.converter(), || {
            self.convert(value.clone(), api_version)
        })
        .await
    }

    /// Registers all conversions of a list before the first lookup, so that a single call converts all [`Object`]s.
    pub(crate) fn ask_for(
        &self,
        objects: &[Arc<Object>],
        api_version: &str,
    ) -> Result<(), ApiError> {
        if self.resource.conversion.is_none() {
            return Ok(());
        }
        let mut all = Ok(());
        for object in objects {
            if *object.facts.api_version != *api_version {
                all = self.value(object, api_version).map(drop).and(all);
            }
        }
        all
    }

    /// Stored [`Object`] in `api_version`.
    pub(crate) fn value(&self, object: &Object, api_version: &str) -> Result<Value, ApiError> {
        self.convert(object.value(), api_version)
    }

    /// JSON of the stored [`Object`] in `api_version`. In the stored version, no serialisation is necessary.
    pub(crate) fn bytes(&self, object: &Object, api_version: &str) -> Result<Bytes, ApiError> {
        if &*object.facts.api_version == api_version {
            return Ok(object.json());
        }
        let value = self.value(object, api_version)?;
        Ok(json_at(&value, object.revision))
    }
}

impl Versions for Kind<'_> {
    fn types(&self, api_version: &str) -> Option<Types<'_>> {
        let version = self
            .resource
            .versions
            .iter()
            .find(|v| v.api_version == api_version)?;
        Some(match &version.schema {
            Some(schema) => Types::Schema(schema),
            None => Types::BuiltIn {
                group: &self.resource.group,
                kind: &self.resource.kind,
            },
        })
    }

    fn blank(&self, api_version: &str) -> Option<Value> {
        let (_, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        if self.resource.is_crd() {
            let names = json!({"plural": "", "kind": ""});
            return Some(json!({
                "metadata": {},
                "spec": {"group": "", "names": names, "scope": "", "versions": null},
                "status": {"acceptedNames": names, "conditions": null, "storedVersions": null},
            }));
        }
        self.resource.shape(version).map(shape::Struct::zero)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        // A partial object keeps all of its fields and nulls, as in kube-apiserver.
        self.convert_alone(object.clone(), api_version)
            .map_err(|error| error.message)
    }
}

/// Converts an Event between its two groups.
fn event_in(mut event: Value, api_version: &str) -> Value {
    const NAMES: &[(&str, &str)] = &[
        ("involvedObject", "regarding"),
        ("message", "note"),
        ("reportingComponent", "reportingController"),
        ("source", "deprecatedSource"),
        ("firstTimestamp", "deprecatedFirstTimestamp"),
        ("lastTimestamp", "deprecatedLastTimestamp"),
        ("count", "deprecatedCount"),
    ];
    let Some(fields) = event.as_object_mut() else {
        return event;
    };
    for (core, new) in NAMES {
        let (from, to) = if api_version == "v1" {
            (*new, *core)
        } else {
            (*core, *new)
        };
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
    fields.insert("apiVersion".to_owned(), Value::from(api_version));
    event
}

/// Restores the metadata after conversion. As in kube-apiserver, webhooks may change labels and annotations only.
fn keep_identity(converted: &mut Value, mut metadata: Value) {
    let changed = converted["metadata"].take();
    if let (Some(kept), Value::Object(mut changed)) = (metadata.as_object_mut(), changed) {
        for field in ["labels", "annotations"] {
            match changed.remove(field) {
                Some(value) => kept.insert(field.to_owned(), value),
                None => kept.remove(field),
            };
        }
    }
    if let Some(fields) = converted.as_object_mut() {
        fields.insert("metadata".to_owned(), metadata);
    }
}
