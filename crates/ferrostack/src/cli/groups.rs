//! Headings of the options in the help of every command, and options listed by `--help` only.

use clap::{Arg, Command};

/// Headings, each with the identifiers of its options.
const GROUPS: [(&str, &[&str]); 19] = [
    (
        "Target",
        &[
            "to_kubeconfig",
            "to_kubeconfig_context",
            "to_directory",
            "from_directory",
            "to_revision",
            "revision",
        ],
    ),
    (
        "Manifests",
        &[
            "files",
            "file",
            "release",
            "values",
            "image",
            "cert_manager",
        ],
    ),
    (
        "Deletion",
        &[
            "delete",
            "yes",
            "without_uid",
            "alone",
            "older_than",
            "with",
        ],
    ),
    (
        "Providers",
        &[
            "core",
            "infrastructure",
            "bootstrap",
            "control_plane",
            "all",
            "include_crd",
            "include_namespace",
            "contract",
            "validate",
        ],
    ),
    (
        "Cloud",
        &[
            "cloud",
            "backup",
            "backup_name",
            "only",
            "switch_cloud",
            "install_ccm",
            "keystone_auth",
            "cloud_config",
            "cloud_name",
            "cloud_provider",
            "from_legacy",
            "user_agent",
            "keystone_ca_file",
            "keystone_timeout",
            "new_tokens_per_second",
            "cache_ttl",
        ],
    ),
    (
        "Users",
        &[
            "scopes",
            "user",
            "group",
            "role",
            "project",
            "username_format",
            "group_format",
            "groups",
            "allowed_domains",
            "allowed_projects",
            "audience",
        ],
    ),
    ("Request", &["verb", "resource", "url", "of_namespace"]),
    (
        "Policy",
        &[
            "policy",
            "sync_config",
            "keystone_policy_file",
            "policy_configmap_name",
            "policy_mode",
            "sync_config_file",
            "sync_configmap_name",
            "prune",
            "prune_interval",
        ],
    ),
    (
        "Login",
        &[
            "keystone_url",
            "os_cloud",
            "user_name",
            "domain_name",
            "project_name",
            "password",
            "application_credential_id",
            "application_credential_name",
            "application_credential_secret",
            "cert",
            "key",
            "cacert",
            "cache",
        ],
    ),
    (
        "Kubeconfig",
        &[
            "keystone",
            "user_entry",
            "exec_version",
            "command",
            "cluster_of",
            "server",
            "certificate_authority",
        ],
    ),
    (
        "Cluster",
        &[
            "cluster",
            "cluster_name",
            "provider",
            "flavor",
            "from",
            "from_config_map",
            "from_config_map_namespace",
            "from_config_map_key",
            "kubernetes_version",
            "control_plane_machine_count",
            "worker_machine_count",
            "target_namespace",
            "config",
        ],
    ),
    (
        "Waiting",
        &[
            "exit_when_ready",
            "detach",
            "wait",
            "state",
            "wait_providers",
            "wait_provider_timeout",
            "watch",
            "follow",
            "timeout",
            "confirm_within",
        ],
    ),
    (
        "Output",
        &[
            "output",
            "search",
            "list_variables",
            "write_to",
            "show_conditions",
            "explain",
            "grouping",
            "no_grouping",
            "show_machinesets",
            "show_resourcesets",
            "show_templates",
            "echo",
            "color",
            "all_namespaces",
            "types",
            "client",
            "merge",
            "hide_api_warnings",
            "raw",
            "kustomize",
            "diff",
        ],
    ),
    (
        "API server",
        &[
            "on",
            "kubeconfig",
            "context",
            "namespace",
            "master",
            "empty",
            "webhook_kubeconfig",
            "apiserver",
            "authorization_config",
            "serve_versions",
        ],
    ),
    (
        "Simulated cloud",
        &[
            "simulated_listen",
            "latency",
            "seed",
            "guests",
            "guest_runner",
            "metadata_address",
            "external_network",
            "clouds_file",
            "state_dir",
            "bind_range",
            "interval",
        ],
    ),
    (
        "Leader election",
        &[
            "leader_elect",
            "leader_elect_lease_duration",
            "leader_elect_renew_deadline",
            "leader_elect_retry_period",
            "leader_elect_resource_name",
            "leader_elect_resource_namespace",
            "leader_elect_resource_lock",
            "leader_election_namespace",
        ],
    ),
    (
        "Addresses",
        &[
            "listen",
            "health_addr",
            "diagnostics_address",
            "insecure_diagnostics",
            "webhook_addr",
            "webhook_url",
            "webhook_cert_dir",
            "shutdown_delay_duration",
            "endpoint",
            "http_endpoint",
            "health_port",
            "kubelet_registration_path",
            "plugin_registration_path",
            "bind_address",
            "secure_port",
            "tls_cert_file",
            "tls_private_key_file",
            "client_ca_file",
            "health_address",
        ],
    ),
    (
        "Controllers",
        &[
            "provide_controller_service",
            "provide_node_service",
            "with_topology",
            "additional_topology",
            "node_volume_attach_limit",
            "search_order",
            "controllers",
            "providers",
            "openstackcluster_concurrency",
            "openstackmachine_concurrency",
            "cluster_concurrency",
            "clusterclass_concurrency",
            "clustertopology_concurrency",
            "machine_concurrency",
            "machineset_concurrency",
            "machinedeployment_concurrency",
            "machinehealthcheck_concurrency",
            "clusterresourceset_concurrency",
            "kubeadmconfig_concurrency",
            "kubeadmcontrolplane_concurrency",
            "clustercache_concurrency",
            "watch_filter",
            "sync_period",
            "skip_crd_migration_phases",
            "additional_sync_machine_labels",
            "additional_sync_machine_annotations",
            "concurrent_node_syncs",
            "concurrent_service_syncs",
            "node_monitor_period",
            "node_status_update_frequency",
            "cluster_cidr",
            "configure_cloud_routes",
            "route_reconciliation_period",
            "bootstrap_timeout",
            "ca_certs",
        ],
    ),
    ("Global options", &["log", "log_json", "verbosity"]),
];

/// Options left out by `-h`.
const LONG_ONLY: [&str; 52] = [
    "node_volume_attach_limit",
    "search_order",
    "serve_versions",
    "groups",
    "prune",
    "prune_interval",
    "keystone_timeout",
    "new_tokens_per_second",
    "cache_ttl",
    "audience",
    "client_ca_file",
    "group_format",
    "allowed_projects",
    "sync_configmap_name",
    "plugin_registration_path",
    "switch_cloud",
    "simulated_listen",
    "guest_runner",
    "metadata_address",
    "external_network",
    "listen",
    "bootstrap_timeout",
    "ca_certs",
    "log_json",
    "user_agent",
    "leader_elect_lease_duration",
    "leader_elect_renew_deadline",
    "leader_elect_retry_period",
    "leader_elect_resource_name",
    "leader_elect_resource_namespace",
    "leader_elect_resource_lock",
    "openstackcluster_concurrency",
    "openstackmachine_concurrency",
    "cluster_concurrency",
    "clusterclass_concurrency",
    "clustertopology_concurrency",
    "machine_concurrency",
    "machineset_concurrency",
    "machinedeployment_concurrency",
    "machinehealthcheck_concurrency",
    "clusterresourceset_concurrency",
    "kubeadmconfig_concurrency",
    "kubeadmcontrolplane_concurrency",
    "clustercache_concurrency",
    "sync_period",
    "shutdown_delay_duration",
    "skip_crd_migration_phases",
    "additional_sync_machine_labels",
    "additional_sync_machine_annotations",
    "node_monitor_period",
    "node_status_update_frequency",
    "seed",
];

/// Puts the options of a [`Command`] under their headings.
pub(super) fn grouped(command: Command) -> Command {
    let connects = command
        .get_arguments()
        .any(|arg| arg.get_id() == "kubeconfig");
    command.mut_args(|arg| {
        let heading = heading(&arg, connects);
        let long_only = LONG_ONLY.iter().any(|id| arg.get_id() == *id);
        let arg = match heading {
            Some(heading) if !arg.is_positional() => arg.help_heading(heading),
            _ => arg,
        };
        match long_only {
            true => arg.hide_short_help(true),
            false => arg,
        }
    })
}

fn heading(arg: &Arg, connects: bool) -> Option<&'static str> {
    // A data directory is one of several ways to an API server, or what a command is about.
    if arg.get_id() == "data_dir" {
        return Some(if connects { "API server" } else { "Data" });
    }
    // The log of a container that `openstack fault` lets end, in place of the global option.
    if arg.get_id() == "log" && !arg.is_global_set() {
        return None;
    }
    GROUPS
        .iter()
        .find(|(_, ids)| ids.iter().any(|id| arg.get_id() == *id))
        .map(|(heading, _)| *heading)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn identifiers(command: &Command, into: &mut BTreeSet<String>) {
        for arg in command.get_arguments() {
            into.insert(arg.get_id().to_string());
        }
        for below in command.get_subcommands() {
            identifiers(below, into);
        }
    }

    #[test]
    fn a_log_of_a_container_is_no_global_option() {
        let command = crate::cli::command();
        let of = |path: &[&str]| {
            let find = |at: &Command, name: &&str| at.find_subcommand(name).cloned();
            let command = path
                .iter()
                .try_fold(command.clone(), |at, name| find(&at, name));
            let arg = command?
                .get_arguments()
                .find(|arg| arg.get_id() == "log")
                .cloned();
            arg.map(|arg| arg.get_help_heading().map(str::to_owned))
        };
        assert_eq!(of(&["openstack", "fault", "container"]), Some(None));
        assert_eq!(of(&[]), Some(Some("Global options".to_owned())));
    }

    #[test]
    fn every_identifier_in_a_group_is_that_of_an_option_and_in_one_group() {
        let mut known = BTreeSet::new();
        identifiers(&Cli::command(), &mut known);
        let mut seen = BTreeSet::new();
        for id in GROUPS.iter().flat_map(|(_, ids)| ids.iter()) {
            assert!(known.contains(*id), "there is no option {id}");
            assert!(seen.insert(*id), "{id} is in two groups");
        }
        for id in LONG_ONLY {
            assert!(known.contains(id), "there is no option {id}");
        }
    }
}
