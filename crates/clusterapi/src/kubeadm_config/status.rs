//! Status of a KubeadmConfig.

use api::bootstrap::v1beta2::{KubeadmConfig, KubeadmConfigInitialization, KubeadmConfigStatus};
use api::conditions::{self, Reason, Status, Type, Verdict};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;

use super::plan::{Plan, Wait};
use super::{BootstrapError, data};
use crate::pause;
use crate::summary::FIRST_NODE;

/// True if the status reports that the bootstrap data exists.
pub(super) fn has_data(config: &KubeadmConfig) -> bool {
    let initialization = config
        .status
        .as_ref()
        .and_then(|status| status.initialization.as_ref());
    initialization.and_then(|steps| steps.data_secret_created) == Some(true)
}

/// True if the status reports the presence or absence of the bootstrap data.
pub(super) fn is_reported(config: &KubeadmConfig) -> bool {
    let status = config.status.as_ref();
    status.is_some_and(|s| conditions::find(&s.conditions, Type::DataSecretAvailable).is_some())
}

/// True if the status reports a pause.
pub(super) fn was_paused(config: &KubeadmConfig) -> bool {
    config
        .status
        .as_ref()
        .is_some_and(|s| conditions::is_true(&s.conditions, pause::PAUSED))
}

/// Object with its status after `plan`; `paused` is the reason of a pause.
pub(super) fn after(
    config: &KubeadmConfig,
    plan: Plan,
    paused: Option<&str>,
    outcome: Result<&Action, &BootstrapError>,
    now: Timestamp,
) -> KubeadmConfig {
    let mut after = config.clone();
    let generation = config.metadata.generation;
    let status = after
        .status
        .get_or_insert_with(KubeadmConfigStatus::default);
    let mut set = |verdict| {
        conditions::set(&mut status.conditions, verdict, generation, now);
    };
    set(pause::verdict(paused));
    if plan == Plan::Paused {
        return after;
    }
    if let Some(verdict) = certificates(plan, outcome) {
        set(verdict);
    }
    let data = data_verdict(plan, outcome);
    let ready = data.status == Status::True;
    set(Verdict::new(Type::Ready, data.status, reason(ready)).because(data.message.as_str()));
    set(data);
    if ready {
        let name = status.data_secret_name.clone();
        status.data_secret_name = name.or_else(|| Some(data::secret_name(&config.name_any())));
        status.initialization = Some(KubeadmConfigInitialization {
            data_secret_created: Some(true),
        });
    }
    if outcome.is_ok() {
        status.observed_generation = generation;
    }
    after
}

fn reason(ready: bool) -> Reason {
    if ready {
        Reason::Ready
    } else {
        Reason::NotReady
    }
}

fn data_verdict(plan: Plan, outcome: Result<&Action, &BootstrapError>) -> Verdict {
    let not_yet = |text: &str| {
        Verdict::new(Type::DataSecretAvailable, false, Reason::NotAvailable).because(text)
    };
    match (plan, outcome) {
        (Plan::Wait(wait), _) => not_yet(match wait {
            Wait::Infrastructure => "Waiting for the Cluster's infrastructure",
            Wait::ControlPlane => FIRST_NODE,
            Wait::Endpoint => "Waiting for the address of the API server",
        }),
        // The data exists even if its token cannot be extended now.
        (Plan::Refresh | Plan::Done | Plan::Restore, _) | (_, Ok(_)) => {
            Verdict::new(Type::DataSecretAvailable, true, Reason::Available)
        }
        (_, Err(error)) => not_yet(&operator::words::chain(error)),
    }
}

fn certificates(plan: Plan, outcome: Result<&Action, &BootstrapError>) -> Option<Verdict> {
    if !matches!(plan, Plan::Init | Plan::Join { .. }) {
        return None;
    }
    match outcome {
        Ok(_) => Some(Verdict::new(
            Type::CertificatesAvailable,
            true,
            Reason::Available,
        )),
        Err(error) if error.is_about_certificates() => {
            let reason = if error.is_waiting() {
                Reason::NotAvailable
            } else {
                Reason::InternalError
            };
            let verdict = Verdict::new(Type::CertificatesAvailable, false, reason);
            Some(verdict.because(operator::words::chain(error)))
        }
        Err(_) => None,
    }
}
