//! Next step by messages of clouds and kubelets, for any reason of the condition.

use api::conditions::Reason;

use super::Case;
use crate::snapshot::{Item, Kind};

/// Resources named in a spec, and the command that lists such resources in the cloud. The first match counts.
const LISTS: [(&[&str], &str); 10] = [
    (&["key pair", "keypair"], "keypair list"),
    (&["flavor"], "flavor list"),
    (&["server group"], "server group list"),
    (&["security group"], "security group list"),
    (&["volume type"], "volume type list"),
    (&["image"], "image list"),
    (&["zone"], "availability zone list"),
    (&["floating ip"], "floating ip list"),
    (&["subnet"], "subnet list"),
    (&["network"], "network list"),
];

/// Command of the OpenStack client that lists the resources of a message of the cloud.
pub(super) fn list(message: &str) -> Option<String> {
    let lower = message.to_lowercase();
    let is_about = |words: &&[&str]| words.iter().any(|word| lower.contains(word));
    let found = LISTS.iter().find(|(words, _)| is_about(words));
    found.map(|(_, command)| format!("openstack {command}"))
}

/// True for the words of an API server that cannot resolve the name of a Node.
fn is_unresolved(message: &str) -> bool {
    message.contains("dialing backend") && message.contains("no such host")
}

impl Case<'_> {
    /// Next step by the words.
    pub(super) fn of_words(&self) -> Option<String> {
        let lower = self.detail().to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if has(&["quota"]) {
            return Some(
                "raise the quota of the project (`openstack quota set`), or free some of it; it is then tried again by itself"
                    .to_owned(),
            );
        }
        if has(&["no valid host", "not enough hosts"]) {
            return Some(format!(
                "choose a smaller flavor or another availability zone, or make room on the hypervisors; then {}",
                self.replacement()
            ));
        }
        if lower.contains("load balancer") && has(&["15 minutes", "is in error"]) {
            return Some(
                "see what Octavia says: openstack loadbalancer list, openstack loadbalancer status show ID. An administrator sees to its \
                 workers (openstack loadbalancer amphora list); one that is deleted (openstack loadbalancer delete --cascade ID) is created \
                 again by itself"
                    .to_owned(),
            );
        }
        if has(&["cni", "network plugin"]) {
            return Some(
                "install a network plugin (CNI) in the workload cluster; a ClusterResourceSet does it for every cluster"
                    .to_owned(),
            );
        }
        if is_unresolved(self.detail()) || self.machines_have_no_address() {
            return Some(format!(
                "its Node has no address, which a cloud controller manager sets: see whether {}",
                self.cloud_controller_manager()
            ));
        }
        // A Node that has not joined has no providerID for other reasons, too.
        let waits_for_node = self.finding.reason == Reason::NodeDoesNotExist;
        if !waits_for_node && has(&["uninitialized", "cloud provider", "providerid"]) {
            return Some(format!("see whether {}", self.cloud_controller_manager()));
        }
        None
    }

    /// True if the API server knows the Node of a Machine of this control plane by its name alone, which it cannot resolve.
    fn machines_have_no_address(&self) -> bool {
        self.snapshot
            .owned(self.last, Kind::Machine)
            .flat_map(Item::conditions)
            .any(|it| is_unresolved(it.message))
    }

    /// Check for a cloud controller manager, and the way to install one.
    pub(super) fn cloud_controller_manager(&self) -> String {
        format!(
            "a cloud controller manager runs in the workload cluster: {} generate cloud-controller-manager prints one, and up --cloud NAME --install-ccm installs it",
            self.commands.program
        )
    }
}
