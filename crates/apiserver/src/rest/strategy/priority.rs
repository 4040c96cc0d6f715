//! The priority of pods, which the name of their class decides (`plugin/pkg/admission/priority`).

use serde_json::{Value, json};

use crate::call::Call;
use crate::error::ApiError;

const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
const PREEMPTS: &str = "PreemptLowerPriority";

/// What a class gives to its pods.
struct Class {
    name: String,
    value: i64,
    preemption: String,
}

impl Class {
    fn of(class: &Value) -> Self {
        let text = |field: &Value| field.as_str().map(str::to_owned);
        Self {
            name: text(&class["metadata"]["name"]).unwrap_or_default(),
            value: class["value"].as_i64().unwrap_or_default(),
            preemption: text(&class["preemptionPolicy"]).unwrap_or_else(|| PREEMPTS.to_owned()),
        }
    }

    /// The class of pods that name none: the lowest of those that are for all.
    fn default(call: &Call) -> Option<Self> {
        let state = call.core.store.read();
        let all = state.range(CLASSES, "", None);
        all.map(|class| class.value())
            .filter(|class| class["globalDefault"] == true)
            .map(|class| Self::of(&class))
            .min_by_key(|class| class.value)
    }
}

/// Gives a new pod the priority of its class.
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
        Some(Class::of(&class.value()))
    };
    let class = class.unwrap_or_else(|| Class::of(&Value::Null));
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
