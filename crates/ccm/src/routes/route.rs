//! Route, and the record of this cluster's routes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use openstack::network::{ExtraRoute, Router};

/// Route to the pods of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Route {
    pub(crate) destination: IpNet,
    /// Address of the node.
    pub(crate) next_hop: IpAddr,
}

impl Route {
    fn parse(destination: &str, next_hop: &str) -> Option<Self> {
        Some(Self {
            destination: destination.parse().ok()?,
            next_hop: next_hop.parse().ok()?,
        })
    }

    /// Routes of a [`Router`] in the usual form.
    pub(crate) fn of_router(router: &Router) -> BTreeSet<Self> {
        let routes = router.routes.iter();
        routes
            .filter_map(|route| Self::parse(&route.destination, &route.nexthop))
            .collect()
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} via {}", self.destination, self.next_hop)
    }
}

impl From<&Route> for ExtraRoute {
    fn from(route: &Route) -> Self {
        Self {
            destination: route.destination.to_string(),
            nexthop: route.next_hop.to_string(),
        }
    }
}

/// [`Route`]s of this cluster, existing or about to be created, by router. No other route is ever removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record(pub(crate) BTreeMap<String, BTreeSet<Route>>);

impl Record {
    pub(crate) fn of(&self, router: &str) -> BTreeSet<Route> {
        self.0.get(router).cloned().unwrap_or_default()
    }

    /// Text for each router: one line for each route.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let lines = |routes: &BTreeSet<Route>| {
            let lines = routes.iter().map(|route| format!("{route}\n"));
            lines.collect::<String>()
        };
        let kept = self.0.iter().filter(|(_, routes)| !routes.is_empty());
        kept.map(|(router, routes)| (router.clone(), lines(routes)))
            .collect()
    }

    /// Reads the texts.
    ///
    /// # Errors
    /// Names the invalid line.
    pub(crate) fn parse<'a>(
        texts: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<Self, String> {
        let mut record = Self::default();
        for (router, text) in texts {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let routes = lines.map(|line| {
                let parts = line.split_once(" via ");
                let route = parts.and_then(|(to, hop)| Route::parse(to.trim(), hop.trim()));
                route.ok_or_else(|| {
                    format!("{router}: `{line}` is not of the form CIDR via ADDRESS")
                })
            });
            let routes = routes.collect::<Result<_, _>>()?;
            record.0.insert(router.clone(), routes);
        }
        Ok(record)
    }
}
