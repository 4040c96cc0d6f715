//! Conversion and admission inside the process, for the objects of CustomResourceDefinitions.

use serde_json::Value;

/// A violation that an admission hook reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field, such as `spec.managedSubnets[0].cidr`.
    pub path: String,
    /// The violation, and what would be valid.
    pub message: String,
}

/// Conversion and admission of custom kinds inside the process: what conversion webhooks, mutating and validating
/// webhooks do in a real cluster, without the network.
///
/// Only objects of CustomResourceDefinitions are passed, [`default`](Self::default) and
/// [`validate`](Self::validate) always in the stored version. The hooks are called on the request's
/// task and must not block.
pub trait Hooks: Send + Sync {
    /// Converts `object` to `to_api_version`, a version of the same group. Called only when the
    /// CustomResourceDefinition has `conversion.strategy: Webhook` and names no webhook, which would be called instead;
    /// with `None` the `apiVersion` alone changes.
    ///
    /// # Errors
    /// Why the object cannot be converted. It becomes the message of a 500, as with a conversion webhook that fails.
    fn convert(&self, object: Value, to_api_version: &str) -> Result<Value, String>;

    /// True if [`convert`](Self::convert) replaces the webhook of a definition that names none.
    fn converts(&self) -> bool {
        true
    }

    /// Fills in defaults. `old` is the stored object on an update.
    fn default(&self, object: &mut Value, old: Option<&Value>);

    /// Accepts or rejects an object before it is stored, including a change of its number of replicas through `/scale`.
    /// `old` is the stored object on an update.
    ///
    /// # Errors
    /// Every problem found. They become the causes of a 422 `Invalid`.
    fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), Vec<FieldError>>;

    /// Warnings about an object that is accepted. `old` is the stored object on an update.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// The object that further defaults and rules of `object` depend on, such as the class of a cluster.
    fn beside(&self, _object: &Value) -> Option<Beside> {
        None
    }

    /// Fills in the defaults that depend on the object of [`beside`](Self::beside), which is in the stored version.
    fn default_beside(&self, _object: &mut Value, _beside: &Value) {}

    /// Accepts or rejects an object besides the one of [`beside`](Self::beside), `None` if that does not exist; returns
    /// warnings.
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

    /// The collection whose objects decide whether `object` can be deleted, in all namespaces.
    fn referrers(&self, _object: &Value) -> Option<Referrers> {
        None
    }

    /// Accepts or rejects the deletion of `object`, besides all objects of [`referrers`](Self::referrers). Both are in
    /// the stored version. Deletions by owner references and of namespaces are not passed.
    ///
    /// # Errors
    /// Why it cannot be deleted. It becomes the message of a 403.
    fn delete(&self, _object: &Value, _referrers: &[Value]) -> Result<(), String> {
        Ok(())
    }
}

/// A kind of CustomResourceDefinitions whose objects may refer to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referrers {
    /// API group.
    pub group: String,
    /// Plural of the kind.
    pub plural: String,
}

/// An object besides which another one is admitted, of a kind of CustomResourceDefinitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// API group.
    pub group: String,
    /// Plural of the kind.
    pub plural: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
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
