//! Keystone v3.

mod assignments;
mod bootstrap;
mod catalog;
mod credentials;
mod directory;
mod domains;
mod factors;
mod federation;
mod groups;
mod login;
mod mapping;
mod oidc;
mod rules;
mod tokens;
mod trusts;
mod validation;

use http::Method;

use super::route::{Access, Routes};
use super::service::Service;

pub(crate) use self::assignments::assignment_doc;
pub(crate) use self::bootstrap::Bootstrap;
pub(crate) use self::bootstrap::{bootstrap, operator};
pub(crate) use self::catalog::seed as seed_catalog;
pub(crate) use self::directory::{project_doc, role_doc, user_doc};
#[cfg(test)]
pub(crate) use self::factors::code;
pub(crate) use self::oidc::{Consent, OidcAccounts, Provider, ROOT as OIDC};
pub(crate) use self::tokens::hashed;
pub(crate) use self::validation::{authenticate, project_of};

/// Route of tokens, which does not count as a write.
pub(crate) const TOKENS: &str = "/v3/auth/tokens";

/// Registers Keystone's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Identity);
    table
        .on(Method::POST, TOKENS, Access::Open, tokens::issue)
        .on(Method::GET, TOKENS, Access::Token, validation::show)
        .on(Method::DELETE, TOKENS, Access::Token, validation::revoke)
        .on(
            Method::GET,
            "/v3/auth/catalog",
            Access::Token,
            tokens::show_catalog,
        )
        .on(
            Method::GET,
            "/v3/auth/projects",
            Access::Token,
            directory::projects_of_user,
        )
        .on(
            Method::GET,
            "/v3/users/{user_id}/projects",
            Access::Token,
            directory::projects_of_user,
        )
        .on(
            Method::GET,
            "/v3/projects",
            Access::Token,
            directory::projects,
        )
        .on(
            Method::POST,
            "/v3/projects",
            Access::Admin,
            directory::create_project,
        )
        .on(
            Method::GET,
            "/v3/projects/{id}",
            Access::Token,
            directory::project,
        )
        .on(
            Method::PATCH,
            "/v3/projects/{id}",
            Access::Admin,
            directory::update_project,
        )
        .on(
            Method::DELETE,
            "/v3/projects/{id}",
            Access::Admin,
            directory::delete_project,
        )
        .on(Method::GET, "/v3/users", Access::Token, directory::users)
        .on(
            Method::POST,
            "/v3/users",
            Access::Admin,
            directory::create_user,
        )
        .on(
            Method::GET,
            "/v3/users/{id}",
            Access::Token,
            directory::user,
        )
        .on(
            Method::PATCH,
            "/v3/users/{id}",
            Access::Admin,
            directory::update_user,
        )
        .on(
            Method::DELETE,
            "/v3/users/{id}",
            Access::Admin,
            directory::delete_user,
        )
        .on(Method::GET, "/v3/roles", Access::Token, directory::roles)
        .on(
            Method::POST,
            "/v3/roles",
            Access::Admin,
            directory::create_role,
        )
        .on(
            Method::DELETE,
            "/v3/roles/{id}",
            Access::Admin,
            directory::delete_role,
        )
        .on(
            Method::GET,
            "/v3/roles/{id}",
            Access::Token,
            directory::role,
        );
    let many = "/v3/users/{user_id}/application_credentials";
    let one = "/v3/users/{user_id}/application_credentials/{id}";
    table
        .on(Method::GET, many, Access::Token, credentials::list)
        .on(Method::POST, many, Access::Token, credentials::create)
        .on(Method::GET, one, Access::Token, credentials::show)
        .on(Method::DELETE, one, Access::Token, credentials::delete);
    assignments::routes(&mut table);
    domains::routes(&mut table);
    factors::routes(&mut table);
    federation::routes(&mut table);
    oidc::routes(&mut table);
    groups::routes(&mut table);
    catalog::routes(&mut table);
    trusts::routes(&mut table);
}
