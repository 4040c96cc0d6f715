//! Options for the pods of nodes, which have no cloud.conf.

use clap::Args;
use cloud_conf::{CloudConf, MetadataSource};

/// Limit of volumes of a node, and search order for the server of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct OnNode {
    /// Volumes that a node may have, up to 256; 0 counts the slots of its bus [default: that of cloud.conf, or 0].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(0..=256))]
    pub(crate) node_volume_attach_limit: Option<u32>,
    /// Where the node service finds out which server it is on: configDrive, metadataService [default: that of cloud.conf, or
    /// both].
    #[arg(long, value_name = "SOURCES")]
    pub(crate) search_order: Option<SearchOrder>,
}

/// [`MetadataSource`]s, the first one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchOrder(Vec<MetadataSource>);

impl std::str::FromStr for SearchOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        MetadataSource::order(text).map(Self)
    }
}

impl OnNode {
    /// Options in a [`CloudConf`] that differ from the defaults.
    pub(crate) fn from_conf(conf: &CloudConf) -> Self {
        let order = &conf.metadata.search_order;
        let is_default = *order == CloudConf::default().metadata.search_order;
        Self {
            node_volume_attach_limit: conf.block_storage.node_volume_attach_limit,
            search_order: (!is_default).then(|| SearchOrder(order.clone())),
        }
    }

    /// These options, completed by the options of `other`.
    pub(crate) fn or(&self, other: Self) -> Self {
        let order = self.search_order.clone();
        Self {
            node_volume_attach_limit: self
                .node_volume_attach_limit
                .or(other.node_volume_attach_limit),
            search_order: order.or(other.search_order),
        }
    }

    /// Maximum of volumes of a node; `None` counts the slots of its bus.
    pub(crate) fn limit(&self, conf: &CloudConf) -> Option<u32> {
        match self.node_volume_attach_limit {
            Some(limit) => Some(limit).filter(|it| *it > 0),
            None => conf.block_storage.node_volume_attach_limit,
        }
    }

    /// [`MetadataSource`]s for the search of the server.
    pub(crate) fn order<'a>(&'a self, conf: &'a CloudConf) -> &'a [MetadataSource] {
        match &self.search_order {
            Some(order) => &order.0,
            None => &conf.metadata.search_order,
        }
    }

    /// Names and values of the given flags.
    pub(crate) fn flags(&self) -> Vec<(&'static str, String)> {
        let limit = self.node_volume_attach_limit;
        let order = self.search_order.as_ref().map(|it| {
            let names = it.0.iter().map(|it| it.name());
            names.collect::<Vec<_>>().join(",")
        });
        let all = [
            ("--node-volume-attach-limit", limit.map(|it| it.to_string())),
            ("--search-order", order),
        ];
        let all = all.into_iter();
        all.filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}
