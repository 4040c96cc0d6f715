//! Calls of admission hooks with the objects of a write: mutating hooks before the server sets its fields, validating
//! hooks after.

use apimachinery::patch::managed::{self, Writer};
use apimachinery::time::seconds;
use jiff::Timestamp;
use serde_json::Value;

use super::admit::settle;
use super::{meta, scale, strategy};
use crate::admission::Admission;
use crate::call::{Call, Warnings};
use crate::conversion;
use crate::error::ApiError;
use crate::view::Kind;

/// Write that mutating hooks may change.
pub(super) struct Write<'a> {
    pub(super) call: &'a Call,
    /// Object as sent by the client.
    pub(super) sent: &'a Value,
    pub(super) live: Option<&'a Value>,
    pub(super) subresource: &'a str,
    /// True if server-side apply has already updated the managed fields.
    pub(super) applied: bool,
    /// True if the request is a PUT of the whole object and not a patch.
    pub(super) put: bool,
    pub(super) now: Timestamp,
}

impl Write<'_> {
    /// Calls the mutating hooks of an [`Admission`]. After a change, returns the managed fields from before the
    /// change.
    pub(super) async fn mutate(
        &self,
        admission: &Admission<'_>,
        new: &mut Value,
        warnings: &mut Warnings,
    ) -> Result<Option<Value>, ApiError> {
        let Self {
            call,
            live,
            subresource,
            ..
        } = *self;
        if subresource == "scale"
            && let Some(of) = &call.version().scale
        {
            let mut object = scale::of_object(of, new);
            if let Some(live) = live {
                let revision = live["metadata"]["resourceVersion"].clone();
                meta::of(&mut object).insert("resourceVersion".to_owned(), revision);
            }
            let old = live.map(|live| scale::of_object(of, live));
            let changed = admission
                .mutate(Some(&mut object), old.as_ref(), warnings)
                .await?;
            if changed {
                scale::set(new, &of.spec, object["spec"]["replicas"].clone());
            }
            return Ok(None);
        }
        let mut view = self.view(new).await?;
        let owned = view["metadata"]["managedFields"].clone();
        let nameless = self.is_generated().then(|| admission.nameless());
        let admission = nameless.as_ref().unwrap_or(admission);
        if !admission.mutate(Some(&mut view), live, warnings).await? {
            return Ok(None);
        }
        if nameless.is_some() {
            let name = self.sent["metadata"]["name"].clone();
            meta::of(&mut view).insert("name".to_owned(), name);
        }
        let resource = &call.resource;
        meta::prune(&mut view);
        if let Some(schema) = &call.version().schema {
            schema.prune(&mut view);
        }
        if let Some(shape) = resource.shape(&call.version) {
            shape.read(&mut view).map_err(ApiError::internal)?;
        }
        *new = view;
        Ok((!self.applied && owned.is_array()).then_some(owned))
    }

    /// True if the server generates the name of the new object.
    fn is_generated(&self) -> bool {
        let metadata = &self.sent["metadata"];
        let named = |object: &Value| {
            let name = object["metadata"]["name"].as_str();
            name.is_some_and(|name| !name.is_empty())
        };
        self.live.is_none()
            && metadata["generateName"].is_string()
            && self.call.decode().is_ok_and(|body| !named(&body.value))
    }

    /// Object for mutating hooks: with defaults, and without the fields that are set on storage.
    async fn view(&self, new: &Value) -> Result<Value, ApiError> {
        let Self {
            call,
            live,
            subresource,
            now,
            ..
        } = *self;
        let resource = &call.resource;
        let mut view = new.clone();
        settle(call, &mut view, live, subresource, self.applied, now)?;
        if live.is_none() {
            // The admission plugins of kube-apiserver complete pods before webhooks are called.
            if resource.kind != "Pod" || resource.is_custom() {
                strategy::remove_server_fields(resource, self.sent, &mut view);
            }
            let metadata = meta::of(&mut view);
            for field in ["uid", "creationTimestamp", "generation"] {
                metadata.remove(field);
            }
            if self.is_generated() {
                metadata.remove("name");
            }
        } else if self.put {
            let metadata = meta::of(&mut view);
            for field in ["uid", "creationTimestamp", "generation", "resourceVersion"] {
                if self.sent["metadata"].get(field).is_none() {
                    metadata.remove(field);
                }
            }
        }
        if !self.applied {
            let time = seconds(now);
            let manager = call.manager();
            let writer = Writer {
                manager: &manager,
                subresource,
                api_version: &call.version().api_version,
                time: &time,
            };
            let kind = Kind {
                core: &call.core,
                resource,
            };
            view = conversion::resolve(call.core.converter(), || {
                let mut view = view.clone();
                managed::update(live, &mut view, writer, &kind)?;
                Ok(view)
            })
            .await?;
        }
        Ok(view)
    }
}

/// Calls the validating hooks with the final object.
pub(super) async fn validate(
    call: &Call,
    admission: &Admission<'_>,
    subresource: &str,
    object: &Value,
    live: Option<&Value>,
    warnings: &mut Warnings,
) -> Result<(), ApiError> {
    if subresource == "scale"
        && let Some(of) = &call.version().scale
    {
        let object = scale::of_object(of, object);
        let old = live.map(|live| scale::of_object(of, live));
        return admission
            .validate(Some(&object), old.as_ref(), warnings)
            .await;
    }
    admission.validate(Some(object), live, warnings).await
}
