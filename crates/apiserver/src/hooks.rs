//! Conversion and admission inside the process, for the objects of CustomResourceDefinitions.

use serde_json::Value;

/// Violation reported by an admission hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field, such as `spec.managedSubnets[0].cidr`.
    pub path: String,
    /// Violation, and valid values.
    pub message: String,
}

/// Conversion and admission of custom kinds inside the process: the work of conversion webhooks, mutating and
/// validating webhooks in a real cluster, without the network.
///
/// Only objects of CustomResourceDefinitions are passed, [`default`](Self::default) and [`validate`](Self::validate)
/// always in the stored version. The hooks are called on the request's task and must not block.
pub trait Hooks: Send + Sync {
    /// Converts `object` to `to_api_version`, a version of the same group. Called only for a CustomResourceDefinition
    /// with `conversion.strategy: Webhook` and without a webhook, which would take precedence; with `None` the
    /// `apiVersion` alone changes.
    ///
    /// # Errors
    /// The reason why the object cannot be converted: the message of a 500, as with a conversion webhook that fails.
    fn convert(&self, object: Value, to_api_version: &str) -> Result<Value, String>;

    /// True if [`convert`](Self::convert) replaces the webhook of a definition without one.
    fn converts(&self) -> bool {
        true
    }

    /// Fills in defaults. `old` is the stored object on an update.
    fn default(&self, object: &mut Value, old: Option<&Value>);

    /// Accepts or rejects an object before it is stored, including a change of the number of replicas through
    /// `/scale`. `old` is the stored object on an update.
    ///
    /// # Errors
    /// Every problem found, as causes of a 422 `Invalid`.
    fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), Vec<FieldError>>;

    /// Warnings about an accepted object. `old` is the stored object on an update.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Second object for further defaults and rules of `object`, such as the class of a cluster.
    fn beside(&self, _object: &Value) -> Option<RelatedObject> {
        None
    }

    /// Fills in the defaults that depend on the object of [`beside`](Self::beside), passed in the stored version.
    fn default_beside(&self, _object: &mut Value, _beside: &Value) {}

    /// Accepts or rejects an object besides the object of [`beside`](Self::beside), `None` if that object does not
    /// exist; returns warnings.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    fn validate_beside(
        &self,
        _object: &Value,
        _old: Option<&Value>,
        _beside: Option<&Value>,
    ) -> Result<Vec<String>, Vec<FieldError>> {
        Ok(Vec::new())
    }

    /// Collection of the objects that decide on a deletion of `object`, in all namespaces.
    fn referrers(&self, _object: &Value) -> Option<Referrers> {
        None
    }

    /// Accepts or rejects the deletion of `object`, besides all objects of [`referrers`](Self::referrers). Both are
    /// in the stored version. Deletions by owner references and of namespaces are not passed.
    ///
    /// # Errors
    /// The reason against the deletion: the message of a 403.
    fn delete(&self, _object: &Value, _referrers: &[Value]) -> Result<(), String> {
        Ok(())
    }
}

/// Kind of a CustomResourceDefinition with objects that may refer to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referrers {
    /// API group.
    pub group: String,
    /// Plural of the kind.
    pub plural: String,
}

/// Second object of an admission, of a kind of CustomResourceDefinitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedObject {
    /// API group.
    pub group: String,
    /// Plural of the kind.
    pub plural: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Hooks without conversion (only `apiVersion` changes), defaults and validation.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn convert(&self, mut object: Value, to_api_version: &str) -> Result<Value, String> {
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), Value::from(to_api_version));
        }
        Ok(object)
    }

    fn converts(&self) -> bool {
        false
    }

    fn default(&self, _object: &mut Value, _old: Option<&Value>) {}

    fn validate(
        &self,
        _object: &Value,
        _old: Option<&Value>,
        _dry_run: bool,
    ) -> Result<(), Vec<FieldError>> {
        Ok(())
    }
}
