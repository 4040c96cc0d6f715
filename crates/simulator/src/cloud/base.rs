//! Where the services are, for links and the catalog.

use super::service::Service;

/// URL under which a request has reached the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// All services, each below its own segment. URLs of the catalog that only resolve elsewhere are replaced by URLs
    /// below this one.
    All(String),
    /// One service alone.
    One(String),
}

impl Base {
    /// Creates the URL of all services, without a slash at the end.
    pub(crate) fn all(url: &str) -> Self {
        Self::All(url.trim_end_matches('/').to_owned())
    }

    /// Creates the URL of one service, without a slash at the end.
    pub(crate) fn one(url: &str) -> Self {
        Self::One(url.trim_end_matches('/').to_owned())
    }

    /// Returns the base URL.
    pub(crate) fn url(&self) -> &str {
        let (Self::All(url) | Self::One(url)) = self;
        url
    }

    /// Returns the root of a service.
    pub(crate) fn root(&self, service: Service) -> String {
        match self {
            Self::All(url) => format!("{url}/{}", service.segment()),
            Self::One(url) => url.clone(),
        }
    }

    /// Returns the URL of an endpoint for a client of this cloud. If the URL has the standard port of a service, as in
    /// catalogs of deployed clouds, the service's URL here takes its place.
    pub(crate) fn endpoint(&self, url: &str) -> String {
        let replaced = || {
            let Self::All(here) = self else { return None };
            // This cloud may itself be at such a port.
            if url
                .strip_prefix(here.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
            {
                return None;
            }
            let (_, rest) = url.split_once("://")?;
            let end = rest.find('/').unwrap_or(rest.len());
            let (host, path) = rest.split_at(end);
            let port = host.rsplit_once(':')?.1.parse().ok()?;
            let service = Service::of_port(port)?;
            Some(format!("{}{path}", self.root(service)))
        };
        replaced().unwrap_or_else(|| url.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_standard_ports_lead_to_the_service_here() {
        let all = Base::all("http://127.0.0.1:4/");
        for (url, expected) in [
            ("http://nova:8774/v2.1", "http://127.0.0.1:4/compute/v2.1"),
            ("https://cloud.example:9292", "http://127.0.0.1:4/image"),
            ("http://keystone:5000/v3", "http://127.0.0.1:4/identity/v3"),
            ("http://other:81/x", "http://other:81/x"),
            ("http://other/x:5000", "http://other/x:5000"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(all.endpoint(url), expected);
        }
        let standard = Base::all("http://127.0.0.1:8774");
        let image = "http://127.0.0.1:8774/image";
        assert_eq!(standard.endpoint(image), image);
        assert_eq!(standard.endpoint("http://127.0.0.1:9292"), image);
        let one = Base::one("http://keystone:5000");
        assert_eq!(one.endpoint("http://nova:8774"), "http://nova:8774");
        assert_eq!(one.root(Service::Identity), "http://keystone:5000");
    }
}
