//! Objects that a Cluster or a Machine refers to, and the derived conditions.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use api::conditions::{Reason, Status, Type, Verdict};
use api::core::v1beta2::ContractReference;
use api::kube::api::DynamicObject;
use api::kube::{Resource, ResourceExt};
use api::names::CLUSTER_NAME_LABEL;
use operator::retry::Retry;
use operator::words::chain;

use super::{Contract, External, ExternalError, contract};
use crate::duties::Duties;
use crate::owners;

/// Observed state of a referenced object.
#[derive(Clone, Debug)]
pub(crate) enum Referenced {
    /// The reference is not set.
    Nothing,
    /// The object does not exist.
    Missing,
    /// The object exists.
    There(Arc<DynamicObject>, Contract),
    /// The object could not be read.
    Unreadable(String),
}

impl External {
    /// Reads the object in a `reference` of `subject`, in the cluster `cluster_name`, and adds `subject` as its
    /// owner.
    pub(crate) async fn read_and_own<K, E>(
        &self,
        subject: &K,
        cluster_name: &str,
        reference: Option<&ContractReference>,
        duties: &mut Duties<E>,
    ) -> Referenced
    where
        K: Resource<DynamicType = ()>,
        E: Error + Retry + From<ExternalError> + 'static,
    {
        let Some(reference) = reference else {
            return Referenced::Nothing;
        };
        let namespace = subject.namespace().unwrap_or_default();
        let (object, contract) = match self.read(reference, &namespace).await {
            Ok((Some(object), contract)) => (object, contract),
            Ok((None, _)) => return Referenced::Missing,
            Err(error) => {
                let text = chain(&error);
                duties.note(Err::<(), _>(error));
                return Referenced::Unreadable(text);
            }
        };
        let labels = BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), cluster_name.to_owned())]);
        let owner = owners::controller(subject);
        duties.note(self.ensure_owner(&object, &owner, &labels).await);
        Referenced::There(object, contract)
    }

    async fn read(
        &self,
        reference: &ContractReference,
        namespace: &str,
    ) -> Result<(Option<Arc<DynamicObject>>, Contract), ExternalError> {
        let kind = self.kind(&reference.api_group, &reference.kind).await?;
        let object = self.get(reference, namespace).await?;
        Ok((object, kind.contract))
    }
}

/// Object's condition `from` as the condition `type_`. Without that condition, `done` decides: true if the object
/// reports by the contract that its `task`, such as `create the machine`, is done.
pub(crate) fn mirrored(
    type_: Type,
    object: &DynamicObject,
    from: Type,
    done: bool,
    task: &str,
) -> Verdict {
    let (good, bad) = match from {
        Type::Available => (Reason::Available, Reason::NotAvailable),
        _ => (Reason::Ready, Reason::NotReady),
    };
    if let Some(seen) = contract::condition(object, from) {
        let status = Status::parse(&seen.status);
        let verdict = match seen.reason.as_str() {
            "" if status == Status::True => Verdict::new(type_, status, good),
            "" => Verdict::new(type_, status, bad),
            reason => Verdict::from_reported(type_, status, reason),
        };
        return verdict.because(seen.message);
    }
    if done {
        return Verdict::new(type_, true, good);
    }
    let kind = object
        .types
        .as_ref()
        .map_or("object", |types| types.kind.as_str());
    Verdict::new(type_, false, bad).because(format!("Waiting for {kind} to {task}"))
}

/// Condition `type_` for an object of `kind` that does not exist or could not be read.
pub(crate) fn absent(type_: Type, kind: &str, seen: &Referenced) -> Verdict {
    match seen {
        Referenced::Unreadable(problem) => {
            Verdict::new(type_, Status::Unknown, Reason::InternalError).because(problem)
        }
        _ => Verdict::new(type_, false, Reason::DoesNotExist)
            .because(format!("{kind} does not exist")),
    }
}

/// Condition `type_` for a deleted object of `kind` that a `subject` needs.
pub(crate) fn deleted(type_: Type, kind: &str, subject: &str) -> Verdict {
    Verdict::new(type_, false, Reason::Deleted).because(format!(
        "{kind} has been deleted while the {subject} still exists"
    ))
}
