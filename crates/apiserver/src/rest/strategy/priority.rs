//! Priority of pods, by the name of a priority class (`plugin/pkg/admission/priority`).

use serde_json::{Value, json};

use crate::call::Call;
use crate::error::ApiError;

const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
const PREEMPTS: &str = "PreemptLowerPriority";

/// Priority class, as applied to pods.
struct Class {
    name: String,
    value: i64,
    preemption: String,
}

impl Class {
    fn from_class(class: &Value) -> Self {
        let text = |field: &Value| field.as_str().map(str::to_owned);
        Self {
            name: text(&class["metadata"]["name"]).unwrap_or_default(),
            value: class["value"].as_i64().unwrap_or_default(),
            preemption: text(&class["preemptionPolicy"]).unwrap_or_else(|| PREEMPTS.to_owned()),
        }
    }

    /// Default class of pods: the lowest of the global default classes.
    fn default(call: &Call) -> Option<Self> {
        let state = call.core.store.read();
        let all = state.range(CLASSES, "", None);
        all.map(|class| class.value())
            .filter(|class| class["globalDefault"] == true)
            .map(|class| Self::from_class(&class))
            .min_by_key(|class| class.value)
    }
}

/// Sets the priority of a new pod from its class.
pub(super) fn admit(call: &Call, pod: &mut Value) -> Result<(), ApiError> {
    let refused = |why: String| {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        Err(ApiError::forbidden("", "pods", name, &why))
    };
    let spec = &pod["spec"];
    let named = spec["priorityClassName"].as_str().unwrap_or_default();
    let class = if named.is_empty() {
        Class::default(call)
    } else {
        let Some(class) = call.core.store.get(CLASSES, named) else {
            return refused(format!("no PriorityClass with name {named} was found"));
        };
        Some(Class::from_class(&class.value()))
    };
    let class = class.unwrap_or_else(|| Class::from_class(&Value::Null));
    let computed = "priority admission controller computed";
    if let Some(given) = spec["priority"]
        .as_i64()
        .filter(|given| *given != class.value)
    {
        return refused(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; {computed} {} from the given PriorityClass name",
            class.value
        ));
    }
    if let Some(given) = spec["preemptionPolicy"].as_str()
        && given != class.preemption
    {
        return refused(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; {computed} {} from the given PriorityClass name",
            class.preemption
        ));
    }
    if !pod["spec"].is_object() {
        return Ok(());
    }
    if !class.name.is_empty() {
        pod["spec"]["priorityClassName"] = Value::from(class.name);
    }
    pod["spec"]["priority"] = json!(class.value);
    pod["spec"]["preemptionPolicy"] = json!(class.preemption);
    Ok(())
}
