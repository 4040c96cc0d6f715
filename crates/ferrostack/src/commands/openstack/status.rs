//! `openstack status`: progress of a cloud.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use api::openstack::conditions::Type;
use api::openstack::v1alpha1::{OpenStack, Phase, StepStatus};
use api::{conditions, printable};
use operator::client::Api;
use serde_json::json;

use super::{site, upgrade};
use crate::cli::{OpenStackStatus, Output, PlaceArgs};
use crate::environment::Environment;

/// Status of a cloud as text or JSON.
pub(crate) async fn status(
    args: &OpenStackStatus,
    environment: &Environment,
) -> anyhow::Result<String> {
    let (name, namespace) = (&args.cloud.name, &args.cloud.namespace);
    let client = site::client(&args.cloud.place, environment).await?;
    let api: Api<OpenStack> = Api::namespaced(client, namespace);
    let found = api.get_opt(name).await;
    let Some(cloud) = found.with_context(|| format!("cannot read OpenStack {namespace}/{name}"))?
    else {
        bail!(
            "there is no cloud {name} in namespace {namespace}: make one with `{} openstack up`",
            environment.program
        );
    };
    match args.output.output {
        Output::Text => Ok(text(&cloud, dashboard(&cloud, &args.cloud.place))),
        Output::Json => {
            let document = json!({
                "name": name, "namespace": namespace, "release": cloud.spec.release,
                "dashboard": dashboard(&cloud, &args.cloud.place), "status": cloud.status,
            });
            Ok(terminal::json(&document)?)
        }
    }
}

/// URL of Horizon for browsers; `None` without one: inside the cluster alone, or on simulated nodes.
fn dashboard(cloud: &OpenStack, place: &PlaceArgs) -> Option<String> {
    url(cloud).filter(|_| !site::is_simulated(place))
}

/// URL of Horizon at the edge, if any.
pub(super) fn url(cloud: &OpenStack) -> Option<String> {
    let exposure = cloud.spec.exposure.as_ref()?;
    (exposure.mode == "Edge").then(|| format!("https://{}/", exposure.host))
}

fn text(cloud: &OpenStack, dashboard: Option<String>) -> String {
    let status = cloud.status.clone().unwrap_or_default();
    let mut text = String::new();
    let name = cloud.metadata.name.as_deref().unwrap_or_default();
    let _ = write!(text, "cloud {name}, release {}: ", cloud.spec.release);
    if cloud.spec.paused {
        let _ = write!(
            text,
            "paused (`paused: false` lets it go on); before it was "
        );
    }
    let _ = match conditions::find(&status.conditions, Type::Ready) {
        None if cloud.spec.paused => writeln!(text, "not made"),
        None => writeln!(text, "no controller has reconciled it yet"),
        Some(ready) if ready.status == "True" => writeln!(text, "ready"),
        Some(ready) => writeln!(text, "not ready: {}", printable::line(&ready.message)),
    };
    let upgrade = upgrade::line(cloud);
    if !upgrade.is_empty() {
        let _ = writeln!(text, "{}", printable::line(&upgrade));
    }
    if let Some(url) = dashboard {
        let _ = writeln!(text, "dashboard: {}", printable::line(&url));
    }
    for step in &status.steps {
        let _ = writeln!(text, "  {}", line(step));
    }
    for condition in &status.conditions {
        if condition.type_ != Type::Ready && !condition.message.is_empty() {
            let _ = writeln!(
                text,
                "{}: {}",
                condition.type_,
                printable::line(&condition.message)
            );
        }
    }
    text
}

/// [`StepStatus`] in a line.
pub(super) fn line(step: &StepStatus) -> String {
    let StepStatus {
        name,
        phase,
        message,
        seconds,
        ..
    } = step;
    let message = printable::line(message);
    match (phase, seconds) {
        (Phase::Ready, Some(seconds)) => format!("{name:<32} ready after {seconds} s"),
        (Phase::Ready, None) => format!("{name:<32} ready"),
        (Phase::Failed, _) => format!("{name:<32} failed: {message}"),
        (Phase::Waiting | Phase::Progressing, _) => format!("{name:<32} {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud(exposure: serde_json::Value) -> OpenStack {
        let object = json!({"apiVersion": "ferrostack.dev/v1alpha1", "kind": "OpenStack",
            "metadata": {"name": "cloud"}, "spec": {"release": "2026.1", "exposure": exposure}});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn the_message_of_a_step_is_on_its_line() {
        let mut cloud = cloud(json!({"mode": "None"}));
        let steps = json!({"steps": [
            {"name": "nova", "phase": "Failed", "message": "x\u{1b}[2J\ncloud cloud: ready"},
        ], "conditions": [
            {"type": "Ready", "status": "False", "reason": "R", "message": "a\nb", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]});
        cloud.status = Some(serde_json::from_value(steps).unwrap());
        let printed = text(&cloud, None);
        assert_eq!(printed.lines().count(), 2, "{printed}");
        assert!(printed.contains("failed: x\\u{1b}[2J\\ncloud"), "{printed}");
    }

    #[test]
    fn the_dashboard_is_named_where_there_is_an_edge() {
        let edge = cloud(json!({"mode": "Edge", "host": "cloud.test"}));
        let printed = text(&edge, url(&edge));
        assert!(
            printed.contains("\ndashboard: https://cloud.test/\n"),
            "{printed}"
        );
        let none = cloud(json!({"mode": "None"}));
        assert_eq!(url(&none), None);
        assert!(!text(&none, None).contains("dashboard"));
    }

    #[test]
    fn a_paused_cloud_is_not_simply_ready() {
        let mut cloud = cloud(json!({"mode": "None"}));
        cloud.spec.paused = true;
        let line = |cloud: &OpenStack| text(cloud, None).lines().next().unwrap().to_owned();
        let begin =
            "cloud cloud, release 2026.1: paused (`paused: false` lets it go on); before it was ";
        assert_eq!(line(&cloud), format!("{begin}not made"));
        let status = json!({"conditions": [
            {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]});
        cloud.status = Some(serde_json::from_value(status).unwrap());
        assert_eq!(line(&cloud), format!("{begin}ready"));
    }
}
