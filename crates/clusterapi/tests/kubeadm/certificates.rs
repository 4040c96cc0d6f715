//! The expiry of the certificates of API servers, and rollouts before it.

use api::bootstrap::v1beta2::KubeadmConfig;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::names::CERTIFICATES_EXPIRY_ANNOTATION;
use serde_json::json;

use crate::world::{World, eventually};

/// Waits until the status of each machine has a certificate that expires after this many days.
async fn expiring_in(world: &World, days: i64) {
    eventually(
        &format!("certificates that expire in {days} days"),
        || async {
            for machine in world.list::<Machine>().await {
                let expiry = machine.status.unwrap_or_default().certificates_expiry_date;
                let Some(expiry) = expiry else {
                    return Err(format!("{:?} has none", machine.metadata.name));
                };
                // The certificates were issued a moment ago.
                let left = expiry.0.as_second() - Timestamp::now().as_second();
                if !(days * 86_400 - 3600..=days * 86_400).contains(&left) {
                    return Err(format!("{:?}: {}", machine.metadata.name, expiry.0));
                }
            }
            Ok(())
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_expiry_of_each_api_servers_certificate_is_recorded_once() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    expiring_in(&world, 365).await;
    for config in world.list::<KubeadmConfig>().await {
        let text = &config.annotations()[CERTIFICATES_EXPIRY_ANNOTATION];
        assert!(
            text.parse::<Timestamp>().is_ok() && text.len() == 20,
            "{text}"
        );
    }
    assert_eq!(world.members.handshakes(), 3);
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    assert_eq!(world.members.handshakes(), 3, "asked again at rest");
}

#[tokio::test(start_paused = true)]
async fn machines_are_replaced_before_their_certificates_expire() {
    let world = World::start().await;
    world.members.certificates_last(20);
    world.cluster(3).await;
    world.settled(3).await;
    expiring_in(&world, 20).await;
    let before = world.machine_names().await;
    world.members.certificates_last(300);
    let rollout = |days| json!({"spec": {"rollout": {"before": {"certificatesExpiryDays": days}}}});
    world
        .merge::<KubeadmControlPlane>("demo", rollout(19))
        .await;
    world.settled(3).await;
    assert_eq!(
        world.machine_names().await,
        before,
        "they are valid for longer"
    );
    world
        .merge::<KubeadmControlPlane>("demo", rollout(21))
        .await;
    world
        .condition(
            "RollingOut",
            "True",
            "Certificates expire in less than 21 days",
        )
        .await;
    eventually("new machines", || async {
        let names = world.machine_names().await;
        if names.iter().any(|name| before.contains(name)) {
            return Err(format!("{names:?}"));
        }
        Ok(())
    })
    .await;
    world.settled(3).await;
    expiring_in(&world, 300).await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_is_asked_again_and_nothing_waits_for_it() {
    let world = World::start().await;
    world.members.refuse_handshakes(true);
    world.cluster(1).await;
    world.settled(1).await;
    let machine = world.list::<Machine>().await.remove(0);
    assert_eq!(machine.status.unwrap().certificates_expiry_date, None);
    world.members.refuse_handshakes(false);
    expiring_in(&world, 365).await;
}
