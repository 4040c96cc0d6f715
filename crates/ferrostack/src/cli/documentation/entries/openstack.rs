//! Commands of an OpenStack on Kubernetes.

use super::{Entry, entry};

pub(super) const ENTRIES: [Entry; 19] = [
    entry(
        "openstack",
        "openstack.md",
        &[(
            "Print the configuration of every service",
            "ferrostack openstack config -f cloud.yaml",
        )],
    ),
    entry(
        "openstack up",
        "openstack.md",
        &[
            (
                "Rehearse a parameter file on a simulated cloud",
                "ferrostack openstack up -f cloud.yaml --set network.mtu=9000",
            ),
            (
                "Deploy a cloud in a cluster",
                "ferrostack openstack up -f cloud.yaml --context mycluster --exit-when-ready",
            ),
        ],
    ),
    entry(
        "openstack upgrade",
        "openstack-upgrade.md",
        &[
            (
                "Hold a cloud against the next release, and change nothing",
                "ferrostack openstack upgrade --to 2026.1 --check --context mycluster",
            ),
            (
                "Upgrade it",
                "ferrostack openstack upgrade --to 2026.1 --context mycluster",
            ),
            (
                "Go back while no program of the new release has started",
                "ferrostack openstack upgrade --abort --context mycluster",
            ),
        ],
    ),
    entry(
        "openstack backup",
        "openstack-backup.md",
        &[(
            "Back up a cloud, and wait",
            "ferrostack openstack backup --context mycluster",
        )],
    ),
    entry(
        "openstack restore",
        "openstack-backup.md",
        &[(
            "Restore a backup",
            "ferrostack openstack restore --backup cloud-20261129-020000 --context mycluster",
        )],
    ),
    entry(
        "openstack rotate",
        "openstack-rotation.md",
        &[
            (
                "Replace all passwords and keys of a cloud, and wait",
                "ferrostack openstack rotate --context mycluster",
            ),
            (
                "Replace those of Nova in the databases and in Keystone",
                "ferrostack openstack rotate --only database-nova,identity-nova --context mycluster",
            ),
        ],
    ),
    entry(
        "openstack status",
        "openstack.md",
        &[(
            "Show what each step is waiting for",
            "ferrostack openstack status --context mycluster",
        )],
    ),
    entry(
        "openstack why",
        "openstack.md#why-it-is-not-ready",
        &[
            (
                "Print every root cause in a cloud",
                "ferrostack openstack why --context mycluster",
            ),
            (
                "Print the root cause for one program",
                "ferrostack openstack why nova-api --context mycluster",
            ),
        ],
    ),
    entry(
        "openstack clouds-yaml",
        "openstack.md#logging-in",
        &[(
            "Log in to a cloud in a cluster",
            "ferrostack openstack clouds-yaml --context mycluster > clouds.yaml",
        )],
    ),
    entry(
        "openstack apply",
        "openstack.md#the-plan",
        &[(
            "Apply exactly the plan that was shown",
            "ferrostack openstack apply --plan 3f2a0b1c9d8e7f60 -f cloud.yaml --context mycluster",
        )],
    ),
    entry(
        "openstack delete",
        "openstack.md",
        &[
            (
                "Delete a cloud, but keep its data",
                "ferrostack openstack delete --context mycluster",
            ),
            (
                "Delete everything, with volumes, passwords and keys",
                "ferrostack openstack delete --context mycluster --purge-data",
            ),
        ],
    ),
    entry(
        "openstack config",
        "openstack.md",
        &[
            (
                "Print the configuration of every service",
                "ferrostack openstack config -f cloud.yaml",
            ),
            (
                "Explain an option and its value",
                "ferrostack openstack config nova --explain scheduler.workers",
            ),
        ],
    ),
    entry(
        "openstack fault",
        "openstack.md",
        &[
            ("List what is faulty", "ferrostack openstack fault"),
            (
                "Let a service of the rehearsal crash",
                "ferrostack openstack fault container nova-api --log no-database",
            ),
        ],
    ),
    entry(
        "openstack fault node",
        "openstack.md",
        &[
            ("Turn off a node", "ferrostack openstack fault node node-0"),
            (
                "Turn it on again",
                "ferrostack openstack fault node node-0 --mend",
            ),
        ],
    ),
    entry(
        "openstack fault image",
        "openstack.md",
        &[(
            "Take an image from all nodes",
            "ferrostack openstack fault image ferrostack-openstack:2026.1",
        )],
    ),
    entry(
        "openstack fault container",
        "openstack.md",
        &[(
            "Let the containers of a name end with a status and a log",
            "ferrostack openstack fault container keystone-api --status 3 --log no-database",
        )],
    ),
    entry(
        "openstack fault mend-all",
        "openstack.md",
        &[("Mend everything", "ferrostack openstack fault mend-all")],
    ),
    entry(
        "openstack sample",
        "openstack.md",
        &[(
            "Write a parameter file to be edited",
            "ferrostack openstack sample > cloud.yaml",
        )],
    ),
    entry(
        "openstack plan",
        "openstack.md",
        &[
            (
                "Show what would be changed in a cluster",
                "ferrostack openstack plan -f cloud.yaml --context mycluster",
            ),
            (
                "Show all objects of a cloud",
                "ferrostack openstack plan -f cloud.yaml --empty",
            ),
        ],
    ),
];
