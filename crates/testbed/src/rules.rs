//! Conversion and admission of our kinds, wired as in the binary, which a test can disable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

#[derive(Clone, Default)]
pub(crate) struct Rules {
    /// True to accept every object.
    off: Arc<AtomicBool>,
}

impl Rules {
    pub(crate) fn enforce(&self, rules: bool) {
        self.off.store(!rules, Ordering::SeqCst);
    }
}

impl apiserver::Hooks for Rules {
    fn convert(&self, object: Value, to: &str) -> Result<Value, String> {
        management::Rules.convert(object, to)
    }

    fn default(&self, object: &mut Value, old: Option<&Value>) {
        management::Rules.default(object, old);
    }

    fn validate(
        &self,
        object: &Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), Vec<apiserver::FieldError>> {
        if self.off.load(Ordering::SeqCst) {
            return Ok(());
        }
        management::Rules.validate(object, old, dry_run)
    }

    fn beside(&self, object: &Value) -> Option<apiserver::RelatedObject> {
        management::Rules.beside(object)
    }

    fn default_beside(&self, object: &mut Value, beside: &Value) {
        management::Rules.default_beside(object, beside);
    }

    fn validate_beside(
        &self,
        object: &Value,
        old: Option<&Value>,
        beside: Option<&Value>,
    ) -> Result<Vec<String>, Vec<apiserver::FieldError>> {
        if self.off.load(Ordering::SeqCst) {
            return Ok(Vec::new());
        }
        management::Rules.validate_beside(object, old, beside)
    }

    fn referrers(&self, object: &Value) -> Option<apiserver::Referrers> {
        management::Rules.referrers(object)
    }

    fn delete(&self, object: &Value, referrers: &[Value]) -> Result<(), String> {
        if self.off.load(Ordering::SeqCst) {
            return Ok(());
        }
        management::Rules.delete(object, referrers)
    }
}
