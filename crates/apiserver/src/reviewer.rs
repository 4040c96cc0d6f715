//! Others who know users that the server does not, and what these may do: what webhooks are to a kube-apiserver, within
//! the process.

use futures::future::BoxFuture;

use crate::user::UserInfo;

/// What a user wants to do, as in a SubjectAccessReview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The verb, such as `get`; of a request that is not for objects, the method in lower case.
    pub verb: String,
    /// The API group of the objects; empty for the core group.
    pub group: String,
    /// Their resource, such as `pods`; empty for a request that is not for objects.
    pub resource: String,
    /// Their subresource, such as `exec`.
    pub subresource: String,
    /// Their namespace; empty for those of the cluster, and for all namespaces.
    pub namespace: String,
    /// The name of the object; empty for all.
    pub name: String,
    /// The URL path of a request that is not for objects.
    pub path: String,
}

/// Asked for the users of tokens, and for permissions.
pub trait Reviewer: std::fmt::Debug + Send + Sync {
    /// The user of a bearer token that is none of the server's; `None` if it is not known.
    ///
    /// # Errors
    /// Why it cannot be told. The request is answered 401 all the same, as a kube-apiserver does whose webhook fails.
    fn user<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>>;

    /// Whether a user may do what the rules of the server do not allow; `false` for no opinion.
    ///
    /// # Errors
    /// Why not, or why it cannot be told: the reason in the answer, 403.
    fn allows<'a>(
        &'a self,
        user: &'a UserInfo,
        wanted: &'a Access,
    ) -> BoxFuture<'a, Result<bool, String>>;
}
