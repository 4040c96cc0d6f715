//! Authenticators and authorizers beside the server: the counterpart of kube-apiserver's webhooks, within the
//! process.

use futures::future::BoxFuture;

use crate::user::UserInfo;

/// Request to authorize, as in a SubjectAccessReview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Verb, such as `get`; the method in lower case for a request without objects.
    pub verb: String,
    /// API group of the objects; empty for the core group.
    pub group: String,
    /// Resource of the objects, such as `pods`; empty for a request without objects.
    pub resource: String,
    /// Subresource of the objects, such as `exec`.
    pub subresource: String,
    /// Namespace of the objects; empty for cluster-scoped objects, and for all namespaces.
    pub namespace: String,
    /// Name of the object; empty for all.
    pub name: String,
    /// URL path of a request without objects.
    pub path: String,
}

/// Reviewer of tokens and permissions.
pub trait Reviewer: std::fmt::Debug + Send + Sync {
    /// User of a bearer token unknown to the server; `None` if unknown here as well.
    ///
    /// # Errors
    /// The reason why no answer is possible. The request still gets a 401, as from a kube-apiserver with a failing
    /// webhook.
    fn user<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>>;

    /// True if a user may send a request beyond the rules of the server; `false` for no opinion.
    ///
    /// # Errors
    /// The reason for a denial, or why no answer is possible: the reason in the answer, 403.
    fn allows<'a>(
        &'a self,
        user: &'a UserInfo,
        wanted: &'a Access,
    ) -> BoxFuture<'a, Result<bool, String>>;
}
