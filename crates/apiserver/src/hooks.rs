//! Conversion and admission inside the process, for the objects of CustomResourceDefinitions.

use serde_json::Value;

/// One problem of an object, as an admission hook reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Where, as `spec.managedSubnets[0].cidr`.
    pub path: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// What the owner of custom kinds adds to the server: the same as conversion webhooks, mutating and
/// validating webhooks of a real cluster, without the network.
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
    /// What is in the way; it becomes the message of a 500, as a failed conversion webhook does.
    fn convert(&self, object: Value, to_api_version: &str) -> Result<Value, String>;

    /// Whether [`convert`](Self::convert) stands in for the webhook of a definition that names none.
    fn converts(&self) -> bool {
        true
    }

    /// Fills in defaults. `old` is the stored object on an update.
    fn default(&self, object: &mut Value, old: Option<&Value>);

    /// Accepts or rejects what is about to be stored: the object itself, or a change of its number of replicas by way of
    /// `/scale`. `old` is the stored object on an update.
    ///
    /// # Errors
    /// Every problem found. They become the causes of a 422 `Invalid`.
    fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), Vec<FieldError>>;
}

/// No conversion but that of `apiVersion`, no defaults, and everything is accepted.
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
