//! Templates of clusters, built into the program.

/// Embedded templates, by the names of their files in a release.
pub const FILES: [(&str, &str); 7] = [
    (
        "cluster-template.yaml",
        include_str!("../../../config/templates/cluster-template.yaml"),
    ),
    (
        "cluster-template-without-lb.yaml",
        include_str!("../../../config/templates/cluster-template-without-lb.yaml"),
    ),
    (
        "cluster-template-flatcar.yaml",
        include_str!("../../../config/templates/cluster-template-flatcar.yaml"),
    ),
    (
        "cluster-template-flatcar-sysext.yaml",
        include_str!("../../../config/templates/cluster-template-flatcar-sysext.yaml"),
    ),
    (
        "cluster-template-topology.yaml",
        include_str!("../../../config/templates/cluster-template-topology.yaml"),
    ),
    (
        "clusterclass-dev-test.yaml",
        include_str!("../../../config/templates/clusterclass-dev-test.yaml"),
    ),
    (
        "cluster-template-capi-v1beta1.yaml",
        include_str!("../../../config/templates/cluster-template-capi-v1beta1.yaml"),
    ),
];
