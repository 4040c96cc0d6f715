//! Names and labels of objects.

use serde_json::{Value as Json, json};

use super::STEP;
use crate::cloud::Cloud;
use crate::held::{Credentials, PART_OF, UID, digest};
use crate::service::definition::{Content, File};

/// Source of names and labels.
pub(super) struct Names<'a> {
    pub(super) cloud: &'a Cloud,
    pub(super) held: &'a Credentials,
}

impl Names<'_> {
    /// Name of the object of a configuration [`File`]: another content makes another object.
    pub(super) fn file(&self, file: &File) -> String {
        let digest = match &file.content {
            Content::Public(text) => digest(&[&file.path, text]),
            Content::Secret(text) => self
                .held
                .digest(&format!("{}\n{}", file.path, text.expose())),
        };
        format!("{}-{digest}", file.object)
    }

    /// Metadata without a name.
    pub(super) fn metadata(&self, step: &str) -> Json {
        json!({"namespace": self.cloud.namespace, "labels": {
            PART_OF: self.cloud.name,
            "app.kubernetes.io/managed-by": "ferrostack",
            UID: self.held.uid(),
            STEP: step,
        }})
    }

    /// Selector of the Pods of a program.
    pub(super) fn selector(&self, program: &str) -> Json {
        json!({"app.kubernetes.io/name": program, UID: self.held.uid()})
    }

    /// Labels of the Pods of a program.
    pub(super) fn labels(&self, program: &str) -> Json {
        let mut labels = self.selector(program);
        labels[PART_OF] = self.cloud.name.as_str().into();
        labels
    }

    pub(super) fn image(&self) -> &'static str {
        self.cloud.parameters.release.image()
    }
}
